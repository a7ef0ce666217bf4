"""`the-loop demo`."""

from pathlib import Path

import click

from core.surfaces.cli.printing import print_line
from core.surfaces.cli.session import Session


@click.command("demo")
@click.option(
    "--folder", type=click.Path(path_type=Path), default=Path(".demo"), help="Where the demo keeps all it has."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Of the workspace's page; default: the last one."
)
@click.pass_obj
def demo_command(session: Session, folder: Path, port: int) -> int:
    """The whole product on this machine: a workspace with a page, a session in a real pane. No account, no network."""
    from core.demo.running import run_demo

    return run_demo(folder.absolute(), port, session.environ, print_line)
