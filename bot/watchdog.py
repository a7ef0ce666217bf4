"""Tells a dead connection from a quiet one. Outside the library, whose own word cannot be relied on.

slack_sdk's clients have said that they are connected while nothing came any more; what cannot lie is the time of the
last pong. That no event came means nothing: a channel may be quiet for days.
"""

from dataclasses import dataclass

BROKEN = "the connection broke"


@dataclass
class Watchdog:
    """Looks at one connection again and again; `now` is a monotonic time in seconds."""

    pong_seconds: float = 30.0  #: so old the last pong may be
    _pong: float | None = None
    _pong_seen: float | None = None
    _missing: int = 0

    def look(self, now: float, *, connected: bool, pong: float | None) -> str:
        """Return why the connection is lost, "" while it is not.

        `pong` is what the client says of its last pong, in whatever clock: only that it changes is used. Disconnected
        has to be seen twice, since a client is so for a moment while it closes one session and has none yet.
        """
        self._missing = 0 if connected else self._missing + 1
        if self._missing >= 2:
            return BROKEN
        if self._pong_seen is None or pong != self._pong:
            self._pong, self._pong_seen = pong, now
        age = now - self._pong_seen
        return f"no pong for {age:.0f} s" if age > self.pong_seconds else ""
