"""What the machine gives: Python, locale, limits, disk, and who may read or change our files."""

import os
import resource
import sqlite3
import stat
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from core.base.errors import StoreBroken
from core.base.files import check_room
from core.base.paths import StatePaths
from core.delivery.pictures import NoPicture, font
from core.model.health import Finding, State

_DESCRIPTORS = 1024  #: some hundred sessions, each with a few files open
_ROOM_FAILED = 50 * 1024 * 1024  #: bytes; a database that grows, and a log
_ROOM_WARNED = 1024 * 1024 * 1024
_INODES_WARNED = 10_000
_MOST_FILES = 5_000  #: of a folder that are looked at
_OLDEST_PYTHON = (3, 11)


def python() -> Iterator[Finding]:
    """Look at the interpreter that runs this, and so the service."""
    version = ".".join(map(str, sys.version_info[:3]))
    told = f"{version} ({sys.executable}), SQLite {sqlite3.sqlite_version}"
    if sys.version_info < _OLDEST_PYTHON:
        yield Finding("python", State.FAILED, f"{told} is too old", "run the-loop with Python 3.11 or newer")
    else:
        yield Finding("python", State.OK, told)


def locale(environ: Mapping[str, str]) -> Iterator[Finding]:
    """Look at the locale that programs are given. the-loop itself, and panes, get a UTF-8 one in any case."""
    named = next((f"{name}={environ[name]}" for name in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(name)), "")
    if "utf" in named.lower():
        yield Finding("locale", State.OK, named)
        return
    yield Finding(
        "locale",
        State.WARNING,
        f"{named or 'no locale is set'}: other programs write `_` in the place of letters outside ASCII, such as a "
        "tmux that you start yourself; sessions are given C.UTF-8",
        "set LANG to a UTF-8 locale, such as C.UTF-8",
    )


def descriptors(limits: tuple[int, int] | None = None) -> Iterator[Finding]:
    """Look at how many files a process may have open: (soft, hard). The service raises the soft limit by itself."""
    soft, hard = limits or resource.getrlimit(resource.RLIMIT_NOFILE)
    shown = "unlimited" if hard == resource.RLIM_INFINITY else f"at most {hard}"
    if hard != resource.RLIM_INFINITY and hard < _DESCRIPTORS:
        remedy = f"raise the hard limit (`ulimit -Hn {_DESCRIPTORS}`, or LimitNOFILE= of the unit)"
        yield Finding("descriptors", State.WARNING, f"{shown} files may be open: too few for many sessions", remedy)
    else:
        yield Finding("descriptors", State.OK, f"{soft} files may be open, {shown} by the hard limit")


def pictures() -> Iterator[Finding]:
    """Look at what draws terminals as pictures for a chat; nothing else needs it."""
    fonts = "install a fixed-width font, such as fonts-dejavu-core"
    try:
        found = font()
    except NoPicture as error:
        yield Finding("pictures", State.WARNING, error.message, "install Pillow beside the-loop")
        return
    if found:
        yield Finding("pictures", State.OK, f"terminals are drawn with {found}")
    else:
        yield Finding("pictures", State.WARNING, "no font that is known: terminals are drawn in Latin letters", fonts)


def disk(local: Path) -> Iterator[Finding]:
    """Look at the room on the disk of the state, and whether a few pages can be written there."""
    folder = next(path for path in (local, *local.parents) if path.exists())
    try:
        found = os.statvfs(folder)
        if folder == local:
            check_room(local)
    except (StoreBroken, OSError) as error:
        remedy = error.remedy if isinstance(error, StoreBroken) else "look at that disk"
        yield Finding("disk", State.FAILED, error.message if isinstance(error, StoreBroken) else str(error), remedy)
        return
    yield room(folder, found.f_bavail * found.f_frsize, found.f_favail if found.f_files else None)


def room(folder: Path, free: int, inodes: int | None) -> Finding:
    """Judge the free bytes and inodes of a disk; None: it does not count them."""
    told = f"{free / 2**30:.1f} GiB are free at {folder}"
    remedy = "free some space on that disk: a full one keeps messages from being stored"
    if free < _ROOM_FAILED:
        return Finding("disk", State.FAILED, f"only {free // 2**20} MiB are free at {folder}", remedy)
    if free < _ROOM_WARNED:
        return Finding("disk", State.WARNING, f"only {free // 2**20} MiB are free at {folder}", remedy)
    if inodes is not None and inodes < _INODES_WARNED:
        return Finding("disk", State.WARNING, f"only {inodes} more files can be made at {folder}", remedy)
    return Finding("disk", State.OK, told)


def permissions(config: Path, paths: StatePaths, secrets: Collection[Path]) -> Iterator[Finding]:
    """Look at who may change the configuration, and who may read what is ours. `secrets`: files with tokens."""
    uid = os.geteuid()
    troubles = [*_config_troubles(config, uid), *_state_troubles(paths, uid), *_secret_troubles(secrets, uid)]
    for told, remedy in troubles:
        yield Finding("permissions", State.FAILED, told, remedy)
    if not troubles:
        yield Finding("permissions", State.OK, "nobody else may change the configuration or read the state")


_Trouble = tuple[str, str]  #: what is wrong, and the remedy


def _config_troubles(config: Path, uid: int) -> Iterator[_Trouble]:
    for path in (config, config.parent):
        found = _stat(path)
        if found is None:
            continue
        if found.st_uid not in (uid, 0):
            yield f"{path} belongs to another user (uid {found.st_uid}), who decides what runs as you", _own(path)
        elif found.st_mode & 0o022 and not found.st_mode & stat.S_ISVTX:
            told = f"{path}: others may write to it (mode {stat.S_IMODE(found.st_mode):o}), and so run programs as you"
            yield told, f"`chmod go-w {path}`"


def _state_troubles(paths: StatePaths, uid: int) -> Iterator[_Trouble]:
    """Yield what is wrong with the state's folder, whose mode alone keeps others out, and with what lies in it."""
    for path, unwanted in ((paths.root, 0o022), (paths.local, 0o077)):
        found = _stat(path)
        if found is None:
            continue
        if found.st_mode & unwanted and not found.st_mode & stat.S_ISVTX:
            told = f"{path}: others may look into it or change it (mode {stat.S_IMODE(found.st_mode):o})"
            yield told, f"`chmod {'700' if unwanted == 0o077 else 'go-w'} {path}`"
        if found.st_uid not in (uid, 0) or (found.st_uid != uid and path == paths.local):
            yield f"{path} belongs to another user (uid {found.st_uid})", _own(path)
    for folder in (paths.local, paths.records, paths.locks):
        foreign = next((path for path in _entries(folder) if (found := _stat(path)) and found.st_uid != uid), None)
        if foreign is not None:  # as after a command that was given by sudo
            told = f"{foreign} belongs to another user: it, and perhaps more in that folder, cannot be changed"
            yield told, f"`sudo chown -R {uid} {folder}`"


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())[:_MOST_FILES]
    except OSError:  # it is not there, or its own mode is told
        return []


def _secret_troubles(secrets: Collection[Path], uid: int) -> Iterator[_Trouble]:
    for path in secrets:
        found = _stat(path)
        if found is not None and (found.st_mode & 0o077 or found.st_uid != uid or not stat.S_ISREG(found.st_mode)):
            told = f"{path}: others may read the secrets in it (mode {stat.S_IMODE(found.st_mode):o})"
            yield told, f"`chmod 600 {path}`, and make new tokens if others may have read them"


def _own(path: Path) -> str:
    return f"`sudo chown {os.geteuid()} {path}`"


def _stat(path: Path) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:  # it is not there, or its folder cannot be looked into, which is told of that
        return None
