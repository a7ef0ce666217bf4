"""The event log as lines for people."""

from core.base.clock import SystemClock
from core.store.eventlog import EventLog
from tests.unit.cli.conftest import Terminal

FORGED = "2026-05-04T12:00:00Z standing.stopped info other"


def test_an_event_is_one_line_whatever_it_holds(terminal: Terminal) -> None:
    """What a harness or an agent put into it makes no line that looks like an event of its own."""
    log = EventLog(terminal.paths.events, SystemClock(), max_bytes=10_000, keep=1)
    log.emit("loop.failed", name="scribe", reason=f"the model is down\n{FORGED}", detail=f"loop_a\u2028{FORGED}")

    code = terminal.run("events")

    [line] = terminal.out.splitlines()
    assert code == 0
    assert line.endswith(f"scribe  the model is down {FORGED}  loop_a {FORGED}")


def test_a_name_that_nobody_has_is_refused(terminal: Terminal) -> None:
    """No event is not the answer to a name that was mistyped; followed, it would wait for ever."""
    codes = [terminal.run("events", "--name", "scrbe"), terminal.run("events", "--name", "scrbe", "--follow")]

    assert codes == [1, 1]
    assert "scrbe" in terminal.err
    assert terminal.run("events", "--name", "scribe") == 0
    assert terminal.run("events", "--name", "Not A Name") == 2


def test_what_was_deleted_has_its_events(terminal: Terminal) -> None:
    """The log knows more names than are recorded now."""
    EventLog(terminal.paths.events, SystemClock(), max_bytes=10_000, keep=1).emit("standing.deleted", name="gone")

    code = terminal.run("events", "--name", "gone")

    assert (code, "standing.deleted" in terminal.out) == (0, True)


def test_last_and_follow_say_why_not(terminal: Terminal) -> None:
    """The refusal names the reason and what to do."""
    code = terminal.run("events", "--last", "3", "--follow")

    assert code == 2
    assert "begins with all that is kept" in terminal.err
