"""Opening files in whose place an agent, which has our rights, may have put something else."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_NOT_PLAIN = "it is no plain file"


def open_plain(path: Path) -> BinaryIO:
    """Open a plain file for reading. What else may stand under its name, a folder or a FIFO, is refused, and waited for
    never. Raises OSError.
    """
    return os.fdopen(_checked(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), path), "rb")


def open_plain_log(path: Path) -> int:
    """Open a plain file to write at its end, and return the descriptor; a missing one is made for us alone to read.

    What else may stand under its name is refused, and waited for never. Raises OSError.
    """
    how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return _checked(os.open(path, how, 0o600), path)
    except OSError as error:
        if error.errno != errno.ENXIO:  # what open(2) says of a FIFO that nobody reads, and of a socket
            raise
        raise OSError(errno.EINVAL, _NOT_PLAIN, str(path)) from error


def _checked(descriptor: int, path: Path) -> int:
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, _NOT_PLAIN, str(path))


def read_plain(path: Path) -> bytes:
    """Return what a plain file holds; see `open_plain`. Raises OSError."""
    with open_plain(path) as stream:
        return stream.read()
