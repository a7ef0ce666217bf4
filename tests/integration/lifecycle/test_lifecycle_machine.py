"""Any order of verbs, crashes between their steps, killed agents and a lost tmux server comes to a sound end."""

import os
import shutil
import signal
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from core import effects
from core.domain.session import HoldKind, Live, SessionRecord
from core.effects import Effect
from core.errors import CoreError
from core.reconcile import reconcile
from core.standing.listing import get_standing
from core.system import System
from tests.support.tmux import private_tmux, wait_until
from tests.support.world import ACTOR, VERBS, World, check_consistent

NAMES = ("scribe", "extra")
LIFT_A_MARK = {"start", "delete"}
POINTS = [f"{effect.value}:{side}" for effect in Effect for side in ("before", "after")]


class Killed(BaseException):
    """Stands for SIGKILL within one process: nothing that the product catches catches it."""


class Lifecycle(RuleBasedStateMachine):
    """A declared session, one that is created and deleted, and whatever may happen to them."""

    @initialize()
    def begin(self) -> None:
        """Make a world of its own for the run."""
        self.stack = ExitStack()
        private = self.stack.enter_context(private_tmux())
        folder = Path(tempfile.mkdtemp(prefix="lm-"))
        self.stack.callback(shutil.rmtree, folder, ignore_errors=True)
        world = World(folder, private.server.socket_name, private.folder, declared=("scribe",))
        self.world = replace(world, slack=True, command_seconds=2.0)
        self.world.store.mkdir()
        self.world.cwd.mkdir()
        self.private = private

    def teardown(self) -> None:
        """End the run's tmux server and remove its files."""
        if hasattr(self, "stack"):
            self.stack.close()

    @rule(verb=st.sampled_from(sorted(VERBS)), name=st.sampled_from(NAMES), crash_at=st.sampled_from(["", *POINTS]))
    def run_verb(self, verb: str, name: str, crash_at: str) -> None:
        """Run a verb as a process of its own would, which may be killed at a point that it passes."""
        system = self.world.system()
        before = {each: system.records.read(each) for each in NAMES}

        crashed = run(system, verb, name, crash_at)

        reconcile(self.world.system(), ACTOR)
        for each in NAMES:
            check_mark(system, each, before[each], lifted=verb in LIFT_A_MARK and each == name)
        if crashed:
            return
        record = system.records.read(name)
        if verb == "stop" and record is not None:
            assert record.hold is not None
            assert get_standing(system, name).live is Live.ABSENT
        if verb == "start" and record is not None:
            assert record.hold is None
            assert get_standing(system, name).live is Live.LIVE

    @rule()
    def kill_the_agents(self) -> None:
        """Kill every agent, as the kernel does when memory is short."""
        system = self.world.system()
        for pane in system.runner.survey().panes:
            if not pane.dead:
                os.kill(pane.pid, signal.SIGKILL)
        wait_until(lambda: all(pane.dead for pane in system.runner.survey().panes), "the panes are dead")

    @rule()
    def lose_tmux(self) -> None:
        """End the tmux server and all that runs in it, as a reboot does."""
        if self.world.system().runner.survey().panes:
            self.private.close()

    @invariant()
    def record_and_tmux_agree(self) -> None:
        """Whatever happened, after a reconcile nothing is under way, and nothing runs that should not."""
        if not hasattr(self, "world"):
            return
        system = self.world.system()
        reconcile(system, ACTOR)
        for name in NAMES:
            check_consistent(system, name)


def run(system: System, verb: str, name: str, crash_at: str) -> bool:
    """Run the verb and tell whether it was killed. What the verb refuses is refused."""

    def crash_point(point: str) -> None:
        if point == crash_at:
            raise Killed

    real, effects._crash_point = effects._crash_point, crash_point
    try:
        VERBS[verb](system, name)
    except Killed:
        return True
    except CoreError:
        return False  # unknown, taken, held: each is tested where it belongs
    finally:
        effects._crash_point = real
    return False


def check_mark(system: System, name: str, before: SessionRecord | None, *, lifted: bool) -> None:
    """Assert that the generation never falls, and that only a start by name or a deletion lifts a stop mark."""
    after = system.records.read(name)
    if before is None or after is None or after.uid != before.uid:
        return
    assert after.generation >= before.generation
    if before.hold is not None and before.hold.kind is HoldKind.STOPPED and not lifted:
        assert after.hold == before.hold


Lifecycle.TestCase.settings = settings(
    max_examples=6, stateful_step_count=10, deadline=None, suppress_health_check=list(HealthCheck)
)
TestLifecycle = Lifecycle.TestCase
