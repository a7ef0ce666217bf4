"""Fleets for tests: the same few handles on an exchange in memory and on one in PostgreSQL."""

from __future__ import annotations

from typing import Protocol

from core.fleet.exchange import Beat, Fleet, HostExchange, NewCall, Place, PublishedSession, Route, new_id
from core.fleet.memory import MemoryFleet
from tests.support.clocks import MovedClock

THREAD = Place("talk", "T1", "C1", "100.1")
BEAT = Beat("1.2.3")


class FleetRig(Protocol):
    """What a test does to a fleet from outside."""

    def admit(self, host: str, *, gateway: bool = False) -> Fleet:
        """Invite a host, let it join, and return its way in."""
        ...

    def evict(self, host: str) -> None:
        """Take it out of the fleet."""
        ...

    def let_pass(self, seconds: float) -> None:
        """Let that much time pass by the exchange's clock."""
        ...


class MemoryRig:
    """A `FleetRig` in memory."""

    def __init__(self) -> None:
        self._clock = MovedClock()
        self.fleet = MemoryFleet(self._clock)

    def admit(self, host: str, *, gateway: bool = False) -> Fleet:
        """Let the host in."""
        return self.fleet.admit(host, gateway=gateway)

    def evict(self, host: str) -> None:
        """Take it out."""
        self.fleet.evict(host)

    def let_pass(self, seconds: float) -> None:
        """Move the clock."""
        self._clock.move(seconds=seconds)


def started(fleet: Fleet, machine: str = "") -> HostExchange:
    """Return the host's side of a service that has started: its first beat was answered."""
    host = fleet.as_host(new_id(), machine or f"boot of {fleet.host}")
    host.beat(BEAT)
    return host


def session(uid: str, *places: Place, name: str = "guide", row: str = '{"name":"guide"}') -> PublishedSession:
    """Return a session with threads that no sweep has read."""
    return PublishedSession(uid, name, row, routes=tuple(Route(place, "") for place in places))


def call(host: str, body: str = "{}", *, uid: str = "", seconds: float | None = None) -> NewCall:
    """Return a call to a host."""
    return NewCall(new_id(), host, "receive", body, uid, seconds)
