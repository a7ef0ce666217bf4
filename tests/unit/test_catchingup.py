"""What came live waits for what was missed before it, for a while."""

from datetime import timedelta

from core.catchingup import LIMIT, CatchingUp
from core.domain.message import InboxRow, Kind, MessageState, ReplyAddress
from tests.unit.store.samples import StandingClock, a_message

_ADDRESS = ReplyAddress("slack", "T1", "C1", "1.0", "2.0")


def reply(clock: StandingClock, address: ReplyAddress | None = _ADDRESS) -> InboxRow:
    """Return a row that is committed now."""
    message = a_message(kind=Kind.REPLY, created_at=clock.now(), address=address)
    return InboxRow(message, 1, MessageState.PENDING, "", clock.now())


def sweep(gaps: CatchingUp) -> None:
    """Read the thread to its end."""
    gaps.looking("slack")
    gaps.swept("slack", "C1", "1.0")


def test_a_reply_after_a_gap_waits_until_its_thread_was_swept() -> None:
    """Others do not: those of before, those of other ways, and those in flight."""
    clock = StandingClock()
    gaps = CatchingUp(clock)
    before = reply(clock)
    clock.pause(1)
    gaps.behind("slack")
    after, said = reply(clock), reply(clock, None)

    held = [gaps.holds(row) for row in (before, after, said)]
    clock.pause(1)
    sweep(gaps)

    assert held == [False, True, False]
    assert not gaps.holds(after)


def test_a_sweep_that_began_before_the_gap_ends_no_wait() -> None:
    """It may have read the thread before the reply that is missing was written."""
    clock = StandingClock()
    gaps = CatchingUp(clock)
    gaps.looking("slack")
    clock.pause(1)
    gaps.behind("slack")
    clock.pause(1)
    gaps.swept("slack", "C1", "1.0")

    assert gaps.holds(reply(clock))


def test_what_a_service_finds_at_its_start_waits_too() -> None:
    """The service that committed it may have ended before its own sweep was over."""
    clock = StandingClock()
    found = reply(clock)
    clock.pause(1)
    gaps = CatchingUp(clock, "slack")

    held = gaps.holds(found)
    clock.pause(1)
    sweep(gaps)

    assert held
    assert not gaps.holds(found)


def test_no_reply_waits_longer_than_the_limit() -> None:
    """Where sweeps fail for long, order is worth less than that the reply arrives."""
    clock = StandingClock()
    gaps = CatchingUp(clock, "slack")
    row = reply(clock)
    clock.pause((LIMIT - timedelta(seconds=1)).total_seconds())
    early = gaps.holds(row)
    clock.pause(2)

    assert early
    assert not gaps.holds(row)
