"""SQLite's errors as StoreBroken, distinguished by SQLite's result code. Imported with the first connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from core.base.errors import StoreBroken, StoreGone
from core.base.files import check_room

_SPACE = "free some space on that disk, then try again"
_DAMAGED = (
    "stop the service, move the file aside together with its -wal and -shm files, and restore a copy if there is one"
)
_RIGHTS = "make that file and its folder writable for you, or point state.root elsewhere"
_BY_CODE = (
    "make sure that this file, and those with the same name and -wal or -shm, are plain files of yours, in a folder "
    "that you may write to"
)
_LOCKED = "find the process that holds it (`fuser`), or try again"
# Primary result codes: https://www.sqlite.org/rescode.html
_KNOWN: dict[int, tuple[str, str]] = {
    sqlite3.SQLITE_BUSY: ("the database stayed locked by another process", _LOCKED),
    sqlite3.SQLITE_LOCKED: ("the database stayed locked by another thread", _LOCKED),
    sqlite3.SQLITE_FULL: ("the disk is full", _SPACE),
    sqlite3.SQLITE_CORRUPT: ("the database is damaged", _DAMAGED),
    sqlite3.SQLITE_NOTADB: ("the database is damaged", _DAMAGED),
    sqlite3.SQLITE_READONLY: ("the database is read-only", _RIGHTS),
    sqlite3.SQLITE_PERM: ("the database may not be used", _RIGHTS),
    sqlite3.SQLITE_CANTOPEN: ("the database cannot be opened", _BY_CODE),
    sqlite3.SQLITE_IOERR: ("the disk failed, or is full", "look at that disk and its free space, then try again"),
}
_LACKS = ("no such table", "no such column")  #: what SQLite says of a database that is not what it was
_CUT = "or the log beside it was cut short while it was in use"
_OTHER = ("the database refused", "this is a fault of the-loop: please report it with this message")


def broken(error: sqlite3.Error, path: Path) -> StoreBroken:
    """Return the error that names the file, what SQLite said and what helps."""
    code = getattr(error, "sqlite_errorcode", None)
    reason, remedy = _KNOWN.get(code & 0xFF, _OTHER) if code is not None else _OTHER
    if str(error).startswith(_LACKS):
        reason, remedy = "the database lacks what it should hold", _DAMAGED
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if code == sqlite3.SQLITE_IOERR_SHORT_READ:  # the index knows of more than the file holds
        return StoreGone(path, f"{_CUT} ({name}: {error})")
    if code is not None and code & 0xFF == sqlite3.SQLITE_IOERR:  # also of a disk that has no room for its files
        try:
            check_room(path.parent)
        except StoreBroken as no_room:
            return StoreBroken(f"{path}: {no_room.message} ({name}: {error})", no_room.remedy)
    return StoreBroken(f"{path}: {reason} ({name}: {error})", remedy)


def damaged(path: Path, told: str) -> StoreBroken:
    """Return the error for a database in which SQLite finds faults of this kind, or whose file tells of one."""
    return StoreBroken(f"{path}: the database is damaged ({' '.join(told.split())})", _DAMAGED)


class Translated:
    """Raises StoreBroken for every sqlite3.Error of a block, and for a value that the module itself refuses.

    Serves any number of blocks, in any thread: one made for each would cost a query a tenth of its time.
    """

    def __init__(self, path: Path, lost: Callable[[str], None] = lambda _: None) -> None:
        """`lost` is told where the file, or its log, turns out not to be what it was."""
        self._path = path
        self._lost = lost

    def __enter__(self) -> None:
        """Begin a block."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """End a block."""
        if isinstance(error, sqlite3.Error):
            told = broken(error, self._path)
            if isinstance(told, StoreGone):
                self._lost(_CUT)
            raise told from error
        if isinstance(error, UnicodeEncodeError | OverflowError):  # half of a surrogate pair; more than 64 bits
            refused = f"{self._path}: a value cannot be kept ({error})"
            raise StoreBroken(refused, "leave out what is no text") from error
