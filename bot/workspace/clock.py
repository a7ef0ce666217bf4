"""The workspace's own clock: it imports nothing of the product it is the other side of."""

from __future__ import annotations

import time


def now() -> float:
    """Return the time of day, in seconds since the epoch."""
    return time.time()
