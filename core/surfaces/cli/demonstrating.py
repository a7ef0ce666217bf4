"""`the-loop demo`."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.config.location import absolute
from core.surfaces.cli.printing import print_json, print_line
from core.surfaces.cli.session import Session


def demo(session: Session, folder: Path, port: int) -> int:
    """Run `the-loop demo`."""
    from core.demo.running import explained, run_demo

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
