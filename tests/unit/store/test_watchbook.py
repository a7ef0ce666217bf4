"""What the supervisor remembers."""

from datetime import timedelta

import pytest

from core.model.restarting import Announced, End, Stage
from core.store.database import Database
from core.store.sessions import ExitLedger
from tests.unit.store.samples import NOON

LATER = NOON + timedelta(seconds=5)


@pytest.fixture
def book(database: Database) -> ExitLedger:
    """Give an empty book."""
    return ExitLedger(database)


def test_an_end_is_told_once(book: ExitLedger) -> None:
    """A second telling says so, and changes nothing."""
    first = book.tell("i-1", "s-1", NOON, LATER, counted=True)
    second = book.tell("i-1", "s-1", LATER)

    assert (first, second) == (True, False)
    assert book.end("i-1") == End("i-1", "s-1", False, NOON, LATER, True)
    assert book.end("i-2") is None


def test_a_person_who_leaves_is_remembered_when_the_end_is_told(book: ExitLedger) -> None:
    """The harness tells of it before its process ends."""
    book.leave("i-1", "s-1")
    book.leave("i-1", "s-1")
    assert book.end("i-1") == End("i-1", "s-1", by_person=True)

    assert book.tell("i-1", "s-1", NOON)

    assert book.end("i-1") == End("i-1", "s-1", True, NOON)


def test_what_is_due_is_found_until_it_is_put_off_for_good(book: ExitLedger) -> None:
    """The earliest comes first."""
    book.tell("i-1", "s-1", NOON, LATER)
    book.tell("i-2", "s-2", NOON, NOON)
    book.tell("i-3", "s-3", NOON)

    assert [end.instance for end in book.due()] == ["i-2", "i-1"]
    book.put_off("i-2", LATER + timedelta(seconds=1))
    assert [end.instance for end in book.due()] == ["i-1", "i-2"]
    book.put_off("i-1", None)
    assert [end.instance for end in book.due()] == ["i-2"]


def test_restarts_are_counted_by_session_and_time(book: ExitLedger) -> None:
    """Two at one moment are two."""
    for moment in (NOON, LATER, LATER):
        book.count_restart("s-1", moment)
    book.count_restart("s-2", LATER)

    assert book.restarts("s-1", NOON) == (LATER, LATER)
    assert book.restarts("s-1", NOON - timedelta(seconds=1)) == (NOON, LATER, LATER)


def test_a_session_that_is_forgotten_leaves_nothing(book: ExitLedger) -> None:
    """Ends, restarts and announcements go; those of others stay."""
    for uid in ("s-1", "s-2"):
        book.tell(f"i-{uid}", uid, NOON, NOON)
        book.count_restart(uid, NOON)
        book.announce(Announced(uid, f"i-{uid}", NOON, LATER))

    book.forget("s-1")

    assert book.end("i-s-1") is None
    assert book.restarts("s-1", NOON - timedelta(days=1)) == ()
    assert book.announced("s-1") is None
    assert book.announced("s-2") == Announced("s-2", "i-s-2", NOON, LATER)
    assert [end.uid for end in book.due()] == ["s-2"]


@pytest.mark.parametrize("stage", Stage)
def test_what_followed_from_an_announcement_is_kept(book: ExitLedger, stage: Stage) -> None:
    """Whoever comes after a supervisor that was killed goes on where it stood; another instance is none of it."""
    book.announce(Announced("s-1", "i-1", NOON, LATER, stage))

    kept = book.announced("s-1")

    assert kept == Announced("s-1", "i-1", NOON, LATER, stage)
    assert (kept.ended("i-1"), kept.ended("i-2")) == (stage is not Stage.ANNOUNCED, False)
    assert (kept.is_untold("i-1"), kept.is_untold("i-2")) == (stage is Stage.TAKEN, False)


def test_the_book_does_not_grow_with_a_sessions_lives(book: ExitLedger) -> None:
    """An end that nothing follows from is dropped at the next one, and a restart after a day."""
    for day in range(5):
        at = NOON + timedelta(days=2 * day)
        book.tell(f"i-{day}", "s-1", at)
        book.count_restart("s-1", at)

    assert [book.end(f"i-{day}") is not None for day in range(5)] == [False] * 4 + [True]
    assert len(book.restarts("s-1", NOON - timedelta(days=1))) == 1
