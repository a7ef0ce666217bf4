"""The files by which a control client's lines get their data, since such a client has no other way."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from core.clock import SystemClock

_LEFTOVER_AGE = 60.0  # seconds: no load takes as long


class LoadFile:
    """A file that is open here and read by tmux under its path."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    def write(self, data: bytes) -> bool:
        """Let the data be all that it holds; False where the file has gone from its path. Raises OSError."""
        rest, at = memoryview(data), 0
        while at < len(data):
            at += os.pwrite(self._descriptor, rest[at:], at)
        return os.fstat(self._descriptor).st_nlink > 0

    def remove(self) -> None:
        """Remove and close it."""
        with suppress(FileNotFoundError):
            os.unlink(self.path)
        os.close(self._descriptor)


class LoadFiles:
    """Files of people's texts that only we can read, each for one load: a late line never finds another's text there.

    The next one is made ahead, since making a file takes many times as long as writing to it. Belongs to one thread at
    a time.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder_name = str(folder)
        self._next: LoadFile | None = None
        self._remove_leftovers()

    def written(self, data: bytes) -> LoadFile | None:
        """Return a file that holds the data; None where that cannot be done, or tmux not read it.

        tmux expands the path as a format, so it must not hold a `#`.
        """
        if "#" in self._folder_name:
            return None
        load, self._next = self._next, None
        with suppress(OSError):
            if load is not None and load.write(data):
                return load
        if load is not None:
            load.remove()  # another process took it for a leftover, or the disk is full
        return self._written_anew(data)

    def _written_anew(self, data: bytes) -> LoadFile | None:
        try:
            load = self._made()
        except OSError:  # the process that takes the line instead needs no file
            return None
        with suppress(OSError):
            if load.write(data):
                return load
        load.remove()
        return None

    def prepare(self) -> None:
        """Make the file for the next load, if there is none; where that cannot be done, the load tries it again."""
        if self._next is None and "#" not in self._folder_name:
            with suppress(OSError):
                self._next = self._made()

    def close(self) -> None:
        """Remove the file that nobody has used."""
        if self._next is not None:
            self._next.remove()
        self._next = None

    def _made(self) -> LoadFile:
        """Make a file, and its folder where that is missing. Raises OSError."""
        path = f"{self._folder_name}/load-{secrets.token_hex(8)}"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            return LoadFile(path, os.open(path, flags, 0o600))
        except FileNotFoundError:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return LoadFile(path, os.open(path, flags, 0o600))

    def _remove_leftovers(self) -> None:
        """Remove the files of a process that was killed during a load: they hold people's text."""
        oldest = SystemClock().now().timestamp() - _LEFTOVER_AGE
        for path in self._folder.glob("load-*"):
            _remove_if_older(path, oldest)


def _remove_if_older(path: Path, than: float) -> None:
    with suppress(FileNotFoundError):  # another process removes its own
        if path.stat().st_mtime < than:
            path.unlink()
