"""A log file that is this process's standard output and error as well, bounded by putting it aside."""

import logging
import os
from collections.abc import Sequence
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from core.plainfiles import open_plain_log

_LOG = logging.getLogger(__name__)


class RotatingLog(RotatingFileHandler):
    """Writes records into `path`, and leads `outputs`, descriptors such as 1 and 2, there whenever it opens it.

    So what no record tells of, a traceback of the interpreter's or a library's print, is in the newest file as well.
    The files are ours alone to read.
    """

    def __init__(self, path: Path, outputs: Sequence[int], max_bytes: int, keep: int) -> None:
        self._outputs = tuple(outputs)
        super().__init__(path, maxBytes=max_bytes, backupCount=keep, encoding="utf-8", errors="backslashreplace")

    def put_aside_if_full(self) -> None:
        """Begin a new file where the present one has its size already."""
        self.acquire()
        try:
            if os.stat(self.baseFilename).st_size >= self.maxBytes:
                self.doRollover()
        finally:
            self.release()

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, into a new file where the present one was taken away: nobody reads that any more."""
        try:
            if not self._is_there():
                before, self.stream = self.stream, self._open()
                if before is not None:
                    before.close()
        except OSError:
            self.handleError(record)
            return
        super().emit(record)

    def _is_there(self) -> bool:
        try:
            found = os.stat(self.baseFilename)
        except FileNotFoundError:
            return False
        return self.stream is not None and os.path.samestat(found, os.fstat(self.stream.fileno()))

    def doRollover(self) -> None:
        """Put the file aside. Where that cannot be, it is written on, which is told once."""
        try:
            super().doRollover()
        except OSError as error:
            self.maxBytes = 0
            self.stream = self._open()
            _LOG.warning(
                "cannot put the log aside; it grows until the service is started anew",
                extra={"reason": str(error), "path": self.baseFilename},
            )

    def _open(self) -> TextIOWrapper:
        descriptor = open_plain_log(Path(self.baseFilename))
        stream = os.fdopen(descriptor, "a", encoding=self.encoding, errors=self.errors)
        os.fchmod(descriptor, 0o600)
        for output in self._outputs:
            os.dup2(descriptor, output)
        return stream
