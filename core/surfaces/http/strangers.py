"""Connections of people who have shown no token: so many at once, and each of their requests for so long.

uvicorn bounds neither: a connection that says nothing, or half of a request, would be held for as long as its other end
likes, and each takes a descriptor of the service.
"""

from asyncio import BaseTransport, TimerHandle
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from core.surfaces.http.guard import is_trusted

STRANGERS = 64  #: at once; where one comes too many, the oldest goes
CONNECTIONS = 256  #: of everybody; the newest goes
SECONDS = 20.0  #: for a whole request and its answer. A chat gets an answer within half of them


class BoundedProtocol(H11Protocol):
    """One connection. Without a good token it ends after SECONDS, counted from its opening or its latest answer.

    With one, an answer may take as long as it takes: a question to people waits for them.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._timer: TimerHandle | None = None
        self._since = 0.0

    def connection_made(self, transport: BaseTransport) -> None:
        """Bound it, and make place for it."""
        super().connection_made(transport)  # type: ignore[arg-type]  # uvicorn's is narrower than asyncio's
        self._since = self.loop.time()
        self._bound()
        others = [other for other in self.connections if isinstance(other, BoundedProtocol)]
        strangers = [other for other in others if not other.is_trusted]
        if len(strangers) > STRANGERS:
            min(strangers, key=lambda other: other._since).leave()
        elif len(others) > CONNECTIONS:
            self.leave()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it no longer."""
        self._unbound()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Bound what comes next on it."""
        super().on_response_complete()
        self._bound()

    @property
    def is_trusted(self) -> bool:
        """Tell whether a request with a good token is being answered."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete and is_trusted(self.scope)

    def leave(self) -> None:
        """End it at once; what was still to be sent is not."""
        self._unbound()
        self.connections.discard(self)
        self.transport.abort()

    def _bound(self) -> None:
        self._unbound()
        self._timer = self.loop.call_later(SECONDS, self._late)

    def _unbound(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        if not self.is_trusted:
            self.leave()
