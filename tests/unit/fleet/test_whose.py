"""Whose the gateway says the threads are, and which hosts are silent, over the exchange in memory."""

import pytest

from core.base.values import replace
from core.fleet.exchange import RoutedThread
from core.fleet.gateway import Directory
from core.fleet.memory import MemoryFleet
from tests.support.clocks import MovedClock
from tests.support.fleets import BEAT, THREAD, session, started

_HOUR = 3600.0


def test_after_the_database_was_away_no_host_is_called_silent_before_it_could_be_heard_of() -> None:
    """Nobody could be heard of meanwhile. A gateway that has just begun waits until those that live have beaten."""
    clock = MovedClock()
    fleet = MemoryFleet(clock)
    gate, lap, gone = started(fleet.admit("gate", gateway=True)), started(fleet.admit("lap")), fleet.admit("gone")
    started(gone)
    clock.move(seconds=_HOUR)
    directory = Directory(clock, fleet.admit("gate", gateway=True).as_gateway(), gate)

    begun = [directory.silent(host, 60) for host in ("lap", "gone")]
    lap.beat(BEAT)
    clock.move(seconds=20)
    later = {host: directory.silent(host, 60) for host in ("lap", "gone")}

    assert begun == [None, None]
    assert later["lap"] is None
    assert later["gone"] is not None


def test_a_host_that_has_stopped_is_called_so_at_once() -> None:
    """It said so itself."""
    clock = MovedClock()
    fleet = MemoryFleet(clock)
    gate, lap = started(fleet.admit("gate", gateway=True)), started(fleet.admit("lap"))
    lap.stopped()

    assert Directory(clock, fleet.admit("gate", gateway=True).as_gateway(), gate).silent("lap", 60) is not None


def test_a_thread_that_becomes_known_disturbs_nobody_who_looks_at_all() -> None:
    """Several threads ask: what one of them was given stays as it was."""
    clock = MovedClock()
    fleet = MemoryFleet(clock)
    gate, other = fleet.admit("gate", gateway=True), replace(THREAD, thread="200.2")
    host = started(gate)
    host.publish([session("u1", THREAD)])
    directory = Directory(clock, gate.as_gateway(), host)
    looking = iter(directory.routes())

    host.publish([session("u1", THREAD, other)])
    found = directory.route(other)

    assert list(looking) == [THREAD]
    assert found is not None
    assert directory.routes().keys() == {THREAD, other}


def test_what_changes_while_routes_are_read_is_read_at_the_next_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list that was under way may be from before the change."""
    clock = MovedClock()
    gate = MemoryFleet(clock).admit("gate", gateway=True)
    host, exchange = started(gate), gate.as_gateway()
    directory, read = Directory(clock, exchange, host), exchange.routes

    def overtaken() -> tuple[RoutedThread, ...]:
        found = read()
        host.publish([session("u1", THREAD)])
        directory.stale()
        return found

    with monkeypatch.context() as here:
        here.setattr(exchange, "routes", overtaken)
        before = directory.routes()

    assert not before
    assert directory.routes().keys() == {THREAD}
