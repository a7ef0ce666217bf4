"""Slack's time stamps."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.directory import age, earlier, order, words_of

NOW = datetime(2026, 11, 29, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.4, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (7300, "2 h"), (200_000, "2 d")]
)
def test_an_age_in_words(seconds: float, words: str) -> None:
    """One number and its unit are enough."""
    assert words_of(seconds) == words


@pytest.mark.parametrize("ts", ["", "later", "nan-1", "9" * 400, "99999999999.000000"])
def test_what_is_no_time_or_lies_ahead_has_no_age(ts: str) -> None:
    """A broken clock makes nothing old."""
    assert age(ts, NOW) == 0.0


stamps = st.tuples(st.integers(1, 10**11), st.integers(0, 999_999))


@given(stamps, stamps)
def test_time_stamps_compare_as_pairs_of_numbers(one: tuple[int, int], other: tuple[int, int]) -> None:
    """Never as floating point, which cannot tell neighbours apart."""
    texts = [f"{seconds}.{micros:06d}" for seconds, micros in (one, other)]

    assert (order(texts[0]) < order(texts[1])) == (one < other)


def test_earlier_keeps_the_form() -> None:
    """It is still a time stamp."""
    assert [earlier("1700000000.000100", 300), earlier("5.000001", 300)] == ["1699999700.000100", "0.000001"]
