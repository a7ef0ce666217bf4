"""`the-loop demo`."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from core.config.location import absolute
from core.domain.rights import ActorKind, Verb, require
from core.surfaces.cli.printing import print_json, print_line
from core.surfaces.cli.session import Session, shared_options


@click.command("demo")
@click.option(
    "--folder", type=click.Path(path_type=Path), default=Path(".demo"), help="Where the demo keeps all it has."
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Of the workspace's page; default: the last one."
)
@shared_options
@click.pass_obj
def demo_command(session: Session, folder: Path, port: int) -> int:
    """The whole product on this machine, without account or network. A workspace's page, and a session in a pane."""
    from core.demo.running import explained, run_demo

    if session.instance is not None and not session.as_operator:
        require(ActorKind.AGENT, Verb.START)  # there is no event log yet in which an override could be told

    def tell(address: Mapping[str, Any]) -> None:
        if session.json:
            print_json(address)
        else:
            print_line(explained(address))
        sys.stdout.flush()

    def tell_end(text: str) -> None:
        if not session.json:
            print_line(text)

    return run_demo(absolute(folder), port, session.environ, tell, tell_end)
