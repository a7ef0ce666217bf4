"""Each live pane has one watch on its process: the figure counts what is held, and the kernel says the same."""

import pytest

from core.lifecycle.pause import restart_standing
from core.lifecycle.stop import stop_standing
from core.service.watching import ObserverWorker
from core.session.system import System
from tests.integration.supervision.conftest import pid_of, up
from tests.support.descriptors import pidfds
from tests.support.tmux import wait_until
from tests.support.world import ACTOR, recorded


@pytest.fixture
def scribe(system: System) -> System:
    """Give the world's ports with `scribe` up."""
    return up(system)


@pytest.fixture
def worker(scribe: System) -> ObserverWorker:
    """Give an observer that looks when it is told to."""
    return ObserverWorker(scribe, lambda _: None)


def held(worker: ObserverWorker, pid: int) -> tuple[int, int]:
    """Return how many watches there are, as the worker says it, and how many pidfds on the process this one holds."""
    return worker.watching(), pidfds().count(pid)


def test_adopt_release_adopt_leaves_one_subscription(scribe: System, worker: ObserverWorker) -> None:
    """However often a live pane is found, let go and found again, one watch is held on it: none while it is let go."""
    pid = pid_of(scribe)
    seen = []
    for _ in range(2):
        worker.survey()
        worker.survey()
        seen.append(held(worker, pid))
        worker.release(recorded(scribe, "scribe").instance_id or "")
        seen.append(held(worker, pid))

    assert seen == [(1, 1), (0, 0), (1, 1), (0, 0)]
    assert pid_of(scribe) == pid


def test_restarts_and_a_stop_leave_no_watch_behind(scribe: System, worker: ObserverWorker) -> None:
    """The watch on a process goes with it; its successor has one of its own, however often it is looked at."""
    worker.survey()
    seen = []
    for _ in range(3):
        assert restart_standing(scribe, "scribe", ACTOR).ok
        worker.survey()
        worker.survey()
        seen.append(held(worker, pid_of(scribe)))
    last = pid_of(scribe)

    assert stop_standing(scribe, "scribe", ACTOR).ok
    worker.survey()

    assert seen == [(1, 1)] * 3
    wait_until(lambda: held(worker, last) == (0, 0), "nothing is watched")
