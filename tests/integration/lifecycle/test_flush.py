"""A graceful end waits a moment after the harness's last report: its conversation may not be on the disk yet."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from core.harness.catalogue import Harnesses
from core.lifecycle.pause import restart_standing
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.activity import ActivityState
from core.model.harness import Harness
from core.model.rows import Answer
from core.model.session import Outcome
from core.session.system import System
from embedded.adapter import BundledHarness
from tests.integration.lifecycle.held import wait_for
from tests.support.talking import record_of, talking
from tests.support.tmux import PrivateTmux
from tests.support.world import ACTOR, World, outcomes

FLUSH = 1.5  #: seconds that are waited for
LONG = 30.0  #: seconds that nobody waits for: more than an end takes on the slowest machine
Verb = Callable[[System, str, str], Answer]


class SlowHarness(BundledHarness):
    """An agent whose conversation reaches the disk late."""

    def __init__(self, flush: float) -> None:
        self.traits = replace(BundledHarness.traits, flush=flush)


class SlowHarnesses(Harnesses):
    """A catalogue of the slow one alone."""

    def __init__(self, flush: float) -> None:
        self._harness = SlowHarness(flush)

    def get(self, name: str) -> Harness:
        """Return it."""
        return self._harness


def slow(system: System, flush: float) -> System:
    """Return the ports with agents that take so many seconds to write."""
    return replace(system, harnesses=SlowHarnesses(flush))


@pytest.fixture
def scribe(world: World) -> System:
    """Give the world's ports with `scribe` started, whose boot turn is over and whose last report is old."""
    system = talking(world)
    assert start_standing(system, "scribe", ACTOR).ok
    wait_for(system, ActivityState.IDLE)
    long_ago = time.time() - 2 * LONG
    os.utime(spool(system), (long_ago, long_ago))
    return system


def spool(system: System) -> Path:
    """Return where its reports arrive."""
    return system.paths.spool_of(record_of(system)[1])


@pytest.mark.parametrize("verb", [stop_standing, restart_standing])
def test_a_harness_that_has_just_spoken_is_given_time_to_write(scribe: System, verb: Verb) -> None:
    """SIGTERM comes once the adapter's flush has passed since the last report."""
    began = time.monotonic()
    os.utime(spool(scribe))

    answer = verb(slow(scribe, FLUSH), "scribe", ACTOR)

    assert answer.ok
    assert time.monotonic() - began >= FLUSH


def test_a_quiet_harness_is_ended_at_once(scribe: System) -> None:
    """Its conversation has long been written down."""
    began = time.monotonic()

    answer = stop_standing(slow(scribe, LONG), "scribe", ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.STOPPED}
    assert time.monotonic() - began < LONG


def test_what_a_harness_writes_down_is_not_lost_to_a_silent_tmux(scribe: System, private: PrivateTmux) -> None:
    """Tmux is not waited for before the signal; the agent is, which may be writing."""
    short = replace(slow(scribe, FLUSH), runner=private.runner(timeout=0.2))
    pid = private.tmux("display-message", "-p", "-t", "=loop-standing-scribe:", "#{pane_pid}").strip()

    with private.frozen():
        began = time.monotonic()
        os.utime(spool(scribe))
        stop_standing(short, "scribe", ACTOR)
        ended = not short.processes.alive(int(pid))

    assert ended
    assert time.monotonic() - began >= FLUSH
