"""Whether a service runs: it holds a flock on one file while it lives, so a crash cannot leave a lie behind."""

import fcntl
import os
from pathlib import Path

from core.clock import Clock, Deadline, SystemClock
from core.errors import Refused, StoreBroken
from core.plainfiles import open_plain
from core.store.files import broken

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
        raise StoreBroken(f"cannot tell whether a service runs: {lock}: {error.strerror}", "see its owner") from error
    with opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            text = opened.read(32).decode("ascii", "replace").strip()
            return int(text) if text.isdigit() else 0
    return None


def is_open_file(descriptor: int, path: Path) -> bool:
    """Tell whether the open file stands under that name. Raises OSError where that cannot be seen."""
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
        """Tell whether the lock's file is still the one that is held; whoever locks another has a lock as well."""
        return self._descriptor is not None and is_open_file(self._descriptor, self._lock)

    def release(self) -> None:
        """Let go; the file stays."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
