"""The FIFO that wakes the service: one byte says that there is something to look at. Nobody ever waits for a reader."""

import os
import select
import stat
from pathlib import Path

from core.errors import StoreBroken


class Poke:
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
