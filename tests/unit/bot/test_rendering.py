"""Markdown in Slack's own markup."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from bot.markdown import render, wire
from core.model.posts import NewPost, OutboundKind

APART = "\N{ZERO WIDTH SPACE}"
TICK = "\N{MODIFIER LETTER GRAVE ACCENT}"
PIECES = [*"*_~`[]()<>!@#|\\-+.:/ \n&", "http://a.b", "<!channel>", "](https://", "```", "||"]
MARKDOWN = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3))).map("".join)


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("# Title", "*Title*"),
        ("Title\n=====\ntext", "*Title*\ntext"),
        ("### A **bold** one ###", "*A bold one*"),
        ("**bold** and __bold__", "*bold* and *bold*"),
        ("*it* and _it_", "_it_ and _it_"),
        ("***both***", "*_both_*"),
        ("**bold *it* in**", "*bold _it_ in*"),
        ("**over\ntwo lines**", "*over*\n*two lines*"),
        ("~~gone~~", "~gone~"),
        ("foo**bar**baz", f"foo{APART}*bar*{APART}baz"),
        ("snake_case_name, 2*3*4, a * b * c", "snake_case_name, 2*3*4, a * b * c"),
        ("_under_score_ and __dunder__", "_under_score_ and *dunder*"),
        (r"\*args\* and \_name\_ and \~x\~", f"*{APART}args* and _{APART}name_ and ~{APART}x~"),
        (r"\`tick\` and one \* alone", f"{TICK}tick{TICK} and one * alone"),
        ('files (*.py,*.md) and {"a": "*", "b": "*"}',
         f'files (*{APART}.py,*{APART}.md) and {{"a": "*{APART}", "b": "*"}}'),
        ("- one\n  * two\n+ three\n1. four", "• one\n  • two\n• three\n1. four"),
        ("1. one\n2. two\n   - deep\n     more\n\n   last", "1. one\n2. two\n   • deep\n     more\n\n   last"),
        ("- [ ] open\n- [x] done", "☐ open\n☑ done"),
        ("> said `x`\n>> before", "> said `x`\n> > before"),
        ("> one\n>\n> two\n\nafter", "> one\n>\n> two\n\nafter"),
        (r"\> no quote", f"{APART}&gt; no quote"),
        ("---", "─" * 12),
        ("one  \ntwo\\\nthree<br>four", "one\ntwo\nthree\nfour"),
        ("a < b && c > d", "a &lt; b &amp;&amp; c &gt; d"),
        ("<details>\n**x** a<sup>2</sup>\n</details>",
         "&lt;details&gt;\n*x* a&lt;sup&gt;2&lt;/sup&gt;\n&lt;/details&gt;"),
        ("`a < b` and ``x`y``", "`a &lt; b` and ```x`y```"),
        ("`**as it is** @here`", "`**as it is** @here`"),
        ("**`x`**: ok", "*`x`*: ok"),
        ("**Pass `**kwargs` on**", "*Pass* `**kwargs` *on*"),
        ("**run `make **all**` now**", "*run* `make **all**` *now*"),
        ("[text](https://a.b/c?d=1&e=2)", "<https://a.b/c?d=1&amp;e=2|text>"),
        ("[text][1]\n\n[1]: https://a.b", "<https://a.b|text>"),
        ("[a|b](https://a.b/x|y)", "<https://a.b/x%7Cy|a¦b>"),
        ("[`a|b`](https://a.b)", "`a|b` (<https://a.b>)"),
        ("[](https://a.b)", "<https://a.b>"),
        ("![shot](https://a.b/c.png)", "<https://a.b/c.png|shot>"),
        ("[file](src/a.py)", "file (src/a.py)"),
        ("[run](javascript:alert)", "[run](javascript:alert)"),
        ("[https://good.org](https://evil.org)", "https://good.org (<https://evil.org>)"),
        ("<https://a.b> https://a.b/c_d_e. (https://a.b/(x))",
         "<https://a.b> <https://a.b/c_d_e>. (<https://a.b/(x)>)"),
        ("https://a.b/?x=*y* **https://a.b/_z_**", "<https://a.b/?x=*y>* *<https://a.b/_z>_*"),
        ("[^1]: a note\n\n[ERROR]: failed", "[^1]: a note\n\n[ERROR]: failed"),
        ("```python\nif a < b: pass\n```", "_python_\n```\nif a &lt; b: pass\n```"),
        ("~~~\n```\n~~~", f"```\n`{APART}`{APART}`\n```"),
        ("```\nnever closed", "```\nnever closed\n```"),
        ("do:\n\n    # a\n    - b **c**\n\nend", "do:\n\n```\n# a\n- b **c**\n```\n\nend"),
        ("> look:\n> ```py\n> # a\n> ```", "> look:\n_py_\n```\n# a\n```"),
        ("1. run\n\n    ```sh\n    # wipe\n    - [ ] x\n    ```\n2. done",
         "1. run\n\n_sh_\n```\n# wipe\n- [ ] x\n```\n2. done"),
        ("- ```\n  x\n  ```", "•\n```\nx\n```"),
    ],
)  # fmt: skip
def test_markdown_becomes_what_slack_shows(markdown: str, shown: str) -> None:
    """What Slack lacks is shown by what it has, and code stays as it is, wherever it stands."""
    assert render(markdown) == shown


def _nested(depth: int, opening: str) -> str:
    """Return as many lists or quotes within one another, each with a word, and code in the innermost."""
    if opening == "> ":
        return "\n".join(f"{opening * level}word{level}\n{opening * level}" for level in range(1, depth + 1)) + (
            f"\n{opening * depth}```\n{opening * depth}a *code* _line_\n{opening * depth}```"
        )
    indent, lines = 0, []
    for level in range(1, depth + 1):
        lines.append(f"{' ' * indent}{opening}word{level}")
        indent += len(opening)
    margin = " " * indent
    return "\n".join([*lines, "", f"{margin}```", f"{margin}a *code* _line_", f"{margin}```", "", "at the end"])


@pytest.mark.parametrize("opening", ["- ", "1. ", "> "])
@pytest.mark.parametrize("depth", [9, 10, 11, 20, 45, 60, 300])
def test_what_is_nested_deeply_is_shown(opening: str, depth: int) -> None:
    """All its words and its code; however deep it is it ends no worker, and is shown flat in the end."""
    shown = render(_nested(depth, opening))

    assert re.findall(r"word[0-9]+", shown) == [f"word{level}" for level in range(1, depth + 1)]
    assert "a *code* _line_" in shown
    assert opening == "> " or shown.endswith("at the end")


@pytest.mark.parametrize("opening", ["[", "![", "*", "**a ", "~~", "<", "`", "[a](", "(", "> - ", "- > ", "> 1. ", "|"])
def test_no_depth_is_too_deep(opening: str) -> None:
    """Text that opens what it never closes, or closes all of it, is shown in the end."""
    for text in (f"{opening * 2_000}word", f"{opening * 2_000}word{'](https://a.b)' * 2_000}"):
        assert "word" in render(text)


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("Sources:\n\n[1]: https://a.b/one\n[2]: https://a.b/two \"Two\"\n",
         'Sources:\n\n[1]: <https://a.b/one>\n[2]: <https://a.b/two> "Two"'),
        ("[config]: /etc/app.conf\n[log]: ./app.log", "[config]: /etc/app.conf\n[log]: ./app.log"),
        ("[ERROR]: /var/log/app.log\n\n[TODO]: #123", "[ERROR]: /var/log/app.log\n\n[TODO]: #123"),
        ("see [one][1]\n\n[2]: https://a.b/two\n[1]: https://a.b/one",
         "see <https://a.b/one|one>\n\n[2]: <https://a.b/two>"),
        ("see [1]\n\n[1]: https://a.b/one\n[1]: https://a.b/other", "see <https://a.b/one|1>\n[1]: <https://a.b/other>"),
        ("- [1]: https://a.b/one\n- [2]: https://a.b/two", "• [1]: <https://a.b/one>\n• [2]: <https://a.b/two>"),
        ("`[1]`\n\n> [1]: https://a.b", "`[1]`\n\n> [1]: <https://a.b>"),
        ("![shot][1]\n\n[1]: https://a.b/c.png", "<https://a.b/c.png|shot>"),
        ("[a *b*]: https://a.b\n'over\ntwo'", "[a _b_]: <https://a.b>\n'over\ntwo'"),
    ],
)  # fmt: skip
def test_a_definition_that_nothing_uses_is_text(markdown: str, shown: str) -> None:
    """A list of sources, and what only looks like a definition; one that a link uses is in the link."""
    assert render(markdown) == shown


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("[see <https://a.b> and `x`](https://c.d)", "see https://a.b and `x` (<https://c.d>)"),
        ("[<https://a.b>](https://c.d)", "https://a.b (<https://c.d>)"),
        ("[**see <https://a.b>** here](src/a.py)", "*see https://a.b* here (src/a.py)"),
        ("[mail <a@b.org> now](https://c.d)", "<https://c.d|mail a@b.org now>"),
        ("![a `b` <https://a.b>\nc](https://c.d/e.png)", "a b https://a.b c (<https://c.d/e.png>)"),
        ("[![build `x`](https://a.b/i.png) ok](https://c.d)", "<https://c.d|build x ok>"),
    ],
)
def test_a_label_keeps_all_that_stands_in_it(markdown: str, shown: str) -> None:
    """An address in it, code, what follows; and the link keeps its own target."""
    assert render(markdown) == shown


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
    shown = render(text)

    outside = re.sub(r"<(?:https?://|mailto:)[^<>\n]+>", "", shown, flags=re.IGNORECASE)
    assert "<" not in outside
    assert not re.search(r"&(?!amp;|lt;|gt;)", shown)


@given(st.text(alphabet="ab*_ \n<>#-1.+>@[]()!~`|:"))
def test_letters_are_kept_in_order(text: str) -> None:
    """Markup may go; of what somebody reads nothing is lost, doubled or moved."""
    shown = re.sub(r"&(?:lt|gt);", "", render(text))

    assert re.sub(r"[^ab]", "", shown) == re.sub(r"[^ab]", "", text)


# ---------------------------------------------------------------- code

CODE = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), min_size=1, max_size=40) | st.sampled_from(
    ["**kwargs", "a*b*c", "`x`", "``` y", "# no title", "- [ ] no task", "<br>", "| a | b |", "> no quote", "[a](b)",
     "https://a.b/_c_", "&lt;", "\\*", "~~x~~", "1. one", "\t if x:", "<@U1>", "__init__", "|"]
)  # fmt: skip


def _ticks(code: str, least: int) -> str:
    """Return backticks that the code does not hold."""
    return "`" * max(least, *(len(run) + 1 for run in [*re.findall("`+", code), ""]))


def _inline(code: str) -> str:
    ticks = _ticks(code, 1)
    return f"{ticks} {code} {ticks}"


def _indented(text: str, by: str) -> str:
    return "\n".join(f"{by}{line}".rstrip() if line.strip() else "" for line in text.split("\n"))


fences = st.lists(CODE, min_size=1, max_size=4).map(
    lambda lines: (ticks := _ticks("\n".join(lines), 3)) + "py\n" + "\n".join(lines) + f"\n{ticks}"
)
words = st.sampled_from(["plain", "**bold", "_it_", "* ", "a_b", "(", "~~", "\\*", "[x](https://a.b)", "**", "*"])
paragraphs = st.lists(CODE.map(_inline) | words, min_size=1, max_size=5).map(" ".join)
tables = st.lists(CODE, min_size=2, max_size=2).map(
    lambda cells: f"| a | b |\n|---|---|\n| {' | '.join(_inline(cell.replace('|', chr(92) + '|')) for cell in cells)} |"
)
blocks = st.recursive(
    fences | paragraphs | tables | st.lists(CODE, min_size=1).map(lambda lines: _indented("\n".join(lines), "    ")),
    lambda inner: (
        inner.map(lambda text: "- " + _indented(text, "  ")[2:])
        | inner.map(lambda text: "12. " + _indented(text, "    ")[4:])
        | inner.map(lambda text: _indented(text, "> "))
        | st.lists(inner, min_size=2, max_size=3).map("\n\n".join)
    ),
    max_leaves=6,
)


def _codes(tokens: Iterable[Token]) -> Iterator[str]:
    """Yield the text of every code token, in order."""
    for token in tokens:
        if token.type in ("code_inline", "fence", "code_block"):
            yield token.content.removesuffix("\n")
        yield from _codes(token.children or [])


def _characters(shown: str) -> str:
    """Return what a reader of the message sees, character by character."""
    return shown.replace(APART, "").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


@given(blocks)
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_code_arrives_letter_by_letter(markdown: str) -> None:
    """In paragraphs, fences, lists, quotes and tables, whatever stands around it, and in its order."""
    shown, at = _characters(render(markdown)), 0

    for code in _codes(MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).parse(markdown)):
        at = shown.index(code.replace(APART, ""), at) + len(code.replace(APART, ""))


def test_a_table_is_shown_in_columns() -> None:
    """Aligned by the width of its characters; a cell's markup is rendered, its lines are lines."""
    table = "| name | n |\n|:--|--:|\n| `a\\|b` | **1** |\n| 日本 | [#2](https://a.b)<br>~~x~~ |\n\nafter"

    assert render(table) == (
        "```\nname | n\n-----+-----------------\na|b  | 1\n日本 | #2 (https://a.b)\n     | x\n```\n\nafter"
    )


def test_cells_beyond_the_head_stand_in_the_last_column() -> None:
    """A bar within code ends a cell by GitHub's rule; what it makes one cell too many is shown where it was written."""
    table = "| type | what |\n|---|---|\n| `str|None` | optional, never empty |\n| int | a number |"

    shown = ["`str | None` | optional, never empty", "int  | a number"]
    assert render(table).splitlines()[3:5] == shown


WORD = st.text("abcdefgh", min_size=1, max_size=6)
CELL = st.lists(WORD | WORD.map(lambda word: f"`{word}|{word}`") | WORD.map(lambda word: f"**{word}**"), max_size=3)
ROWS = st.lists(st.lists(CELL.map(" ".join), min_size=1, max_size=6), min_size=1, max_size=4)
AROUND = st.sampled_from([("", ""), ("> ", "> "), ("- ", "  "), ("> 1. ", ">    ")])


@given(st.integers(1, 3), ROWS, AROUND, st.booleans())
@settings(deadline=None)
def test_every_word_of_a_table_is_shown(width: int, rows: list[list[str]], around: tuple[str, str], bars: bool) -> None:
    """However many cells a row has, with bars at its ends or without, in quotes and lists; in their order."""
    head = [f"head{'x' * at}" for at in range(width)]
    lines = [f"| {' | '.join(cells)} |" if bars else " | ".join(cells) for cells in (head, ["---"] * width, *rows)]
    markdown = "\n".join((around[1] if at else around[0]) + line for at, line in enumerate(lines))

    assert re.findall("[a-hx]", render(markdown)) == re.findall("[a-hx]", markdown)


def test_what_is_no_table_stays() -> None:
    """A bar alone, a delimiter of another width, and tables inside fences."""
    assert render("a | b\nc | d") == "a | b\nc | d"
    assert render("| a | b |\n|---|\n| c |") == "| a | b |\n|---|\n| c |"
    assert render("```\n| a |\n|---|\n```") == "```\n| a |\n|---|\n```"


def test_one_long_cell_does_not_widen_every_row() -> None:
    """Otherwise a table of a hundred rows would be megabytes."""
    rows = "\n".join("| x | y |" for _ in range(100))

    assert len(render(f"| a | b |\n|---|---|\n| {'w' * 5000} | b |\n{rows}")) < 12_000


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("build \x1b[31mFAILED\x1b[0m in 3s \x1b]0;title\x07 end", "build FAILED in 3s  end"),
        ("\x1b[1;38;5;208mbold\x1b[K \x9b2Jx \x1b]8;;https://a.b\x1b\\link\x1b]8;;\x1b\\ \x1b(Bq", "bold x link q"),
        ("a \x1b]0;never ended\nb\x08\x07\tc", "a 0;never ended\nb\tc"),
        ("`\x1b[31mred\x1b[0m`", "`red`"),
    ],
)
def test_what_colours_a_terminal_goes_whole(printed: str, shown: str) -> None:
    """Without its ESC the rest of a sequence would be read as text."""
    post = NewPost("p-1", "p-1", OutboundKind.ANSWER, "s-1", "scribe", "slack", printed)

    assert wire(post) == shown


def test_the_library_waits_for_the_first_text() -> None:
    """A command that asks the channel for something else, and renders nothing, does not pay for it."""
    asked = "import sys, bot.channel, bot.markdown; print('markdown_it' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"
