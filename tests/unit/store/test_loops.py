"""Loops and their runs in the database."""

from datetime import timedelta
from typing import Any

import pytest

from core.model.loop import Held, Loop, LoopRun, LoopStatus, Mode, RunState, run_key
from core.model.message import Kind, MessageState
from core.store.database import Database
from core.store.inbox import Inbox
from core.store.loops import Loops
from tests.unit.store.samples import NOON, StandingClock, a_loop, a_message

LEASE = NOON + timedelta(seconds=30)
LATER = NOON + timedelta(minutes=1)


def _claimed(loops: Loops, most: int = 100) -> list[str]:
    return [loop.id for loop, _ in loops.claim(NOON, "one", LEASE, most)]


def _run_of(loops: Loops, loop: Loop) -> LoopRun:
    return next(run for run in loops.open_runs() if run.loop_id == loop.id)


def test_a_loop_comes_back_as_it_was_stored(loops: Loops) -> None:
    """Every field, those that are empty too."""
    plain = a_loop(1)
    full = Loop(
        id="loop_2",
        uid="s-scribe",
        name="scribe",
        instruction="tell the time, naïvely",
        mode=Mode.CRON,
        created_by="config",
        created_at=NOON,
        interval=timedelta(seconds=1.5),
        cron="*/5 * * * *",
        time_zone="Europe/Berlin",
        keep_alive=True,
        max_runs=7,
        status=LoopStatus.STOPPED,
        held=Held.USAGE_LIMIT,
        held_until=LATER,
        held_at=NOON,
        run_count=3,
        deferrals=2,
        failures=1,
        last_run_at=NOON,
        last_result="failed",
        last_error="no pane",
        next_run_at=LATER,
        reason="enough",
        ended_at=LATER,
        declared="clock",
        digest="abc",
        revision=4,
    )

    assert (loops.add(plain, 0), loops.add(full, 0)) == (True, True)

    assert (loops.get(plain.id), loops.get(full.id)) == (plain, full)
    assert loops.get("loop_3") is None


def test_a_record_persisted_before_the_field_existed_decodes_as_an_ordinary_loop(
    loops: Loops, database: Database
) -> None:
    """A row that says nothing of keep_alive, or of any field that came with a default, is a loop all the same."""
    with database.transaction(durable=True):
        database.write(
            "INSERT INTO loops (id, uid, name, instruction, mode, created_by, created_at, interval_us, next_run_at)"
            " VALUES ('loop_1', 's-scribe', 'scribe', 'look at 1', 'interval', 'agent:scribe',"
            " '2026-05-04T11:55:00.123457Z', 300000000, '2026-05-04T12:00:00.123456Z')"
        )

    found = loops.get("loop_1")

    assert found == a_loop(1)
    assert found.keep_alive is False
    assert not loops.holds_open("s-scribe")


def test_no_more_loops_than_may_be_open(loops: Loops, database: Database) -> None:
    """Ended ones and those of other sessions do not count; 0 is no limit."""
    loops.add(a_loop(1, status=LoopStatus.STOPPED), 2)
    loops.add(a_loop(2, uid="s-other"), 2)
    loops.add(a_loop(3), 2)
    loops.add(a_loop(4, status=LoopStatus.PAUSED), 2)

    assert not loops.add(a_loop(5), 2)
    assert loops.get("loop_5") is None
    assert loops.add(a_loop(6), 0)
    assert database.open_loops() == {"s-scribe": 3, "s-other": 1}


def test_a_declaration_has_one_open_loop(loops: Loops) -> None:
    """Two processes that carry it out at once make one; when that has ended another may follow."""
    first = a_loop(1, declared="clock")
    assert loops.add(first, 0)
    assert not loops.add(a_loop(2, declared="clock"), 0)
    assert loops.add(a_loop(3, declared="clock", uid="s-other"), 0)

    loops.change(first, status=LoopStatus.STOPPED, ended_at=NOON)

    assert loops.add(a_loop(4, declared="clock"), 0)


def test_open_loops_of_a_session_come_first(loops: Loops) -> None:
    """Each group by age."""
    for number, status in enumerate((LoopStatus.STOPPED, LoopStatus.PAUSED, LoopStatus.COMPLETED, LoopStatus.ACTIVE)):
        loops.add(a_loop(number, status=status), 0)
    loops.add(a_loop(9, uid="s-other"), 0)

    assert [loop.id for loop in loops.of_session("s-scribe")] == ["loop_1", "loop_3", "loop_0", "loop_2"]
    assert [loop.id for loop in loops.all_open()] == ["loop_9", "loop_1", "loop_3"]


def test_a_change_needs_the_revision_that_was_seen(loops: Loops) -> None:
    """Whoever saw an older one changes nothing."""
    loop = a_loop(1)
    loops.add(loop, 0)

    changed = loops.change(loop, run_count=1, last_run_at=NOON)
    late = loops.change(loop, run_count=9)

    assert late is None
    assert changed == loops.get(loop.id)
    assert changed is not None
    assert (changed.run_count, changed.last_run_at, changed.revision) == (1, NOON, 1)


@pytest.mark.parametrize("changes", [{"uid": "s-other"}, {"revision": 7}, {"colour": "red"}])
def test_what_identifies_a_loop_never_changes(loops: Loops, changes: dict[str, object]) -> None:
    """A field that is fixed, or is none, is a mistake of the caller."""
    loop = a_loop(1)
    loops.add(loop, 0)

    with pytest.raises(ValueError, match="cannot be changed"):
        loops.change(loop, **changes)


@pytest.mark.parametrize("ended", [LoopStatus.STOPPED, LoopStatus.COMPLETED])
def test_a_loop_that_has_ended_stays_ended(loops: Loops, ended: LoopStatus) -> None:
    """The table of states has no step from there."""
    loop = a_loop(1, status=ended, ended_at=NOON)
    loops.add(loop, 0)

    with pytest.raises(ValueError, match="no step from"):
        loops.change(loop, status=LoopStatus.ACTIVE)


def test_an_active_keep_alive_loop_holds_its_session_open(loops: Loops) -> None:
    """A held one does too; an ordinary, a paused or an ended one does not."""
    loops.add(a_loop(1, uid="s-1", keep_alive=True, held=Held.STOPPED), 0)
    loops.add(a_loop(2, uid="s-2"), 0)
    loops.add(a_loop(3, uid="s-3", keep_alive=True, status=LoopStatus.PAUSED), 0)
    loops.add(a_loop(4, uid="s-4", keep_alive=True, status=LoopStatus.STOPPED), 0)

    assert [loops.holds_open(f"s-{number}") for number in range(1, 5)] == [True, False, False, False]


def test_only_what_fires_and_has_no_open_run_is_due(loops: Loops) -> None:
    """Paused, held, ended, later and unplanned ones are not claimed, and set no alarm."""
    loops.add(a_loop(1, status=LoopStatus.PAUSED), 0)
    loops.add(a_loop(2, held=Held.PAUSED), 0)
    loops.add(a_loop(3, status=LoopStatus.STOPPED), 0)
    loops.add(a_loop(4, next_run_at=None), 0)
    assert loops.next_due() is None
    loops.add(a_loop(5, next_run_at=LATER), 0)
    loops.add(a_loop(6), 0)
    assert loops.next_due() == NOON

    assert _claimed(loops) == ["loop_6"]

    assert loops.next_due() == LEASE
    loops.move_run(_run_of(loops, a_loop(6)), state=RunState.SENT)
    assert loops.next_due() == LATER
    assert _claimed(loops) == []
    assert [(run.loop_id, run.slot, run.number) for run in loops.open_runs()] == [("loop_6", NOON, 1)]


def test_sessions_take_turns(loops: Loops) -> None:
    """One with many loops that are long due keeps none of the others waiting."""
    for number in range(4):
        loops.add(a_loop(number, next_run_at=NOON - timedelta(hours=9 - number)), 0)
    loops.add(a_loop(8, uid="s-other"), 0)
    loops.add(a_loop(9, uid="s-third", next_run_at=NOON - timedelta(seconds=1)), 0)

    assert _claimed(loops, most=4) == ["loop_0", "loop_9", "loop_8", "loop_1"]
    assert _claimed(loops) == ["loop_2", "loop_3"]


def test_a_lapsed_claim_returns_under_its_old_id(loops: Loops) -> None:
    """Not before its lease has lapsed; who held it then moves it no more."""
    loops.add(a_loop(1), 0)
    ((_, first),) = loops.claim(NOON, "one", LEASE, 10)

    assert loops.claim(LEASE - timedelta(microseconds=1), "two", LATER, 10) == ()
    ((loop, again),) = loops.claim(LEASE, "two", LATER, 10)

    assert loop == a_loop(1)
    assert (again.id, again.number, again.slot) == (first.id, 1, NOON)
    assert (again.claimer, again.lease_until) == ("two", LATER)
    assert loops.move_run(first, state=RunState.SENT) is None
    assert loops.move_run(again, state=RunState.SENT) is not None


def test_a_claim_that_was_sent_is_not_claimed_again(loops: Loops) -> None:
    """Its row tells the rest, however long ago that was."""
    loops.add(a_loop(1), 0)
    ((_, run),) = loops.claim(NOON, "one", LEASE, 10)
    sent = loops.move_run(run, state=RunState.SENT, message_id="m-1")

    assert loops.claim(LEASE + timedelta(days=1), "two", LEASE + timedelta(days=2), 10) == ()
    assert loops.open_runs() == (sent,)


@pytest.mark.parametrize("changes", [{"status": LoopStatus.STOPPED, "ended_at": NOON}, {"held": Held.PAUSED}])
def test_a_lapsed_claim_of_a_loop_that_fires_no_more_is_over(loops: Loops, changes: dict[str, object]) -> None:
    """Nothing of it was sent, and nothing will be."""
    loop = a_loop(1)
    loops.add(loop, 0)
    loops.claim(NOON, "one", LEASE, 10)
    loops.change(loop, **changes)

    assert loops.claim(LEASE, "two", LATER, 10) == ()
    assert loops.open_runs() == ()


def test_the_next_run_has_the_next_number(loops: Loops, clock: StandingClock) -> None:
    """Also after the earlier ones were pruned."""
    loop = a_loop(1)
    loops.add(loop, 0)
    loops.claim(NOON, "one", LEASE, 10)
    over = loops.move_run(_run_of(loops, loop), state=RunState.OVER, outcome="delivered", detail="k3f9x2")
    clock.pause(60)

    assert over is not None
    assert (over.outcome, over.detail) == ("delivered", "k3f9x2")
    assert loops.prune(NOON) == 0
    assert loops.prune(NOON + timedelta(seconds=1)) == 1
    ((_, run),) = loops.claim(clock.now(), "one", LEASE, 10)
    assert run.number == 2
    assert run.id != over.id


def test_a_run_moves_with_the_transaction_around_it(loops: Loops, database: Database) -> None:
    """What fails there undoes the step too."""
    loops.add(a_loop(1), 0)
    ((_, run),) = loops.claim(NOON, "one", LEASE, 10)

    def move_and_fail() -> None:
        with database.transaction(durable=True):
            loops.move_run(run, state=RunState.SENT)
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        move_and_fail()

    assert loops.open_runs() == (run,)


def test_what_identifies_a_run_never_changes(loops: Loops) -> None:
    """Its slot and number are its loop's history."""
    loops.add(a_loop(1), 0)
    ((_, run),) = loops.claim(NOON, "one", LEASE, 10)

    with pytest.raises(ValueError, match="slot cannot be changed"):
        loops.move_run(run, slot=LATER)


def test_a_forgotten_session_leaves_no_loops(loops: Loops) -> None:
    """Loops and runs go; those of others stay."""
    loops.add(a_loop(1), 0)
    loops.add(a_loop(2, uid="s-other"), 0)
    loops.claim(NOON, "one", LEASE, 10)

    loops.forget("s-scribe")

    assert loops.of_session("s-scribe") == ()
    assert [loop.id for loop in loops.all_open()] == ["loop_2"]
    assert [run.loop_id for run in loops.open_runs()] == ["loop_2"]


def _sent(loops: Loops, inbox: Inbox, number: int, **changes: Any) -> LoopRun:
    """Return the run of a loop that is due, whose tick was committed."""
    loops.add(a_loop(number, **changes), 0)
    ((_, run),) = loops.claim(NOON, "one", LEASE, 10)
    inbox.add([a_message(number, key=run_key(run.id), run=run.id, kind=Kind.TICK, uid=run.uid)])
    sent = loops.move_run(run, state=RunState.SENT, message_id=f"m-{number}")
    assert sent is not None
    return sent


def test_runs_whose_tick_is_settled_are_found(loops: Loops, inbox: Inbox) -> None:
    """Those whose row waits or is in flight are not; a final one is over, though it stays submitted."""
    runs = [_sent(loops, inbox, number) for number in range(1, 6)]
    rows = [inbox.get(f"m-{number}") for number in range(1, 6)]
    waits, cancelled, proven, typed, final = [row for row in rows if row is not None]
    inbox.advance(cancelled, MessageState.CANCELLED)
    inbox.advance(inbox.advance(proven, MessageState.CLAIMED), MessageState.CONFIRMED)
    for row, over in ((typed, False), (final, True)):
        pasted = inbox.advance(inbox.advance(row, MessageState.CLAIMED), MessageState.PASTED)
        inbox.advance(pasted, MessageState.SUBMITTED, final=over)

    found = {run.message_id for run in loops.settled_runs()}

    assert waits.state is MessageState.PENDING
    assert found == {"m-2", "m-3", "m-5"}
    assert loops.run(runs[0].id) == runs[0]
    loops.move_run(runs[1], state=RunState.OVER)
    assert {run.message_id for run in loops.settled_runs()} == {"m-3", "m-5"}


def test_runs_and_holds_are_found_by_session(loops: Loops, inbox: Inbox) -> None:
    """What is over, paused or fires is not among them."""
    mine, other = _sent(loops, inbox, 1), _sent(loops, inbox, 2, uid="s-other")
    loops.add(a_loop(3, held=Held.STOPPED, held_at=NOON), 0)
    loops.add(a_loop(4, held=Held.STOPPED, status=LoopStatus.PAUSED), 0)

    assert loops.open_runs("s-scribe") == (mine,)
    assert set(loops.open_runs()) == {mine, other}
    assert [(loop.id, loop.held_at) for loop in loops.held()] == [("loop_3", NOON)]
    assert loops.run("r-none") is None


def test_ticks_are_pruned_with_their_runs(loops: Loops, inbox: Inbox, clock: StandingClock) -> None:
    """The row of a run that goes on stays, and so does whatever a person has said; ends may be kept for longer."""
    over, taken = _sent(loops, inbox, 1), _sent(loops, inbox, 2)
    inbox.add([a_message(3)])
    for number in (1, 2, 3):
        row = inbox.get(f"m-{number}")
        assert row is not None
        inbox.advance(inbox.advance(row, MessageState.CLAIMED), MessageState.CONFIRMED)
    loops.move_run(over, state=RunState.OVER)
    loops.move_run(taken, state=RunState.TAKEN)
    loops.add(a_loop(4, status=LoopStatus.STOPPED, ended_at=NOON), 0)

    removed = loops.prune(LATER, NOON)

    assert removed == 2
    assert [inbox.get(f"m-{number}") is None for number in (1, 2, 3)] == [True, False, False]
    assert loops.get("loop_4") is not None


def test_old_ends_are_pruned(loops: Loops) -> None:
    """What has ended lately and what is open stays, and so does the latest end of a declaration."""
    ended = {"status": LoopStatus.STOPPED, "ended_at": NOON}
    loops.add(a_loop(1, **ended), 0)
    loops.add(a_loop(2, status=LoopStatus.STOPPED, ended_at=LATER), 0)
    loops.add(a_loop(3), 0)
    loops.add(a_loop(4, declared="clock", digest="a", **ended), 0)
    loops.add(a_loop(5, declared="clock", digest="b", **ended), 0)
    loops.add(a_loop(6, declared="gone", digest="", **ended), 0)

    removed = loops.prune(LATER)

    assert removed == 3
    assert [loop.id for loop in loops.of_session("s-scribe")] == ["loop_3", "loop_2", "loop_5"]


def test_a_database_that_was_never_written_has_no_loops(loops: Loops, database: Database) -> None:
    """Looking makes none."""
    assert (loops.all_open(), database.open_loops(), loops.next_due(), loops.open_runs()) == ((), {}, None, ())
    assert loops.claim(NOON, "one", LEASE, 10) == ()
