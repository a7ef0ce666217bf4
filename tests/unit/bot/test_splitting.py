"""Long answers in parts: nothing lost, nothing doubled, each within the limit."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.answering import MOST_BYTES, MOST_PARTS, PART, file_name, parts, wire
from bot.rendering import render
from bot.splitting import split, units
from core.domain.posting import OutboundKind
from core.ports import NewPost

LIMIT = 1_000
LINE = st.one_of(
    st.text(max_size=80),
    st.sampled_from(
        ["```", "```python", "~~~~ text", "", "| a | b |", "|---|---|", "- item", "# head", "**bold** <x> & y"]
    ),
    st.integers(min_value=1, max_value=1500).map(lambda size: "&<>😀 w"[size % 6] * size),
    st.integers(min_value=1, max_value=300).map(lambda size: "word " * size),
)
TEXT = st.lists(LINE, max_size=60).map("\n".join)


def answer(text: str, kind: OutboundKind = OutboundKind.ANSWER) -> NewPost:
    """Return an answer of the session `scribe`."""
    return NewPost("p-7", "answer:7", kind, "s-1", "scribe", "slack", text)


@given(TEXT)
@settings(max_examples=60, deadline=None)
def test_the_parts_are_the_whole(text: str) -> None:
    """In order, and only what shows nothing is left out; each is within the limit and closes its fences."""
    found = split(text, LIMIT)

    rest = text
    for part in found:
        at = rest.index(part.raw)
        assert not rest[:at].strip()
        rest = rest[at + len(part.raw) :]
        shown = render(part.text)
        assert units(shown) <= LIMIT
        assert shown.count("```") % 2 == 0
    assert not rest.strip()


def test_parts_end_between_paragraphs() -> None:
    """Where a reader would pause."""
    paragraphs = [f"paragraph {number} " + "word " * 60 for number in range(20)]

    found = split("\n\n".join(paragraphs), LIMIT)

    assert [text for part in found for text in part.text.split("\n\n")] == paragraphs


def test_a_fence_is_closed_and_opened_again_with_its_language() -> None:
    """Each part of a long program is a program in the same language."""
    code = "\n".join(f"x{number} = {number}" for number in range(400))

    found = split(f"see\n```python\n{code}\n```\nend", LIMIT)

    assert len(found) > 3
    assert all(part.text.startswith("```python\n") for part in found[1:-1])
    assert all(part.text.endswith("\n```") for part in found[:-1])
    assert found[-1].text.endswith("```\nend")


def test_one_endless_line_is_cut_quickly() -> None:
    """A hundred thousand characters without a space, in emphasis that never ends."""
    found = split("*_`[" * 25_000, PART)

    assert "".join(part.raw for part in found) == "*_`[" * 25_000
    assert all(units(render(part.text)) <= PART for part in found)


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


@pytest.mark.parametrize("text", ["word " * (MOST_BYTES // 5 + 1), "&" * PART * MOST_PARTS])
def test_a_huge_answer_is_its_beginning_and_a_file(text: str) -> None:
    """The file holds all of it, and the message says so."""
    first, attachment = parts(answer(text))

    assert (attachment.kind, attachment.text) == (OutboundKind.FILE, text)
    assert file_name(attachment.id) in first.text
    assert units(wire(first)) <= PART


def test_an_answer_of_twenty_kilobytes_needs_no_file() -> None:
    """It is read where it was asked for."""
    found = parts(answer("A sentence of some words.\n\n" * 770))

    assert 5 < len(found) <= MOST_PARTS
    assert all(post.kind is OutboundKind.ANSWER for post in found)


def test_only_answers_are_split() -> None:
    """What we say ourselves is short, or cut with a note."""
    note = answer("word " * 5000, OutboundKind.NOTE)

    assert parts(note) == (note,)


@pytest.mark.parametrize("text", ["#", "\u2028", "\t\n", "``` \n```"])
def test_what_shows_nothing_is_still_a_text(text: str) -> None:
    """Slack refuses an empty message."""
    assert wire(answer(text)).strip()
