"""The SQLite database: connections, transactions, and which spool reports were taken in.

A file that is removed or replaced while it is open still takes writes, and nobody sees them again. So each transaction
checks, before it begins and after its commit, that the file, its log and the log's index are still those under their
names. The first connection checks that other processes work with the same ones. SQLite shows processes to one another
by POSIX locks: whoever has a database in WAL mode open holds a shared lock on a range of its file and on a byte of its
-shm (https://www.sqlite.org/src/file/src/os_unix.c: SHARED_FIRST, UNIX_SHM_DMS). If the database is open somewhere but
nobody locks the -shm beside it, that -shm is not the one in use: it was removed. SQLite would create another, and
neither side would see what the other commits.

Every command imports this module, so sqlite3 is imported with the first connection. Nothing is opened before it is
used, and reading a database that does not exist creates none.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
from _weakrefset import WeakSet
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.base.clock import Clock, Deadline, iso
from core.base.errors import StoreBroken, StoreGone
from core.base.files import broken as broken_file
from core.base.files import private_folder, secure_root
from core.base.loggers import logger
from core.base.paths import StatePaths
from core.store import queries

if TYPE_CHECKING:
    import sqlite3
    from datetime import datetime


_LOG = logger(__name__)
Identity = tuple[int, int]  #: device and inode
Parameters = Sequence[Any] | Mapping[str, Any]
_SYNC = getattr(os, "fdatasync", os.fsync)  # macOS has no such call; a log's times need not be on the disk
_WAL_POLL = 0.02  # seconds between two attempts to switch a new file to WAL
_MEET_POLL = 0.05  # seconds between two looks at the files of other processes, which may be opening or closing them
_LINK = "it is a symbolic link: the log beside it would be looked for where that leads"
_CHECK_SECONDS = 1.0  #: of looking for damage
_CHECK_STEPS = 20_000  #: of SQLite's between two looks at the clock


_OPENED: WeakSet[Database] = WeakSet()  #: all of this process


class _Session:
    """One thread's connection and how deep it is in transactions."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.depth = 0
        self.synchronous = ""
        self.checked = False  # its reads need not look at the files
        self.sync_after = False  # a durable block was joined to a transaction that is not


class Database:
    """Transactions over inbox, outbox, bindings, loops and activities.

    Threads may share it: each gets its own connection.

    `busy_seconds` bounds the wait for another writer. `begun` is called once a database was made where none was.
    """

    def __init__(
        self, paths: StatePaths, clock: Clock, busy_seconds: float = 5.0, begun: Callable[[], None] = lambda: None
    ) -> None:
        self._root = paths.root
        self._path = paths.database
        self._clock = clock
        self._busy_seconds = busy_seconds
        self._local = threading.local()
        self._opening = threading.Lock()
        self._sessions: dict[threading.Thread, _Session] = {}
        self._bad_rows: dict[str, str] = {}
        self._begun = begun
        self._log = self._path.with_name(self._path.name + "-wal")
        self._index = self._path.with_name(self._path.name + "-shm")
        self._files: dict[Path, Identity] = {}  #: what is open
        self._gone: tuple[Path, str] | None = None
        _OPENED.add(self)

    @property
    def path(self) -> Path:
        """Return the database's file."""
        return self._path

    @cached_property
    def _translated(self) -> AbstractContextManager[None]:
        """Return what raises StoreBroken for every sqlite3.Error of a block."""
        from core.store.sqlerrors import Translated

        return Translated(self._path, self._lose)

    def _lose(self, what: str) -> None:
        """Keep that SQLite itself has found the file, or its log, not to be what it was."""
        self._gone = self._gone or (self._path, what)

    @contextmanager
    def transaction(self, *, durable: bool) -> Iterator[None]:
        """Run this thread's block as one transaction; a block inside another joins it and is undone alone if it fails.

        A durable block makes the whole transaction durable. Raises StoreBroken; then nothing of it is stored.
        """
        session = self._session()
        inner = session.depth > 0
        with self._joined(session, durable) if inner else self._outermost(session, durable):
            yield
        if not inner and session.sync_after and not durable:
            self.sync()

    @contextmanager
    def transaction_to_sync(self) -> Iterator[None]:
        """Run this thread's block as one transaction that is durable once the caller has called `sync`.

        Until then a power cut may take it away, and nothing else: every process sees it from its commit on. Raises
        StoreBroken; then nothing of it is stored. Inside another transaction it is a durable block of that.
        """
        session = self._session()
        with self._joined(session, durable=True) if session.depth else self._outermost(session, durable=False):
            yield

    def sync(self) -> None:
        """Return once all that was committed before is on the disk, by whichever process. Raises StoreBroken.

        What a checkpoint has moved out of the log since is there already: it syncs the log first (SQLite, WAL mode).
        """
        self.same_file()
        try:
            descriptor = os.open(self._log, os.O_RDONLY | os.O_CLOEXEC)
            try:
                _SYNC(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise broken_file(error, self._log, "sync the file") from error

    def read(self, query: str, parameters: Parameters = ()) -> list[sqlite3.Row]:
        """Return all rows of a query; none where no database was made yet. Raises StoreBroken."""
        if not self._exists():
            return []
        session = self._session()
        if session.depth == 0 and not session.checked:
            self.same_file()
        with self._translated:
            return session.connection.execute(query, parameters).fetchall()

    @contextmanager
    def checked(self) -> Iterator[None]:
        """Look once whether the files are the same, for all reads of this thread's block: it has many, and is short.

        Its transactions look as ever. Raises StoreBroken.
        """
        if not self._exists() or (session := self._session()).checked:
            yield
            return
        self.same_file()
        session.checked = True
        try:
            yield
        finally:
            session.checked = False

    def write(self, statement: str, parameters: Parameters = ()) -> int:
        """Carry out a statement in the open transaction and return how many rows it changed. Raises StoreBroken."""
        session = self._session()
        if session.depth == 0:
            raise RuntimeError("a write outside of a transaction")
        with self._translated:
            return session.connection.execute(statement, parameters).rowcount

    def write_alone(self, statement: str, parameters: Parameters = (), *, durable: bool) -> int:
        """Carry out one statement as a transaction of its own, or as part of the open one, and return as `write` does.

        As part of one it needs no savepoint: a statement that fails has changed nothing (SQLite). Raises StoreBroken.
        """
        session = self._session()
        if session.depth == 0:
            with self.transaction(durable=durable):
                return self.write(statement, parameters)
        session.sync_after = session.sync_after or durable
        return self.write(statement, parameters)

    def ingested(self, instance: str, report: str) -> bool:
        """Record that a spool report is being taken in; False if it was before. Part of the open transaction."""
        return self.write(queries.ADD_REPORT, (instance, report)) == 1

    def end_told(self, instance: str, turn: str, at: datetime) -> bool:
        """Record that the end of a turn is being told; False if it was before. Part of the open transaction."""
        return self.write(queries.TELL_TURN_ENDED, (instance, turn, iso(at))) == 1

    def open_loops(self) -> Mapping[str, int]:
        """Return by uid how many loops are open: here, for a list loads nothing else of loops. Raises StoreBroken."""
        return {found["uid"]: found["loops"] for found in self.read(queries.LOOP_COUNTS)}

    def forget_reports(self, instance: str) -> None:
        """Forget which reports of an instance were taken in, and its turns, once its spool folder is gone."""
        with self.transaction(durable=False):
            self.write(queries.FORGET_REPORTS, (instance,))
            self.write(queries.FORGET_ENDED_TURNS, (instance,))

    def heard(self, channel_kind: str, mark: str, now: datetime, until: datetime, *, durable: bool) -> bool:
        """Record that a request of a chat is being taken; False if it was before. It is known until then."""
        with self.transaction(durable=durable):
            self.write(queries.FORGET_HEARD, (iso(now),))
            return self.write(queries.HEAR, (channel_kind, mark, iso(until))) == 1

    def unheard(self, channel_kind: str, mark: str) -> None:
        """Forget a request that was not taken: it may come again."""
        with self.transaction(durable=False):
            self.write(queries.UNHEAR, (channel_kind, mark))

    def tell_bad_row(self, place: str, told: str) -> None:
        """Keep that a row cannot be understood, and log it the first time. `place`: its table and what names it."""
        if place not in self._bad_rows:
            self._bad_rows[place] = told
            _LOG.warning("a row of the database cannot be understood", extra={"reason": told})

    def bad_rows(self) -> tuple[str, ...]:
        """Return the rows that were found and not understood so far, each with its remedy."""
        return tuple(self._bad_rows.values())

    def open(self) -> None:
        """Make the database where there is none. Raises StoreBroken."""
        self._session()

    def is_there(self) -> bool:
        """Return whether there is one that holds anything. Raises StoreBroken where that cannot be seen.

        An empty file without a log beside it holds nothing: it was just made, or was emptied.
        """
        try:
            found = os.lstat(self._path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise broken_file(error, self._path, "look for the file") from error
        if stat.S_ISLNK(found.st_mode):
            raise broken_file(OSError(errno.ELOOP, _LINK), self._path, "use the file")
        return found.st_size > 0 or not stat.S_ISREG(found.st_mode) or os.path.lexists(self._log)

    def same_file(self) -> None:
        """Raise StoreGone where the file was removed, replaced or emptied since this process has opened it.

        Once it was not, it never is again: others may have begun another one meanwhile.
        """
        for path, known in self._files.items():
            self._gone = self._gone or self._missed(path, known)
        if self._gone:
            raise StoreGone(*self._gone)

    def _missed(self, path: Path, known: Identity) -> tuple[Path, str] | None:
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            what = "was removed"
        except OSError as error:
            raise broken_file(error, path, "look for the file") from error
        else:
            if (found.st_dev, found.st_ino) != known:
                what = "was replaced by another file"
            elif not found.st_size and (path == self._path or (path == self._log and self._holds_log())):
                what = "was emptied"
            else:
                return None
        return path, f"{what} while it was in use"

    def _holds_log(self) -> bool:
        """Return whether the log's index knows of something in the log, which is empty: a checkpoint empties both.

        Asked of this thread's connection, outside of transactions; without one nobody knows.
        """
        session: _Session | None = getattr(self._local, "session", None)
        if session is None or session.connection.in_transaction:
            return False
        with self._translated:
            return bool(session.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1] > 0)

    def check(self, seconds: float = _CHECK_SECONDS, *, whole: bool = False) -> bool:
        """Raise StoreBroken where what is in it is damaged, as far as so many seconds of looking show.

        Return whether that was enough to look at all of it. `whole`: indexes are compared with their tables, too.
        """
        if not self._exists():
            return True
        connection = self._session().connection
        deadline = Deadline(self._clock, seconds)
        connection.set_progress_handler(deadline.passed, _CHECK_STEPS)
        try:
            with self._translated:
                asked = "PRAGMA integrity_check(1)" if whole else "PRAGMA quick_check(1)"
                found = connection.execute(asked).fetchone()[0]
        except StoreBroken:
            if not deadline.passed():
                raise
            return False
        finally:
            connection.set_progress_handler(None, 0)
        if found != "ok":
            from core.store.sqlerrors import damaged

            raise damaged(self._path, found)
        return True

    def leave(self) -> None:
        """Let go of what this thread holds to use it, outside of a transaction; its next use begins anew.

        The last connection stays: SQLite removes the log with it.
        """
        with self._opening, self._translated:
            if len(self._sessions) > 1 and (session := self._sessions.pop(threading.current_thread(), None)):
                self._local.session = None
                session.connection.close()

    def close(self) -> None:
        """Close every thread's connection. No thread may be inside a call."""
        with self._opening, self._translated:
            while self._sessions:
                _, session = self._sessions.popitem()
                session.connection.close()
            self._local = threading.local()
            self._files.clear()

    # ------------------------------------------------------------ transactions

    @contextmanager
    def _outermost(self, session: _Session, durable: bool) -> Iterator[None]:
        connection = session.connection
        self.same_file()
        with self._translated:
            self._set_synchronous(session, "FULL" if durable else "NORMAL")
            connection.execute("BEGIN IMMEDIATE")
        session.depth, session.sync_after = 1, False
        try:
            yield
            self._commit(session)
            self.same_file()
        except BaseException:
            self._undo(session, "ROLLBACK")
            raise
        finally:
            session.depth = 0

    @contextmanager
    def _joined(self, session: _Session, durable: bool) -> Iterator[None]:
        session.depth += 1
        mark = f"level_{session.depth}"
        try:
            with self._translated:
                session.connection.execute(f"SAVEPOINT {mark}")
            yield
            with self._translated:
                session.connection.execute(f"RELEASE {mark}")
            session.sync_after = session.sync_after or durable
        except BaseException:
            self._undo(session, f"ROLLBACK TO {mark}", f"RELEASE {mark}")
            raise
        finally:
            session.depth -= 1

    def _commit(self, session: _Session) -> None:
        if not session.connection.in_transaction:  # SQLite undoes all by itself where the disk is full or fails
            raise StoreBroken(
                f"{self._path}: the transaction was undone by an earlier failure",
                "look at that disk and its free space, then try again",
            )
        with self._translated:
            session.connection.execute("COMMIT")

    def _undo(self, session: _Session, *statements: str) -> None:
        if session.connection.in_transaction:
            with self._translated:
                for statement in statements:
                    session.connection.execute(statement)

    @staticmethod
    def _set_synchronous(session: _Session, level: str) -> None:
        """Choose whether a commit waits for the disk. In WAL mode NORMAL may lose the last ones to a power cut only."""
        if session.synchronous != level:
            session.connection.execute(f"PRAGMA synchronous = {level}")
            session.synchronous = level

    # ------------------------------------------------------------ connections

    def _exists(self) -> bool:
        """Return whether there is one to read. Raises StoreBroken where that cannot be seen."""
        return getattr(self._local, "session", None) is not None or self.is_there()

    def _session(self) -> _Session:
        session: _Session | None = getattr(self._local, "session", None)
        if session is None:
            with self._opening:
                session = _Session(self._open())
                self._close_dead_threads()  # after that: SQLite removes the log with its last connection
                self._sessions[threading.current_thread()] = session
            self._local.session = session
        return session

    def _close_dead_threads(self) -> None:
        for thread in [thread for thread in self._sessions if not thread.is_alive()]:
            self._sessions.pop(thread).connection.close()

    def _open(self) -> sqlite3.Connection:
        self.same_file()
        self._make_private_file()
        deadline = Deadline(self._clock, self._busy_seconds)
        while True:
            met = self._meet(deadline)
            connection, begun = self._connect()
            try:
                if self._index not in met or met == self._found():
                    self._know_files()
                    break
            except BaseException:
                connection.close()
                raise
            connection.close()  # they were closed, or taken away, in between
        if begun:
            self._begun()
        return connection

    def _connect(self) -> tuple[sqlite3.Connection, bool]:
        """Return a connection, and whether it has made the database."""
        import sqlite3

        from core.store.migrations import migrate

        with self._translated:
            connection = sqlite3.connect(
                self._path, timeout=self._busy_seconds, isolation_level=None, check_same_thread=False
            )
            try:
                connection.row_factory = sqlite3.Row
                self._use_wal(connection)
                return connection, migrate(connection, str(self._path))
            except BaseException:
                connection.close()
                raise

    def _meet(self, deadline: Deadline) -> Mapping[Path, Identity]:
        """Return what stands under the files' names; nothing where this process has them open already.

        Where other processes have the database open, those are the files that they work with. A service that finds its
        files taken away ends within seconds, which is waited for; raises StoreGone where that takes too long: neither
        would see what the other keeps.
        """

        while not self._is_open_here():
            try:
                found = self._found()
                missed = lost(self._path)
            except OSError as error:
                raise broken_file(error, self._path, "look for the file") from error
            if missed is None:
                return found
            if deadline.passed():
                raise StoreGone(missed, "was removed or replaced while another process uses it")
            self._clock.pause(min(_MEET_POLL, deadline.remaining()))
        return {}

    def _is_open_here(self) -> bool:
        mine = self._found().get(self._path)
        return any(mine in other._files.values() for other in list(_OPENED))

    def _found(self) -> Mapping[Path, Identity]:
        """Return what stands under the names of the files now."""
        found: dict[Path, Identity] = {}
        for path in (self._path, self._log, self._index):
            with suppress(FileNotFoundError):  # a file system on which SQLite keeps no log of its own
                one = os.lstat(path)
                found[path] = (one.st_dev, one.st_ino)
        return found

    def _know_files(self) -> None:
        """Keep which files are open. Raises StoreGone where the threads' connections are not to the same one."""
        if self._files:
            self.same_file()
        for path, identity in self._found().items():
            self._files.setdefault(path, identity)

    def _make_private_file(self) -> None:
        """Make the file 0600 before SQLite would make it by the umask; its -wal and -shm take over the mode.

        An existing one is not opened here: closing it would drop the POSIX locks of this process's connections to it.
        """
        secure_root(self._root)
        private_folder(self._path.parent)
        try:
            if not os.path.lexists(self._path):
                os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
                return
            mode = os.lstat(self._path).st_mode
            if stat.S_ISLNK(mode):
                raise OSError(errno.ELOOP, _LINK)
            if not stat.S_ISREG(mode):
                raise OSError(errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL, "it is no plain file")
            if mode & 0o077:
                self._path.chmod(0o600)
        except FileExistsError:
            return  # another process was first
        except OSError as error:
            raise broken_file(error, self._path, "use the file") from error

    def _use_wal(self, connection: sqlite3.Connection) -> None:
        """Switch to WAL, which lasts. SQLite does not wait where two processes do this at once, so we do."""
        import sqlite3

        deadline = Deadline(self._clock, self._busy_seconds)
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    raise
                if deadline.passed():
                    if not self._path.stat().st_size:  # it cannot become one while another process has it open
                        from core.store.sqlerrors import damaged

                        raise damaged(self._path, "it was emptied while a process has it open") from error
                    raise
            self._clock.pause(min(_WAL_POLL, deadline.remaining()))


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
    """Return whether another process holds a lock on these bytes."""
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
