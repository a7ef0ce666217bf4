"""What keeps a loop from firing, and what lets it go on: found by a look, whoever did it."""

from datetime import timedelta

import pytest

from core.delivery.saying import cancel_queue, hold_loops
from core.lifecycle.recover import remove_session
from core.loops.verbs import Asker, run_loop_now
from core.model.gate import Observed
from core.model.loop import Held, LoopStatus
from core.model.message import MessageState
from core.model.session import Hold, HoldKind, Phase, Status
from tests.support.simulated import Simulation
from tests.support.world import events


def mark(simulation: Simulation, kind: HoldKind) -> Hold:
    """Return a mark of that kind."""
    return Hold(kind, "cli:ann", "", simulation.clock.now())


def test_a_paused_session_holds_its_loops_and_fires_each_once_on_resume(simulation: Simulation) -> None:
    """However many slots have passed; nothing waits in the inbox meanwhile."""
    loops = [simulation.loop(), simulation.loop(keep_alive=True)]
    simulation.change(hold=mark(simulation, HoldKind.PAUSED))

    simulation.pass_time(step=30, hours=2)
    paused = [simulation.now(loop) for loop in loops]
    waiting = simulation.system.inbox.unsettled("s-scribe")
    simulation.change(hold=None)
    simulation.pass_time(seconds=40, finish=["scribe"])

    assert [(loop.held, loop.run_count, loop.status) for loop in paused] == [(Held.PAUSED, 0, LoopStatus.ACTIVE)] * 2
    assert waiting == ()
    assert [simulation.now(loop).run_count for loop in loops] == [1, 1]
    assert len(simulation.prompts()) == 2


def test_a_pause_takes_a_tick_back_that_waits_behind_a_message(simulation: Simulation) -> None:
    """Also one that is not the first in the queue."""
    loop = simulation.loop()
    simulation.tmux.panes["i-scribe"].begin("something long")
    simulation.system.ingest("s-scribe")
    simulation.pass_time(minutes=5)
    simulation.change(hold=mark(simulation, HoldKind.PAUSED))

    simulation.turn()

    assert simulation.now(loop).held is Held.PAUSED
    assert simulation.system.inbox.unsettled("s-scribe") == ()


def stopped_by_name(simulation: Simulation) -> None:
    """Do what `stop NAME` does to record, queue and pane."""
    record = simulation.change()
    held = simulation.change(
        hold=mark(simulation, HoldKind.STOPPED), generation=record.generation + 1, status=Status.STOPPED
    )
    cancel_queue(simulation.system, held)
    simulation.tmux.panes[record.instance_id or ""].dead = True


def test_a_stop_holds_and_a_start_rearms_one_interval_later(simulation: Simulation) -> None:
    """No catch-up: the slots of a day are gone, and so is the tick that waited."""
    loop = simulation.loop()
    simulation.tmux.panes["i-scribe"].begin("something long")
    simulation.system.ingest("s-scribe")
    simulation.pass_time(minutes=6)

    stopped_by_name(simulation)
    at_once = simulation.now(loop)
    simulation.pass_time(step=600, hours=24)
    still = simulation.now(loop)
    simulation.respawned(simulation.change())
    simulation.turn()

    assert at_once.held is Held.STOPPED
    assert (still.held, still.failures, still.run_count) == (Held.STOPPED, 0, 0)
    after = simulation.now(loop)
    assert (after.held, after.run_count) == (None, 0)
    assert after.next_run_at is not None
    assert timedelta(minutes=4) < after.next_run_at - simulation.clock.now() <= timedelta(minutes=5)
    simulation.pass_time(minutes=6)
    assert simulation.now(loop).run_count == 1


def test_a_stop_of_all_holds_too_and_keeps_what_waits(simulation: Simulation) -> None:
    """A start re-arms then as well."""
    loop = simulation.loop()
    simulation.clock.pause(100)

    hold_loops(simulation.system, simulation.change(status=Status.STOPPED))
    simulation.pass_time(minutes=10)
    simulation.respawned(simulation.change())
    simulation.turn()

    after = simulation.now(loop)
    assert after.held is None
    assert after.next_run_at is not None
    assert after.next_run_at - simulation.clock.now() > timedelta(minutes=4)


def test_a_second_pause_of_the_same_start_does_not_rearm_again(simulation: Simulation) -> None:
    """Only a start after the hold lifts it."""
    loop = simulation.loop()
    stopped_by_name(simulation)
    simulation.change(hold=None, status=Status.RUNNING)  # a record that says it runs, with no start since

    simulation.turn()

    assert simulation.now(loop).held is Held.STOPPED


@pytest.mark.parametrize("observed", [Observed.NEVER_RUN, Observed.DOWN, Observed.FOREIGN])
def test_a_session_that_is_not_there_holds(simulation: Simulation, observed: Observed) -> None:
    """The tick is over, and counts neither as a run nor as a failure."""
    loop = simulation.loop()
    pane = simulation.tmux.panes.pop("i-scribe")
    if observed is Observed.FOREIGN:
        simulation.tmux.foreign.add("scribe")
    simulation.change(status=Status.STOPPED, instance_id=None if observed is Observed.NEVER_RUN else pane.instance)

    simulation.pass_time(minutes=5)

    after = simulation.now(loop)
    assert (after.held, after.run_count, after.failures) == (Held.STOPPED, 0, 0)
    assert simulation.system.inbox.unsettled("s-scribe") == ()
    assert len(events(simulation.system, "loop.held")) == 1


def test_a_silent_tmux_defers_and_counts_no_failure(simulation: Simulation) -> None:
    """Nothing is known, so nothing has failed."""
    loop = simulation.loop()
    simulation.tmux.silent = True

    simulation.pass_time(minutes=10)

    after = simulation.now(loop)
    assert (after.failures, after.deferrals, after.held) == (0, 1, None)


def test_a_session_that_is_being_deleted_takes_no_tick(simulation: Simulation) -> None:
    """Its loops end with it, with a reason."""
    loop = simulation.loop()
    simulation.change(phase=Phase.DELETING)

    simulation.pass_time(minutes=5)

    after = simulation.now(loop)
    assert (after.status, after.reason) == (LoopStatus.STOPPED, "its session was deleted")
    assert simulation.prompts() == []


def test_a_deletion_ends_what_fires_and_forgets_it(simulation: Simulation) -> None:
    """Each end is told; afterwards nothing of the session is left."""
    simulation.loop()
    simulation.loop(keep_alive=True)
    record = simulation.change(phase=Phase.DELETING)

    remove_session(simulation.system, record, "cli:ann")

    assert [event["reason"] for event in events(simulation.system, "loop.stopped")] == ["its session was deleted"] * 2
    assert simulation.system.loops.of_session("s-scribe") == ()


def test_a_restart_holds_nothing(simulation: Simulation) -> None:
    """Between its two halves the session is down, and comes up again by itself."""
    loop = simulation.loop()
    simulation.change(phase=Phase.STOPPING)
    simulation.pass_time(minutes=6)
    between = simulation.now(loop)

    simulation.change(phase=Phase.SETTLED)
    simulation.respawned(simulation.change())
    simulation.turn()

    assert between.held is None
    assert simulation.now(loop).run_count == 1


def fail_a_turn(simulation: Simulation, error: str, message: str = "") -> None:
    """Let the running turn end in an error, a second later."""
    simulation.clock.pause(1)
    simulation.tmux.panes["i-scribe"].fail(error, message)
    simulation.system.ingest("s-scribe")
    simulation.turn()


def test_limits_in_a_row_last_longer_and_end_with_a_turn_that_goes_well(simulation: Simulation) -> None:
    """15, 30, 60, 120, 120 minutes; the first one after a good turn is short again."""
    loop = simulation.loop()
    simulation.pass_time(minutes=5)
    spans = []
    for _ in range(5):
        fail_a_turn(simulation, "rate_limit")
        held = simulation.now(loop)
        assert held.held_until is not None
        spans.append(round((held.held_until - simulation.clock.now()).total_seconds() / 60))
        simulation.clock.pause((held.held_until - simulation.clock.now()).total_seconds() + 1)
        simulation.turn()
    runs = len(simulation.prompts())
    simulation.finish()
    simulation.pass_time(minutes=6)
    fail_a_turn(simulation, "rate_limit")
    again = simulation.now(loop)

    assert spans == [15, 30, 60, 120, 120]
    assert runs == 6
    assert again.held_until is not None
    assert round((again.held_until - simulation.clock.now()).total_seconds() / 60) == 15


def test_a_reset_time_that_the_harness_tells_is_believed(simulation: Simulation) -> None:
    """Neither earlier nor later."""
    loop = simulation.loop()
    simulation.pass_time(minutes=5)
    reset = simulation.clock.now() + timedelta(hours=5)

    fail_a_turn(simulation, "rate_limit", f"usage limit reached|{int(reset.timestamp())}")
    held = simulation.now(loop)
    simulation.pass_time(step=300, hours=4)
    still = simulation.now(loop)
    simulation.pass_time(step=300, hours=1, minutes=1)

    assert held.held_until == reset.replace(microsecond=0)
    assert still.held is Held.USAGE_LIMIT
    assert simulation.now(loop).held is None
    assert len(simulation.prompts()) == 2


def test_a_turn_that_goes_well_lifts_a_usage_limit(simulation: Simulation) -> None:
    """A person asked, and was answered: the limit is over, whatever was assumed."""
    loop = simulation.loop()
    simulation.pass_time(minutes=5)
    fail_a_turn(simulation, "rate_limit")
    simulation.tmux.panes["i-scribe"].begin("are you back?")
    simulation.finish()

    after = simulation.now(loop)
    assert (after.held, after.held_until) == (None, None)
    assert [event["reason"] for event in events(simulation.system, "loop.resumed")] == ["a turn went well"]


def test_a_failed_tick_row_ends_with_its_run(simulation: Simulation) -> None:
    """What the gate ended is no open run, and its row says why."""
    simulation.loop()
    simulation.change(hold=mark(simulation, HoldKind.PAUSED))

    simulation.pass_time(minutes=5)

    [row] = simulation.system.inbox.with_states("s-scribe", {MessageState.CANCELLED})
    assert row.detail == "the session is paused"
    assert simulation.system.loops.open_runs() == ()


def test_a_resume_gives_the_run_that_a_pause_has_held_though_the_next_slot_is_far(simulation: Simulation) -> None:
    """A daily loop that came due under the pause is not a day late."""
    day = timedelta(days=1)
    loop = simulation.loop(interval=day)
    simulation.change(hold=mark(simulation, HoldKind.PAUSED))
    simulation.pass_time(minutes=10)
    held = simulation.now(loop)

    simulation.change(hold=None)
    simulation.pass_time(seconds=20)

    assert held.next_run_at is not None
    assert held.next_run_at - simulation.clock.now() > day / 2
    after = simulation.now(loop)
    assert after.run_count == len(simulation.prompts()) == 1
    assert after.next_run_at is not None
    assert after.next_run_at - simulation.clock.now() >= day / 2


def test_the_run_that_found_the_limit_comes_again_once_that_is_over(simulation: Simulation) -> None:
    """Its turn did nothing; the other loop of the session keeps its own slot."""
    day = timedelta(days=1)
    loop, other = simulation.loop(interval=day), simulation.loop(interval=day, next_run_at=simulation.clock.now() + day)
    simulation.pass_time(minutes=5)
    fail_a_turn(simulation, "rate_limit")

    simulation.pass_time(minutes=16)

    assert [simulation.now(each).run_count for each in (loop, other)] == [2, 0]
    assert simulation.now(other).next_run_at == other.next_run_at


def test_a_tick_that_waited_when_the_limit_was_found_is_given_once_that_is_over(simulation: Simulation) -> None:
    """It was due, and is not a day late."""
    loop = simulation.loop(interval=timedelta(days=1))
    simulation.tmux.panes["i-scribe"].begin("something long")
    simulation.system.ingest("s-scribe")
    simulation.pass_time(minutes=6)
    fail_a_turn(simulation, "rate_limit")
    waiting = simulation.system.inbox.unsettled("s-scribe")

    simulation.pass_time(minutes=16)

    assert waiting == ()
    assert simulation.now(loop).run_count == 1


@pytest.mark.parametrize("stop", [True, False])
def test_a_run_that_was_asked_for_outlives_a_hold(simulation: Simulation, stop: bool) -> None:
    """It goes in once after the start, though a stop catches nothing up; asked before it or while it lasts."""
    loop = simulation.loop(keep_alive=True)
    if not stop:
        stopped_by_name(simulation)
    run_loop_now(simulation.system, Asker("cli:ann"), loop.id)
    if stop:
        stopped_by_name(simulation)
    simulation.pass_time(step=600, hours=2)
    stopped = simulation.now(loop).run_count

    simulation.respawned(simulation.change())
    simulation.pass_time(seconds=20, finish=["scribe"])

    after = simulation.now(loop)
    assert stopped == 0
    assert (after.held, after.run_count, after.asked) == (None, 1, False)
