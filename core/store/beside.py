"""Whether other processes have a database open, and whether the files beside it are those that they work with.

SQLite tells processes of one another by POSIX locks: whoever has a database in WAL mode open holds a shared lock on a
range of its file, and one on a byte of its -shm (https://www.sqlite.org/src/file/src/os_unix.c: SHARED_FIRST,
UNIX_SHM_DMS). A -shm that nobody holds a lock on, beside a database that somebody has open, is not the one that they
use: it was removed, and SQLite would begin another, by which neither sees what the other commits.
"""

import os
import sys
from pathlib import Path

_SHARED = (0x40000002, 510)  #: where the locks are, and how many bytes
_USED = (128, 1)
_VERSION = 18  #: where a database's file says by which kind of log it is read
_WAL = b"\x02"


def lost(database: Path) -> Path | None:
    """Return the file beside the database that is not there, or is not the one that other processes work with.

    None where nobody else has the database open. No connection of this process may be open: closing any descriptor of
    a file drops a process's locks on it. Raises OSError.
    """
    if not (_is_wal(database) and _is_locked(database, *_SHARED)):
        return None
    log, index = (database.with_name(database.name + end) for end in ("-wal", "-shm"))
    if not os.path.lexists(log):
        return log
    try:
        return None if _is_locked(index, *_USED) else index
    except FileNotFoundError:
        return index


def _is_wal(path: Path) -> bool:
    try:
        descriptor = _open(path)
    except FileNotFoundError:
        return False
    try:
        return os.pread(descriptor, 1, _VERSION) == _WAL
    finally:
        os.close(descriptor)


def _is_locked(path: Path, start: int, length: int) -> bool:
    """Tell whether another process holds a lock on these bytes."""
    import fcntl
    import struct

    mac = sys.platform == "darwin"
    form = "qqihh" if mac else "hhqqi"  # struct flock
    asked = (start, length, 0, fcntl.F_WRLCK, 0) if mac else (fcntl.F_WRLCK, 0, start, length, 0)
    descriptor = _open(path)
    try:
        told = struct.unpack(form, fcntl.fcntl(descriptor, fcntl.F_GETLK, struct.pack(form, *asked)))
    finally:
        os.close(descriptor)
    return bool(told[3 if mac else 0] != fcntl.F_UNLCK)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
