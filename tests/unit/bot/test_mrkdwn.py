"""Text into Slack's wire form."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bot.documents import to_plain
from bot.markdown import escape, fitted


@given(st.text())
def test_what_is_escaped_comes_back(text: str) -> None:
    """Escaping and reading are inverse, so a person's characters are never changed."""
    assert to_plain(escape(text)) == text


@given(st.text())
def test_escaped_text_holds_no_token(text: str) -> None:
    """Nothing in relayed text can ping or link."""
    assert "<" not in escape(text)
    assert ">" not in escape(text)


@given(st.text(alphabet="a<&\N{SNOWMAN}", max_size=900), st.integers(min_value=200, max_value=600))
def test_fitted_text_keeps_its_limit_and_says_what_it_lost(text: str, limit: int) -> None:
    """Nothing is cut silently, and no escape is cut in two."""
    shown = fitted(text, limit)

    assert len(shown) <= limit
    kept, note, _ = shown.partition("\n[… ")
    if note:
        left = int(shown.split("[… ")[1].split(" ")[0].replace(",", ""))
        assert to_plain(kept) == text[: len(text) - left]
    else:
        assert to_plain(shown) == text
