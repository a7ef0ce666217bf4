"""What Slack is sent of a live post, and how an answer is cut for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.live import LIVE_BYTES, PIECE_BYTES, chunks, cut, parts, pieces, safe
from core.model.live import LiveShown, LiveStep, StepState
from core.model.posts import NewPost, OutboundKind

SHOWN = LiveShown("1 of 2 done", (LiveStep("tool-1", "Bash make", StepState.DONE),))


def answer(text: str) -> NewPost:
    """Return an answer."""
    return NewPost("p-1", "answer:1", OutboundKind.ANSWER, "s-1", "scribe", "slack", text)


def test_a_change_becomes_chunks() -> None:
    """The plan's title, the tasks by ids that name their live post, then the text."""
    assert chunks("l-1", SHOWN, "Done.") == [
        {"type": "plan_update", "title": "1 of 2 done"},
        {"type": "task_update", "id": "l-1:tool-1", "title": "Bash make", "status": "complete"},
        {"type": "markdown_text", "text": "Done."},
    ]
    assert chunks("l-1", LiveShown()) == []


@pytest.mark.parametrize("ping", ["<!channel>", "<@U012345>", "<#C012345>", "@here", "@Everyone"])
def test_no_text_pings_anybody(ping: str) -> None:
    """Neither an answer nor the title of a task."""
    shown = LiveShown("", (LiveStep("t", ping, StepState.DONE),))

    assert ping not in safe(f"see {ping}!")
    assert ping not in str(chunks("l-1", shown))
    assert ping not in "".join(pieces(answer(f"see {ping}!"), SHOWN))


def test_an_answer_goes_in_pieces() -> None:
    """Together they are the answer; each begins with something to see."""
    text = "\n".join(f"{number}. a line of it\n   and more of it" for number in range(150))

    found = pieces(answer(text), SHOWN)

    assert "".join(found) == text
    assert len(found) == 2
    assert all(len(piece.encode()) <= PIECE_BYTES and not piece[0].isspace() for piece in found)


@pytest.mark.parametrize("kind", [OutboundKind.PART, OutboundKind.NOTE])
def test_only_answers_are_written_into_live_posts(kind: OutboundKind) -> None:
    """A part is in Slack's own markup already."""
    assert pieces(NewPost("p", "k", kind, "s", "n", "slack", "text"), SHOWN) == ()
    assert pieces(answer(" \n "), SHOWN) == ()


def test_a_long_answer_begins_in_the_live_post() -> None:
    """As much of it as that holds; the rest are messages of their own, and no word is lost or doubled."""
    text = "\n\n".join(f"paragraph {number} of a long answer" for number in range(600))

    first, *rest = parts(answer(text), SHOWN)

    assert (first.id, first.kind, first.key) == ("p-1-1", OutboundKind.ANSWER, "answer:1#1")
    assert [part.id for part in rest] == [f"p-1-{number}" for number in range(2, len(rest) + 2)]
    assert pieces(first, SHOWN)
    assert "\n\n".join(part.text for part in (first, *rest)).split() == text.split()


def test_an_answer_that_is_a_file_stays_one() -> None:
    """And one that fits is not cut."""
    kinds = [part.kind for part in parts(answer("word " * 7_000), SHOWN)]

    assert kinds == [OutboundKind.PART, OutboundKind.FILE]
    assert parts(answer("short"), SHOWN) == (answer("short"),)


def test_a_fence_across_the_cut_is_closed_and_opened_again() -> None:
    """Both halves show code, with its language."""
    text = "Look:\n```python\n" + "x = 1\n" * 400 + "```\nend"

    first, rest = cut(text, 1_000)

    assert first.endswith("x = 1\n```")
    assert rest.startswith("```python\nx = 1\n")
    assert (first + rest).count("x = 1") == 400


@given(st.text(alphabet="ab \n<@!ä😀", max_size=300), st.integers(40, 200))
def test_a_cut_loses_nothing(text: str, limit: int) -> None:
    """Whatever the text: the beginning fits, and all that can be seen is in one of both, in its order."""
    first, rest = cut(text, limit)

    assert len(safe(first).encode()) <= limit
    assert (first + rest).split() == text.split() or "".join((first + rest).split()) == "".join(text.split())


def test_what_a_message_holds_is_bounded() -> None:
    """With what is shown above the text."""
    full = LiveShown("t", tuple(LiveStep(f"s{n}", "x" * 120, StepState.DONE) for n in range(36)))

    room = LIVE_BYTES - 36 * 120 - 1

    assert pieces(answer("y" * (room - 1)), full)
    assert not pieces(answer("y" * (room + 420)), full)
