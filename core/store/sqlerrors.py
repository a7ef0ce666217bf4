"""sqlite3's errors as StoreBroken, told apart by SQLite's result code."""

import sqlite3
from pathlib import Path

from core.errors import StoreBroken

_SPACE = "free some space on that disk, then try again"
_DAMAGED = (
    "stop the service, move the file aside together with its -wal and -shm files, and restore a copy if there is one"
)
_RIGHTS = "make that file and its folder writable for you, or point state.root elsewhere"
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
    sqlite3.SQLITE_CANTOPEN: ("the database cannot be opened", _RIGHTS),
    sqlite3.SQLITE_IOERR: ("the disk failed, or is full", "look at that disk and its free space, then try again"),
}
_OTHER = ("the database refused", "this is a fault of the-loop: please report it with this message")


def broken(error: sqlite3.Error, path: Path) -> StoreBroken:
    """Return the error that names the file, what SQLite said and what helps."""
    code = getattr(error, "sqlite_errorcode", None)
    reason, remedy = _KNOWN.get(code & 0xFF, _OTHER) if code is not None else _OTHER
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    return StoreBroken(f"{path}: {reason} ({name}: {error})", remedy)


class Translated:
    """Raises StoreBroken for every sqlite3.Error of a block, and for a value that the module itself refuses.

    Serves any number of blocks, in any thread: one made for each would cost a query a tenth of its time.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Begin a block."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """End a block."""
        if isinstance(error, sqlite3.Error):
            raise broken(error, self._path) from error
        if isinstance(error, UnicodeEncodeError | OverflowError):  # half of a surrogate pair; more than 64 bits
            told = f"{self._path}: a value cannot be kept ({error})"
            raise StoreBroken(told, "leave out what is no text") from error
