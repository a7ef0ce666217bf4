"""The machine's clock, moved on as far as a test likes."""

import time
from datetime import UTC, datetime, timedelta


class MovedClock:
    """Implements Clock: what is stored and compared lies ahead; waits take the time that they take."""

    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        """Return the moved time."""
        return datetime.now(UTC) + self.ahead

    def monotonic(self) -> float:
        """Return the seconds of the machine, moved as well."""
        return time.monotonic() + self.ahead.total_seconds()

    def pause(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)

    def move(self, **span: float) -> None:
        """Let time pass at once, given as to `timedelta`."""
        self.ahead += timedelta(**span)
