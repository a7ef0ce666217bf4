"""What stands on standard error: when, how grave, where, what, and the values that belong to it."""

import logging

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
            "core.delivery.worker",
            logging.ERROR,
            __file__,
            1,
            "worker failed",
            (),
            (type(error), error, error.__traceback__),
        )

    first, *below = LineFormatter().format(failed).splitlines()

    assert first.endswith("error core.delivery.worker: worker failed")
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
