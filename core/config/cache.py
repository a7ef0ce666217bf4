"""The last validated form of each configuration file, so that a command that only reads need not import a validator.

One JSON file for each configuration file, 0600, in `$XDG_CACHE_HOME/the-loop/`. It holds the whole text that was
validated, so "nothing changed" is a comparison and needs no trust in times. Whatever fails here is harmless: the
caller validates again. A cache that another user owns or may write is not read, since it names what runs.
"""

import binascii
import contextlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.config.location import xdg
from core.plainfiles import read_bounded

_LONGEST = 1 << 24  #: bytes; several times a configuration file
_KEPT = 16  #: files; more than this many configurations on one machine are demos and tests of the past
#: what validates outside this folder
_ELSEWHERE = (
    "names.py",
    "domain/durations.py",
    "domain/loopspec.py",
    "domain/schedule.py",
    "harness/claude/arguments.py",
)
_NAMES = ("HOME", "XDG_STATE_HOME")  #: variables that the resolved form depends on


def recall(path: Path, text: str, env: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the resolved form of this very text at this path, or None if it must be validated."""
    entry = _read(_file(path, env))
    if entry is None or entry.get("text") != text or entry.get("for") != _circumstances(path, env):
        return None
    resolved = entry.get("resolved")
    return resolved if isinstance(resolved, dict) else None


def last_valid(path: Path, env: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the resolved form of the last valid text at this path, however old, or None."""
    entry = _read(_file(path, env))
    if entry is None or not isinstance(kept := entry.get("for"), dict) or kept.get("path") != str(path):
        return None
    resolved = entry.get("resolved")
    return resolved if isinstance(resolved, dict) else None


def remember(path: Path, text: str, env: Mapping[str, str], resolved: dict[str, Any]) -> None:
    """Keep the resolved form, by a temporary file and a rename. A folder that cannot be written is passed over."""
    target = _file(path, env)
    temporary = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    entry = {"for": _circumstances(path, env), "text": text, "resolved": resolved}
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(entry, file)
        os.rename(temporary, target)
        _prune(target.parent)
    except (OSError, ValueError):
        with contextlib.suppress(OSError):
            temporary.unlink()


def _file(path: Path, env: Mapping[str, str]) -> Path:
    number = binascii.crc32(os.fsencode(path))
    return xdg(env, "XDG_CACHE_HOME", ".cache") / "the-loop" / f"config-{number:08x}.json"


def _circumstances(path: Path, env: Mapping[str, str]) -> dict[str, Any]:
    """Return what the resolved form depends on besides the text: where it lies, the user's folders, and our code."""
    return {"path": str(path), "env": {name: env.get(name) for name in _NAMES}, "code": _fingerprint()}


def _fingerprint() -> list[list[Any]]:
    """Return name, size and time of each module that takes part in validating: another version validates again."""
    here = os.path.dirname(__file__)
    core = os.path.dirname(here)
    with os.scandir(here) as entries:
        files = [(entry.name, entry.stat()) for entry in entries if entry.name.endswith(".py")]
    files += [(name, os.stat(os.path.join(core, name))) for name in _ELSEWHERE]
    return [[name, found.st_size, found.st_mtime_ns] for name, found in sorted(files)]


def _read(file: Path) -> dict[str, Any] | None:
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as opened:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
                return None
            entry = json.loads(read_bounded(opened, _LONGEST))
    except (OSError, ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _prune(folder: Path) -> None:
    """Remove the oldest, with what a process that was killed left behind."""
    files = sorted(folder.glob("config-*"), key=lambda file: file.stat().st_mtime_ns, reverse=True)
    for file in files[_KEPT:]:
        file.unlink(missing_ok=True)
