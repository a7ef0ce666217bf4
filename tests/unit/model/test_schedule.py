"""When a loop runs next."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import InvalidValue
from core.model.loop import (
    Loop,
    Mode,
    backoff,
    check_cron,
    expires_at,
    first_slot,
    following_slot,
    jitter,
    next_match,
    rearmed_slot,
    zone_of,
)

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
ZONES = ("", "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/St_Johns")
CRONS = ("* * * * *", "*/5 * * * *", "30 2 * * *", "0 */2 * * *", "15 1-3 * * *", "0 9 * * MON-FRI", "0 0 29 2 *")
SECONDS = st.floats(0, 20 * 365 * 86_400)
INSTANTS = SECONDS.map(lambda seconds: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds))
INTERVALS = st.timedeltas(timedelta(seconds=1), timedelta(days=7))


def _loop(**changes: object) -> Loop:
    values: dict[str, object] = {
        "id": "loop_abcdef",
        "uid": "s-1",
        "name": "scribe",
        "instruction": "look",
        "mode": Mode.INTERVAL,
        "created_by": "cli:ann",
        "created_at": NOON,
        "interval": 5 * MINUTE,
    }
    return Loop(**{**values, **changes})  # type: ignore[arg-type]


def _cron(cron: str, time_zone: str = "", loop_id: str = "loop_abcdef") -> Loop:
    return _loop(id=loop_id, mode=Mode.CRON, interval=None, cron=cron, time_zone=time_zone)


def _dynamic(planned: datetime | None) -> Loop:
    return _loop(mode=Mode.DYNAMIC, interval=None, next_run_at=planned)


def _local(year: int, month: int, day: int, hour: int, minute: int = 0, *, fold: int = 0) -> datetime:
    moment = datetime(year, month, day, hour, minute, tzinfo=ZoneInfo("Europe/Berlin"), fold=fold)
    return moment.astimezone(UTC)


# ---------------------------------------------------------------- intervals


def test_an_interval_begins_one_interval_from_now() -> None:
    """Loops that are made at different moments spread by that alone; declared ones, made together, by their ids."""
    assert first_slot(_loop(), NOON) == NOON + 5 * MINUTE
    spread = {first_slot(_loop(id=f"loop_{number}", declared="x"), NOON) for number in range(50)}
    assert len(spread) == 50
    assert min(spread) >= NOON + 5 * MINUTE
    assert max(spread) < NOON + 5.5 * MINUTE


def test_an_interval_keeps_to_its_grid() -> None:
    """A run that goes in somewhat late moves no later one."""
    assert following_slot(_loop(), NOON, NOON + MINUTE) == NOON + 5 * MINUTE


def test_a_late_run_is_not_followed_at_once() -> None:
    """Where the grid would bring two runs closer together than half an interval, it begins anew."""
    late = NOON + 3 * MINUTE

    assert following_slot(_loop(), NOON, late) == late + 5 * MINUTE


def test_six_hours_of_sleep_are_one_run() -> None:
    """A loop of five minutes that slept runs once, and then in five minutes."""
    awake = NOON + timedelta(hours=6)

    assert following_slot(_loop(), NOON, awake) == awake + 5 * MINUTE


@given(INTERVALS, INSTANTS, st.timedeltas(timedelta(), timedelta(days=30)))
def test_two_runs_are_at_least_half_an_interval_apart_and_at_most_one(
    interval: timedelta, slot: datetime, late: timedelta
) -> None:
    """However late the first of them was sent."""
    now = slot + late

    following = following_slot(_loop(interval=interval), slot, now)

    assert following is not None
    assert interval / 2 <= following - now <= interval


# ---------------------------------------------------------------- cron


@pytest.mark.parametrize(
    ("cron", "after", "expected"),
    [
        ("30 2 * * *", _local(2026, 3, 29, 1, 59), _local(2026, 3, 29, 3)),  # 2:00 to 3:00 is skipped: right after it
        ("30 2 * * *", _local(2026, 3, 29, 3), _local(2026, 3, 30, 2, 30)),
        ("30 2 * * *", _local(2026, 10, 25, 1, 59), _local(2026, 10, 25, 2, 30)),  # 2:00 to 3:00 is twice: run once
        ("30 2 * * *", _local(2026, 10, 25, 2, 30), _local(2026, 10, 26, 2, 30)),
        ("30 2 * * *", _local(2026, 10, 25, 2, 10, fold=1), _local(2026, 10, 26, 2, 30)),
        ("*/30 * * * *", _local(2026, 10, 25, 2, 30), _local(2026, 10, 25, 2, fold=1)),  # often: by the clock
        ("*/30 * * * *", _local(2026, 3, 29, 1, 30), _local(2026, 3, 29, 3)),
        ("0 0 29 2 *", _local(2026, 5, 4, 0), _local(2028, 2, 29, 0)),
        ("0 9 * * MON-FRI", _local(2026, 5, 8, 9), _local(2026, 5, 11, 9)),
    ],
)
def test_a_cron_expression_is_read_in_its_zone(cron: str, after: datetime, expected: datetime) -> None:
    """As Debian's cron does, when clocks change and on leap days, too."""
    assert next_match(cron, "Europe/Berlin", after) == expected


@given(st.sampled_from(CRONS), st.sampled_from(ZONES), INSTANTS)
def test_the_next_match_is_always_to_come(cron: str, zone: str, after: datetime) -> None:
    """In every zone, whatever its clocks do, and on a whole minute."""
    first = next_match(cron, zone, after)
    second = next_match(cron, zone, first)

    assert after < first < second
    assert (first.second, first.microsecond, first.tzinfo) == (0, 0, UTC)


@given(st.sampled_from(ZONES), INSTANTS, st.integers(0, 23), st.integers(0, 59))
def test_a_daily_run_is_once_a_day(zone: str, after: datetime, hour: int, minute: int) -> None:
    """Also on the days that have 23 or 25 hours."""
    runs = [after]
    for _ in range(4):
        runs.append(next_match(f"{minute} {hour} * * *", zone, runs[-1]))

    days = [run.astimezone(zone_of(zone)).date() for run in runs[1:]]

    assert all(later - earlier == timedelta(days=1) for earlier, later in pairwise(days))


def test_many_loops_on_one_minute_spread() -> None:
    """By their ids, always alike, and by no more than 30 s or a tenth of the gap."""
    slots = [first_slot(_cron("0 * * * *", loop_id=f"loop_{number}"), NOON) for number in range(100)]
    again = [first_slot(_cron("0 * * * *", loop_id=f"loop_{number}"), NOON) for number in range(100)]

    late = [slot - NOON - timedelta(hours=1) for slot in slots]
    assert slots == again
    assert len(set(slots)) == 100
    assert timedelta() <= min(late) < timedelta(seconds=3)
    assert timedelta(seconds=27) < max(late) < timedelta(seconds=30)
    assert jitter("loop_abcdef", MINUTE) < timedelta(seconds=6)


@given(st.sampled_from(CRONS), st.sampled_from(ZONES), INSTANTS, st.timedeltas(timedelta(), timedelta(days=3)))
def test_a_cron_loop_goes_on_and_catches_nothing_up(cron: str, zone: str, now: datetime, late: timedelta) -> None:
    """What follows a run comes after the moment at which that was sent, with no match between but its own."""
    loop = _cron(cron, zone)
    slot = first_slot(loop, now)

    following = following_slot(loop, slot, slot + late)

    assert following is not None
    assert following > slot + late
    assert next_match(cron, zone, slot + late) <= following < next_match(cron, zone, slot + late) + MINUTE / 2


@pytest.mark.parametrize("cron", ["0 0 30 2 *", "0 0 31 4,6 *", "* * */20 * 1L"])
def test_an_expression_that_never_comes_true_is_refused(cron: str) -> None:
    """A loop that never runs is nobody's wish."""
    with pytest.raises(InvalidValue, match="never comes true"):
        check_cron(cron, "", MINUTE, NOON)


@pytest.mark.parametrize(
    ("cron", "why"),
    [
        ("61 * * * *", "bad minute"),
        ("* * * * * *", "6 fields"),
        ("@hourly", "1 fields"),
        ("", "0 fields"),
        ("* * * * BLAH", "bad day-of-week"),
        ("1-x * * * *", "bad minute"),
        (f"{'1,' * 200}1 * * * *", "5 fields"),
    ],
)
def test_an_expression_that_is_none_is_refused(cron: str, why: str) -> None:
    """The refusal repeats it and tells what is wrong."""
    with pytest.raises(InvalidValue, match=why):
        check_cron(cron, "", MINUTE, NOON)


def test_an_expression_may_come_true_too_often() -> None:
    """loops.minInterval counts for the two closest runs."""
    assert check_cron("  0,30  *  * * *", "", 30 * MINUTE, NOON) == "0,30 * * * *"
    with pytest.raises(InvalidValue, match=r"are only 5m apart; leave at least 10m between them \(loops"):
        check_cron("0,5 9 * * *", "", 10 * MINUTE, NOON)


@given(st.text(alphabet="0123456789*/,-#LW MONa²\x00", max_size=30))
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    """Nothing else happens."""
    try:
        checked = check_cron(text, "Europe/Berlin", MINUTE, NOON)
    except InvalidValue:
        return
    assert next_match(checked, "Europe/Berlin", NOON) > NOON


@pytest.mark.parametrize("zone", ["Berlin", "America", "../etc/passwd", "/etc/passwd", "Europe/Berlin\x00", "x" * 5000])
def test_a_zone_that_nobody_knows_is_refused(zone: str) -> None:
    """Also a folder of the database, and a path out of it."""
    with pytest.raises(InvalidValue, match="IANA name"):
        zone_of(zone)


# ---------------------------------------------------------------- dynamic loops, holds, failures, age


def test_a_dynamic_loop_runs_at_once_and_then_when_its_agent_says() -> None:
    """Nobody else plans its next run."""
    assert first_slot(_dynamic(None), NOON) == NOON
    assert following_slot(_dynamic(None), NOON, NOON) is None


def test_a_session_that_comes_back_catches_nothing_up() -> None:
    """An interval begins anew, a cron loop waits for its next match, a dynamic one for its time or a minute."""
    assert rearmed_slot(_loop(next_run_at=NOON - timedelta(days=2)), NOON) == NOON + 5 * MINUTE
    assert rearmed_slot(_cron("0 * * * *"), NOON) == first_slot(_cron("0 * * * *"), NOON)
    assert rearmed_slot(_dynamic(NOON + MINUTE / 2), NOON) == NOON + MINUTE / 2
    assert rearmed_slot(_dynamic(NOON - MINUTE), NOON) == NOON + MINUTE
    assert rearmed_slot(_dynamic(None), NOON) is None


def test_failures_are_retried_later_and_later() -> None:
    """From 30 s, doubling, at most an hour, and at most the interval."""
    assert [backoff(failures, None).total_seconds() for failures in (1, 2, 3, 8, 99)] == [30, 60, 120, 3600, 3600]
    assert [backoff(failures, 2 * MINUTE).total_seconds() for failures in (1, 2, 3, 4)] == [30, 60, 120, 120]
    assert backoff(1, timedelta(seconds=10)) == timedelta(seconds=10)


def test_keep_alive_survives_the_age_that_ends_an_ordinary_loop() -> None:
    """An age of none ends nobody."""
    week = timedelta(days=7)

    assert expires_at(_loop(), week) == NOON + week
    assert expires_at(_loop(keep_alive=True), week) is None
    assert expires_at(_loop(), None) is None
