"""What each agent is doing is kept as its harness tells it: without secrets, and told when it changes."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from core.base.errors import StoreBroken
from core.base.values import replace
from core.delivery.working import WorkWorker
from core.harness.catalogue import Harnesses
from core.http.facts import Facts
from core.http.metrics import ServiceCollector
from core.lifecycle.look import get_standing, list_standing
from core.lifecycle.recover import remove_session
from core.model.harness import Limit, PlanItem, PlanState, SessionContext, Usage, Working
from core.model.session import Status
from tests.support.simulated import Simulation, simulated
from tests.support.world import events

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


class TellingHarness:
    """The bundled agent's adapter, but for what its agent is doing: the test says that, or what goes wrong."""

    def __init__(self, harnesses: Harnesses) -> None:
        self._harness = harnesses.get("bundled")
        self.tells: Working | StoreBroken | None = None
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._harness, name)

    def get(self, name: str) -> "TellingHarness":
        """Be the catalogue, too."""
        return self

    def working(self, context: SessionContext) -> Working | None:
        """Tell it."""
        self.asked += 1
        if isinstance(self.tells, StoreBroken):
            raise self.tells
        return self.tells


class Looked:
    """One session, and the worker that looks at it."""

    def __init__(self, simulation: Simulation, harness: TellingHarness) -> None:
        self.simulation = simulation
        self.system = simulation.system
        self.harness = harness
        self.record = simulation.session()
        self.worker = WorkWorker(self.system)

    def look(self, told: Working | StoreBroken | None, seconds: float = 10) -> Any:
        """Look once more, after so many seconds, and return what is shown."""
        self.harness.tells = told
        self.simulation.clock.pause(seconds)
        self.worker.look()
        return self.shown()

    def shown(self) -> Any:
        """Return what is shown."""
        return get_standing(self.system, "scribe").to_json()["working"]

    def told(self, event: str) -> list[dict[str, Any]]:
        """Return the events of that name."""
        return events(self.system, event)


@pytest.fixture
def looked(tmp_path: Path) -> Iterator[Looked]:
    """Give a session that is looked at."""
    found = simulated(tmp_path / "state")
    harness = TellingHarness(found.system.harnesses)
    simulation = replace(found, system=replace(found.system, harnesses=cast(Harnesses, harness)))
    yield Looked(simulation, harness)
    found.system.close()


def plan(*states: PlanState) -> tuple[PlanItem, ...]:
    """Return a plan with items in these states."""
    return tuple(PlanItem(f"item {number}", state) for number, state in enumerate(states, 1))


def test_what_it_is_doing_is_in_the_row(looked: Looked) -> None:
    """It is null while nothing is told, then as the harness tells it; a list that shows none of it reads none."""
    working = Working(plan=plan(PlanState.DONE), model="m1", context_used=90, context_size=200, session=Usage(1, 2, 3))

    before = looked.look(None)
    after = looked.look(working)

    [short] = list_standing(looked.system, working=False)
    assert before is None
    assert after == working.to_json()
    assert short.working is None


def test_a_tool_is_told_while_a_turn_runs(looked: Looked) -> None:
    """A program that was killed leaves a call without a result behind."""
    idle = looked.look(Working(tool="Bash: make"))["tool"]
    pane = looked.simulation.tmux.panes["i-scribe"]
    pane.report({"hook_event_name": "UserPromptSubmit", "prompt": "go"})
    looked.system.ingest(looked.record.uid)

    assert (idle, looked.look(Working(tool="Bash: make"))["tool"]) == ("", "Bash: make")


def test_secrets_are_nowhere(looked: Looked) -> None:
    """They are taken out before anything is stored, out of each text."""
    looked.look(
        Working(
            plan=(PlanItem(f"use {SECRET}", PlanState.PENDING),), tool=f"curl {SECRET}", limit=Limit(f"of {SECRET}")
        )
    )

    stored = looked.system.workings.get(looked.record.uid)
    assert stored is not None
    assert "use " in str(stored)
    assert SECRET not in str(stored)
    assert SECRET not in looked.system.paths.events.read_text()


def test_long_plans_and_texts_are_cut(looked: Looked) -> None:
    """Whatever an agent writes, a row has a bounded size and no line ends of the agent's."""
    shown = looked.look(Working(plan=(PlanItem("a\n\x1b[31mb " + "x" * 5000, PlanState.PENDING),) * 5000, model="m"))

    assert len(shown["plan"]) == 100
    assert shown["plan"][0]["text"].startswith("a [31mb xx")
    assert len(shown["plan"][0]["text"]) == 300


def test_a_limit_is_over_at_its_end(looked: Looked) -> None:
    """No answer has to come before that is known."""
    until = looked.simulation.clock.now() + timedelta(seconds=15)
    reached = Working(limit=Limit("5-hour limit", until))

    first, second = looked.look(reached)["limit"], looked.look(reached)["limit"]

    assert first["what"] == "5-hour limit"
    assert second is None


def test_changes_are_events(looked: Looked) -> None:
    """Each kind by itself; what is as it was makes none. A plan's items are an agent's words, so they are a text."""
    begun = Working(plan=plan(PlanState.IN_PROGRESS, PlanState.PENDING), model="m1", session=Usage(1, 2, 3))
    looked.look(begun)
    looked.look(begun)
    looked.look(replace(begun, plan=plan(PlanState.DONE, PlanState.IN_PROGRESS)))
    looked.look(replace(begun, plan=(), limit=Limit("weekly limit")))

    plans, usages = looked.told("standing.plan"), looked.told("standing.usage")
    assert [event["detail"] for event in plans] == ["0 of 2 done", "1 of 2 done", "no plan"]
    assert "item 1" not in str(plans)
    assert [event.get("reason") for event in usages] == [None, "weekly limit"]
    assert usages[0]["detail"] == "model m1, tokens session: 1 in, 2 out, 3 cached"


def test_events_are_seconds_apart_and_the_latest_state_is_told(looked: Looked) -> None:
    """What changes within five seconds is told once, after them; also after a restart of the service."""
    for number in range(1, 5):
        looked.look(Working(session=Usage(number)), seconds=1)
    at_once = len(looked.told("standing.usage"))
    looked.look(Working(session=Usage(4)), seconds=5)
    looked.worker = WorkWorker(looked.system)
    looked.look(Working(session=Usage(4)))

    told = [event["detail"] for event in looked.told("standing.usage")]
    assert at_once == 1
    assert told == [f"tokens session: {number} in, 0 out, 0 cached" for number in (1, 4)]


def test_what_ended_is_looked_at_once_more(looked: Looked) -> None:
    """Its program may write down last what it has cost; then nobody asks, and the row keeps it without a tool."""
    looked.look(Working(session=Usage(1), tool=""))
    looked.simulation.change(status=Status.STOPPED)
    looked.simulation.tmux.panes.clear()

    shown = looked.look(Working(session=Usage(1, cost=0.5), tool=""))
    looked.look(Working(session=Usage(9)))
    asked = looked.harness.asked

    assert (shown["usage"]["session"]["costUsd"], shown["tool"]) == (0.5, None)
    assert looked.shown() == shown
    assert asked == 2


def test_another_instance_is_not_told_of_before_it_is_looked_at(looked: Looked) -> None:
    """What the pane before it did is not what this one does."""
    looked.look(Working(tool=""))
    looked.simulation.respawned(looked.record)

    assert looked.shown() is None
    assert looked.look(Working(tool="")) is not None


def test_records_that_cannot_be_read_leave_what_was_told(looked: Looked, caplog: pytest.LogCaptureFixture) -> None:
    """The log says so once, and once more after they could be read."""
    known = looked.look(Working(model="m1"))
    broken = StoreBroken("the conversation cannot be read", "make it readable")
    for told in (broken, broken, Working(model="m1"), broken):
        looked.look(told)

    assert looked.shown() == known
    assert [record.message for record in caplog.records].count("what it does is not known") == 2


def test_a_deleted_session_leaves_nothing(looked: Looked) -> None:
    """Its name may be another's soon."""
    looked.look(Working(model="m1"))
    remove_session(looked.system, looked.record, "cli:ann")

    assert looked.system.workings.all() == {}


def test_metrics_tell_what_each_session_has_used(looked: Looked) -> None:
    """Tokens by model where that is told, and a cost only where it is known."""
    dear, free = Usage(5, 6, 7, 0.25), Usage(1, 2, 3)
    looked.look(Working(session=dear + free, by_model={"dear": dear, "free": free}))
    unasked = cast(Any, None)  # toolbox, requests, status: metrics ask none of them
    facts = Facts(looked.system, lambda: (), lambda: "ok", lambda: 0, dict, dict, unasked, unasked, unasked)

    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in ServiceCollector(facts, Counter()).collect()
        for sample in family.samples
    }

    assert {key: value for key, value in found.items() if key[0] == "the_loop_cost_usd_total"} == {
        ("the_loop_cost_usd_total", "scribe", "dear"): 0.25
    }
    assert found["the_loop_tokens_total", "scribe", "free", "cached"] == 3
    assert found["the_loop_scrape_ok", "cost"] == 1
