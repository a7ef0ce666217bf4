"""A configuration that a demo wrote: what brings that up is the demo, since a service alone would have no page."""

import shlex
from pathlib import Path

from core.config.settings import Settings
from core.errors import Refused
from core.plainfiles import open_plain

FILE = "cli-config.yaml"
HEADER = "# Written by `the-loop demo` at each start. Everything it names is in this folder or on loopback.\n"
_USUAL = ".demo"  #: the folder of `make run`


class DemoOnly(Refused):
    """A service was to be started by itself with a demo's configuration."""

    code = "demo_only"

    def __init__(self, settings: Settings) -> None:
        super().__init__(f"{settings.source} is a demo's, whose page and tokens come with it alone", way_up(settings))


def state_root(folder: Path) -> Path:
    """Return where the state of that folder's demo is."""
    return folder / "state"


def demo_folder(settings: Settings) -> Path | None:
    """Return the demo's folder where the configuration is one that a demo wrote, else None."""
    source = settings.source
    if source is None or settings.state_root != state_root(source.parent):
        return None
    try:
        with open_plain(source) as file:
            begins = file.readline(len(HEADER.encode())).decode("utf-8", "replace")
            return source.parent if begins == HEADER else None
    except OSError:
        return None  # it is not there any more, so no demo can be told from anything else


def way_up(settings: Settings) -> str:
    """Return what brings a service up, as a remedy: `the-loop start`, or for a demo's configuration its own command."""
    folder = demo_folder(settings)
    if folder is None:
        return "start it: `the-loop start`"
    command = f"`the-loop demo --folder {shlex.quote(str(folder))}`"
    usual = "`make run`, or " if folder.name == _USUAL else ""
    return f"this brings it up again: {usual}{command}"


def refuse_alone(settings: Settings) -> None:
    """Raise DemoOnly where the configuration is a demo's."""
    if demo_folder(settings) is not None:
        raise DemoOnly(settings)
