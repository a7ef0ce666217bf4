"""A keep-alive loop holds a future open: what ends an ordinary loop beside it, and what brings its session back."""

from datetime import timedelta

import pytest

from core.base.values import replace
from core.lifecycle.exits import tell_end, tell_server_lost
from core.lifecycle.supervise import Collector
from core.loops.verbs import Asker, stop_loop
from core.model.loop import Held, LoopStatus
from core.model.message import MessageState
from core.model.reasons import said
from core.model.restarting import Keep
from core.model.session import HoldKind, Idle, LastExit
from tests.support.simulated import Simulation
from tests.support.world import events
from tests.unit.store.samples import NOON


def test_it_survives_the_age_that_stops_an_ordinary_loop_alongside_it(simulation: Simulation) -> None:
    """The ordinary one fires once more at its age, and says so; the other goes on."""
    kept = simulation.loop(keep_alive=True, interval=timedelta(days=1), next_run_at=NOON + timedelta(days=1))
    ordinary = simulation.loop(interval=timedelta(days=1), next_run_at=NOON + timedelta(days=1, hours=1))

    simulation.pass_time(step=3600, days=9, finish=["scribe"])

    assert simulation.now(kept).status is LoopStatus.ACTIVE
    assert simulation.now(kept).run_count == 9
    over = simulation.now(ordinary)
    assert (over.status, over.run_count, over.reason) == (LoopStatus.STOPPED, 7, "it expired after 7d")
    [last] = [text for text in simulation.prompts() if "last run: it is too old" in text]
    assert ordinary.id in last
    assert [event["detail"] for event in events(simulation.system, "loop.expired")] == [ordinary.id]


def test_it_is_tried_again_in_a_session_that_nobody_has_observed(simulation: Simulation) -> None:
    """A failed tick is recorded and the next slot is armed; the loop is never held for failures."""
    loop = simulation.loop(keep_alive=True)
    simulation.system.activities.forget("s-scribe")

    for _ in range(7):
        simulation.clock.pause(301)
        simulation.scheduler.turn()
        [row] = simulation.system.inbox.unsettled("s-scribe")
        simulation.system.inbox.advance(row, MessageState.FAILED, said("it could not be written"))
        simulation.scheduler.turn()

    after = simulation.now(loop)
    assert (after.failures, after.last_result, after.last_error) == (7, "failed", "it could not be written")
    assert (after.status, after.held) == (LoopStatus.ACTIVE, None)
    assert after.next_run_at is not None
    assert after.next_run_at > simulation.clock.now()
    assert len(events(simulation.system, "loop.failed")) == 7


def test_an_ordinary_loop_still_defers_when_unobserved(simulation: Simulation) -> None:
    """Nothing is counted, and its slot is tried again."""
    loop = simulation.loop()
    simulation.system.activities.forget("s-scribe")
    simulation.clock.pause(301)
    simulation.scheduler.turn()
    [row] = simulation.system.inbox.unsettled("s-scribe")
    simulation.system.inbox.advance(row, MessageState.FAILED, said("it could not be written"))

    simulation.scheduler.turn()

    after = simulation.now(loop)
    assert (after.failures, after.run_count, after.last_result) == (0, 0, "deferred")
    assert after.next_run_at == simulation.clock.now() + timedelta(seconds=30)
    assert not events(simulation.system, "loop.failed")


def test_it_survives_a_restart_and_keeps_firing(simulation: Simulation) -> None:
    """Of the service, and of its session: the same loop, its count and its grid."""
    loop = simulation.loop(keep_alive=True)
    simulation.pass_time(minutes=6, finish=["scribe"])

    again = simulation.restarted()
    again.pass_time(minutes=5, finish=["scribe"])
    record = again.system.records.read("scribe")
    assert record is not None
    again.respawned(record)
    again.pass_time(minutes=10, finish=["scribe"])

    assert again.now(loop).run_count == 4
    assert len(again.prompts()) == 2


def test_it_runs_until_its_agent_stops_it_and_then_no_more(simulation: Simulation) -> None:
    """Runs go on for as long as nobody says anything; after the stop the count is stable."""
    loop = simulation.loop(keep_alive=True)
    simulation.pass_time(step=60, hours=3, finish=["scribe"])
    running = simulation.now(loop)

    stop_loop(simulation.system, Asker("agent:scribe", "s-scribe"), loop.id, "work resolved")
    simulation.pass_time(step=60, hours=1, finish=["scribe"])

    after = simulation.now(loop)
    assert running.run_count == 36
    assert running.status is LoopStatus.ACTIVE
    assert (after.status, after.reason, after.run_count) == (LoopStatus.STOPPED, "work resolved", 36)
    assert len(simulation.prompts()) == 36


def test_an_explicit_number_of_runs_completes_it_all_the_same(simulation: Simulation) -> None:
    """That was asked for."""
    loop = simulation.loop(keep_alive=True, max_runs=1)

    simulation.pass_time(minutes=6)

    assert simulation.now(loop).status is LoopStatus.COMPLETED


def crash(simulation: Simulation, *, told: bool = True) -> None:
    """Let the program die, and the end be told."""
    pane = simulation.tmux.panes["i-scribe"]
    pane.dead, pane.exit = True, LastExit(None, 9)
    if told:
        assert tell_end(simulation.system, "scribe", "i-scribe", patient=False)


def test_it_brings_a_crashed_session_back_and_its_tick_goes_in_then(simulation: Simulation) -> None:
    """Without any restart policy; the tick waits, and no failure is counted."""
    loop = simulation.loop(keep_alive=True)
    crash(simulation)
    due = simulation.system.exit_ledger.due()
    simulation.pass_time(minutes=5)
    waiting = simulation.now(loop)
    record = simulation.change()

    simulation.respawned(record)
    simulation.turn()

    assert [(end.instance, end.counted) for end in due] == [("i-scribe", True)]
    assert (waiting.failures, waiting.run_count) == (0, 0)
    assert simulation.now(loop).run_count == 1
    assert len(simulation.prompts()) == 1


def test_an_ordinary_loop_brings_nothing_back(simulation: Simulation) -> None:
    """Its ticks fail, back off, and hold it after five, with one note's worth of an event."""
    loop = simulation.loop()
    crash(simulation)

    simulation.pass_time(step=20, minutes=40)

    after = simulation.now(loop)
    assert simulation.system.exit_ledger.due() == ()
    assert (after.failures, after.held, after.status) == (5, Held.FAILURES, LoopStatus.ACTIVE)
    assert after.last_error == "the session's program has ended"
    assert [event["detail"] for event in events(simulation.system, "loop.held")] == [loop.id]
    assert len(events(simulation.system, "loop.failed")) == 4


def test_a_keep_alive_tick_asks_for_a_restart_that_nobody_had_asked_for(simulation: Simulation) -> None:
    """The loop was made after the crash was told: its tick goes through the budget, and then the session is held."""
    crash(simulation)
    loop = simulation.loop(keep_alive=True)
    assert simulation.system.exit_ledger.due() == ()

    simulation.pass_time(minutes=5)
    [end] = simulation.system.exit_ledger.due()
    simulation.system.exit_ledger.put_off("i-scribe", None)
    for minute in range(5):
        simulation.system.exit_ledger.count_restart("s-scribe", simulation.clock.now() - timedelta(minutes=minute))
    simulation.pass_time(minutes=11)

    record = simulation.change()
    assert end.counted
    assert record.hold is not None
    assert record.hold.kind is HoldKind.FAILED
    after = simulation.now(loop)
    assert (after.status, after.held) == (LoopStatus.ACTIVE, Held.STOPPED)
    assert len(events(simulation.system, "standing.held")) == 1


@pytest.mark.parametrize("keep_alive", [True, False])
def test_a_session_that_its_person_left_holds_its_loops(simulation: Simulation, keep_alive: bool) -> None:
    """`/exit` is no crash: nothing fails, nothing is brought back, and a start lets it go on an interval later."""
    loop = simulation.loop(keep_alive=keep_alive)
    simulation.tmux.panes["i-scribe"].leave()
    simulation.system.ingest("s-scribe")
    assert tell_end(simulation.system, "scribe", "i-scribe", patient=False)

    simulation.pass_time(minutes=20)
    held = simulation.now(loop)
    record = simulation.change()
    simulation.respawned(record)
    simulation.turn()

    assert (held.held, held.failures, held.status) == (Held.STOPPED, 0, LoopStatus.ACTIVE)
    assert simulation.system.exit_ledger.due() == ()
    after = simulation.now(loop)
    assert after.held is None
    assert after.next_run_at is not None
    assert timedelta(minutes=4) < after.next_run_at - simulation.clock.now() <= timedelta(minutes=5)


def test_a_crash_that_nobody_has_told_of_yet_decides_nothing(simulation: Simulation) -> None:
    """Whether a person left or it crashed is not known: the tick waits, uncounted."""
    loop = simulation.loop()
    crash(simulation, told=False)

    simulation.pass_time(minutes=10)

    after = simulation.now(loop)
    assert (after.failures, after.deferrals, after.held) == (0, 0, None)
    [row] = simulation.system.inbox.unsettled("s-scribe")
    assert row.state is MessageState.QUEUED


def test_it_keeps_the_collector_away(simulation: Simulation) -> None:
    """An idle session whose future is held open is not stopped for its idleness; an ordinary loop holds nothing."""
    record = simulation.change()
    simulation.change(definition=replace(record.definition, idle=Idle(timedelta(hours=1))))
    collector = Collector(simulation.system)
    simulation.clock.pause(24 * 3600)
    loop = simulation.loop(keep_alive=True)

    kept = collector.decide(simulation.change(), simulation.tmux.survey())
    stop_loop(simulation.system, Asker("cli:ann"), loop.id)
    simulation.loop(id="loop_second")
    free = collector.decide(simulation.change(), simulation.tmux.survey())

    assert kept == Keep("something holds its future open")
    assert not isinstance(free, Keep)


def test_how_an_earlier_instance_ended_says_nothing(simulation: Simulation) -> None:
    """It was left by its person a month ago, was started since, and has lost its pane with the tmux server."""
    loop = simulation.loop(keep_alive=True)
    record = simulation.change(last_exit=LastExit(0, None))
    del simulation.tmux.panes["i-scribe"]
    assert tell_server_lost(simulation.system, [record], "the machine was restarted", bring_back=False)

    simulation.pass_time(minutes=5)

    assert simulation.now(loop).held is None
    [end] = simulation.system.exit_ledger.due()
    assert end.instance == "i-scribe"
