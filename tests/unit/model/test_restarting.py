"""When a crashed session is brought back, and when not."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.restarting import (
    BACKOFF,
    WINDOW,
    BringBack,
    GiveUp,
    ended_unasked,
    is_crash,
    left_by_itself,
    may_be_brought_back,
    plan_restart,
    restarts_itself,
)
from core.model.session import Definition, Hold, HoldKind, LastExit, Phase, Restart, SessionRecord, Status

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
RECORD = SessionRecord(
    "scribe",
    "s-1",
    Definition("scribe", restart=Restart.ON_FAILURE),
    NOW,
    instance_id="i-1",
    status=Status.RUNNING,
)
_ages = st.lists(st.integers(0, 7200).map(lambda seconds: timedelta(seconds=seconds)), max_size=20)


def held(kind: HoldKind) -> Hold:
    """Return a hold of that kind."""
    return Hold(kind, "cli:ann", "", NOW)


@pytest.mark.parametrize(
    ("end", "by_person", "crash"),
    [
        (LastExit(0, None), False, False),
        (LastExit(1, None), False, True),
        (LastExit(143, None), False, True),
        (LastExit(None, 9), False, True),
        (LastExit(None, None), False, True),
        (None, False, True),
        (LastExit(1, None), True, False),
        (None, True, False),
    ],
)
def test_a_crash_is_an_end_that_nobody_wanted(end: LastExit | None, by_person: bool, crash: bool) -> None:
    """A signal, a status other than 0, or an end without a trace; never a person who left."""
    assert is_crash(end, by_person=by_person) is crash


def test_each_restart_of_the_hour_waits_longer() -> None:
    """A second at first, then as the table says."""
    waits = []
    restarts: list[datetime] = []
    for _ in range(len(BACKOFF) + 1):
        plan = plan_restart(restarts, NOW, 100)
        assert isinstance(plan, BringBack)
        waits.append(plan.at - NOW)
        restarts.append(NOW)

    assert waits == [*BACKOFF, BACKOFF[-1]]


@given(_ages, st.integers(1, 10))
def test_the_budget_is_kept_whatever_came_before(ages: list[timedelta], per_hour: int) -> None:
    """Restarts go on while the hour has had fewer than the budget, and then end; older ones count for nothing."""
    restarts = [NOW - age for age in ages]
    recent = sum(age < WINDOW for age in ages)

    plan = plan_restart(restarts, NOW, per_hour)

    assert isinstance(plan, GiveUp) == (recent >= per_hour)
    if isinstance(plan, BringBack):
        assert NOW < plan.at <= NOW + BACKOFF[-1]
        assert plan.number == recent + 1


@given(_ages)
def test_a_session_is_never_given_up_for_good(ages: list[timedelta]) -> None:
    """An hour without a restart makes the budget whole again."""
    assert plan_restart([NOW - age for age in ages], NOW + WINDOW, 1) == BringBack(NOW + WINDOW + BACKOFF[0], 1)


@given(
    st.sampled_from(Status),
    st.sampled_from(Phase),
    st.none() | st.sampled_from(HoldKind).map(held),
    st.sampled_from(Restart),
)
def test_nothing_that_is_held_or_under_way_is_brought_back(
    status: Status, phase: Phase, hold: Hold | None, restart: Restart
) -> None:
    """Only what should run, is settled and unheld; by a crash only where the policy says so."""
    record = replace(RECORD, status=status, phase=phase, hold=hold, definition=Definition("scribe", restart=restart))
    free = status is Status.RUNNING and phase is Phase.SETTLED and hold is None

    assert may_be_brought_back(record) is free
    assert restarts_itself(record) is (free and restart is Restart.ON_FAILURE)


@pytest.mark.parametrize(
    ("changes", "unasked"),
    [
        ({}, True),
        ({"hold": held(HoldKind.PAUSED)}, True),
        ({"hold": held(HoldKind.FAILED)}, True),
        ({"hold": held(HoldKind.STOPPED)}, False),
        ({"status": Status.STOPPED}, False),
        ({"phase": Phase.STOPPING}, False),
        ({"phase": Phase.STARTING}, False),
        ({"phase": Phase.DELETING}, False),
    ],
)
def test_an_end_is_told_only_where_no_verb_brought_it_about(changes: dict[str, object], unasked: bool) -> None:
    """A stop tells of its own; a pause ends nothing."""
    assert ended_unasked(replace(RECORD, **changes)) is unasked  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("end", "own"),
    [
        (LastExit(0, None), True),
        (LastExit(1, None), True),
        (LastExit(143, None), False),
        (LastExit(None, 9), False),
        (LastExit(None, None), False),
        (None, False),
    ],
)
def test_only_a_status_of_its_own_is_the_programs_decision(end: LastExit | None, own: bool) -> None:
    """A signal, one that is told as 128 + n, and an end that nobody saw are no word of the program."""
    assert left_by_itself(end) is own
