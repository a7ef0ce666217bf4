"""Reading files in whose place an agent, which has our rights, may have put something else."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def open_plain(path: Path) -> BinaryIO:
    """Open a plain file for reading. What else may stand under its name, a folder or a FIFO, is refused, and waited for
    never. Raises OSError.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    os.close(descriptor)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "it is no plain file", str(path))


def read_plain(path: Path) -> bytes:
    """Return what a plain file holds; see `open_plain`. Raises OSError."""
    with open_plain(path) as stream:
        return stream.read()
