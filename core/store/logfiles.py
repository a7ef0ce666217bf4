"""The files of the event log: appending whole lines, and rotation that several processes may do at once."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from core.clock import Clock, Deadline
from core.store.files import write_all

_LOCK_SECONDS = 0.25
_LOCK_POLL = 0.002


class LogFiles:
    """`path` and the ones put aside before it, under one short lock in `path.lock`, which is never renamed.

    Raises OSError everywhere.
    """

    def __init__(self, path: Path, clock: Clock, max_bytes: int, keep: int) -> None:
        self.path = path
        self._lock = path.with_name(path.name + ".lock")
        self._clock = clock
        self._max_bytes = max_bytes
        self._keep = keep

    def append(self, line: bytes) -> None:
        """Append one line whole, or nothing of it.

        One write to a file opened with O_APPEND is whole on a local disk, so a process that sleeps in the lock costs
        others a moment and a rotation, and no line.
        """
        with self._locked() as alone:
            if alone and self._is_full(len(line)):
                self._rotate()
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                self._write(descriptor, line, alone)
            finally:
                os.close(descriptor)

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

    def _is_full(self, more: int) -> bool:
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            return False
        return size > 0 and size + more > self._max_bytes

    @staticmethod
    def _open_reader(path: Path) -> BufferedReader | None:
        try:
            return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
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
