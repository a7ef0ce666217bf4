"""Long answers in parts: nothing lost, nothing doubled, each within the limit."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.markdown import MOST_BYTES, MOST_PARTS, PART, ROOM, file_name, is_file_of, parts, pieces, split, units, wire
from core.base.values import replace
from core.model.posts import NewPost, OutboundKind

APART = "\N{ZERO WIDTH SPACE}"
LINE = st.one_of(
    st.text(max_size=80),
    st.sampled_from(
        ["```", "```python", "~~~~ text", "", "| a | b |", "|---|---|", "- item", "# head", "**bold** <x> & y", "> q"]
    ),
    st.integers(min_value=1, max_value=5000).map(lambda size: "&<>😀 w"[size % 6] * size),
    st.integers(min_value=1, max_value=1200).map(lambda size: "word " * size),
    st.integers(min_value=1, max_value=600).map(lambda size: "**" + "bold `x*y` " * size + "**"),
)
TEXT = st.lists(LINE, max_size=60).map("\n".join)


def answer(text: str, kind: OutboundKind = OutboundKind.ANSWER) -> NewPost:
    """Return an answer of the session `scribe`."""
    return NewPost("p-7", "answer:7", kind, "s-1", "scribe", "slack", text)


def cut(text: str) -> tuple[str, ...]:
    """Return the parts of a text."""
    return split(pieces(text), PART)


def letters(shown: str) -> str:
    """Return what is read of a text in Slack's markup: without blanks, marks and the lines that open fences."""
    shown = re.sub(r"^(?:_python_|_text_|```)$", "", shown, flags=re.MULTILINE)
    return re.sub(rf"[\s*_~`>•{APART}]", "", shown)


@given(TEXT)
@settings(max_examples=60, deadline=None)
def test_the_parts_are_the_whole(text: str) -> None:
    """In order; each is within the limit and closes its fences."""
    made = pieces(text)
    found = split(made, PART)

    assert all(units(part) <= PART for part in found)
    assert all(part.count("```") % 2 == 0 for part in found)
    assert all(piece.weight <= ROOM + 200 for piece in made)
    assert letters("\n".join(found)) == letters("".join(piece.text + piece.ends for piece in made))


def test_parts_end_between_paragraphs() -> None:
    """Where a reader would pause."""
    paragraphs = [f"paragraph {number} " + "word " * 150 for number in range(20)]

    found = cut("\n\n".join(paragraphs))

    assert [text for part in found for text in part.split("\n\n")] == [text.strip() for text in paragraphs]


def test_a_fence_is_closed_and_opened_again_with_its_language() -> None:
    """Each part of a long program is a program in the same language, and all of it is there."""
    code = "\n".join(f"x{number} = {number}" for number in range(1400))

    found = cut(f"see\n```python\n{code}\n```\nend")

    assert len(found) > 3
    assert all(part.startswith("_python_\n```\n") for part in found[1:-1])
    assert all(part.endswith("\n```") for part in found[:-1])
    assert found[-1].endswith("```\nend")
    inner = [part.split("```\n", 1)[1].rpartition("\n```")[0] for part in found]
    assert "\n".join(inner) == code


def test_an_endless_line_of_code_is_whole_again_where_its_bits_are_joined() -> None:
    """It is cut where a message ends, and nowhere else: not within an escape, nor where three backticks are apart."""
    code = "".join("<&````x"[number % 7] for number in range(4000))

    found = cut(f"````\n{code}\n````")

    inner = "".join(part.split("```\n", 1)[1].removesuffix("\n```") for part in found).replace(APART, "")
    assert inner.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") == code


def test_the_styles_of_a_long_line_hold_in_each_bit_of_it() -> None:
    """Markup ends with its message; so each part has marks of its own."""
    found = cut(f"**{'word ' * 1500}end**")

    assert len(found) > 2
    assert all(part.startswith("*word ") and part.endswith("*") for part in found)
    assert sum(part.count("word") for part in found) == 1500


def test_code_in_a_list_goes_on_as_code_in_the_next_part() -> None:
    """What is nested keeps its place over a border: a part is markup, and nothing in it is read again as Markdown."""
    steps = "\n".join(
        f"{n}. step\n   - deep `x` {'word ' * 30}\n\n     ```sh\n     # {n}\n     ```" for n in range(1, 60)
    )

    found = cut(steps)
    sent = [wire(part) for part in parts(answer(steps))]

    assert list(found) == sent
    assert all(f"\n```\n# {number}\n```" in "\n".join(found) for number in range(1, 60))


def test_one_endless_line_is_cut_quickly() -> None:
    """Thirty thousand characters without a space, in emphasis that never ends."""
    text = "*_`[" * 7_500

    found = cut(text)

    assert "".join(found).replace(APART, "").count("[") == 7_500
    assert all(units(part) <= PART for part in found)


def test_a_short_answer_is_one_post() -> None:
    """It keeps its id."""
    post = answer("**done**")

    assert parts(post) == (post,)
    assert wire(post) == "*done*"


def test_a_long_answer_is_numbered_parts() -> None:
    """Their ids and keys follow from its own, so that the same answer is never split twice."""
    found = parts(answer("word " * 1500))

    assert [post.id for post in found] == ["p-7-1", "p-7-2", "p-7-3"]
    assert [post.key for post in found] == ["answer:7#1", "answer:7#2", "answer:7#3"]
    assert all(units(wire(post)) <= PART for post in found)


@pytest.mark.parametrize("text", ["word " * (MOST_BYTES // 5 + 1), "&" * (MOST_BYTES - 10), "*_`[" * 25_000])
def test_a_huge_answer_is_its_beginning_and_a_file(text: str) -> None:
    """The file holds all of it, and the message says so."""
    first, attachment = parts(answer(text))

    assert (attachment.kind, attachment.text) == (OutboundKind.FILE, text)
    assert first.text.endswith(f"The whole answer is attached, {len(attachment.text.encode()):,} bytes.")
    assert units(wire(first)) <= PART


def test_an_answer_of_twenty_kilobytes_needs_no_file() -> None:
    """It is read where it was asked for."""
    found = parts(answer("A sentence of some words.\n\n" * 770))

    assert 5 < len(found) <= MOST_PARTS
    assert all(post.kind is OutboundKind.PART for post in found)


def test_only_answers_are_split() -> None:
    """What we say ourselves is short, or cut with a note."""
    note = answer("word " * 5000, OutboundKind.NOTE)

    assert parts(note) == (note,)


@pytest.mark.parametrize("text", ["#", "\u2028", "\t\n", "``` \n```", "[a]: https://a.b"])
def test_what_shows_nothing_is_still_a_text(text: str) -> None:
    """Slack refuses an empty message."""
    assert wire(answer(text)).strip()


def test_a_file_is_called_by_session_and_time_and_known_by_its_end() -> None:
    """Two of one minute are told apart; an agent's file keeps its name; names of an earlier release are known."""
    at = datetime(2026, 11, 30, 21, 5, tzinfo=UTC)
    answers = [replace(answer("x"), id=f"p-{n}", kind=OutboundKind.FILE, name="scribe") for n in range(2)]
    names = [file_name(each, at) for each in answers]
    plan = file_name(replace(answers[0], kind=OutboundKind.ATTACHMENT, path="/state/plan.pdf"), at)

    assert all(re.fullmatch(r"scribe-2026-11-30-2105-[0-9a-f]{8}\.md", name) for name in names)
    assert re.fullmatch(r"plan-[0-9a-f]{8}\.pdf", plan)
    assert [[is_file_of(each.id, name) for name in names] for each in answers] == [[True, False], [False, True]]
    assert all(is_file_of("p-0", name) for name in (plan, "p-0.md", "p-0-plan.pdf"))
    assert not is_file_of("p-0", "scribe-2026-11-30-2105.md")
