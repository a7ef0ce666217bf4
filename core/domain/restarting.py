"""When a session that ended is brought back by itself: what a crash is, how long to wait, when to give up. No I/O."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from core.domain.session import HoldKind, LastExit, Phase, Restart, SessionRecord, Status
from core.values import dataclass

BACKOFF = tuple(
    timedelta(seconds=seconds) for seconds in (1, 5, 30, 120, 300)
)  #: by how many restarts the hour has had
WINDOW = timedelta(hours=1)
_SIGNALLED = 128


@dataclass(frozen=True)
class BringBack:
    """Resume it at `at`; it is the `number`-th restart within an hour."""

    at: datetime
    number: int


@dataclass(frozen=True)
class GiveUp:
    """Hold it as failed: the hour's restarts are used up."""

    reason: str


Plan = BringBack | GiveUp


def is_crash(end: LastExit | None, *, by_person: bool) -> bool:
    """Tell whether an end that no verb asked for was a crash: by a signal, or with a status other than 0.

    A person who leaves the program (`/exit`) crashes nothing. An end that tmux lost (None, or neither known) counts as
    one: the ends that leave no trace are kills.
    """
    if by_person:
        return False
    return end is None or end.signal is not None or end.status != 0


def left_by_itself(end: LastExit | None) -> bool:
    """Tell whether a program decided itself to end: by a status that stands for no signal.

    128 + n is how a shell, and a program that catches the signal to tidy up first, tell of signal n. An end that tmux
    lost tells nothing.
    """
    return end is not None and end.signal is None and end.status is not None and end.status < _SIGNALLED


def plan_restart(restarts: Sequence[datetime], now: datetime, per_hour: int) -> Plan:
    """Return when to bring a crashed session back. `restarts`: when that was tried before, in any order.

    Only those of the last hour count, so that a session which crashes once a day is back a second later each time.
    """
    recent = [at for at in restarts if now - WINDOW < at <= now]
    if len(recent) >= per_hour:
        return GiveUp(f"it crashed again after {len(recent)} restarts within an hour (limits.restartsPerHour)")
    return BringBack(now + BACKOFF[min(len(recent), len(BACKOFF) - 1)], len(recent) + 1)


def may_be_brought_back(record: SessionRecord) -> bool:
    """Tell whether a session may be resumed unasked: it should run, nothing is under way, and no mark is on it."""
    return (
        record.status is Status.RUNNING
        and record.phase is Phase.SETTLED
        and record.hold is None
        and record.instance_id is not None
    )


def restarts_itself(record: SessionRecord) -> bool:
    """Tell whether a crash of the session brings it back."""
    return record.definition.restart is Restart.ON_FAILURE and may_be_brought_back(record)


def ended_unasked(record: SessionRecord) -> bool:
    """Tell whether an instance that does not live any more should: no verb has ended it, or is about to.

    A session that is held as failed counts, so that whoever was killed between that mark and its note finishes both.
    """
    stopped = record.hold is not None and record.hold.kind is HoldKind.STOPPED
    return record.status is Status.RUNNING and record.phase is Phase.SETTLED and not stopped


def exit_text(end: LastExit | None) -> str:
    """Return how a program ended, in words."""
    if end is None or (end.status is None and end.signal is None):
        return "nobody can tell how"
    return f"exit {end.status}" if end.signal is None else f"signal {end.signal}"
