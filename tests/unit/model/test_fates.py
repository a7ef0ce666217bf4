"""What becomes of a loop by what became of its run, as far as it is arithmetic and words."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.events import Event
from core.model.loop import Held, Loop, LoopRun, LoopStatus, Mode, RunState
from core.model.loop_transitions import DELIVERED, delivered, failed, is_limit, released, reset_told
from tests.unit.store.samples import NOON, a_loop

WEEK = timedelta(days=7)


def a_run(loop: Loop, **changes: object) -> LoopRun:
    """Return the run of the loop's planned slot."""
    values: dict[str, object] = {
        "id": "r-1",
        "loop_id": loop.id,
        "uid": loop.uid,
        "slot": loop.next_run_at,
        "number": 1,
        "state": RunState.SENT,
        "claimer": "one",
        "lease_until": NOON,
    }
    return LoopRun(**{**values, **changes})  # type: ignore[arg-type]


@given(st.integers(0, 3600), st.integers(30, 7200))
def test_two_runs_are_never_closer_than_half_an_interval(waited: int, seconds: int) -> None:
    """However long a tick waited for its session, the next slot keeps its distance, and is at most an interval away."""
    interval = timedelta(seconds=seconds)
    planned = a_loop(interval=interval, next_run_at=NOON + interval)
    at = NOON + timedelta(seconds=waited)

    fate = delivered(planned, a_run(planned, slot=NOON), at, DELIVERED, WEEK)

    assert interval / 2 <= fate.changes["next_run_at"] - at <= max(interval, NOON + interval - at)


def test_failures_back_off_up_to_the_interval_and_hold_after_five() -> None:
    """30 s, 60, 120, 240, and then it waits for somebody, who is told."""
    loop = a_loop()
    fates = [failed(a_loop(failures=count), a_run(loop), "no pane", NOON, WEEK) for count in range(5)]

    waits = [(fate.changes["next_run_at"] - NOON).total_seconds() for fate in fates]
    assert waits == [30, 60, 120, 240, 300]
    assert [fate.event for fate in fates] == [Event.LOOP_FAILED] * 4 + [Event.LOOP_HELD]
    assert fates[4].changes["held"] is Held.FAILURES
    assert "the-loop loop resume loop_1" in fates[4].note
    assert not any(fate.note for fate in fates[:4])


def test_a_keep_alive_loop_is_never_held_for_failures() -> None:
    """It takes its next slot, whatever the count."""
    loop = a_loop(keep_alive=True, failures=99, next_run_at=NOON + timedelta(minutes=5))

    fate = failed(loop, a_run(loop, slot=NOON), "no pane", NOON, WEEK)

    assert fate.changes["next_run_at"] == loop.next_run_at
    assert "held" not in fate.changes


def test_the_last_run_for_age_ends_the_loop_whether_it_went_in_or_not() -> None:
    """There is no other to wait for."""
    loop = a_loop()
    run = a_run(loop, last=True)

    fates = (delivered(loop, run, NOON, DELIVERED, WEEK), failed(loop, run, "no pane", NOON, WEEK))

    assert [fate.changes["status"] for fate in fates] == [LoopStatus.STOPPED] * 2
    assert {fate.event for fate in fates} == {Event.LOOP_EXPIRED}


def test_after_a_stop_a_dynamic_loop_without_a_plan_ends() -> None:
    """With the reason."""
    loop = a_loop(mode=Mode.DYNAMIC, interval=None, next_run_at=None, held=Held.STOPPED)

    fate = released(loop, NOON)

    assert (fate.event, fate.reason) == (Event.LOOP_STOPPED, "restarted without a next run")


@pytest.mark.parametrize(
    ("error", "message", "limit"),
    [
        ("rate_limit", "API Error: Request rejected (429)", True),
        ("billing_error", "Your credit balance is too low", True),
        ("unknown", "You have reached your specified API usage limits.", True),
        ("server_error", "API Error: 529 overloaded", False),
        ("unknown", "something else", False),
    ],
)
def test_usage_limits_are_told_from_other_errors(error: str, message: str, limit: bool) -> None:
    """Only a limit keeps a loop from asking again at once."""
    assert is_limit(error, message) is limit


@pytest.mark.parametrize(
    ("message", "reset"),
    [
        ("usage limit reached|1777910400", datetime(2026, 5, 4, 16, tzinfo=UTC)),
        ("try again at 2026-05-04T18:00:00+02:00", datetime(2026, 5, 4, 16, tzinfo=UTC)),
        ("try again at 2026-05-04T16:00Z", datetime(2026, 5, 4, 16, tzinfo=UTC)),
        ("request 1234567890 was refused", None),
        ("it was reset at 2026-05-04T10:00:00Z", None),
        ("on 2026-13-45T10:00:00Z", None),
        ("in a year: 1809446400", None),
        ("no time at all", None),
    ],
)
def test_a_reset_time_is_read_only_where_it_is_one(message: str, reset: datetime | None) -> None:
    """A moment that has passed, or lies far ahead, is some other number."""
    assert reset_told(message, NOON) == reset
