"""Make this service a host of its fleet: put the relay between the chats' own channels and core. Imported in a fleet.

Without one, `core.service.assembly` imports neither this nor anything of core.fleet.
"""

from __future__ import annotations

import hashlib
import platform
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.base.errors import CoreError, InvalidValue, Refused
from core.base.names import NAME_PATTERN
from core.base.paths import StatePaths
from core.base.values import dataclass
from core.config.settings import FleetSettings, Settings
from core.fleet.exchange import Fleet, HostRow, new_id
from core.fleet.gateway import Gateway
from core.fleet.memory import MemoryFleet
from core.fleet.publisher import Publisher
from core.fleet.relay import Relay, RelayChannel
from core.model.channel import Channel, CoreApi
from core.process.control import Peer
from core.process.presence import Connections
from core.service.service import Worker
from core.session.system import System

URL = "THE_LOOP_FLEET_URL"
IN_MEMORY = "memory:"  #: an exchange of this process alone: for a look at the relay, and for tests
FLEET_ROW, GATEWAY_ROW = "fleet", "gateway"

#: What `status` says where the settings ask for turns that are shown as they run.
NOT_LIVE = "in a fleet a turn is not shown as it runs: its progress and its answer are posts"


@dataclass(frozen=True)
class Joined:
    """The host's part in its fleet. `channels` take the places of the chats' own."""

    channels: tuple[RelayChannel, ...]
    relay: Relay
    publisher: Publisher
    gateway: Gateway | None

    def workers(self, doors: Mapping[str, CoreApi], wakes: Mapping[str, Callable[[], None]]) -> tuple[Worker, ...]:
        """Return the threads. `doors`: this host's own, by chat; `wakes`: let a chat's posts be asked for."""
        for channel in self.channels:
            self.relay.join(channel.taker, wakes[channel.kind])
        made = [Worker("fleet", 3, self.relay.run), Worker("publisher", 2, self.publisher.run)]
        wakes_at_stop = [self.publisher.wake]
        if self.gateway is not None:
            self.gateway.doors.update(doors)
            made.append(Worker("gateway", 2, self.gateway.run))
            wakes_at_stop.append(self.gateway.exchange.wake)
        # what waits for the exchange does not see that it is to stop; a stage is told in this order
        made.append(Worker("fleet-bell", 2, _ringing(wakes_at_stop)))
        made.append(Worker("relay-bell", 3, _ringing([self.relay.wake])))
        return tuple(made)

    def talk(self, request: Mapping[str, Any], peer: Peer) -> None:
        """Answer the command line, which never asks the database itself. The rows of sessions are not parsed."""
        try:
            if self.relay.away:
                raise Refused(self.relay.away, "this machine's own sessions: `the-loop standing list`")
            if request.get("what") == "sessions":
                rows = self.relay.exchange.sessions(str(request.get("host", "")))
                peer.send_bytes({"bytes": len(rows)}, rows)
            else:
                hosts = [_host(row) for row in self.relay.exchange.hosts()]
                peer.send({"host": self.relay.host, "listening": self.relay.listening, "hosts": hosts})
        except CoreError as error:
            peer.send({"failed": {"code": error.code, "message": error.message, "remedy": error.remedy}})


def _host(row: HostRow) -> dict[str, Any]:
    return {
        "host": row.name,
        "state": row.state.value,
        "gateway": row.gateway,
        "speaks": row.speaks,
        "version": row.version,
        "hostSeen": None if row.seen_at is None else row.seen_at.isoformat(),
        "ageSeconds": None if row.seen_at is None else round(row.age),
        "stopped": row.stopped,
    }


def _ringing(wakes: Sequence[Callable[[], None]]) -> Callable[[threading.Event], None]:
    """Return a worker that wakes others once they are to stop."""

    def run(stopping: threading.Event) -> None:
        stopping.wait()
        for wake in wakes:
            wake()

    return run


def host_name(settings: FleetSettings) -> str:
    """Return this host's name in the fleet. Raises InvalidValue where the machine's own cannot be one."""
    named = settings.host or re.sub(r"[^a-z0-9-]+", "-", platform.node().partition(".")[0].lower()).strip("-")
    if not re.fullmatch(NAME_PATTERN, named):
        raise InvalidValue(f"this machine's name {platform.node()!r} cannot be a host's", "set fleet.host")
    return named


def open_fleet(settings: Settings, environ: Mapping[str, str]) -> Fleet:
    """Return the way into the exchange; nothing is asked yet.

    Raises NoAccess where this host has not joined, InvalidValue where it has by another name than the file says.
    """
    if environ.get(URL) == IN_MEMORY:
        return MemoryFleet().admit(host_name(settings.fleet), gateway=settings.fleet.gateway)
    from core.fleet.access import kept
    from core.fleet.postgres import PostgresFleet

    access = kept(StatePaths(settings.state_root).fleet)
    if settings.fleet.host not in ("", access.host):
        raise InvalidValue(
            f"fleet.host is {settings.fleet.host}, and this machine has joined its fleet as {access.host}",
            f"set fleet.host to {access.host}, or leave the fleet and join it anew",
        )
    return PostgresFleet(access)


def join(
    system: System, settings: Settings, fleet: Fleet, channels: Sequence[Channel], connections: Connections
) -> Joined:
    """Put the relay between these channels and core."""
    life = new_id()
    exchange = fleet.as_host(life, _machine(settings.state_root))
    publisher = Publisher(system, exchange, channels, life)
    kinds = [channel.kind for channel in channels]

    def tell(up: bool, detail: str) -> None:
        connections.set(FLEET_ROW, up, detail)
        if relay.gateway != relay.host:  # else the gateway's own channels tell
            for kind in kinds:
                connections.set(kind, up, detail)

    def tell_gateway(up: bool, detail: str) -> None:
        connections.set(GATEWAY_ROW, up, detail)

    relay = Relay(system, exchange, publisher, _version(), tell)
    gateway = None
    if settings.fleet.gateway:
        gateway = Gateway(
            {channel.kind: channel for channel in channels},
            fleet.as_gateway(),
            exchange,
            system.clock,
            tell_gateway,
            connections.sent,
        )
    for channel in channels:
        if channel.live():
            connections.note(channel.kind, NOT_LIVE)
    relayed = tuple(RelayChannel(channel, system, relay, gateway=settings.fleet.gateway) for channel in channels)
    return Joined(relayed, relay, publisher, gateway)


def _machine(state_root: Path) -> str:
    """Return what is the same for two services only where the first is over: a state root, in one boot of a machine."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        import psutil

        boot = f"{platform.node()} {psutil.boot_time():.0f}"
    return hashlib.sha256(f"{boot}\0{state_root}".encode()).hexdigest()[:32]


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("the-loop")
    except PackageNotFoundError:
        return "unknown"
