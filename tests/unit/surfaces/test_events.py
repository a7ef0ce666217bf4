"""The event log as lines for people."""

from core.clock import SystemClock
from core.store.eventlog import JsonEventLog
from tests.unit.surfaces.conftest import Terminal

FORGED = "2026-05-04T12:00:00Z standing.stopped info other"


def test_an_event_is_one_line_whatever_it_holds(terminal: Terminal) -> None:
    """What a harness or an agent put into it makes no line that looks like an event of its own."""
    log = JsonEventLog(terminal.paths.events, SystemClock(), max_bytes=10_000, keep=1)
    log.emit("loop.failed", name="scribe", reason=f"the model is down\n{FORGED}", detail=f"loop_a\u2028{FORGED}")

    code = terminal.run("events")

    [line] = terminal.out.splitlines()
    assert code == 0
    assert line.endswith(f"scribe  the model is down {FORGED}  loop_a {FORGED}")
