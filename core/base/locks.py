"""The sessions' locks: flock on `local/locks/<name>`. The system frees a lock when its holder ends, in whatever way."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core.base.clock import Deadline, SystemClock
from core.base.errors import LockBusy
from core.base.files import broken, private_folder, secure_root
from core.base.loggers import logger
from core.base.names import check_name
from core.base.paths import StatePaths

_LOG = logger(__name__)
_POLL = 0.01  # seconds between two attempts
_NOTE_BYTES = 120  # always as many, so that each note covers the one before it


class Locks:
    """The sessions' locks, exclusive across processes and threads.

    Each call opens the file anew, so threads of one process exclude each other as processes do.

    The lock's file stays: making one is not possible on a full disk, and a stop must work there. Who took the lock last
    stands in it, for the message of the one who waits in vain; no decision rests on it.
    """

    def __init__(self, paths: StatePaths) -> None:
        self._paths = paths
        self._folder = paths.locks

    @contextmanager
    def hold(self, name: str, purpose: str, seconds: float) -> Iterator[None]:
        """Hold the session's lock. Raises LockBusy after `seconds`, StoreBroken if there can be no lock."""
        path = self._paths.lock(check_name(name))
        secure_root(self._paths.root)
        private_folder(self._folder)
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise broken(error, path, "open the lock's file") from error
        try:
            if not _locked(descriptor, path, seconds):
                raise _busy(name, seconds, descriptor)
            _note(descriptor, name, purpose)
            yield
        finally:
            os.close(descriptor)  # which frees it: nobody else has this opening of the file


def _locked(descriptor: int, path: Path, seconds: float) -> bool:
    """Lock the open file, and tell whether it could be had in time. Raises StoreBroken."""
    clock = SystemClock()
    deadline = Deadline(clock, seconds)
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if deadline.passed():
                return False
        except OSError as error:
            raise broken(error, path, "lock the file") from error
        clock.pause(min(_POLL, deadline.remaining()))


def _note(descriptor: int, name: str, purpose: str) -> None:
    """Write who holds the lock and for what, over what stands there. A full disk costs that message only."""
    try:
        os.pwrite(descriptor, f"{os.getpid()} {purpose}".encode()[:_NOTE_BYTES].ljust(_NOTE_BYTES), 0)
    except OSError as error:
        extra = {"session": name, "reason": str(error)}
        _LOG.warning("lock holder not noted", extra=extra)


def _busy(name: str, seconds: float, descriptor: int) -> LockBusy:
    """Return the error that names the holder, as far as its note can be read and is not a dead one's."""
    try:
        pid, _, purpose = os.pread(descriptor, _NOTE_BYTES, 0).decode(errors="replace").strip().partition(" ")
        os.kill(int(pid), 0)
    except PermissionError:
        who = "held by another user's process"
    except (OSError, ValueError, OverflowError):
        who = "held by a process that left no note"
    else:
        who = f"held by pid {pid} to {purpose}"
    return LockBusy(
        f"the lock of {name!r} was not free within {seconds:g} s: {who}",
        "wait until it is done, or look at that process; try again then",
    )
