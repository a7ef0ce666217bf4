"""A start that was killed half way is finished by the running service, once nobody can be at work on it any more."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from core.domain.session import Live, Phase
from core.effects import CRASH_VARIABLE
from core.finishing import Finisher
from core.standing.listing import get_standing
from tests.support.clocks import MovedClock
from tests.support.tmux import wait_until
from tests.support.world import World, recorded


@pytest.fixture
def scripted(world: World) -> World:
    """Give a world whose agent is a shell script."""
    world.store.mkdir()
    return world


def cut_short(world: World, point: str) -> None:
    """Start `scribe` in a process that kills itself there."""
    argv = [sys.executable, "-m", "tests.support.world", str(world.save()), "start", "scribe"]
    ended = subprocess.run(
        argv, env={**os.environ, CRASH_VARIABLE: point}, capture_output=True, timeout=60, check=False
    )
    assert ended.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("point", "live"), [("start.spawn:before", Live.ABSENT), ("start.spawn:after", Live.LIVE)], ids=["before", "after"]
)
def test_a_start_that_was_killed_is_adopted_or_cleared(scripted: World, point: str, live: Live) -> None:
    """A live pane is taken over; where there is none the record is settled."""
    clock = MovedClock()
    system = replace(scripted.system(), clock=clock)
    finisher = Finisher(system)
    cut_short(scripted, point)
    finisher.look()
    early = recorded(system, "scribe").phase

    clock.move(minutes=3)
    finisher.look()

    assert early is Phase.STARTING
    assert recorded(system, "scribe").phase is Phase.SETTLED
    wait_until(lambda: get_standing(system, "scribe").live is live, f"its pane is {live.value}")
    system.close()
