"""What stands on standard error: when, how grave, where, what, and the values that belong to it."""

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from core.process.logs import LineFormatter


def record(message: str, **extra: object) -> logging.LogRecord:
    """Return a record as a module of ours would make it."""
    return logging.getLogger("core.delivery.writing").makeRecord(
        "core.delivery.writing", logging.WARNING, __file__, 1, message, (), None, extra=extra
    )


def test_a_line_holds_the_values_of_its_message() -> None:
    """The message is constant; what tells one case from another stands behind it."""
    line = LineFormatter().format(record("cannot post", reason="the disk is full", session="scribe"))

    at, rest = line.split(" ", 1)
    assert at.endswith("Z")
    assert rest == "warning core.delivery.writing: cannot post reason='the disk is full' session='scribe'"


def test_a_value_with_a_newline_stays_on_its_line() -> None:
    """One record, one line: a value cannot forge another."""
    line = LineFormatter().format(record("cannot post", reason="one\ntwo"))

    assert len(line.splitlines()) == 1


def test_a_traceback_stands_below_its_line() -> None:
    """Where something failed that nobody foresaw, the lines say where."""
    try:
        raise RuntimeError("the wheel came off")
    except RuntimeError as error:
        failed = logging.LogRecord(
            "core.delivery.deliverer",
            logging.ERROR,
            __file__,
            1,
            "worker failed",
            (),
            (type(error), error, error.__traceback__),
        )

    first, *below = LineFormatter().format(failed).splitlines()

    assert first.endswith("error core.delivery.deliverer: worker failed")
    assert below[0].startswith("Traceback")
    assert below[-1] == "RuntimeError: the wheel came off"


@pytest.mark.parametrize("value", ["", "a'b", "ü"])
def test_values_are_quoted(value: str) -> None:
    """An empty value and one with quotes can be told from the words around them."""
    assert LineFormatter().format(record("m", reason=value)).endswith(f"m reason={value!r}")


def test_no_secret_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither what the environment holds nor what looks like a token, in message, values and traceback."""
    monkeypatch.setenv("THE_LOOP_API_TOKEN", "value-one-1")
    record = logging.LogRecord("core.x", logging.ERROR, "x.py", 1, "failed with %s", ("value-one-1",), None)
    record.reason = "xoxb-1-2-abc"
    record.exc_text = "ValueError: value-one-1"

    line = LineFormatter().format(record)

    assert line.endswith(" error core.x: failed with [redacted] reason='[redacted]'\nValueError: [redacted]")


_WRITER = """
import logging, os, sys
from pathlib import Path
from core.process.logs import bound_log, log_to_stderr
log_to_stderr(logging.INFO)
bound_log(Path(sys.argv[1]), max_bytes=2000, keep=2)
for number in range(200):
    logging.getLogger("core.x").info("line", extra={"number": number})
    os.write(2, f"raw {number}\\n".encode())
print("printed")
"""


def written(log: Path, stderr: Path, writer: str = _WRITER) -> None:
    """Let a process whose standard output and error are `stderr` write its log lines for `log`."""
    with stderr.open("ab") as stream:
        subprocess.run(
            [sys.executable, "-c", writer, str(log)],
            stdout=stream,
            stderr=stream,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
            timeout=60,
            check=True,
        )


def test_a_log_that_is_standard_error_stays_within_its_bounds(tmp_path: Path) -> None:
    """Log lines and what is written past them go into the newest file; two old ones are kept, all for us alone."""
    log = tmp_path / "service.log"

    written(log, log)

    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == ["service.log", "service.log.1", "service.log.2"]
    assert all(0 < path.stat().st_size < 2200 for path in files)
    assert [path.stat().st_mode & 0o777 for path in files[:2]] == [0o600, 0o600]
    assert log.read_text().endswith("raw 199\nprinted\n")
    told = "".join(path.read_text() for path in reversed(files))
    numbers = [int(number) for number in re.findall(r"number=([0-9]+)", told)]
    assert numbers == list(range(numbers[0], 200))


def test_another_standard_error_is_left_alone(tmp_path: Path) -> None:
    """A terminal, a journal's pipe or a file of the operator's choice bounds itself."""
    written(tmp_path / "service.log", tmp_path / "other.log")

    assert [path.name for path in tmp_path.iterdir()] == ["other.log"]
    assert (tmp_path / "other.log").read_text().count("core.x: line") == 200


def test_a_log_that_cannot_be_put_aside_is_written_on(tmp_path: Path) -> None:
    """What stands in the place of the old one is named, and costs no line of the log."""
    log, older = tmp_path / "service.log", tmp_path / "service.log.1"
    (tmp_path / "service.log.2").mkdir()
    log.write_bytes(3000 * b"x")

    written(log, log)

    told = older.read_text() + log.read_text()
    assert told.count("cannot put the log aside") == 1
    assert "service.log.2" in told
    assert told.count("core.x: line") == 200


_LOSING = """
import logging, os, sys
from pathlib import Path
from core.process.logs import bound_log, log_to_stderr
log_to_stderr(logging.INFO)
log = Path(sys.argv[1])
bound_log(log, max_bytes=100_000, keep=2)
logging.getLogger("core.x").info("before")
log.unlink()
logging.getLogger("core.x").info("after")
os.write(2, b"raw\\n")
"""


def test_a_log_that_is_taken_away_is_begun_anew(tmp_path: Path) -> None:
    """What is logged, and what is written past it, goes where somebody looks for it."""
    log = tmp_path / "service.log"

    written(log, log, _LOSING)

    first, raw = log.read_text().splitlines()
    assert first.endswith("core.x: after")
    assert raw == "raw"
    assert log.stat().st_mode & 0o777 == 0o600
