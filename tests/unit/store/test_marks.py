"""Reactions and progress, as they follow from what is stored."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.model.activity import Activity, ActivityState
from core.model.message import MessageState, ReplyAddress
from core.model.posts import MARKS, Mark
from core.store import queries
from core.store.database import Database
from core.store.inbox import Inbox
from core.store.outbox import Marks, Progress
from core.store.sessions import Activities
from tests.unit.store.samples import NOON, StandingClock, a_message

S = MessageState
ADDRESS = ReplyAddress("slack", "T1", "C1", "1.1", "1.2")


@pytest.fixture
def marks(database: Database, clock: StandingClock) -> Marks:
    """Give the marks."""
    return Marks(database, clock)


@pytest.fixture
def progress(database: Database) -> Progress:
    """Give the progress."""
    return Progress(database)


def _marks(marks: Marks, since: timedelta = timedelta(hours=1)) -> list[Mark | None]:
    return [row.mark for row in marks.changed("slack", NOON - since)]


def test_every_state_has_its_mark() -> None:
    """A new state cannot be forgotten."""
    assert set(MARKS) == set(MessageState)


def test_a_message_of_a_chat_is_marked_by_its_state(inbox: Inbox, marks: Marks) -> None:
    """Nothing while it waits; what came another way has no mark."""
    inbox.add([a_message(1, address=ADDRESS), a_message(2)])
    row = inbox.get("m-1")
    assert row is not None
    seen = [_marks(marks)]
    for state in (S.CLAIMED, S.PASTED, S.SUBMITTED, S.CONFIRMED):
        row = inbox.advance(row, state)
        seen.append(_marks(marks))

    assert seen == [[None], [None], [None], [Mark.TAKEN], [Mark.TAKEN]]


def test_a_turn_that_is_over_marks_what_it_took(inbox: Inbox, marks: Marks, clock: StandingClock) -> None:
    """Confirmed ones of its instance since its start, and no others; the first end counts."""
    inbox.add([a_message(n, address=ADDRESS) for n in (1, 2)])
    for message, state in (("m-1", S.CONFIRMED), ("m-2", S.ACCEPTED)):
        row = inbox.get(message)
        assert row is not None
        inbox.advance(row, state, instance="i-1")

    marks.over("s-scribe", "i-1", NOON + timedelta(seconds=1), failed=False)
    early = _marks(marks)
    marks.over("s-scribe", "i-2", NOON, failed=True)
    marks.over("s-scribe", "i-1", NOON, failed=False)
    marks.over("s-scribe", "i-1", NOON, failed=True)

    assert early == [Mark.TAKEN, Mark.TAKEN]
    assert sorted(mark.value for mark in _marks(marks) if mark) == ["done", "taken"]


def test_a_failed_turn_shows(inbox: Inbox, marks: Marks) -> None:
    """Its sender sees that nothing will come."""
    inbox.add([a_message(1, address=ADDRESS)])
    row = inbox.get("m-1")
    assert row is not None
    inbox.advance(row, S.CONFIRMED, instance="i-1")

    marks.over("s-scribe", "i-1", NOON, failed=True)

    assert _marks(marks) == [Mark.REFUSED]


def test_what_was_cut_off_is_left(inbox: Inbox, marks: Marks, database: Database) -> None:
    """A session that is idle has nothing under way, whoever told of the end or not."""
    inbox.add([a_message(1, address=ADDRESS)])
    row = inbox.get("m-1")
    assert row is not None
    inbox.advance(row, S.CONFIRMED, instance="i-1")
    marks.shown("m-1", Mark.TAKEN)
    activities = Activities(database)
    activities.put(Activity("s-scribe", "i-1", ActivityState.BUSY, NOON))
    busy = marks.left(NOON)
    activities.put(Activity("s-scribe", "i-1", ActivityState.IDLE, NOON))

    assert (busy, marks.left(NOON)) == ({}, {"m-1": False})
    marks.end(marks.left(NOON))
    assert (marks.left(NOON), _marks(marks)) == ({}, [Mark.DONE])


def test_what_was_shown_and_what_changed_is_known(inbox: Inbox, marks: Marks, clock: StandingClock) -> None:
    """Also much later, by the time of the latest change."""
    inbox.add([a_message(1, address=ADDRESS)])
    clock.pause(600)
    marks.shown("m-1", Mark.TAKEN)

    [row] = marks.changed("slack", NOON + timedelta(seconds=60))

    assert (row.shown, row.channel, row.ts) == (Mark.TAKEN, "C1", "1.2")
    assert marks.changed("other", NOON) == ()


def test_changes_are_found_by_their_index(database: Database) -> None:
    """However many messages there were."""
    with database.transaction(durable=False):
        plans = [
            " ".join(step["detail"] for step in database.read(f"EXPLAIN QUERY PLAN {query}", values))
            for query, values in (
                (queries.MARKS_CHANGED, {"kind": "slack", "since": "2026"}),
                (queries.MARKS_LEFT, {"since": "2026", "cut_off": "cut"}),
            )
        ]

    assert "inbox_from_chat" in plans[0]
    assert "marks_at" in plans[0]
    assert not any("SCAN inbox" in plan for plan in plans)


def test_steps_are_kept_until_they_are_told(progress: Progress) -> None:
    """The last ones and their number; a told row is due again with its next step."""
    for number in range(25):
        progress.note("s-1", "t-1", f"step\n{number}")
    [row] = progress.due()
    progress.asked(row)
    progress.told(row, "C1", "1.3")
    told = progress.due()
    progress.note("s-1", "t-1", "more")
    [again] = progress.due()

    assert (row.steps, row.lines[-1], len(row.lines)) == (25, "step 24", 20)
    assert told == ()
    assert (again.told, again.asked, again.channel, again.ts) == (25, True, "C1", "1.3")


def test_another_turn_has_a_message_of_its_own(progress: Progress) -> None:
    """What is late of the old one changes nothing of the new one."""
    progress.note("s-1", "t-1", "old")
    [old] = progress.due()
    progress.note("s-1", "t-2", "new")
    progress.told(old, "C1", "1.3")

    [row] = progress.due()
    assert (row.turn, row.lines, row.told, row.ts) == ("t-2", ("new",), 0, "")
    progress.forget("s-1")
    assert progress.due() == ()
