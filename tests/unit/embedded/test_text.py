"""Text on the wire: escapes, tokens, and the rich_text that goes with a person's message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded.workspace.shapes import escape, rich_text, sent_to_wire, typed_to_wire, unescape

USERS = {"alice": "U1"}
CHANNELS = {"agents": "C1"}


@pytest.mark.parametrize(
    ("typed", "wire"),
    [
        ("a & b < c > d", "a &amp; b &lt; c &gt; d"),
        ("hey @alice and @nobody", "hey <@U1> and @nobody"),
        ("in #agents, not #elsewhere", "in <#C1|>, not #elsewhere"),
        ("@here look", "<!here> look"),
        ("see https://example.com/a?b=1&c=2.", "see <https://example.com/a?b=1&amp;c=2>."),
        ("<@U1> typed by hand", "&lt;@U1&gt; typed by hand"),
        ("`curl https://example.com`", "`curl <https://example.com>`"),
    ],
)
def test_typed_text_becomes_wire_text(typed: str, wire: str) -> None:
    """Special characters are escaped, known names and links become tokens, in code as well."""
    assert typed_to_wire(typed, USERS, CHANNELS) == wire


@pytest.mark.parametrize(
    ("sent", "wire"),
    [
        ("<@U1> <#C1> <!channel> <https://a.b|c>", "<@U1> <#C1> <!channel> <https://a.b|c>"),
        ("a<b>c", "a&lt;b&gt;c"),
        ("&lt; &amp; & &copy;", "&lt; &amp; &amp; &amp;copy;"),
        ("> quoted", "&gt; quoted"),
        ("https://a.b/c", "<https://a.b/c>"),
    ],
)
def test_sent_text_keeps_tokens_and_escapes_the_rest(sent: str, wire: str) -> None:
    """An app's own tokens and escapes stand; stray special characters are escaped once."""
    assert sent_to_wire(sent) == wire


@given(st.text())
def test_escape_is_undone_by_unescape(text: str) -> None:
    """Nothing is lost on the wire."""
    assert unescape(escape(text)) == text


@given(st.text(alphabet="<>&;#@!|abUC1 lt/:.hps\n`"))
def test_sent_text_settles(text: str) -> None:
    """Text that went over the wire once does not change when it is sent again."""
    once = sent_to_wire(text)

    assert sent_to_wire(once) == once


def test_rich_text_is_not_escaped() -> None:
    """The block's strings are what the person typed; fences, mentions and links are elements of their own."""
    block = rich_text("a &lt;b&gt; <@U1> <https://x.y|x>```ls &amp;&amp; <https://x.y>```")

    section, code = block["elements"]
    assert section["elements"] == [
        {"type": "text", "text": "a <b> "},
        {"type": "user", "user_id": "U1"},
        {"type": "text", "text": " "},
        {"type": "link", "url": "https://x.y", "text": "x"},
    ]
    assert code["elements"] == [{"type": "text", "text": "ls && https://x.y"}]
