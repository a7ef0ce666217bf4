"""Decide what a run's outcome means for its loop: the change, the event, and what its thread is told.

Pure: each function gets the loop as it is stored now, the run and the time.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from core.base.text import duration_text
from core.base.values import dataclass, field
from core.model.events import Event
from core.model.loop import Held, Loop, LoopRun, LoopStatus, Mode, backoff, following_slot, rearmed_slot

MOST_FAILURES = 5  #: in a row; then the loop is held until somebody says so
FIRST_LIMIT = timedelta(minutes=15)
LONGEST_LIMIT = timedelta(hours=2)
_LONGEST_TOLD = timedelta(days=8)  #: no usage limit that a harness tells of lasts longer: what does is no reset time

DELIVERED, UNKNOWN, FAILED, DEFERRED = "delivered", "unknown", "failed", "deferred"
SUBMITTED = "submitted"  #: its Enter was written; the program can prove no more
NO_NEXT_RUN = "its turn ended without schedule_next_run"
RESTARTED = "restarted without a next run"


@dataclass(frozen=True)
class Fate:
    """What to store of a loop, and what to tell of that. No event: nothing to tell."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    event: Event | None = None
    reason: str = ""
    note: str = ""  #: what its thread is told, after the loop's name: ends, and what needs a person


def ended(loop: Loop, status: LoopStatus, event: Event, reason: str, now: datetime, **changes: Any) -> Fate:
    """Return the end of a loop, for whatever reason; every end has one, an event and a note."""
    over = {"status": status, "reason": reason, "ended_at": now, "next_run_at": None}
    unheld = {"held": None, "held_until": None}
    return Fate({**changes, **over, **unheld}, event, reason, f"has ended: {reason}")


def stopped(loop: Loop, reason: str, now: datetime, **changes: Any) -> Fate:
    """Return the end of a loop that its pace, its session or its age has ended."""
    return ended(loop, LoopStatus.STOPPED, Event.LOOP_STOPPED, reason, now, **changes)


def expired(loop: Loop, most_age: timedelta, now: datetime, **changes: Any) -> Fate:
    """Return the end of a loop that has grown too old."""
    reason = f"it expired after {duration_text(most_age)}"
    return ended(loop, LoopStatus.STOPPED, Event.LOOP_EXPIRED, reason, now, **changes)


def delivered(loop: Loop, run: LoopRun, at: datetime, result: str, most_age: timedelta | None) -> Fate:
    """Return what follows from a tick that a turn took at `at`, or may have taken (`result` submitted or unknown)."""
    count = loop.run_count + 1
    changes: dict[str, Any] = {
        "run_count": count,
        "last_run_at": at,
        "last_result": result,
        "failures": 0,
        "asked": False,
    }
    if result != UNKNOWN:
        changes["last_error"] = ""
    if loop.max_runs is not None and count >= loop.max_runs:
        reason = "it has run once, as asked" if count == 1 else f"it has run {count} times, as asked"
        return ended(loop, LoopStatus.COMPLETED, Event.LOOP_COMPLETED, reason, at, **changes)
    if run.last and most_age is not None:
        return expired(loop, most_age, at, **changes)
    return Fate({**changes, "next_run_at": _after_delivery(loop, run, at)}, Event.LOOP_FIRED, result)


def _after_delivery(loop: Loop, run: LoopRun, at: datetime) -> datetime | None:
    """Return the next slot: what was planned when the tick was sent, unless the tick has waited until near it."""
    planned = loop.next_run_at
    if loop.mode is Mode.DYNAMIC:
        return None if planned == run.slot else planned
    if planned is None:
        return following_slot(loop, run.slot, at)
    least = loop.interval / 2 if loop.interval is not None else timedelta(microseconds=1)
    return planned if planned - at >= least else following_slot(loop, planned, at)


def failed(loop: Loop, run: LoopRun, error: str, now: datetime, most_age: timedelta | None) -> Fate:
    """Return what follows from a tick that could not be delivered: back off, hold after five; keep-alive: never."""
    count = loop.failures + 1
    changes: dict[str, Any] = {"failures": count, "last_result": FAILED, "last_error": error}
    if run.last and most_age is not None:
        return expired(loop, most_age, now, **changes)
    if loop.keep_alive:
        return Fate({**changes, "next_run_at": _after_delivery(loop, run, now)}, Event.LOOP_FAILED, error)
    changes["next_run_at"] = now + backoff(count, loop.interval)
    if count < MOST_FAILURES:
        return Fate(changes, Event.LOOP_FAILED, error)
    reason = f"it failed {count} times in a row: {error}"
    note = f"is blocked: {reason}; `the-loop loop resume {loop.id}` lets it go on"
    return Fate({**changes, "held": Held.FAILURES, "held_at": now}, Event.LOOP_HELD, reason, note)


def deferred(loop: Loop, reason: str) -> Fate:
    """Return what follows when a due tick has to wait for its session: it is counted, and nothing is lost."""
    return Fate({"deferrals": loop.deferrals + 1, "last_result": DEFERRED}, Event.LOOP_DEFERRED, reason)


def retried(loop: Loop, run: LoopRun, error: str, now: datetime) -> Fate:
    """Return what follows from a tick that did not reach a session of which nobody knows anything: it is tried again.

    Nothing is counted.
    """
    again = now + backoff(1, loop.interval)
    return Fate({"next_run_at": again, "last_result": DEFERRED, "last_error": error}, Event.LOOP_DEFERRED, error)


def held(kind: Held, reason: str, now: datetime, until: datetime | None = None) -> Fate:
    """Return what keeps a loop from firing until its session is as it was."""
    return Fate({"held": kind, "held_at": now, "held_until": until}, Event.LOOP_HELD, reason)


def limited(loop: Loop, error: str, now: datetime, reset: datetime | None, *, again: bool) -> Fate:
    """Return what follows from a turn that ran into a usage limit: until its reset, or longer each time in a row.

    `again`: it was the loop's own turn, which is given once more when the limit is over.
    """
    until = reset if reset is not None else now + _limit_span(loop, now)
    fate = held(Held.USAGE_LIMIT, f"{error}; until {until:%Y-%m-%d %H:%M} UTC", now, until)
    own = {"last_result": FAILED, "last_error": error, "next_run_at": now} if again else {}
    return Fate({**fate.changes, **own}, fate.event, fate.reason)


def _limit_span(loop: Loop, now: datetime) -> timedelta:
    """Return how long to wait: twice as long as the last time where the next turn ran into the limit again."""
    if loop.held_at is None or loop.held_until is None or now - loop.held_until > LONGEST_LIMIT:
        return FIRST_LIMIT
    before = min(loop.held_until, now) - loop.held_at
    return min(max(before * 2, FIRST_LIMIT), LONGEST_LIMIT)


def released(loop: Loop, now: datetime) -> Fate:
    """Return what follows when a hold is over: a slot that has passed is due at once; of a stop nothing is caught up.

    A pause holds a loop when it comes due, so that it has missed one. A run that somebody asked for is due whatever the
    hold was.
    """
    if loop.asked:
        return Fate({"held": None, "held_at": None, "held_until": None, "next_run_at": now})
    if loop.held is not Held.STOPPED:
        planned = loop.next_run_at
        due = planned is None or planned < now or loop.held is Held.PAUSED
        return Fate({"held": None, "next_run_at": now if due else planned})
    following = rearmed_slot(loop, now)
    if following is None:
        return stopped(loop, RESTARTED, now)
    return Fate({"held": None, "held_at": None, "held_until": None, "next_run_at": following})


def resumed(loop: Loop, why: str, now: datetime) -> Fate:
    """Return the same with its event; a loop that has no next run ends instead."""
    fate = released(loop, now)
    return fate if fate.event is not None else Fate(fate.changes, Event.LOOP_RESUMED, why)


def unlimited(loop: Loop, now: datetime) -> Fate:
    """Return what follows for a loop that a usage limit holds when a turn went well: the next limit begins anew."""
    fate = resumed(loop, "a turn went well", now)
    return Fate({**fate.changes, "held_at": None, "held_until": None}, fate.event, fate.reason)


def is_limit(error: str, message: str) -> bool:
    """Return whether a turn's error means that the harness may ask its model nothing for a while.

    Claude Code 2.1.197 calls a refused request `rate_limit`, an empty account `billing_error`, and a limit of the
    organization `unknown`, with the words in the message.
    """
    return error in ("rate_limit", "billing_error") or "usage limit" in message.lower()


_TOLD = re.compile(r"\b(?:(?P<epoch>[12]\d{9})|(?P<iso>\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d)))\b")


def reset_told(message: str, now: datetime) -> datetime | None:
    """Return when a limit ends, where the harness's words name the moment: seconds since the epoch, or ISO 8601."""
    for found in _TOLD.finditer(message):
        at = datetime.fromtimestamp(int(found["epoch"]), UTC) if found["epoch"] else _moment(found["iso"], now)
        if now < at <= now + _LONGEST_TOLD:
            return at
    return None


def _moment(text: str, otherwise: datetime) -> datetime:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return otherwise  # a day that there is not: no moment
