"""Text out of Slack's messages, as it was typed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.documents import to_plain
from bot.markdown import escape
from bot.words import mentioned, plain, straightened

NAMES = {"U123": "alice"}


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
        ("<mailto:a@b.org> or <tel:+123|+123>", "a@b.org or +123"),
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


def test_known_members_are_named() -> None:
    """An id says nothing to an agent; the name that its person sees does."""
    message = {"text": "ask <@U123> or <@U9>"}

    assert plain(message, NAMES) == "ask @alice or @U9"
    assert mentioned(message) == {"U123", "U9"}


def rich(*sections: dict[str, Any]) -> dict[str, Any]:
    """Return a person's message with these sections; its wire text is another, so that it shows which was taken."""
    return {"text": "the wire form", "blocks": [{"type": "rich_text", "block_id": "x", "elements": list(sections)}]}


def section(*elements: dict[str, Any], kind: str = "section", **more: Any) -> dict[str, Any]:
    """Return a section of rich text."""
    return {"type": f"rich_text_{kind}", "elements": list(elements), **more}


def text(words: str, **style: bool) -> dict[str, Any]:
    """Return a text element."""
    return {"type": "text", "text": words, **({"style": style} if style else {})}


@pytest.mark.parametrize(
    ("message", "typed"),
    [
        (rich(section(text("plain words"))), "the wire form"),
        (rich(section(text("run "), text("a && b < c", code=True))), "run `a && b < c`"),
        (rich(section(text("a &lt; b", code=True))), "`a &lt; b`"),
        (rich(section(text("x\n")), section(text("for i in *;\n  do"), kind="preformatted")),
         "x\n```\nfor i in *;\n  do\n```"),
        (rich(section(text("run")), section({"type": "link", "url": "http://foo.py", "text": "foo.py"},
                                            text(" --all"), kind="preformatted")), "run\n```\nfoo.py --all\n```"),
        (rich(section(text("pip install ", code=True),
                      {"type": "link", "url": "http://foo.py", "text": "foo.py", "style": {"code": True}})),
         "`pip install foo.py`"),
        (rich(section(text("tick ` tick", code=True))), "`` tick ` tick ``"),
        (rich(section(section(text("one")), section(text("two")), kind="list", style="bullet", indent=0),
              section(section(text("deep")), kind="list", style="ordered", indent=1, offset=2)),
         "- one\n- two\n   3. deep"),
        (rich(section(text("said\ntwice"), kind="quote"), section(text("c", code=True))), "> said\n> twice\n`c`"),
        (rich(section(text("bold", bold=True), text(" "), text("c", code=True), {"type": "user", "user_id": "U123"},
                      {"type": "channel", "channel_id": "C1"}, {"type": "broadcast", "range": "here"},
                      {"type": "usergroup", "usergroup_id": "S1"}, {"type": "emoji", "name": "wave", "skin_tone": 3},
                      {"type": "date", "timestamp": 1, "fallback": "1 May"}, {"type": "color", "value": "#fff"},
                      {"type": "link", "url": "https://e.org/x", "text": "page"},
                      {"type": "link", "url": "mailto:a@b.org"})),
         "*bold* `c`@alice#C1@here@S1:wave::skin-tone-3:1 May#fffpage (https://e.org/x)a@b.org"),
    ],
)  # fmt: skip
def test_code_and_lists_come_from_the_rich_text(message: dict[str, Any], typed: str) -> None:
    """The wire form does not say where code begins, nor which links in it nobody typed."""
    assert plain(message, NAMES) == typed


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("echo \u201chello\u201d", 'echo "hello"'),
        ("echo \u2018a\u2019", "echo 'a'"),
        ("git log \u2014oneline", "git log --oneline"),
        ("a\u00a0b", "a b"),
        ('say "\u201cquoted\u201d"', 'say "\u201cquoted\u201d"'),
        ("print(\u201cgrüße\u201d)", "print(\u201cgrüße\u201d)"),
        ("a \u2014 b", "a \u2014 b"),
    ],
)
def test_what_a_phone_made_of_code_is_undone_where_that_is_sure(typed: str, meant: str) -> None:
    """Curly quotes break a command; where they may be meant they stay."""
    assert straightened(typed) == meant


def test_typography_outside_code_stays() -> None:
    """Prose is relayed letter by letter."""
    assert plain({"text": "\u201chi\u201d \u2014 ok\u00a0?"}) == "\u201chi\u201d \u2014 ok\u00a0?"


LINE_ENDS = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"  #: which may become newlines
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=LINE_ENDS), max_size=80)


@example("a line\n")
@given(words)
def test_what_is_escaped_comes_back(typed: str) -> None:
    """Escaping and reading are inverse, so a person's characters are never changed."""
    assert plain({"text": escape(typed)}) == typed


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=60))
def test_code_comes_back_letter_by_letter(code: str) -> None:
    """A block of code reaches the agent as it was typed, between its fences."""
    message = rich(section(text(code), kind="preformatted"))

    assert plain(message) == f"```\n{code}\n```"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["type", "text", "elements", "style", "url", "user_id", "blocks", "indent", "offset", "code"]
            )
            | st.text(max_size=5),
            inner
            | st.sampled_from(["rich_text", "rich_text_section", "rich_text_list", "rich_text_preformatted", "link"]),
            max_size=6,
        )
    ),
    max_leaves=30,
)


@given(st.dictionaries(st.sampled_from(["text", "blocks"]), anything), anything)
def test_no_document_breaks_it(message: dict[str, Any], section_: Any) -> None:
    """Whatever Slack sends, text comes out, or none."""
    assert isinstance(plain(message), str)
    assert isinstance(plain({"text": "", "blocks": [{"type": "rich_text", "elements": [section_]}]}), str)
