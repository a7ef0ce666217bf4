"""A loop without a cadence: only the end of the turn that its tick began settles it."""

from datetime import timedelta

from core.delivery.saying import cancel_queue
from core.loops.verbs import Asker, schedule_next_run
from core.model.activity import Activity, ActivityState
from core.model.loop import Held, LoopStatus, RunState
from core.model.message import MessageState
from core.model.reasons import Because, Reason
from core.model.session import Hold, HoldKind, Status
from tests.support.simulated import Simulation
from tests.unit.store.samples import NOON

AGENT = Asker("agent:scribe", "s-scribe")
FIVE = NOON + timedelta(minutes=5)


def test_a_turn_that_names_no_next_run_ends_it(simulation: Simulation) -> None:
    """With the reason, once its turn is over and not before."""
    loop = simulation.dynamic()
    simulation.pass_time(minutes=6)
    running = simulation.now(loop)

    simulation.finish()

    after = simulation.now(loop)
    assert (running.status, running.run_count, running.next_run_at) == (LoopStatus.ACTIVE, 1, None)
    assert (after.status, after.reason) == (LoopStatus.STOPPED, "its turn ended without schedule_next_run")
    assert simulation.system.loops.open_runs() == ()


def test_a_turn_that_names_the_next_run_lets_it_go_on(simulation: Simulation) -> None:
    """At the time that it named."""
    loop = simulation.dynamic()
    simulation.pass_time(minutes=6)
    schedule_next_run(simulation.system, AGENT, loop.id, "10m", "the build takes long")

    simulation.finish()
    planned = simulation.now(loop)
    simulation.pass_time(minutes=11)

    assert planned.status is LoopStatus.ACTIVE
    assert simulation.now(loop).run_count == 2


def test_a_late_idle_edge_of_an_earlier_turn_never_ends_it(simulation: Simulation) -> None:
    """Its report was written before the tick's turn began, and is read after that."""
    loop = simulation.dynamic()
    simulation.clock.pause(299)
    written = simulation.clock.now()
    simulation.pass_time(minutes=1)
    [run] = simulation.system.loops.open_runs()

    simulation.tmux.panes["i-scribe"].finish(at=written)
    simulation.system.ingest("s-scribe")
    simulation.turn()
    late = simulation.now(loop)
    simulation.finish()

    assert run.state is RunState.TAKEN
    assert late.status is LoopStatus.ACTIVE
    assert simulation.now(loop).status is LoopStatus.STOPPED


def test_turns_of_people_before_the_tick_is_taken_end_nothing(simulation: Simulation) -> None:
    """The tick waits in the queue while they go on."""
    loop = simulation.dynamic()
    pane = simulation.tmux.panes["i-scribe"]
    pane.begin("something")
    simulation.system.ingest("s-scribe")
    simulation.pass_time(minutes=6)
    pane.finish()
    pane.begin("something else")
    simulation.system.ingest("s-scribe")
    simulation.turn()
    waiting = simulation.now(loop)

    simulation.finish()
    simulation.turn()

    assert (waiting.status, waiting.run_count) == (LoopStatus.ACTIVE, 0)
    assert simulation.now(loop).run_count == 1
    assert simulation.now(loop).status is LoopStatus.ACTIVE


def test_an_interrupted_turn_ends_it_too(simulation: Simulation) -> None:
    """Escape fires no hook: the session is found idle, later than the turn began."""
    loop = simulation.dynamic()
    simulation.pass_time(minutes=6)
    idle = Activity("s-scribe", "i-scribe", ActivityState.IDLE, simulation.clock.now())
    simulation.system.activities.put(idle)

    simulation.turn()

    assert simulation.now(loop).status is LoopStatus.STOPPED


def test_a_turn_that_failed_comes_again(simulation: Simulation) -> None:
    """The agent had no chance to name a next run: that is a failure, and no end."""
    loop = simulation.dynamic()
    simulation.pass_time(minutes=6)

    simulation.tmux.panes["i-scribe"].fail("server_error", "overloaded")
    simulation.system.ingest("s-scribe")

    after = simulation.now(loop)
    assert (after.status, after.failures, after.last_error) == (LoopStatus.ACTIVE, 1, "server_error: overloaded")
    assert after.next_run_at == simulation.clock.now() + timedelta(seconds=30)


def test_a_usage_limit_keeps_it_until_that_is_over(simulation: Simulation) -> None:
    """It runs again then, and is not ended."""
    loop = simulation.dynamic()
    simulation.pass_time(minutes=6)
    simulation.tmux.panes["i-scribe"].fail("rate_limit")
    simulation.system.ingest("s-scribe")
    held = simulation.now(loop)

    simulation.pass_time(minutes=16)

    assert (held.held, held.status) == (Held.USAGE_LIMIT, LoopStatus.ACTIVE)
    assert simulation.now(loop).run_count == 2


def test_a_restart_without_a_next_run_ends_it_with_the_reason(simulation: Simulation) -> None:
    """The turn that was to name it is gone with its instance."""
    loop = simulation.dynamic()
    simulation.pass_time(minutes=6)

    simulation.respawned(simulation.change())
    simulation.turn()

    after = simulation.now(loop)
    assert (after.status, after.reason) == (LoopStatus.STOPPED, "restarted without a next run")


def test_a_restart_with_a_next_run_changes_nothing(simulation: Simulation) -> None:
    """It was named before."""
    loop = simulation.dynamic()
    simulation.pass_time(minutes=6)
    schedule_next_run(simulation.system, AGENT, loop.id, "10m")

    simulation.respawned(simulation.change())
    simulation.pass_time(minutes=11)

    assert simulation.now(loop).status is LoopStatus.ACTIVE
    assert simulation.now(loop).run_count == 2


def test_a_stop_and_a_start_with_a_passed_next_run_arm_it_a_minute_later(simulation: Simulation) -> None:
    """One that waited in the queue is not caught up."""
    loop = simulation.dynamic()
    record = simulation.change(status=Status.STOPPED, hold=Hold(HoldKind.STOPPED, "cli:ann", "", NOON))
    cancel_queue(simulation.system, record)
    simulation.pass_time(minutes=20)

    simulation.respawned(simulation.change())
    simulation.turn()

    after = simulation.now(loop)
    assert (after.status, after.held, after.run_count) == (LoopStatus.ACTIVE, None, 0)
    assert after.next_run_at is not None
    assert timedelta(seconds=50) < after.next_run_at - simulation.clock.now() <= timedelta(minutes=1)


def test_a_cancelled_run_ends_it_and_says_whose_word_that_was(simulation: Simulation) -> None:
    """No other was planned."""
    loop = simulation.dynamic()
    simulation.tmux.panes["i-scribe"].begin("something long")
    simulation.system.ingest("s-scribe")
    simulation.pass_time(minutes=6)
    [row] = simulation.system.inbox.unsettled("s-scribe")
    simulation.system.inbox.advance(row, MessageState.CANCELLED, Because(Reason.CANCELLED_BY, {"actor": "cli:ann"}))

    simulation.turn()

    after = simulation.now(loop)
    assert after.status is LoopStatus.STOPPED
    assert "cancelled by cli:ann" in after.reason


def test_without_hooks_the_first_idle_edge_after_the_submit_settles_it(simulation: Simulation) -> None:
    """Nothing tells when the turn began."""
    pane = simulation.tmux.panes["i-scribe"]
    pane.reports = False
    simulation.system.activities.forget("s-scribe")
    loop = simulation.dynamic()
    simulation.pass_time(minutes=6)
    taken = simulation.now(loop)
    idle = Activity("s-scribe", "i-scribe", ActivityState.IDLE, simulation.clock.now())
    simulation.system.activities.put(idle)

    simulation.turn()

    assert (taken.status, taken.run_count) == (LoopStatus.ACTIVE, 1)
    assert simulation.now(loop).status is LoopStatus.STOPPED
