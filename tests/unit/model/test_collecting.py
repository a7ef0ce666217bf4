"""When an idle session is stopped by itself."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.model.activity import ActivityState
from core.model.restarting import Announce, Collect, Facts, Keep, decide_idle, grace_of

IDLE_SINCE = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
FACTS = Facts(
    stop_after=HOUR,
    runs=True,
    activity=ActivityState.IDLE,
    idle_since=IDLE_SINCE,
    pending_tasks=False,
    attached=False,
    waiting=False,
)
KEEPERS: dict[str, object] = {
    "runs": False,
    "activity": ActivityState.BUSY,
    "pending_tasks": True,
    "attached": True,
    "waiting": True,
    "held_open": True,
}
_spans = st.integers(1, 10**7).map(lambda seconds: timedelta(seconds=seconds))


def test_an_idle_session_is_announced_before_its_time_and_then_stopped() -> None:
    """Nothing, then the announcement five minutes before, then the end."""
    announce_at = IDLE_SINCE + HOUR - timedelta(minutes=5)

    assert decide_idle(FACTS, announce_at - timedelta(seconds=1)) == Keep("", announce_at)
    assert decide_idle(FACTS, announce_at) == Announce(IDLE_SINCE + HOUR)
    announced = replace(FACTS, announced_at=announce_at)
    assert decide_idle(announced, IDLE_SINCE + HOUR - timedelta(seconds=1)) == Keep("", IDLE_SINCE + HOUR)
    assert isinstance(decide_idle(announced, IDLE_SINCE + HOUR), Collect)


def test_a_session_that_was_never_announced_is_announced_first_however_late() -> None:
    """A service that was away for a day gives the whole grace all the same."""
    late = IDLE_SINCE + timedelta(days=1)

    assert decide_idle(FACTS, late) == Announce(late + grace_of(HOUR))


def test_without_stop_after_nothing_ever_happens() -> None:
    """The default keeps a session for ever."""
    assert decide_idle(replace(FACTS, stop_after=None), IDLE_SINCE + timedelta(days=999)) == Keep("")


@pytest.mark.parametrize(("field", "value"), KEEPERS.items())
def test_each_sign_of_use_keeps_it(field: str, value: object) -> None:
    """One is enough, announced or not."""
    facts = replace(FACTS, announced_at=IDLE_SINCE + HOUR, **{field: value})  # type: ignore[arg-type]

    decision = decide_idle(facts, IDLE_SINCE + timedelta(days=9))

    assert isinstance(decision, Keep)
    assert decision.reason


@given(st.none() | st.sampled_from(ActivityState))
def test_only_a_session_that_calls_itself_idle_is_stopped(activity: ActivityState | None) -> None:
    """Unknown is never taken for idle, and neither is no word at all."""
    facts = replace(FACTS, activity=activity, announced_at=IDLE_SINCE)

    collected = isinstance(decide_idle(facts, IDLE_SINCE + timedelta(days=9)), Collect)

    assert collected is (activity is ActivityState.IDLE)


@given(_spans, _spans, st.none() | _spans)
def test_nothing_is_stopped_before_its_time_or_without_its_grace(
    stop_after: timedelta, waited: timedelta, announced_before: timedelta | None
) -> None:
    """Whenever it is asked: idle for stopAfter at least, and announced for the grace at least."""
    now = IDLE_SINCE + waited
    announced_at = None if announced_before is None else max(IDLE_SINCE, now - announced_before)
    facts = replace(FACTS, stop_after=stop_after, announced_at=announced_at)

    decision = decide_idle(facts, now)

    if isinstance(decision, Collect):
        assert announced_at is not None
        assert waited >= stop_after
        assert now - announced_at >= grace_of(stop_after)
    if isinstance(decision, Keep):
        assert decision.until is not None
        assert decision.until > now
    if isinstance(decision, Announce):
        assert decision.stop_at >= now + grace_of(stop_after)
