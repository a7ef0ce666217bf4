"""What fails for one session in a way that nobody foresaw is told, and holds up no other."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from core.base.errors import RecordUnreadable, TmuxSilent
from core.base.values import replace
from core.delivery.deliverer import Deliverer
from core.delivery.hearing import AFTER, Retries
from core.delivery.hook_ingest import ingest_record
from core.harness.catalogue import Harnesses
from core.loops.scheduler import Scheduler
from core.model.harness import HarnessEvent, Report, Retry, SessionContext, Transcript
from core.model.message import MessageState
from core.model.session import SessionRecord
from core.session.sessions import Unforeseen, activity_of, each_apart
from tests.support.simulated import Simulation, simulated
from tests.support.world import events, waiting_message

ODD, EVEN = "odd", "even"


class OddHarness:
    """The bundled agent's adapter, as it would be with a defect that shows in one session, or at one report."""

    def __init__(self, harnesses: Harnesses) -> None:
        self._harness = harnesses.get("bundled")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._harness, name)

    def get(self, name: str) -> "OddHarness":
        """Be the catalogue, too."""
        return self

    def interpret(self, report: Report) -> tuple[HarnessEvent, ...]:
        """Fail at a report that says so."""
        if "defect" in report.payload:
            raise ZeroDivisionError("a defect")
        return self._harness.interpret(report)

    def transcript(self, context: SessionContext, *, from_start: bool) -> Transcript | None:
        """Fail for one session."""
        if context.name == ODD:
            raise ZeroDivisionError("a defect")
        return self._harness.transcript(context, from_start=from_start)

    def retry_shown(self, screen: str) -> Retry | None:
        """Fail at a screen that says so."""
        if "defect" in screen:
            raise ZeroDivisionError("a defect")
        return Retry("", 2, 10)


@pytest.fixture
def simulation(tmp_path: Path) -> Iterator[Simulation]:
    """Give a simulation of two sessions, one of which meets the defect."""
    found = simulated(tmp_path / "state")
    system = replace(found.system, harnesses=cast(Harnesses, OddHarness(found.system.harnesses)))
    odd = Simulation(system, found.clock, found.tmux, Scheduler(system), Deliverer(system))
    for name in (EVEN, ODD):
        odd.session(name)
    yield odd
    system.close()


def record_of(simulation: Simulation, name: str) -> SessionRecord:
    """Return the session's record."""
    record = simulation.system.records.read(name)
    assert record is not None
    return record


def test_a_report_that_cannot_be_taken_in_is_put_aside(simulation: Simulation) -> None:
    """The reports before it and behind it count, and its reason is told."""
    record, pane = record_of(simulation, ODD), simulation.tmux.panes[f"i-{ODD}"]
    pane.report({"hook_event_name": "UserPromptSubmit", "prompt": "begin"})
    pane.report({"hook_event_name": "PostToolUse", "defect": True})
    pane.report({"hook_event_name": "Stop", "last_assistant_message": "done"})

    taken = ingest_record(simulation.system, record)

    activity = simulation.system.activities.get(record.uid)
    [told] = events(simulation.system, "standing.suppressed")
    [bad] = (pane.spool / "bad").iterdir()
    assert taken
    assert activity is not None
    assert activity.state.value == "idle"
    assert json.loads(bad.read_text())["defect"] is True
    assert "ZeroDivisionError" in told["reason"]
    assert [path for path in pane.spool.iterdir() if path.is_file()] == []


def test_a_delivery_that_fails_holds_up_no_other(simulation: Simulation) -> None:
    """One session's message cannot be moved on, the other's is in; the trouble is told once."""
    sent = {name: waiting_message(simulation.system, name).id for name in (ODD, EVEN)}

    for _ in range(3):
        simulation.clock.pause(1)
        outcomes = simulation.deliverer.advance_all([f"s-{ODD}", f"s-{EVEN}"])

    rows = {name: simulation.system.inbox.get(message) for name, message in sent.items()}
    states = {name: row.state for name, row in rows.items() if row is not None}
    [told] = events(simulation.system, "standing.passed_over")
    assert isinstance(outcomes[f"s-{ODD}"], Unforeseen)
    assert states == {ODD: MessageState.PENDING, EVEN: MessageState.CONFIRMED}
    assert (told["name"], told["level"]) == (ODD, "error")


def test_a_screen_that_cannot_be_read_holds_up_no_other(simulation: Simulation) -> None:
    """Both turns are quiet; what the other one's screen shows is noted."""
    records = [record_of(simulation, name) for name in (ODD, EVEN)]
    for record in records:
        pane = simulation.tmux.panes[f"i-{record.name}"]
        pane.report({"hook_event_name": "UserPromptSubmit", "prompt": "begin"})
        ingest_record(simulation.system, record)
        pane.shown = "a defect" if record.name == ODD else "a retry"
    simulation.clock.pause(AFTER.total_seconds() + 1)

    Retries(simulation.system).look(records, simulation.tmux.survey())

    retrying = {record.name: activity_of(simulation.system.activities, record) for record in records}
    [told] = events(simulation.system, "standing.passed_over")
    assert {name: activity and bool(activity.retrying) for name, activity in retrying.items()} == {
        ODD: False,
        EVEN: True,
    }
    assert told["name"] == ODD


def test_what_was_foreseen_is_no_defect(simulation: Simulation) -> None:
    """It is logged and looked at again, and every other session is acted on."""
    seen = []

    def act(record: SessionRecord) -> None:
        seen.append(record.name)
        if record.name == EVEN:
            raise RecordUnreadable(record.name, "somewhere", "it holds a riddle")

    each_apart(simulation.system.events, [record_of(simulation, name) for name in (EVEN, ODD)], act)

    assert seen == [EVEN, ODD]
    assert events(simulation.system, "standing.passed_over") == []


def test_a_silent_tmux_is_nobodys_own_trouble(simulation: Simulation) -> None:
    """Whoever goes through the sessions learns of it at once."""

    def act(_: SessionRecord) -> None:
        raise TmuxSilent("tmux does not answer", "wait")

    with pytest.raises(TmuxSilent):
        each_apart(simulation.system.events, [record_of(simulation, EVEN)], act)
