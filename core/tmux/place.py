"""Where the socket of our own tmux server lies: one rule for commands, the service and systemd's units.

tmux itself would put it into /tmp, where whatever sweeps temporary folders may delete it under a server that lives.
Ours lies in the state folder, which nobody sweeps, which does not depend on a login, and which every process of ours
knows. `$TMUX_TMPDIR` goes first where it is set: its owner has said where sockets belong.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from core.values import dataclass

#: What the kernel's sockaddr_un holds, without its NUL.
LONGEST = 107 if sys.platform.startswith("linux") else 103


@dataclass(frozen=True)
class Place:
    """A socket, and whether tmux finds it by its name alone: then it makes the folder itself, and checks its owner."""

    socket: Path
    by_name: bool


def place_of(folder: Path, name: str, environ: Mapping[str, str]) -> Place:
    """Return the place of the server `name` whose files lie in `folder`.

    A state folder whose path is too long for a socket leaves the choice to tmux. The layout below the folder is that
    of tmux, so that `TMUX_TMPDIR=FOLDER/tmux tmux -L NAME` finds the same socket.
    """
    below = Path(f"tmux-{os.geteuid()}") / name
    chosen = environ.get("TMUX_TMPDIR", "")
    own = folder / "tmux" / below
    if not chosen and len(os.fsencode(own)) <= LONGEST:
        return Place(own, by_name=False)
    return Place(Path(chosen if os.path.isdir(chosen) else "/tmp") / below, by_name=True)
