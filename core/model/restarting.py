"""When an ended session is brought back, and when an idle one is stopped (`idle.stopAfter`). No I/O.

What counts as a crash, how long to wait, when to give up, and what keeps an idle session. Also what the supervisor must
still know after it was killed: ends told, restarts due, idleness announced.
"""

import signal
from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import Enum

from core.base.values import dataclass
from core.model.activity import ActivityState
from core.model.session import HoldKind, LastExit, Phase, Restart, SessionRecord, Status

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
    """Return whether an end that no verb asked for was a crash: by a signal, or with a status other than 0.

    A person who leaves the program (`/exit`) crashes nothing. An end that tmux lost (None, or neither known) counts as
    one: the ends that leave no trace are kills.
    """
    if by_person:
        return False
    return end is None or end.signal is not None or end.status != 0


def left_by_itself(end: LastExit | None) -> bool:
    """Return whether a program decided itself to end: by a status that stands for no signal.

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
    """Return whether a session may be resumed unasked: it should run, nothing is under way, and no mark is on it."""
    return (
        record.status is Status.RUNNING
        and record.phase is Phase.SETTLED
        and record.hold is None
        and record.instance_id is not None
    )


def restarts_itself(record: SessionRecord) -> bool:
    """Return whether a crash of the session brings it back."""
    return record.definition.restart is Restart.ON_FAILURE and may_be_brought_back(record)


def ended_unasked(record: SessionRecord) -> bool:
    """Return whether an instance that does not live any more should: no verb has ended it, or is about to.

    A session that is held as failed counts, so that whoever was killed between that mark and its note finishes both.
    """
    stopped = record.hold is not None and record.hold.kind is HoldKind.STOPPED
    return record.status is Status.RUNNING and record.phase is Phase.SETTLED and not stopped


def exit_text(end: LastExit | None) -> str:
    """Return how a program ended, in words."""
    if end is None or (end.status is None and end.signal is None):
        return "it is not known how"
    return f"exit {end.status}" if end.signal is None else f"signal {end.signal}"


_STATUSES = {
    0: "it ended by itself, without an error",
    1: "the program ended with an error; its last output may say which",
    2: "the program did not accept its arguments",
    126: "the program may not be executed",
    127: "the program, or one that it needs, was not found",
}


def explained(status: int | None, number: int | None) -> str:
    """Return how a program ended, with what the number means. A shell reports signal N as status 128+N (POSIX)."""
    if number is None and status is not None and 128 < status <= 128 + 64:
        name = _signal(status - 128)
        return f"status {status}: it was ended by {name}" if name else f"status {status}"
    if number is not None:
        name = _signal(number)
        return f"signal {number}: it was ended by {name}" if name else f"signal {number}"
    if status is None:
        return "it is not known how"
    return f"status {status}: {_STATUSES[status]}" if status in _STATUSES else f"status {status}"


def _signal(number: int) -> str:
    """Return a signal's name and what often sends it; "" for a number that is none here."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        return ""
    often = {"SIGKILL": "such as when memory runs out", "SIGTERM": "a request to end", "SIGHUP": "its terminal is gone"}
    return f"{name} ({often[name]})" if name in often else name


_LONGEST_GRACE = timedelta(minutes=5)


@dataclass(frozen=True)
class Facts:
    """What is known of one session at one moment. A fact that could not be asked is given as the one that keeps it."""

    stop_after: timedelta | None
    runs: bool  #: it lives, is settled, should run and is not held
    activity: ActivityState | None
    idle_since: datetime  #: the latest of: idle, started, last message
    pending_tasks: bool
    attached: bool  #: somebody looks at its terminal
    waiting: bool  #: messages wait or are in flight, or reports of its harness are not taken in
    held_open: bool = False  #: something holds its future open, such as a keep-alive loop
    announced_at: datetime | None = None  #: when this idleness was announced


@dataclass(frozen=True)
class Keep:
    """Leave it running; `reason` says why, "" where there is nothing to wait for."""

    reason: str
    until: datetime | None = None  #: when to look again, if only time can change it


@dataclass(frozen=True)
class Announce:
    """Say that it will be stopped at `stop_at` unless somebody speaks."""

    stop_at: datetime


@dataclass(frozen=True)
class Collect:
    """Stop it; `reason` is for the audit."""

    reason: str


Decision = Keep | Announce | Collect


def grace_of(stop_after: timedelta) -> timedelta:
    """Return how long before its end a session is announced: a tenth of its time, five minutes at most."""
    return min(_LONGEST_GRACE, stop_after / 10)


def decide_idle(facts: Facts, now: datetime) -> Decision:
    """Return what to do with a session. Only one that says of itself that it is idle is ever stopped."""
    if facts.stop_after is None:
        return Keep("")
    kept = _kept_by(facts)
    if kept:
        return Keep(kept)
    grace = grace_of(facts.stop_after)
    announce_at = facts.idle_since + facts.stop_after - grace
    if facts.announced_at is None:
        return Announce(max(now, announce_at) + grace) if now >= announce_at else Keep("", announce_at)
    stop_at = max(facts.announced_at, announce_at) + grace
    if now < stop_at:
        return Keep("", stop_at)
    return Collect(
        f"idle since {facts.idle_since:%Y-%m-%d %H:%M:%S} UTC, announced at {facts.announced_at:%H:%M:%S} UTC"
    )


def _kept_by(facts: Facts) -> str:
    reasons = (
        (not facts.runs, "it does not run, or a person holds it"),
        (facts.activity is None, "it is not known what it is doing"),
        (facts.activity is not ActivityState.IDLE, "it is not idle"),
        (facts.pending_tasks, "its background work goes on"),
        (facts.attached, "somebody looks at its terminal"),
        (facts.waiting, "messages wait for it"),
        (facts.held_open, "something holds its future open"),
    )
    return next((reason for holds, reason in reasons if holds), "")


@dataclass(frozen=True)
class End:
    """The end of one instance. `by_person`: somebody left the program by its own command."""

    instance: str
    uid: str
    by_person: bool = False
    told_at: datetime | None = None  #: None: it may still live
    due_at: datetime | None = None  #: when it is brought back; None: not by itself
    counted: bool = False  #: that restart is one after a crash, of which the hour has only so many


class Stage(Enum):
    """What has followed from an idleness that was announced."""

    ANNOUNCED = "announced"  #: nothing yet
    TAKEN = "taken"  #: the instance is being stopped for it, or was, and its thread has not heard of that
    TOLD = "told"  #: the thread has


@dataclass(frozen=True)
class Announced:
    """An idleness that was announced: that of which instance, since when it was idle, and when it was said."""

    uid: str
    instance: str
    idle_since: datetime
    at: datetime
    stage: Stage = Stage.ANNOUNCED

    def ended(self, instance: str) -> bool:
        """Return whether the instance was stopped for it: it sleeps as it should."""
        return self.instance == instance and self.stage is not Stage.ANNOUNCED

    def is_untold(self, instance: str) -> bool:
        """Return whether the instance was stopped for it, and its thread has not heard of that."""
        return self.instance == instance and self.stage is Stage.TAKEN
