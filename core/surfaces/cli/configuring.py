"""`the-loop config …`."""

import click

from core.surfaces.cli.printing import EXIT_FAILED, EXIT_OK, print_json, print_line
from core.surfaces.cli.session import Session, output_options


@click.group("config")
def config_group() -> None:
    """The configuration file."""
