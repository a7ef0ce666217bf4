"""An event log that also counts, for /metrics."""

import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from core.ports import EventLog


class CountingEvents:
    """Passes every event on, and knows how often this process emitted each."""

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._lock = threading.Lock()
        self._counts: Counter[str] = Counter()

    def emit(self, event: str, **fields: Any) -> None:
        """See EventLog."""
        with self._lock:
            self._counts[event] += 1
        self._events.emit(event, **fields)

    def emit_all(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """See EventLog."""
        with self._lock:
            self._counts.update(event for event, _ in events)
        self._events.emit_all(events)

    def read(self, *, follow: bool = False) -> Iterator[Mapping[str, Any]]:
        """See EventLog."""
        return self._events.read(follow=follow)

    def counts(self) -> Mapping[str, int]:
        """Return how often each event was emitted."""
        with self._lock:
            return dict(self._counts)
