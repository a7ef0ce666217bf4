"""Opening files in whose place an agent, which has our rights, may have put something else, of any size."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_NOT_PLAIN = "it is no plain file"
_CHUNK = 1 << 16  # bytes


def open_plain(path: Path) -> BinaryIO:
    """Open a plain file for reading. What else may stand under its name, a folder or a FIFO, is refused, and waited for
    never. Raises OSError.
    """
    return os.fdopen(checked(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), path), "rb")


def open_plain_log(path: Path) -> int:
    """Open a plain file to write at its end, and return the descriptor; a missing one is made for us alone to read.

    What else may stand under its name is refused, and waited for never. Raises OSError.
    """
    how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return checked(os.open(path, how, 0o600), path)
    except OSError as error:
        if error.errno != errno.ENXIO:  # what open(2) says of a FIFO that nobody reads, and of a socket
            raise
        raise OSError(errno.EINVAL, _NOT_PLAIN, str(path)) from error


def checked(descriptor: int, path: Path) -> int:
    """Return the descriptor if it is a plain file's; else close it, and raise OSError."""
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, _NOT_PLAIN, str(path))


def read_plain(path: Path, most: int) -> bytes:
    """Return what a plain file holds; see `open_plain` and `read_bounded`. Raises OSError."""
    with open_plain(path) as stream:
        return read_bounded(stream, most)


def read_bounded(stream: BinaryIO, most: int) -> bytes:
    """Return what is left of the stream. Raises OSError, EOVERFLOW where that is more than `most` bytes.

    Of a file that is known before anything is read; of anything else no more is read than that.
    """
    found = os.fstat(stream.fileno())
    fits = not stat.S_ISREG(found.st_mode) or found.st_size - stream.tell() <= most
    content = stream.read(most + 1) if fits else b""
    if fits and len(content) <= most:
        return content
    raise too_large(most)


def whole_lines(stream: BinaryIO, longest: int, most: int) -> Iterator[tuple[int, bytes]]:
    """Yield each whole line with the offset behind it, b"" in the place of one of more than `longest` bytes.

    A last line without its end is half written, and not yielded. Raises OSError, EOVERFLOW after `most` bytes.
    """
    begin = stream.tell()
    while part := stream.readline(longest):
        whole = part if part.endswith(b"\n") else b""
        while part and not part.endswith(b"\n") and stream.tell() - begin <= most:
            part = stream.readline(_CHUNK)
        if not part:
            return
        if stream.tell() - begin > most:
            raise too_large(most)
        yield stream.tell(), whole


def too_large(most: int) -> OSError:
    """Return the error that says so."""
    return OSError(errno.EOVERFLOW, f"it holds more than {most:,} bytes")
