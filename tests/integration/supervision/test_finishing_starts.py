"""A verb that was killed half way is finished by the running service, once nobody can be at work on it any more."""

import signal
from dataclasses import replace

import pytest

from core.lifecycle.common import Tmux
from core.lifecycle.look import get_standing
from core.lifecycle.recover import reconcile_some
from core.lifecycle.start import start_standing
from core.model.session import Live, Phase
from core.service.housekeeping import Reconciler
from tests.support.clocks import MovedClock
from tests.support.killed import run_until
from tests.support.tmux import wait_until
from tests.support.world import ACTOR, World, recorded


@pytest.fixture
def scripted(world: World) -> World:
    """Give a world whose agent is a shell script."""
    world.store.mkdir()
    return world


def cut_short(world: World, point: str, verb: str = "start") -> None:
    """Start `scribe`, or do another verb to it, in a process that kills itself there."""
    ended = run_until(point, world.folder, "world", str(world.save()), verb, "scribe")
    assert ended.code == -signal.SIGKILL, ended.output


@pytest.mark.parametrize(
    ("point", "live"), [("start.spawn:before", Live.ABSENT), ("start.spawn:after", Live.LIVE)], ids=["before", "after"]
)
def test_a_start_that_was_killed_is_adopted_or_cleared(scripted: World, point: str, live: Live) -> None:
    """A live pane is taken over; where there is none the record is settled."""
    clock = MovedClock()
    system = replace(scripted.system(), clock=clock)
    finisher = Reconciler(system)
    cut_short(scripted, point)
    finisher.look()
    early = recorded(system, "scribe").phase

    clock.move(minutes=3)
    finisher.look()

    assert early is Phase.STARTING
    assert recorded(system, "scribe").phase is Phase.SETTLED
    wait_until(lambda: get_standing(system, "scribe").live is live, f"its pane is {live.value}")
    system.close()


def test_a_start_that_began_meanwhile_is_left_to_whoever_began_it(scripted: World) -> None:
    """Listed as it was being stopped for a restart, it comes up by the time its lock is free: nothing was cut short."""
    system = scripted.system()
    cut_short(scripted, "start.spawn:after")
    listed = replace(recorded(system, "scribe"), phase=Phase.STOPPING)

    [done] = reconcile_some(system, [listed], ACTOR, Tmux(system.runner))

    assert (done.passing, done.after) == (True, Phase.STOPPING)
    assert recorded(system, "scribe").phase is Phase.STARTING
    system.close()


def test_what_somebody_was_at_work_on_is_looked_at_again_soon(scripted: World) -> None:
    """A busy lock is nothing that stands in the way: the next look finishes the stop, not one a minute later."""
    system = scripted.system()
    finisher = Reconciler(system)
    assert start_standing(system, "scribe", ACTOR).ok
    cut_short(scripted, "stop.mark:after", "stop")
    with system.locks.hold("scribe", "the test", 1):
        finisher.look()
    early = recorded(system, "scribe").phase

    finisher.look()

    assert early is Phase.STOPPING
    assert recorded(system, "scribe").phase is Phase.SETTLED
    system.close()
