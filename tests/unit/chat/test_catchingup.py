"""What came live waits for what was missed before it, for a while."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from core.base.paths import StatePaths
from core.chat.backfill import LIMIT, CatchingUp
from core.model.message import InboxRow, Kind, MessageState, ReplyAddress
from core.store.database import Database
from core.store.sessions import Bindings
from tests.unit.store.samples import NOON, StandingClock, a_binding, a_message

_ADDRESS = ReplyAddress("slack", "T1", "C1", "1.0", "2.0")


@pytest.fixture
def clock() -> StandingClock:
    """Return a clock that stands still."""
    return StandingClock()


@pytest.fixture
def bindings(tmp_path: Path, clock: StandingClock) -> Iterator[Bindings]:
    """Give the bindings of a new database."""
    database = Database(StatePaths(tmp_path), clock)
    yield Bindings(database)
    database.close()


def reply(clock: StandingClock, address: ReplyAddress | None = _ADDRESS) -> InboxRow:
    """Return a row that is committed now."""
    message = a_message(kind=Kind.REPLY, created_at=clock.now(), address=address)
    return InboxRow(message, 1, MessageState.PENDING, None, clock.now())


def sweep(gaps: CatchingUp) -> None:
    """Read the thread to its end."""
    gaps.looking("slack")
    gaps.swept("slack", "C1", "1.0")


def test_a_reply_after_a_gap_waits_until_its_thread_was_swept(clock: StandingClock, bindings: Bindings) -> None:
    """Others do not: those of before, those of other ways, and those in flight."""
    gaps = CatchingUp(clock, bindings)
    before = reply(clock)
    clock.pause(1)
    gaps.behind("slack")
    after, said = reply(clock), reply(clock, None)

    held = [gaps.holds(row) for row in (before, after, said)]
    clock.pause(1)
    sweep(gaps)

    assert held == [False, True, False]
    assert not gaps.holds(after)


def test_a_sweep_that_began_before_the_gap_ends_no_wait(clock: StandingClock, bindings: Bindings) -> None:
    """It may have read the thread before the reply that is missing was written."""
    gaps = CatchingUp(clock, bindings)
    gaps.looking("slack")
    clock.pause(1)
    gaps.behind("slack")
    clock.pause(1)
    gaps.swept("slack", "C1", "1.0")

    assert gaps.holds(reply(clock))


def test_what_a_service_finds_at_its_start_waits_too(clock: StandingClock, bindings: Bindings) -> None:
    """The service that committed it may have ended before its own sweep was over."""
    found = reply(clock)
    clock.pause(1)
    gaps = CatchingUp(clock, bindings, "slack")

    held = gaps.holds(found)
    clock.pause(1)
    sweep(gaps)

    assert held
    assert not gaps.holds(found)


def test_no_reply_waits_longer_than_the_limit(clock: StandingClock, bindings: Bindings) -> None:
    """Where sweeps fail for long, order is worth less than that the reply arrives."""
    gaps = CatchingUp(clock, bindings, "slack")
    row = reply(clock)
    clock.pause((LIMIT - timedelta(seconds=1)).total_seconds())
    early = gaps.holds(row)
    clock.pause(2)

    assert early
    assert not gaps.holds(row)


def test_nothing_is_missing_of_a_thread_that_was_opened_after_the_gap(clock: StandingClock, bindings: Bindings) -> None:
    """The first word to a new session waits for no sweep."""
    gaps = CatchingUp(clock, bindings, "slack")
    bindings.bind(a_binding(thread="1.0", created_at=NOON + timedelta(seconds=1)))
    clock.pause(2)

    assert not gaps.holds(reply(clock))


def test_a_thread_that_was_there_before_the_gap_waits(clock: StandingClock, bindings: Bindings) -> None:
    """Replies to it may be missing."""
    gaps = CatchingUp(clock, bindings, "slack")
    bindings.bind(a_binding(thread="1.0", created_at=NOON - timedelta(seconds=1)))

    assert gaps.holds(reply(clock))


def test_a_thread_in_which_earlier_ones_may_be_missing_waits_alone(clock: StandingClock, bindings: Bindings) -> None:
    """Until a sweep that began since has read it; other threads go on."""
    gaps, other = CatchingUp(clock, bindings), ReplyAddress("slack", "T1", "C1", "9.0", "9.1")
    clock.pause(1)
    gaps.looking("slack")
    clock.pause(1)
    gaps.behind_in("slack", "C1", "1.0")
    clock.pause(1)
    here, there = reply(clock), reply(clock, other)

    held = [gaps.holds(row) for row in (here, there)]
    gaps.swept("slack", "C1", "1.0")
    too_early = gaps.holds(here)
    sweep(gaps)

    assert (held, too_early, gaps.holds(here)) == ([True, False], True, False)


def test_a_thread_that_cannot_be_read_holds_nothing_back_for_long(clock: StandingClock, bindings: Bindings) -> None:
    """As after any other gap."""
    gaps = CatchingUp(clock, bindings)
    gaps.behind_in("slack", "C1", "1.0")
    here = reply(clock)

    clock.pause(LIMIT.total_seconds())

    assert not gaps.holds(here)
