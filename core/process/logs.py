"""How log records look on standard error: a line each, with the values that belong to the message and no secret.

Where standard error is the service's own log, that is bounded, too.
"""

import logging
import os
from datetime import UTC, datetime
from pathlib import Path

from core.clock import iso
from core.redaction import Redactor, redactor_of

_OURS = ("core", "bot")
_OUTPUTS = (1, 2)  # standard output and error, by number
_MAX_BYTES, _KEEP = 5 * 1024 * 1024, 2
_LOG = logging.getLogger(__name__)
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class LineFormatter(logging.Formatter):
    """`2026-11-29T13:50:10.123456Z warning core.delivery.worker: cannot write reason='disk full' session='scribe'`."""

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
    from core.process.rotating import RotatingLog  # the standard library's handlers import much

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
