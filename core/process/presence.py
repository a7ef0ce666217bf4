"""Whether a service runs, the FIFO that wakes it, and how its connections to the outside are.

A service holds a flock on one file while it lives, so a crash cannot leave a false answer. One byte in the FIFO says
that there is something to look at; a writer never waits for a reader.
"""

import fcntl
import os
import pwd
import select
import stat
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

from core.base.clock import Clock, Deadline, SystemClock
from core.base.errors import Refused, StoreBroken
from core.base.files import broken, open_plain
from core.base.text import moment_text
from core.base.values import replace
from core.model.reasons import Reason
from core.model.rows import ServiceRow
from core.model.texts import text

_ASKERS_SECONDS = 2.0
_ASKER_SECONDS = 0.001


def running_service(lock: Path) -> int | None:
    """Return the pid of the service that holds the lock file, or None if no service lives.

    Raises StoreBroken where the file is there and cannot be asked.
    """
    try:
        opened = open_plain(lock)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreBroken(f"cannot tell whether a service runs: {lock}: {error.strerror}", "check its owner") from error
    with opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            text = opened.read(32).decode("ascii", "replace").strip()
            return int(text) if text.isdigit() else 0
    return None


def is_open_file(descriptor: int, path: Path) -> bool:
    """Return whether the open file stands under that name. Raises OSError where that cannot be seen."""
    opened = os.fstat(descriptor)
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (opened.st_dev, opened.st_ino)


class ServiceLock:
    """Held by the one service of a state root."""

    def __init__(self, lock: Path, clock: Clock | None = None) -> None:
        self._lock = lock
        self._clock = clock or SystemClock()
        self._descriptor: int | None = None

    def take(self) -> None:
        """Take the lock and write our pid into it. Raises Refused if a service lives already, StoreBroken."""
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreBroken(
                f"{self._lock} cannot be opened: {error.strerror}", "point state.root at a folder that is yours"
            ) from error
        try:
            self._hold(descriptor)
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        except OSError as error:
            os.close(descriptor)
            raise broken(error, self._lock, "write our pid to it") from error
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def _hold(self, descriptor: int) -> None:
        """Take the lock from nobody: those who only ask whether a service runs share it for a moment."""
        deadline = Deadline(self._clock, _ASKERS_SECONDS)
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                pid = running_service(self._lock)
                if pid is not None or deadline.passed():
                    raise Refused(
                        f"a service runs already for this state root (pid {pid or 'unknown'})",
                        "`the-loop stop` ends it, `the-loop status` looks at it",
                    ) from None
            self._clock.pause(_ASKER_SECONDS)

    def same_file(self) -> bool:
        """Return whether the lock's file is still the one that is held; whoever locks another has a lock as well."""
        return self._descriptor is not None and is_open_file(self._descriptor, self._lock)

    def release(self) -> None:
        """Let go; the file stays."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class Notifier:
    """One FIFO; any process writes, the service reads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def send(self) -> None:
        """Wake the service if one listens; without one this does nothing, since it looks by itself when it starts."""
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return  # ENOENT: never served here; ENXIO: nobody listens
        try:
            os.write(descriptor, b".")
        except OSError:
            return  # full: the reader is awake already
        finally:
            os.close(descriptor)

    def open(self) -> None:
        """Make the FIFO and open it for reading. Raises StoreBroken."""
        try:
            if not self._path.exists() or not stat.S_ISFIFO(self._path.stat().st_mode):
                self._path.unlink(missing_ok=True)
                os.mkfifo(self._path, 0o600)
            # Read and write: a FIFO without a writer would be at its end for ever.
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise StoreBroken(
                f"cannot make the FIFO {self._path}: {error.strerror}", "put state.root on a local disk"
            ) from error

    def wait(self, seconds: float) -> bool:
        """Return True as soon as somebody poked, False after that many seconds."""
        if self._descriptor is None:
            raise ValueError("the FIFO is not open")
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        if not poll.poll(1000 * seconds):
            return False
        os.read(self._descriptor, 4096)
        return True

    def close(self) -> None:
        """Close our end."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


_ECHO_SECONDS = 60.0  #: in which a post has come back as an event; it usually takes one
_ECHOES = 2  #: posts that did not: one event may be lost


class Connections:
    """How each connection to the outside stands, for `status`. Written by who keeps it, read by anybody.

    A connection may stand and bring nothing. That nobody writes proves nothing, but our own posts come back as events.
    """

    def __init__(self, kinds: Sequence[str], clock: Clock | None = None) -> None:
        self._lock = threading.Lock()
        self._clock = clock or SystemClock()
        self._sensed: dict[str, datetime] = {}  #: when the latest event came
        self._sent: dict[str, list[datetime]] = {}  #: the first posts since then
        reason, pid = Reason.NOT_CONNECTED_YET, os.getpid()
        self._rows = {kind: ServiceRow(kind, False, pid, text(reason), reason.value) for kind in kinds}
        self._shut: dict[str, str] = {}
        self._notes: dict[str, str] = {}

    def set(self, kind: str, up: bool, detail: str) -> bool:
        """Store the state and tell whether it changed from up to down or back. What comes up is not shut out."""
        with self._lock:
            before = self._rows.get(kind)
            if up:
                self._shut.pop(kind, None)
            if up and not (before and before.running):
                self._sent.pop(kind, None)  # the events of a gap may be gone
            self._rows[kind] = ServiceRow(kind, up, os.getpid(), detail)
            return before is None or before.running != up

    def sensed(self, kind: str) -> None:
        """Note that an event has come."""
        with self._lock:
            self._sensed[kind] = self._clock.now()
            self._sent.pop(kind, None)

    def sent(self, kind: str) -> None:
        """Note that a post was taken, which comes back as an event."""
        with self._lock:
            sent = self._sent.setdefault(kind, [])
            if len(sent) < _ECHOES:
                sent.append(self._clock.now())

    def latest(self) -> Mapping[str, datetime]:
        """Return when the latest event of each connection came, by its kind; without those that had none."""
        with self._lock:
            return dict(self._sensed)

    def shut_out(self, kind: str, problem: str) -> None:
        """Show the connection as down for what keeps its posts back, however it reads; "": nothing does any more."""
        with self._lock:
            self._shut[kind] = problem

    def note(self, kind: str, note: str) -> None:
        """Say so beside how the connection stands: it does less than it might."""
        with self._lock:
            self._notes[kind] = note

    def rows(self) -> tuple[ServiceRow, ...]:
        """Return one row a connection."""
        with self._lock:
            return tuple(self._shown(row) for row in self._rows.values())

    def _shown(self, row: ServiceRow) -> ServiceRow:
        if problem := self._shut.get(row.name):
            return ServiceRow(row.name, False, row.pid, problem)
        sent = self._sent.get(row.name, [])
        if row.running and len(sent) == _ECHOES and self._clock.now() - sent[-1] > timedelta(seconds=_ECHO_SECONDS):
            since = moment_text(sent[0])
            return ServiceRow(row.name, False, row.pid, text(Reason.DEAF, since=since), Reason.DEAF.value)
        if row.running and (note := self._notes.get(row.name)):
            return replace(row, detail="; ".join(filter(None, (row.detail, note))))
        return row


_VARIABLES = ("LOGNAME", "USER", "LNAME", "USERNAME")  #: where `getpass.getuser` looks, which imports the terminal


def user_name() -> str:
    """Return the name of the user of this process, its uid where it has none."""
    named = next((name for variable in _VARIABLES if (name := os.environ.get(variable))), None)
    if named is not None:
        return named
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
