"""Spans of time as people write them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import InvalidValue
from core.base.text import duration_text, interval_text, parse_delay, parse_duration, parse_interval

LEAST, MOST = timedelta(seconds=30), timedelta(days=7)


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30), ("15m", 900), ("2h", 7200), ("7d", 604_800), ("1h30m", 5400), ("1d1s", 86_401)]
)
def test_a_span_is_read(text: str, seconds: int) -> None:
    """Each unit counts, and several may stand together, the largest first."""
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "0s", "5", "5 m", "m", "-1h", "1m1h", "1.5h", "1y", "٣s", "1234567s"])
def test_anything_else_is_refused_with_the_rule(text: str) -> None:
    """No guess is made, and no time at all is no span."""
    with pytest.raises(ValueError, match="such as 30s"):
        parse_duration(text)


@given(st.integers(1, 10**9))
def test_a_span_survives_being_written(seconds: int) -> None:
    """What is written is read as the same."""
    span = timedelta(seconds=seconds % 999_999 + 1)

    assert parse_duration(duration_text(span)) == span


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30),
        ("45.5s", 45.5),
        ("1.5h", 5400),
        (".5h", 1800),
        ("5 minutes", 300),
        ("1 minute", 60),
        ("2 days", 172_800),
        ("1h30m", 5400),
        ("1 hour 30 min", 5400),
        ("  90 Sec ", 90),
        ("1d 2hrs 3mins 4secs", 93_784),
    ],
)
def test_an_interval_is_read(text: str, seconds: float) -> None:
    """With decimals, short and long units, in any case, several together."""
    assert parse_interval(text, LEAST, MOST) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    ["", "5", "m", "-5m", "1m1h", "1m 2m", "5 fortnights", "1e3s", "٣m", "5m please", "nan s", "0s", "9" * 9 + "d"],
)
def test_no_interval_is_refused_with_its_text_and_the_rule(text: str) -> None:
    """Whoever wrote it sees what was read, and what would be."""
    with pytest.raises(InvalidValue, match="not understood; give a number and its unit, such as 30s") as refusal:
        parse_interval(text, LEAST, MOST)
    assert repr(text) in refusal.value.message


@pytest.mark.parametrize("text", ["29.9s", "7d1s", "8 days"])
def test_an_interval_out_of_bounds_is_refused_with_them(text: str) -> None:
    """The keys that set the bounds are named."""
    with pytest.raises(InvalidValue, match=rf"{text}.* 30s to 7d \(loops.minInterval, loops.maxInterval\)"):
        parse_interval(text, LEAST, MOST)


def test_a_long_text_is_not_repeated_whole() -> None:
    """A refusal stays a line."""
    with pytest.raises(InvalidValue) as refusal:
        parse_interval("x\n" * 5000, LEAST, MOST)
    assert len(str(refusal.value)) < 250


@pytest.mark.parametrize(
    ("given_", "seconds", "brought"),
    [
        ("10m", 600, False),
        ("90", 90, False),
        (90.5, 90.5, False),
        (5, 30, True),
        ("0", 30, True),
        ("30 days", 604_800, True),
    ],
)
def test_a_delay_is_brought_within_the_bounds(given_: str | float, seconds: float, brought: bool) -> None:
    """A span or seconds; the answer tells whether it was."""
    assert parse_delay(given_, LEAST, MOST) == (timedelta(seconds=seconds), brought)


@pytest.mark.parametrize("given_", ["soon", "", "-5", float("nan"), float("inf"), -1.0])
def test_what_is_no_delay_is_refused(given_: str | float) -> None:
    """Nobody guesses."""
    with pytest.raises(InvalidValue, match="not understood"):
        parse_delay(given_, LEAST, MOST)


@given(st.integers(30 * 10**6, 7 * 86_400 * 10**6).map(lambda count: timedelta(microseconds=count)))
def test_an_interval_survives_being_written(span: timedelta) -> None:
    """To the microsecond."""
    assert parse_interval(interval_text(span), LEAST, MOST) == span


@given(st.text(max_size=40))
def test_any_text_is_an_interval_or_refused(text: str) -> None:
    """Nothing else happens."""
    try:
        span = parse_interval(text, LEAST, MOST)
    except InvalidValue:
        return
    assert LEAST <= span <= MOST
