"""Spans of time as people write them."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.domain.durations import duration_text, parse_duration


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
