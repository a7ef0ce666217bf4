"""Which folders are demos of this user's: noted where no repository can bring a note along.

A demo starts what lies in its folder. One that came with somebody else's files could hold sessions, and so words for an
agent that runs with the rights of whoever types `the-loop demo` beside it.
"""

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from core.config.location import default_state_root
from core.errors import Refused
from core.plainfiles import read_plain
from core.store.files import broken, private_folder, secure_root, write_private

_NOTES = "demos"
_LONGEST = 1 << 16  #: bytes of a note


class NotOurDemo(Refused):
    """The folder is there, and no demo of this user's made it."""

    code = "not_our_demo"

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"{folder} was not made there by a demo of yours; what lies in it would be run",
            f"look into it; then remove it, or give another folder with --folder (`rm -r {folder}`)",
        )


def claim(folder: Path, environ: Mapping[str, str]) -> None:
    """Make the folder, or take the one that an earlier demo of this user's made there.

    Raises NotOurDemo for any other that holds something, StoreBroken where it cannot be made or noted.
    """
    note = _note_of(folder, environ)
    try:
        if folder.exists() and any(folder.iterdir()):
            if _read(note) != _seen(folder):
                raise NotOurDemo(folder)
        else:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            private_folder(note.parent)
            write_private(note, json.dumps(_seen(folder)).encode())
        secure_root(folder)
    except OSError as error:
        raise broken(error, folder, "use the folder for a demo") from error


def _note_of(folder: Path, environ: Mapping[str, str]) -> Path:
    name = sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:16]
    return default_state_root(environ) / _NOTES / f"{name}.json"


def _seen(folder: Path) -> dict[str, Any]:
    """Return what tells the folder from another that is put in its place."""
    return {"folder": os.path.realpath(folder), "inode": folder.stat().st_ino}


def _read(note: Path) -> Any:
    try:
        return json.loads(read_plain(note, _LONGEST))
    except (OSError, ValueError):  # none, or nothing of ours
        return None
