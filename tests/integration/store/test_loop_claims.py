"""Claims of due runs by several processes, and after the death of one."""

import signal
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from core.base.clock import SystemClock
from core.base.paths import StatePaths
from core.model.loop import RunState
from core.store.database import Database
from core.store.loops import Loops
from tests.integration.store.conftest import Child, go_on, line
from tests.unit.store.samples import a_loop

Run = Callable[..., Child]


@pytest.fixture
def loops(paths: StatePaths) -> Iterator[Loops]:
    """Return two hundred loops of forty sessions, all due."""
    database = Database(paths, SystemClock())
    loops = Loops(database, SystemClock())
    with database.transaction(durable=True):
        for number in range(200):
            loops.add(a_loop(number, uid=f"s-{number % 40}"), 0)
    yield loops
    database.close()


def test_two_processes_claim_each_due_run_once(loops: Loops, run: Run) -> None:
    """Both ask at once for a few at a time, and no run is given to both."""
    children = [run("claim", who) for who in ("one", "two")]
    assert [line(child) for child in children] == ["ready", "ready"]

    for child in children:
        go_on(child)
    told = [child.communicate(timeout=60)[0].split("\n") for child in children]

    claimed = [said for lines in told for said in lines if said and said != "done"]
    assert all("done" in lines for lines in told)
    assert len(claimed) == 200
    assert len({said.split()[0] for said in claimed}) == 200
    assert {said.split()[1] for said in claimed} == {run.id for run in loops.open_runs()}


def test_the_runs_of_a_killed_claimer_return_when_its_lease_lapses(loops: Loops, run: Run) -> None:
    """Each under its id, and one that was sent before the death does not return."""
    child = run("die_with_claims")
    assert child.wait(30) == -signal.SIGKILL
    before = {run.loop_id: run for run in loops.open_runs()}
    sent = loops.move_run(before["loop_0"], state=RunState.SENT)
    now = SystemClock().now()

    early = loops.claim(now, "two", now + timedelta(hours=3), 1000)
    late = loops.claim(now + timedelta(hours=2), "two", now + timedelta(hours=3), 1000)

    assert early == ()
    assert sent is not None
    assert {run.loop_id: run.id for _, run in late} == {
        loop: run.id for loop, run in before.items() if loop != "loop_0"
    }


def test_two_processes_open_no_more_loops_than_may_be(paths: StatePaths, run: Run) -> None:
    """An agent and its operator who make some at once share the session's room."""
    children = [run("open_loops", who, "7") for who in ("one", "two")]
    assert [line(child) for child in children] == ["ready", "ready"]

    for child in children:
        go_on(child)

    assert sum(int(line(child)) for child in children) == 7
