"""What the sender of a message is told in its thread, and what they can do about it: a row for every end of it."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from core.model.asking import Press, Role
from core.model.message import IN_FLIGHT, InboxRow, Kind, MessageState, NewMessage, ReplyAddress
from core.model.posts import MARKS, Mark, NewPost, OutboundKind
from core.model.reasons import Because, Reason, said
from core.session.notes import AGAIN, STARTABLE, note_for
from core.session.system import System
from tests.support.world import World

S, P = MessageState, Press
NOW = datetime(2026, 3, 1, tzinfo=UTC)
START = (P.SEND_AGAIN, P.START, P.START_AND_SEND)
IS_PAUSED = Because(Reason.PAUSED, {"ahead": 0})
SEEN: list[tuple[MessageState, Because, str, tuple[Press, ...]]] = [
    (S.QUEUED, said("2 are ahead"), "is waiting", (P.CANCEL,)),
    (S.QUEUED, Because(Reason.BUSY), "is waiting", (P.CANCEL, P.INTERRUPT)),
    (S.QUEUED, Because(Reason.PERMISSION), "is waiting", (P.CANCEL,)),
    (S.QUEUED, IS_PAUSED, "is waiting", (P.CANCEL,)),
    (S.QUEUED, Because(Reason.CONFIRM, {"late": "sent 3 h ago"}), "is waiting", (P.CONFIRM, P.CANCEL)),
    (S.REFUSED, said("100 messages wait already"), "was not delivered", (P.SEND_AGAIN,)),
    *((S.REFUSED, Because(reason), "was not delivered", START) for reason in sorted(STARTABLE)),
    (S.EXPIRED, Because(Reason.WAITED_TOO_LONG, {"why": Because(Reason.SILENT)}), "expired", (P.SEND_AGAIN,)),
    (S.CANCELLED, Because(Reason.CANCELLED_BY, {"actor": "bob"}), "was cancelled", (P.SEND_AGAIN,)),
    (S.UNKNOWN, said("no record shows it"), "was delivered", (P.SEND_AGAIN,)),
    (S.FAILED, said("nothing is left of it"), "could not be delivered", ()),
]


def row(address: ReplyAddress | None) -> InboxRow:
    """Return a reply's row as it is stored."""
    given: dict[str, Any] = {
        "id": "m-1", "key": "k", "uid": "s-1", "name": "scribe", "generation": 1, "kind": Kind.REPLY,
        "actor": "slack:U1", "who": "alice", "via": "slack", "marker": "abcd", "text": "do it", "raw": False,
        "order_us": 1, "created_at": NOW, "address": address,
    }  # fmt: skip
    return InboxRow(NewMessage(**given), 1, MessageState.PENDING, None, NOW)


@pytest.fixture
def system(tmp_path: Path) -> System:
    """Give ports that have told nobody of anything."""
    return World(tmp_path, "no-such-server", tmp_path).system()


def told(system: System, state: MessageState, because: Because, remedy: str = "do this") -> NewPost:
    """Return the note of a reply."""
    note = note_for(system, row(ReplyAddress("slack", "T1", "C1", "1.0", "1.1")), state, because, remedy)
    assert note is not None
    return note


@pytest.mark.parametrize(("state", "reason", "words", "presses"), SEEN)
def test_each_end_has_its_words_its_remedy_and_its_buttons(
    system: System, state: MessageState, reason: Because, words: str, presses: tuple[Press, ...]
) -> None:
    """In the message's own thread; each button carries the message's id and no text."""
    note = told(system, state, reason)

    because = reason.text.removeprefix("cancelled") if words.endswith("cancelled") else f": {reason.text}"
    subject = "It is not known whether your message" if state is S.UNKNOWN else "Your message"
    assert note.text == f"{subject} to `scribe` {words}{because}. To do: do this"
    assert tuple(button.press for button in note.buttons) == presses
    assert {button.target for button in note.buttons} <= {"m-1"}
    assert (note.kind, note.channel, note.thread) == (OutboundKind.NOTE, "C1", "1.0")


def test_what_a_hook_blocked_is_known_not_to_be_in(system: System) -> None:
    """Nobody says of it that it is not known."""
    note = told(system, S.UNKNOWN, Because(Reason.BLOCKED, {"why": "policy: no"}), "write it in another way")

    assert note.text == (
        "Your message to `scribe` did not go in: a hook of the program blocked it: policy: no. "
        "To do: write it in another way"
    )


def test_what_came_back_into_the_input_line_is_known_not_to_be_in(system: System) -> None:
    """It stands there, so the note does not doubt it."""
    note = told(system, S.UNKNOWN, Because(Reason.AT_TERMINAL))

    assert note.text == (
        "Your message to `scribe` did not go in: it was taken back from the harness's own queue "
        "into the input line of the terminal. To do: do this"
    )


def test_every_state_that_stops_a_message_has_a_note() -> None:
    """Those that go on, or are taken, are shown by a reaction alone."""
    silent = IN_FLIGHT | {S.PENDING, S.SUBMITTED, S.ACCEPTED, S.CONFIRMED}

    assert {state for state, *_ in SEEN} == set(S) - silent
    assert {state for state, mark in MARKS.items() if mark is Mark.REFUSED} == {
        S.REFUSED,
        S.EXPIRED,
        S.CANCELLED,
        S.FAILED,
    }
    assert MARKS.keys() == set(S)


@pytest.mark.parametrize("press", [P.START, P.START_AND_SEND])
def test_starting_is_for_operators(system: System, press: Press) -> None:
    """All else that a note offers is for whoever may steer."""
    roles = {button.press: button.role for state, reason, *_ in SEEN for button in told(system, state, reason).buttons}

    assert roles.pop(press) is Role.OPERATOR
    assert {role for key, role in roles.items() if key not in (P.START, P.START_AND_SEND)} == {Role.MEMBER}


def test_one_note_for_each_message_and_reason(system: System) -> None:
    """What was told is not told again; another reason, or another end, is another note."""
    address = ReplyAddress("slack", "T1", "C1", "1.0", "1.1")
    system.outbox.add([told(system, S.QUEUED, Because(Reason.BUSY))])

    again = note_for(system, row(address), S.QUEUED, Because(Reason.BUSY), "another remedy")
    others = {told(system, S.QUEUED, IS_PAUSED).key, told(system, S.UNKNOWN, Because(Reason.BUSY)).key}

    assert again is None
    assert len(others) == 2


def test_what_came_by_no_chat_has_no_note(system: System) -> None:
    """Whoever said it at the terminal has the answer there."""
    assert note_for(system, row(None), S.REFUSED, Because(Reason.STOPPED), "start it") is None


def test_what_can_be_sent_again_was_taken_by_nobody_for_sure() -> None:
    """A message that is confirmed, waits, or could never be typed is none of these."""
    assert {S.UNKNOWN, S.EXPIRED, S.REFUSED, S.CANCELLED} == AGAIN
