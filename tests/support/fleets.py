"""Fleets for tests: the same few handles on an exchange in memory and on one in PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import psycopg
from psycopg import sql

from core.fleet import membership
from core.fleet.access import Access
from core.fleet.exchange import Beat, Fleet, HostExchange, NewCall, Place, PublishedSession, Route, new_id
from core.fleet.memory import MemoryFleet
from core.fleet.postgres import PostgresFleet
from tests.support.clocks import MovedClock
from tests.support.postgres import Cluster

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


_TIMES = {
    "hosts": ["seen_at"],
    "streams": ["served_at"],
    "lease": ["until"],
    "calls": ["deadline", "taken_at"],
    "answers": ["until"],
    "posts": ["began_at"],
    "blobs": ["put_at"],
    "invitations": ["until"],
}


_TABLES = ("answers", "blobs", "posts", "calls", "routes", "sessions", "invitations", "streams", "hosts")


def made_database(cluster: Cluster) -> str:
    """Make a database with a fleet in it, and return its name."""
    name = f"fleet_{new_id()[:12]}"
    cluster.make_database(name)
    membership.init(cluster.url(name))
    return name


class PostgresRig:
    """A `FleetRig` in a database that `made_database` has made, and which it empties."""

    def __init__(self, cluster: Cluster, database: str, folder: Path) -> None:
        self.cluster = cluster
        self.database = database
        self._folder = folder
        self._open: list[Fleet] = []
        with self.admin() as admin:
            for table in _TABLES:
                admin.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier("the_loop", table)))
            admin.execute("UPDATE the_loop.lease SET token = '', holder = '', epoch = 0, until = '-infinity'")

    @property
    def url(self) -> str:
        """The admin's."""
        return self.cluster.url(self.database)

    def access(self, host: str, *, gateway: bool = False) -> Access:
        """Invite a host and let it join."""
        invitation = membership.invite(self.url, host, gateway=gateway)
        return membership.join(invitation, self._folder / f"{host} {new_id()}")

    def admit(self, host: str, *, gateway: bool = False) -> Fleet:
        """Invite a host, let it join, and return its way in."""
        return self.opened(self.access(host, gateway=gateway))

    def opened(self, access: Access) -> PostgresFleet:
        """Return the way in of a host that has joined."""
        fleet = PostgresFleet(access)
        self._open.append(fleet)
        return fleet

    def evict(self, host: str) -> None:
        """Take it out."""
        membership.evict(self.url, host)

    def let_pass(self, seconds: float) -> None:
        """Let all times that are kept lie so much further back."""
        with self.admin() as admin:
            for table, columns in _TIMES.items():
                for column in columns:
                    moved = sql.SQL("UPDATE {} SET {} = {} - make_interval(secs => %s)").format(
                        sql.Identifier("the_loop", table), sql.Identifier(column), sql.Identifier(column)
                    )
                    admin.execute(moved, (seconds,))

    def admin(self) -> psycopg.Connection[tuple[object, ...]]:
        """Return a connection of the admin, in autocommit."""
        return self.cluster.admin(self.database)

    def close(self) -> None:
        """End what the members have open."""
        for fleet in self._open:
            fleet.close()


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
