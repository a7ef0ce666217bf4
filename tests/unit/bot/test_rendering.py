"""Markdown in Slack's own markup."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.rendering import render
from bot.tables import with_fenced_tables

APART = "\N{ZERO WIDTH SPACE}"
PIECES = [*"*_~`[]()<>!@#|\\-+.:/ \n&", "http://a.b", "<!channel>", "](https://", "```", "||"]
MARKDOWN = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3))).map("".join)


@pytest.mark.parametrize(
    ("markdown", "wire"),
    [
        ("# Title", "*Title*"),
        ("### A **bold** one ###", "*A bold one*"),
        ("**bold** and __bold__", "*bold* and *bold*"),
        ("*it* and _it_", "_it_ and _it_"),
        ("***both***", "*_both_*"),
        ("**bold *it* in**", "*bold _it_ in*"),
        ("~~gone~~", "~gone~"),
        ("foo**bar**baz", f"foo{APART}*bar*{APART}baz"),
        ("snake_case_name, 2*3*4, a * b * c", "snake_case_name, 2*3*4, a * b * c"),
        (r"\*plain\*", "*plain*"),
        ("- one\n  * two\n+ three\n1. four", "• one\n  • two\n• three\n1. four"),
        ("- [ ] open\n- [x] done", "☐ open\n☑ done"),
        ("> said `x`\n>> before", "> said `x`\n> > before"),
        ("---", "─" * 12),
        ("a < b && c > d", "a &lt; b &amp;&amp; c &gt; d"),
        ("`a < b` and ``x`y``", "`a &lt; b` and ``x`y``"),
        ("`**as it is** @here`", "`**as it is** @here`"),
        ("[text](https://a.b/c?d=1&e=2)", "<https://a.b/c?d=1&amp;e=2|text>"),
        ("[a|b](https://a.b/x|y)", "<https://a.b/x%7Cy|a¦b>"),
        ("[](https://a.b)", "<https://a.b>"),
        ("![shot](https://a.b/c.png)", "<https://a.b/c.png|shot>"),
        ("[file](src/a.py)", "[file](src/a.py)"),
        ("[run](javascript:alert)", "[run](javascript:alert)"),
        ("[https://good.org](https://evil.org)", "https://good.org (<https://evil.org>)"),
        (
            "<https://a.b> https://a.b/c_d_e. (https://a.b/(x))",
            "<https://a.b> <https://a.b/c_d_e>. (<https://a.b/(x)>)",
        ),
        ("```python\nif a < b: pass\n```", "_python_\n```\nif a &lt; b: pass\n```"),
        ("~~~\n```\n~~~", f"```\n`{APART}`{APART}`\n```"),
        ("```\nnever closed", "```\nnever closed\n```"),
    ],
)
def test_markdown_becomes_what_slack_shows(markdown: str, wire: str) -> None:
    """What Slack lacks is shown by what it has, and code stays as it is."""
    assert render(markdown) == wire


@pytest.mark.parametrize(
    "ping", ["<!channel>", "<!here|here>", "<@U123>", "<#C123|general>", "<!subteam^S1>", "<!date^1^{date}|x>"]
)
@pytest.mark.parametrize(
    "around",
    ["{}", "`{}`", "```\n{}\n```", "**{}**", "[{}](https://a.b)", "[x](https://a.b/{})", "> {}", "# {}", "<{}>"],
)
def test_nothing_pings_wherever_it_stands(ping: str, around: str) -> None:
    """Mentions are characters: in text, code, labels and addresses."""
    assert not re.search(r"<[!@#]", render(around.format(ping)))


@pytest.mark.parametrize("word", ["@here", "@channel", "@everyone", "@HERE"])
def test_words_that_ping_are_taken_apart_outside_of_code(word: str) -> None:
    """Inside code they are sent as they are, with `parse` and `link_names` off."""
    assert render(f"hi {word}, **{word}**") == f"hi @{APART}{word[1:]}, *@{APART}{word[1:]}*"


@given(MARKDOWN)
def test_every_token_is_a_link_of_ours(text: str) -> None:
    """Whatever the agent writes, `<` opens an address and nothing else."""
    shown = render(with_fenced_tables(text))

    outside = re.sub(r"<(?:https?://|mailto:)[^<>\n]+>", "", shown, flags=re.IGNORECASE)
    assert "<" not in outside
    assert not re.search(r"&(?!amp;|lt;|gt;)", shown)


@given(st.text(alphabet="ab*_ \n<>#-1.+>@"))
def test_letters_are_kept_in_order(text: str) -> None:
    """Markup may go; of what somebody reads nothing is lost, doubled or moved."""
    shown = re.sub(r"&(?:lt|gt);", "", render(text))

    assert re.sub(r"[^ab]", "", shown) == re.sub(r"[^ab]", "", text)


def test_a_table_is_shown_in_columns() -> None:
    """Aligned by the width of its characters, bars in cells kept."""
    table = "| name | n |\n|:--|--:|\n| `a\\|b` | 1 |\n| 日本 | 22 |\n\nafter"

    assert render(with_fenced_tables(table)) == "```\nname  | n\n------+---\n`a|b` | 1\n日本  | 22\n```\n\nafter"


def test_what_is_no_table_stays() -> None:
    """A bar alone, a delimiter of another width, and tables inside fences."""
    for text in ("a | b\nc | d", "| a | b |\n|---|\n| c |", "```\n| a |\n|---|\n```"):
        assert with_fenced_tables(text) == text


def test_one_long_cell_does_not_widen_every_row() -> None:
    """Otherwise a table of a hundred rows would be megabytes."""
    rows = "\n".join("| x | y |" for _ in range(100))

    assert len(with_fenced_tables(f"| a | b |\n|---|---|\n| {'w' * 5000} | b |\n{rows}")) < 12_000
