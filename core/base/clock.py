"""Ask the machine for the time. No other module does.

Stored times are UTC. Waits use the monotonic clock.
"""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the product may know of time."""

    def now(self) -> datetime:
        """Return the wall clock as an aware datetime in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go back, for waits and ages within one process."""
        ...

    def pause(self, seconds: float) -> None:
        """Let that many seconds pass."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the wall clock as an aware datetime in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return `time.monotonic()`."""
        return time.monotonic()

    def pause(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)


class Deadline:
    """A moment on the monotonic clock at which a wait ends."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._end = clock.monotonic() + seconds

    def remaining(self) -> float:
        """Return the seconds left, never below zero."""
        return max(0.0, self._end - self._clock.monotonic())

    def passed(self) -> bool:
        """Return whether the moment is over."""
        return self._clock.monotonic() >= self._end


def iso(moment: datetime) -> str:
    """Return `2026-11-29T13:50:10.123456Z`, the one spelling of stored times."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


_YEARS = range(1970, 9000)  #: of moments with which can be reckoned: a span before or after is in the calendar, too


def from_iso(text: str) -> datetime:
    """Return the aware UTC datetime of an ISO 8601 text. Raises ValueError, also for one that is out of all bounds."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    if moment.year not in _YEARS:
        raise ValueError(f"{text!r} is not of our time")
    return moment.astimezone(UTC)


def from_epoch(seconds: float) -> datetime | None:
    """Return the aware UTC datetime of so many seconds since the epoch, None for one that is out of all bounds."""
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return moment if moment.year in _YEARS else None
