"""What the HTTP surface knows of the running service at the moment of a request, and which hosts mean this machine.

It imports nothing of the web framework.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from core.http.logins import Logins
from core.model.channel import WebHook
from core.model.rows import ServiceRow
from core.process.presence import user_name
from core.session.system import System

if TYPE_CHECKING:
    from core.delivery.permission_requests import Requests
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
    requests: Requests  #: what waits for a person's answer
    status: Callable[[], Mapping[str, Any]]  #: the one health answer; it may ask tmux and the database
    hooks: Mapping[str, WebHook] = field(default_factory=dict)  #: by channel: what answers its requests over HTTP
    links: Mapping[str, Callable[[str, str], str]] = field(default_factory=dict)  #: by channel: addresses of threads
    pid: int = field(default_factory=os.getpid)
    started: float = field(init=False)
    logins: Logins = field(init=False)  #: who is logged in to the page
    page_actor: str = field(init=False)  #: for rows and events: whoever uses the page

    def __post_init__(self) -> None:
        """Note when the service began, on the monotonic clock."""
        object.__setattr__(self, "started", self.system.clock.monotonic())
        object.__setattr__(self, "logins", Logins(self.system.paths.page_logins, self.system.clock))
        object.__setattr__(self, "page_actor", f"page:{user_name()}")

    def uptime(self) -> float:
        """Return the seconds since the service began."""
        return self.system.clock.monotonic() - self.started

    def channels(self) -> Mapping[str, bool]:
        """Return by kind whether each enabled channel is connected; what could not be asked is left out."""
        return {row.name: row.running for row in self.rows() if row.name != HTTP_ROW and row.running is not None}


_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")


def is_loopback(host: str) -> bool:
    """Return whether the address or name is this machine's alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def bracketed(host: str) -> str:
    """Return the host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def allowed_hosts(configured: str, port: int, reached: str | None) -> frozenset[str]:
    """Return the values of a Host header that mean us.

    `reached` is the address at which the client reached us: where we listen on all addresses of the machine it is
    the only one of them that this connection shows. An address is safe, since no foreign page can be called by it.
    """
    names = {*_LOOPBACK_NAMES, configured.lower()}
    if reached is not None and is_wildcard(configured):
        names.add(reached.lower())
    hosts = {f"{bracketed(name)}:{port}" for name in names if not is_wildcard(name)}
    return frozenset(hosts | ({bracketed(name) for name in names} if port == 80 else set()))


def is_wildcard(host: str) -> bool:
    """Return whether the address means every address of this machine."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False
