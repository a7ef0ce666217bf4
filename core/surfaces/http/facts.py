"""What the HTTP surface knows of the running service, asked at the moment of the request."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from core.domain.services import ServiceRow
from core.ports import WebHook
from core.system import System

if TYPE_CHECKING:
    from core.tools.toolbox import Toolbox

HTTP_ROW = "http"  #: the name of this surface's own row in `status`


@dataclass(frozen=True)
class Facts:
    """The ports, and what the service's workers know; each callable may be asked from any thread and waits for none."""

    system: System
    rows: Callable[[], Sequence[ServiceRow]]  #: one a connection, this surface's own among them
    tmux: Callable[[], str]  #: "ok" | "silent", as the observer last saw it
    watches: Callable[[], int]  #: watches that are held, each on the end of one pane's process
    events: Callable[[], Mapping[str, int]]  #: how often this process emitted each event
    dropped: Callable[[], Mapping[str, int]]  #: replies that went no further, by reason
    toolbox: Callable[[], Toolbox]  #: what sessions' agents may call
    hooks: Mapping[str, WebHook] = field(default_factory=dict)  #: by channel: what answers its requests over HTTP
    pid: int = field(default_factory=os.getpid)
    started: float = field(init=False)

    def __post_init__(self) -> None:
        """Note when the service began, on the monotonic clock."""
        object.__setattr__(self, "started", self.system.clock.monotonic())

    def uptime(self) -> float:
        """Return the seconds since the service began."""
        return self.system.clock.monotonic() - self.started

    def channels(self) -> Mapping[str, bool]:
        """Return by kind whether each enabled channel is connected; what could not be asked is left out."""
        return {row.name: row.running for row in self.rows() if row.name != HTTP_ROW and row.running is not None}
