"""What a channel may ask of core, from any of its threads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from core.ports import IncomingReply, Verdict
from core.service import Connections
from core.standing.listing import list_standing
from core.system import System


class Door:
    """The CoreDoor of the service."""

    def __init__(
        self,
        system: System,
        connections: Connections,
        receive: Callable[[Sequence[IncomingReply]], tuple[Verdict, ...]],
        committed: Callable[[], None],
    ) -> None:
        """`receive` is the inbound pipeline; `committed` is called once something is new in the inbox."""
        self._system = system
        self._connections = connections
        self._receive = receive
        self._committed = committed

    def receive(self, replies: Sequence[IncomingReply]) -> tuple[Verdict, ...]:
        """Run the pipeline; when it returns, what passed is on the disk. Raises StoreBroken."""
        verdicts = self._receive(replies)
        if Verdict.COMMITTED in verdicts:
            self._committed()
        return verdicts

    def rows(self) -> tuple[Mapping[str, Any], ...]:
        """Return the rows of `list`."""
        return tuple(row.to_json() for row in list_standing(self._system))

    def connected(self, channel_kind: str, up: bool, detail: str) -> None:
        """Keep how the connection stands, and tell when it changed."""
        if self._connections.set(channel_kind, up, detail):
            event = "channel.connected" if up else "channel.disconnected"
            self._system.events.emit(event, level="info" if up else "warning", channel=channel_kind, detail=detail)
