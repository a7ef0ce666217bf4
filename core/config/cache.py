"""The last valid form of each configuration file, so that a command that only reads imports no validator.

One JSON file for each configuration file, 0600, in `$XDG_CACHE_HOME/the-loop/`. It holds the whole validated text, so
"nothing changed" is a comparison and does not depend on file times. A failure here does no harm: the caller validates
again. A cache that another user owns or may write is not read, because it names what runs.

The cache is valid for the code that wrote it: it lists our files that take part in validation, with their state at that
time. A file that joins them later is imported by one of the listed files, which has then changed too.

It also makes one digest of a whole configuration, so that two processes can compare theirs without exchanging them.
"""

import binascii
import contextlib
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.base.files import read_bounded
from core.base.paths import xdg
from core.config.settings import Settings

_LONGEST = 1 << 24  #: bytes; several times a configuration file
_KEPT = 16  #: files; more than this many configurations on one machine are demos and tests of the past
_CORE = os.path.dirname(os.path.dirname(__file__))
_BEGINNING = "core.config.loading"  #: the module whose imports lead to all that takes part in validating
_IMPORT = r"^[ \t]*(?:from (core[\w.]*) import (\([^)]*\)|.*)|import (core[\w.]*))"
_NAMES = ("HOME", "XDG_STATE_HOME")  #: variables that the resolved form depends on


def recall(path: Path, text: str, env: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the resolved form of this very text at this path, or None if it must be validated."""
    entry = _read(_file(path, env))
    if entry is None or entry.get("text") != text or entry.get("for") != _circumstances(path, env):
        return None
    if not _is_of_this_code(entry.get("code")):
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
    try:
        entry = {"for": _circumstances(path, env), "code": _code(), "text": text, "resolved": resolved}
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
    """Return what the resolved form depends on besides the text and our code: where it lies, and the user's folders."""
    return {"path": str(path), "env": {name: env.get(name) for name in _NAMES}}


def _is_of_this_code(code: Any) -> bool:
    """Return whether each file that took part in validating is as it was: another version validates again."""
    try:
        return isinstance(code, dict) and all(_stamp(name) == stamp for name, stamp in code.items())
    except (OSError, ValueError):
        return False


def _stamp(name: str) -> list[int]:
    found = os.stat(os.path.join(_CORE, name))
    return [found.st_size, found.st_mtime_ns]


def _code() -> dict[str, list[int]]:
    """Return size and time of each file that takes part in validating, by its path below `core`. Raises OSError.

    Found by the import statements, those inside of functions among them: a module that this process happens to have
    loaded, or not yet, makes no difference.
    """
    import re

    statement, seen, due = re.compile(_IMPORT, re.MULTILINE), dict[str, list[int]](), [_BEGINNING]
    while due:
        for name in _files_of(due.pop()):
            if name in seen:
                continue
            seen[name] = _stamp(name)
            with open(os.path.join(_CORE, name), encoding="utf-8") as file:
                found = statement.findall(file.read())
            for package, names, module in found:
                due += [module or package, *(f"{package}.{each}" for each in re.findall(r"\w+", names))]
    for module in _of_chats():
        seen[module] = _stamp(module)
    return seen


def _of_chats() -> list[str]:
    """Return the files that say which keys there are for each chat, as absolute paths."""
    import sys

    from core.base.plugins import entry_points
    from core.config.chats import INFO_GROUP, chat_info

    told = [(info, chat_info(kind)) for kind, info in entry_points(INFO_GROUP).items()]
    targets = [part for info, chat in told for part in (info, chat.settings, chat.session)]
    modules = {sys.modules.get(target.partition(":")[0]) for target in targets}  # validating has imported them
    return [file for module in modules if module is not None and (file := module.__file__)]


def _files_of(module: str) -> list[str]:
    """Return the files that are run by the import of a module, each by its path below `core`; those that exist."""
    parts = module.split(".")[1:]
    names = [os.path.join(*parts[:end], "__init__.py") for end in range(len(parts) + 1)]
    names += [f"{os.path.join(*parts)}.py"] if parts else []
    return [name for name in names if os.path.isfile(os.path.join(_CORE, name))]


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


def digest_of(settings: Settings) -> str:
    """Return a SHA-256, in hexadecimal, of every value in effect.

    What changes no value changes no digest: comments, the order of keys, a default that is written out, and where the
    file lies.
    """
    values = json.dumps(settings._replace(source=None), sort_keys=True, default=_plain)
    import hashlib  # loads OpenSSL

    return hashlib.sha256(values.encode()).hexdigest()


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else repr(value)
