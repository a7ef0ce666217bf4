"""Text out of Slack's wire form and into it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.mrkdwn import escape, fitted, to_plain


@pytest.mark.parametrize(
    ("wire", "plain"),
    [
        ("if a &lt; b &amp;&amp; c &gt; d", "if a < b && c > d"),
        ("&amp;lt; stays", "&lt; stays"),
        ("<https://example.com/?a=1&amp;b=2>", "https://example.com/?a=1&b=2"),
        ("pip install <http://foo.py|foo.py>", "pip install foo.py"),
        ("<https://example.com/|https://example.com>", "https://example.com"),
        ("see <https://example.com/x|the page>", "see the page (https://example.com/x)"),
        ("<mailto:a@b.org|a@b.org>", "a@b.org"),
        ("<@U123|alice> and <@U456>", "@alice and @U456"),
        ("<#C1|general> <#C2|> <#C3>", "#general #C2 #C3"),
        ("<!here> <!channel> <!here|here> <!everyone>", "@here @channel @here @everyone"),
        ("<!subteam^S1|@ops> <!subteam^S2>", "@ops @S2"),
        ("<!date^1392734382^{date}|18 Feb>", "18 Feb"),
        ("```for i in &lt;(ls); do echo $i; done```", "```for i in <(ls); do echo $i; done```"),
        ("", ""),
    ],
)
def test_wire_text_becomes_what_was_typed(wire: str, plain: str) -> None:
    """Code, URLs and mentions read as a person wrote them."""
    assert to_plain(wire) == plain


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
