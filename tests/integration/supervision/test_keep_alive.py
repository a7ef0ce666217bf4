"""A keep-alive loop asks for what `restart: on-failure` asks for, on real panes."""

from dataclasses import replace
from datetime import timedelta

from core.lifecycle.everything import start_all
from core.lifecycle.start import start_standing
from core.loops.scheduler import Scheduler
from core.loops.verbs import Asker, stop_loop
from core.model.loop import Held, Loop, LoopStatus
from core.model.session import HoldKind, Outcome
from core.session.system import System
from tests.integration.delivery.conftest import settle
from tests.integration.lifecycle.machine import deliver
from tests.integration.supervision.conftest import Supervised, back, crash, up, with_sessions
from tests.support.tmux import PrivateTmux, wait_until
from tests.support.world import ACTOR, definition, recorded
from tests.unit.store.samples import a_loop


def kept_open(system: System) -> Loop:
    """Give `scribe` a keep-alive loop that is due in an hour."""
    now = system.clock.now()
    loop = a_loop(1, uid=recorded(system, "scribe").uid, keep_alive=True, created_at=now)
    loop = replace(loop, next_run_at=now + timedelta(hours=1))
    assert system.loops.add(loop, 0)
    return loop


def test_a_crash_is_mended_within_the_budget_and_then_held(system: System) -> None:
    """The session has no policy of its own; the loop is never ended, and waits for a start by name."""
    limits = system.settings.limits._replace(restarts_per_hour=1)
    system = up(replace(system, settings=system.settings._replace(limits=limits)))
    loop = kept_open(system)
    service = Supervised(system).start()
    before = recorded(system, "scribe")

    crash(system)
    wait_until(lambda: back(system, before), "it is back")
    settle(system)
    crash(system)
    wait_until(lambda: recorded(system, "scribe").hold, "it is held")
    service.stop()
    stored = system.loops.get(loop.id)
    assert stored is not None
    system.loops.change(stored, next_run_at=system.clock.now())
    scheduler = Scheduler(system)
    scheduler.turn()
    deliver(system, "scribe")
    held = system.loops.get(loop.id)
    start_standing(system, "scribe", ACTOR)
    scheduler.look_at_everything()
    scheduler.turn()
    after = system.loops.get(loop.id)

    assert recorded(system, "scribe").harness_session_id == before.harness_session_id
    assert held is not None
    assert (held.status, held.held) == (LoopStatus.ACTIVE, Held.STOPPED)
    assert after is not None
    assert after.held is None


def test_a_crash_after_the_loop_was_stopped_is_nobodys_business(system: System) -> None:
    """The future was let go."""
    system = up(system)
    loop = kept_open(system)
    stop_loop(system, Asker("cli:ann"), loop.id)
    service = Supervised(system).start()

    crash(system)
    wait_until(lambda: system.exit_ledger.end(recorded(system, "scribe").instance_id or ""), "the end is told")
    service.stop()

    assert system.exit_ledger.due() == ()
    hold = recorded(system, "scribe").hold
    assert hold is None or hold.kind is not HoldKind.FAILED


def test_a_session_that_no_boot_starts_comes_back_with_its_next_tick(system: System, private: PrivateTmux) -> None:
    """`autoStart: false` and a machine that was restarted: what has nothing to do stays down, the future goes on."""
    quiet, other = (replace(definition(name), auto_start=False) for name in ("scribe", "other"))
    system = up(with_sessions(system, quiet, other), "scribe", "other")
    loop, before = kept_open(system), recorded(system, "scribe")
    private.tmux("kill-server")
    answer = start_all(system, "supervisor")
    swept = {row.name: row.outcome for row in answer.sessions}
    system.loops.change(loop, next_run_at=system.clock.now())
    scheduler = Scheduler(system)
    scheduler.turn()

    service = Supervised(system).start()
    deliver(system, "scribe")
    wait_until(lambda: back(system, before), "it is back")
    settle(system)
    deliver(system, "scribe")
    scheduler.turn()
    service.stop()

    assert swept == {"scribe": Outcome.NOT_RUNNING, "other": Outcome.NOT_RUNNING}
    assert recorded(system, "scribe").harness_session_id == before.harness_session_id
    after = system.loops.get(loop.id)
    assert after is not None
    assert (after.run_count, after.failures) == (1, 0)
    assert {pane.target for pane in system.runner.survey().panes} == {"loop-standing-scribe"}
