"""The files of the event log: appending whole lines, and rotation that several processes may do at once."""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from core.clock import Clock, Deadline
from core.plainfiles import checked
from core.store.files import private_folder, write_all

_LOCK_SECONDS = 0.25
_LOCK_POLL = 0.002


class LogFiles:
    """`path` and the ones put aside before it, under one short lock in `path.lock`, which is never renamed.

    What was written to stays open. Threads may share it. Raises OSError everywhere, and StoreBroken where the folder
    cannot be made.
    """

    def __init__(self, path: Path, clock: Clock, max_bytes: int, keep: int) -> None:
        self.path = path
        self._lock = path.with_name(path.name + ".lock")
        self._clock = clock
        self._max_bytes = max_bytes
        self._keep = keep
        self._appending = threading.Lock()  #: flock does not part threads that share an open file
        self._kept = _Kept()

    def append(self, line: bytes) -> None:
        """Append one line whole, or lines that belong together; or nothing of it.

        One write to a file opened with O_APPEND is whole on a local disk, so a process that sleeps in the lock costs
        others a moment and a rotation, and no line.
        """
        with self._appending:
            try:
                self._append(line)
            except BaseException:
                self._kept.close()
                raise

    def _append(self, line: bytes) -> None:
        lock = self._kept.lock(self._lock)
        alone = self._take(lock)
        found = self._found()
        if alone and found is not None and found.st_size > 0 and found.st_size + len(line) > self._max_bytes:
            self._rotate()
            found = None
        if known := self._kept.is_log(found):
            self._write(self._kept.log, line, alone)
        else:
            self._write(self._kept.open_log(self.path), line, alone)
        if known:
            fcntl.flock(lock, fcntl.LOCK_UN)
        else:
            self._kept.close_lock()  # whoever took the log away may have taken the lock's file with it

    def open_all(self) -> list[BufferedReader]:
        """Open every file for reading, oldest first, at one moment."""
        with self._locked():
            found = (self._open_reader(path) for path in reversed(self._paths()))
            return [reader for reader in found if reader is not None]

    def is_current(self, reader: BufferedReader) -> bool:
        """Tell whether the open file is still the one that is written to."""
        try:
            now = self.path.stat()
        except FileNotFoundError:
            return False
        opened = os.fstat(reader.fileno())
        return (now.st_dev, now.st_ino) == (opened.st_dev, opened.st_ino)

    @contextmanager
    def _locked(self) -> Iterator[bool]:
        """Take the lock, and tell whether it was to be had before the deadline."""
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            yield self._take(descriptor)
        finally:
            os.close(descriptor)

    def _take(self, descriptor: int) -> bool:
        deadline = Deadline(self._clock, _LOCK_SECONDS)
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if deadline.passed():
                    return False
                self._clock.pause(_LOCK_POLL)
            else:
                return True

    def _found(self) -> os.stat_result | None:
        try:
            return os.lstat(self.path)
        except FileNotFoundError:
            return None

    @staticmethod
    def _open_reader(path: Path) -> BufferedReader | None:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            return os.fdopen(checked(descriptor, path), "rb")
        except FileNotFoundError:
            return None

    def _write(self, descriptor: int, line: bytes, alone: bool) -> None:
        """Write the line; begin a new one where a power cut left half of one. A full disk gets none of it."""
        size = os.fstat(descriptor).st_size
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            line = b"\n" + line
        try:
            write_all(descriptor, line)
        except OSError:
            if alone:
                os.ftruncate(descriptor, size)
            raise

    def _paths(self) -> list[Path]:
        """The files by age, the current one first."""
        return [self.path, *(self.path.with_name(f"{self.path.name}.{number}") for number in range(1, self._keep + 1))]

    def _rotate(self) -> None:
        """Put each file one place on; the oldest gives way. With `keep` 0 the current one does."""
        *younger, oldest = self._paths()
        oldest.unlink(missing_ok=True)
        following = oldest
        for path in reversed(younger):
            if path.exists():
                path.rename(following)
            following = path


class _Kept:
    """The lock's file and the log, open, in the process that opened them: a child shares no lock with its parent."""

    def __init__(self) -> None:
        self.log = -1
        self._lock = -1
        self._is: tuple[int, int] | None = None  #: device and inode of the log
        self._pid = 0

    def lock(self, path: Path) -> int:
        """Return the lock's descriptor, opened if need be."""
        if self._pid != os.getpid():
            self.close()
        if self._lock < 0:
            self._lock, self._pid = _opened(path, os.O_RDWR | os.O_CREAT), os.getpid()
        return self._lock

    def is_log(self, found: os.stat_result | None) -> bool:
        """Tell whether that file is the log that is open."""
        return found is not None and self._is == (found.st_dev, found.st_ino)

    def open_log(self, path: Path) -> int:
        """Open the log anew, and return its descriptor."""
        self._close_log()
        self.log = _opened(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        found = os.fstat(self.log)
        self._is = (found.st_dev, found.st_ino)
        return self.log

    def close_lock(self) -> None:
        """Close the lock's file, which frees the lock."""
        if self._lock >= 0:
            os.close(self._lock)
        self._lock = -1

    def close(self) -> None:
        """Close both."""
        self.close_lock()
        self._close_log()

    def _close_log(self) -> None:
        if self.log >= 0:
            os.close(self.log)
        self.log, self._is = -1, None

    def __del__(self) -> None:
        self.close()


def _opened(path: Path, flags: int) -> int:
    """Open a file that only we can read, and make its folder where that is missing; what else stands there is refused.

    A FIFO would take some lines, and then keep whoever writes waiting.
    """
    private_folder(path.parent)
    return checked(os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600), path)
