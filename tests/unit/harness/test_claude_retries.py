"""What Claude Code shows while it tries a failed request again."""

import pytest

from core.delivery.hearing import what_fails
from core.harness.claude.files import retry_of
from core.model.harness import Retry

FRAME = "─" * 60


def screen(*above: str, typed: str = "") -> str:
    """Return a screen with these lines above its input line."""
    return "\n".join(
        ["\u276f slow work", "", *above, "", FRAME, f"\u276f {typed}", FRAME, "  esc to interrupt", "", ""]
    )


@pytest.mark.parametrize(
    ("line", "retry"),
    [
        ("✻ API error · Retrying in 17s · attempt 7/10", Retry("", 7, 10)),
        ("✢ 500 fake error 500 · retrying in 4s · attempt 4/10", Retry("500 fake error 500", 4, 10)),
        ("· API error · retrying… · attempt 2/10", Retry("", 2, 10)),
        ("✽ Connection refused · retrying in 1s · attempt 3/10", Retry("Connection refused", 3, 10)),
    ],
)
def test_a_retry_is_read_off_the_screen(line: str, retry: Retry) -> None:
    """As 2.1.197 and 2.1.332 write it, with a hint below it or not."""
    assert retry_of(screen(line)) == retry
    assert retry_of(screen(line, "  ⎿  Tip: Use /btw to ask a quick side question")) == retry
    assert retry_of(screen(line, *[""] * 20)) == retry


@pytest.mark.parametrize(
    "shown",
    [
        screen("✻ Worked for 3s"),
        screen("● It said: API error · retrying in 1s · attempt 2/10 and so on"),
        screen(f"✻ API error · retrying in 4s · attempt {'1' * 4400}/10"),
        screen(f"✻ API error · retrying in {'1' * 4400}s · attempt 1/{'1' * 4400}"),
        screen(typed="✻ API error · retrying in 1s · attempt 2/10"),
        screen("✻ API error · retrying in 1s · attempt 2/10", *[f"line {number}" for number in range(12)]),
        "",
    ],
)
def test_no_other_screen_shows_a_retry(shown: str) -> None:
    """Neither what stands in the input line, nor what has scrolled up since, nor numbers that no program counts to."""
    assert retry_of(shown) is None


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("529 Overloaded", "the model's server answers 529 (Overloaded)"),
        ("500", "the model's server answers 500"),
        ("", "the model's server answers with an error"),
        ("Connection refused", "the model's server cannot be reached (Connection refused)"),
    ],
)
def test_what_is_tried_again_is_told_in_words(reason: str, words: str) -> None:
    """With the status that the server answered, where one is shown."""
    assert what_fails(Retry(reason, 2, 10)).text == words
