"""When a session that does nothing is stopped by itself (`idle.stopAfter`), and what keeps it. No I/O."""

from datetime import datetime, timedelta

from core.domain.activity import ActivityState
from core.values import dataclass

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
        (facts.activity is None, "nobody can tell what it does"),
        (facts.activity is not ActivityState.IDLE, "it is not idle"),
        (facts.pending_tasks, "background work of it goes on"),
        (facts.attached, "somebody looks at its terminal"),
        (facts.waiting, "messages wait for it"),
        (facts.held_open, "something holds its future open"),
    )
    return next((reason for holds, reason in reasons if holds), "")
