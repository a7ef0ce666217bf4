"""Log records on standard error: one line each, with the values that belong to the message, and without secrets.

Where standard error is the service's own log file, its size is limited by rotation.
"""

import logging
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

from core.base.clock import iso
from core.base.files import open_plain_log
from core.base.redaction import Redactor, redactor_of

_OURS = ("core", "bot")
_OUTPUTS = (1, 2)  # standard output and error, by number
_MAX_BYTES, _KEEP = 5 * 1024 * 1024, 2
_LOG = logging.getLogger(__name__)
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LineFormatter(logging.Formatter):
    """`2026-11-29T13:50:10.123456Z warning core.store.inbox: cannot write reason='disk full' session='scribe'`."""

    def __init__(self) -> None:
        super().__init__()
        self._redactor: Redactor | None = None

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, and below it the traceback if there is one, without what the environment holds in secret."""
        if self._redactor is None:  # at the first line: most commands log nothing
            self._redactor = redactor_of(os.environ)
        return self._redactor.redact(self._whole(record))

    def _whole(self, record: logging.LogRecord) -> str:
        at = iso(datetime.fromtimestamp(record.created, UTC))
        values = "".join(f" {key}={value!r}" for key, value in vars(record).items() if key not in _STANDARD)
        line = f"{at} {record.levelname.lower()} {record.name}: {record.getMessage()}{values}"
        trace = record.exc_text or (self.formatException(record.exc_info) if record.exc_info else "")
        return f"{line}\n{trace}" if trace else line


def log_to_stderr(level: int) -> None:
    """Show our own records from `level` on, and those of others from warnings on, unless handlers were set up.

    Python's handler of last resort is the one to shape: it follows `sys.stderr` and gives way to any other.
    """
    if logging.lastResort is not None:
        logging.lastResort.setLevel(level)
        logging.lastResort.setFormatter(LineFormatter())
    for name in _OURS:
        logging.getLogger(name).setLevel(level)


def bound_log(path: Path, max_bytes: int = _MAX_BYTES, keep: int = _KEEP) -> None:
    """Where standard error is that file, put it aside when it has grown to `max_bytes`, and keep so many old ones.

    A service that was started detached writes there, and is alone in it: to be called by whoever holds the service's
    lock. A terminal, a journal or another file is nobody's but the operator's.
    """
    outputs = [number for number in _OUTPUTS if _is_file(number, path)]
    if 2 not in outputs:
        return
    try:
        log = RotatingLog(path, outputs, max_bytes, keep)
    except OSError as error:
        _LOG.warning("cannot bound the log", extra={"reason": str(error), "path": str(path)})
        return
    log.setFormatter(LineFormatter())
    logging.getLogger().addHandler(log)
    log.put_aside_if_full()


def _is_file(number: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(number), path.stat())
    except OSError:  # it is closed, or there is no such file
        return False


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
