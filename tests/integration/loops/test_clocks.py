"""A clock that was set back while loops waited: what was noted by the clock of then lies ahead, and stops none."""

from datetime import timedelta

import pytest

from core.loops.transitions import hold_with_session
from core.loops.verbs import Asker, schedule_next_run
from core.model.loop import Held, Loop, LoopStatus, Mode
from core.model.session import Hold, HoldKind, Status
from tests.support.simulated import Simulation

DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
AGENT = Asker("agent:scribe", "s-scribe")


def goes_on(simulation: Simulation, loop: Loop, *, minutes: float = 12) -> int:
    """Let time pass, with turns that end, and return how often the loop has run in it."""
    before = simulation.now(loop).run_count
    simulation.pass_time(minutes=minutes, finish=["scribe"])
    return simulation.now(loop).run_count - before


def test_an_expression_is_read_by_the_clock_of_now(simulation: Simulation) -> None:
    """It comes true in five minutes, not a day and five minutes later."""
    loop = simulation.loop(mode=Mode.CRON, interval=None, cron="*/5 * * * *")
    simulation.pass_time(minutes=6, finish=["scribe"])
    simulation.clock.moment -= DAY

    assert goes_on(simulation, loop) == 2


def test_a_failed_run_of_an_expression_is_still_tried_again_later(simulation: Simulation) -> None:
    """What lies beyond the next match for that reason alone stays where it is."""
    loop = simulation.loop(mode=Mode.CRON, interval=None, cron="* * * * *", failures=4)
    later = simulation.clock.now() + 8 * MINUTE
    simulation.system.loops.change(loop, next_run_at=later)

    assert goes_on(simulation, loop, minutes=7) == 0
    assert simulation.now(loop).next_run_at == later


def test_a_named_delay_is_kept(simulation: Simulation) -> None:
    """Ten minutes after its last run an agent is prompted again, whatever the clock says by then."""
    loop = simulation.dynamic(next_run_at=simulation.clock.now())
    simulation.turn()
    schedule_next_run(simulation.system, AGENT, loop.id, "10m", "the build takes long")
    simulation.finish()
    simulation.clock.moment -= DAY

    assert goes_on(simulation, loop, minutes=9) == 0
    assert goes_on(simulation, loop, minutes=3) == 1


def test_a_turn_that_ends_after_it_was_set_back_is_an_idle_edge(simulation: Simulation) -> None:
    """The tick before was delivered by the clock of then."""
    loop = simulation.loop()
    simulation.pass_time(minutes=6)
    simulation.clock.moment -= DAY
    simulation.finish()

    assert goes_on(simulation, loop) >= 2


def test_the_pace_of_an_unobserved_session_begins_anew(simulation: Simulation) -> None:
    """Where nobody can tell whether a turn is over, the latest run that lies ahead sets no pace."""
    record = simulation.session("mute")
    pane = simulation.tmux.panes["i-mute"]
    pane.reports, pane.record = False, None
    loop = simulation.loop(uid=record.uid, name="mute")
    simulation.pass_time(minutes=16)
    before = simulation.now(loop).run_count
    simulation.clock.moment -= DAY

    simulation.pass_time(minutes=16)

    assert simulation.now(loop).run_count >= before + 2


@pytest.fixture
def stopped(simulation: Simulation) -> Loop:
    """Give the keep-alive loop of a session that was stopped by name."""
    loop = simulation.loop(keep_alive=True)
    now = simulation.clock.now()
    record = simulation.change(hold=Hold(HoldKind.STOPPED, "cli:ann", "", now), status=Status.STOPPED)
    with simulation.system.database.transaction(durable=True):
        hold_with_session(simulation.system, record, "enough")
    return loop


def test_a_start_lifts_the_hold_of_a_stop_that_lies_ahead(simulation: Simulation, stopped: Loop) -> None:
    """A machine that comes up with an old clock starts its sessions before it is told the time."""
    simulation.clock.moment -= DAY
    record = simulation.system.records.read("scribe")
    assert record is not None
    simulation.respawned(record)

    assert goes_on(simulation, stopped) == 2


def test_a_stop_that_lies_ahead_holds_all_the_same(simulation: Simulation, stopped: Loop) -> None:
    """Nobody has started the session."""
    simulation.clock.moment -= DAY
    simulation.turn()

    assert simulation.now(stopped).held is Held.STOPPED


def test_a_usage_limit_that_was_found_ahead_is_over(simulation: Simulation) -> None:
    """When it ends is not known any more: the next turn tells whether it has."""
    loop = simulation.loop(keep_alive=True)
    simulation.pass_time(minutes=5.2)
    simulation.tmux.panes["i-scribe"].fail("rate_limit")
    simulation.system.ingest("s-scribe")
    held = simulation.now(loop).held
    simulation.clock.moment -= DAY

    simulation.pass_time(minutes=12)

    assert held is Held.USAGE_LIMIT
    assert simulation.now(loop).held is None


def test_a_claim_of_the_dead_does_not_hold_its_run_for_a_day(simulation: Simulation) -> None:
    """Its lease ends by the clock of then."""
    loop = simulation.loop()
    simulation.clock.pause(301)
    now = simulation.clock.now()
    assert simulation.system.loops.claim(now, "dead", now + timedelta(seconds=30), 1)
    simulation.clock.moment -= DAY

    assert goes_on(simulation, loop) >= 2


def test_a_turn_that_named_no_next_run_ends_its_loop(simulation: Simulation) -> None:
    """It began by the clock of then, and is over by that of now."""
    loop = simulation.dynamic(next_run_at=simulation.clock.now())
    simulation.turn()
    simulation.clock.moment -= DAY
    simulation.turn()
    going = simulation.now(loop).status
    simulation.finish()

    simulation.turn()

    assert going is LoopStatus.ACTIVE
    assert simulation.now(loop).status is LoopStatus.STOPPED


def test_a_zone_that_has_gone_from_the_machine_costs_the_other_loops_nothing(simulation: Simulation) -> None:
    """Its loop is passed over, and told of in the log."""
    far = simulation.clock.now() + timedelta(hours=9)
    simulation.loop(mode=Mode.CRON, interval=None, cron="0 21 * * *", time_zone="Gone/Away", next_run_at=far)
    loop = simulation.loop()

    assert goes_on(simulation, loop) == 2
