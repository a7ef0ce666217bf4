"""The service's own thread: it watches its workers, hears signals at any moment, and stops in order."""

import os
import random
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import Refused, StoreBroken
from core.process.control import ask
from core.process.presence import Connections
from core.service.service import Service, Worker
from core.session.system import System
from tests.support.clocks import MovedClock
from tests.support.tmux import PATIENCE, wait_until
from tests.support.world import World, events

WELL: Mapping[str, Any] = {"sessions": [], "ok": True}


@pytest.fixture
def system(tmp_path: Path) -> System:
    """Give ports over a state root of its own; nothing here asks tmux."""
    return World(tmp_path, "loop-test-none", tmp_path).system()


def until_told(stopping: threading.Event) -> None:
    """Work until told to stop."""
    stopping.wait()


def service(system: System, *workers: Worker, sweep: Callable[[], Mapping[str, Any]] = lambda: WELL) -> Service:
    """Return a service of these workers."""
    return Service(system, workers, sweep, Connections(["slack"]))


def terminate() -> None:
    """Ask this process to end, as systemd does."""
    os.kill(os.getpid(), signal.SIGTERM)


def test_a_worker_that_fails_ends_the_service_with_1(system: System) -> None:
    """Its name and its reason are in the event log; the others are stopped in order."""

    def failing(_: threading.Event) -> None:
        raise RuntimeError("the wheel came off")

    code = service(system, Worker("delivery", 1, failing), Worker("slack", 0, until_told)).run()

    [failed] = events(system, "service.worker_failed")
    [stopped] = events(system, "service.stopped")
    assert code == 1
    assert (failed["reason"], failed["detail"]) == ("delivery", "RuntimeError: the wheel came off")
    assert (stopped["level"], stopped["reason"]) == ("error", "a worker died")


@pytest.mark.parametrize("trouble", [OSError(24, "Too many open files"), MemoryError(), StoreBroken("gone", "wait")])
def test_trouble_with_the_machine_ends_no_worker(system: System, trouble: Exception) -> None:
    """It begins again, `status` has a row for it meanwhile, and the service ends as it was told to."""
    seen: dict[str, Any] = {}
    begun = threading.Semaphore(0)

    def troubled(stopping: threading.Event) -> None:
        begun.release()
        if not seen:
            raise trouble
        stopping.wait()

    def asking() -> None:
        begun.acquire(timeout=PATIENCE)
        wait_until(lambda: "delivery" in _rows(system), "the trouble is told")
        seen.update(_rows(system))
        again.append(begun.acquire(timeout=PATIENCE))
        terminate()

    again: list[bool] = []
    code = service(system, Worker("delivery", 1, troubled, first_pause=0.2)).run(ready=asking)

    assert (code, again) == (0, [True])
    assert seen["delivery"]["running"] is False
    assert type(trouble).__name__ in seen["delivery"]["detail"]
    assert events(system, "service.worker_failed") == []


def _rows(system: System) -> dict[str, Any]:
    return {row["name"]: row for row in ask(system.paths.service_socket, "status", 5.0)["services"]}


def test_a_worker_that_returns_ends_the_service_with_1(system: System) -> None:
    """A worker works until it is told to stop; less than that is a death."""
    code = service(system, Worker("observer", 2, lambda _: None)).run()

    [failed] = events(system, "service.worker_failed")
    assert code == 1
    assert (failed["reason"], failed["detail"]) == ("observer", "it ended by itself")


def test_sigterm_is_an_orderly_end(system: System) -> None:
    """Exit 0, the reason in the log, no socket left behind."""
    code = service(system, Worker("delivery", 1, until_told)).run(ready=terminate)

    [stopped] = events(system, "service.stopped")
    assert code == 0
    assert (stopped["level"], stopped["reason"]) == ("info", "SIGTERM")
    assert not system.paths.service_socket.exists()


def test_workers_stop_stage_by_stage(system: System) -> None:
    """Intake before deliveries before posts, and what answers questions last."""
    order: list[str] = []

    def noting(name: str) -> Callable[[threading.Event], None]:
        def run(stopping: threading.Event) -> None:
            stopping.wait()
            order.append(name)

        return run

    workers = [Worker(name, stage, noting(name)) for name, stage in (("posts", 2), ("intake", 0), ("deliveries", 1))]
    service(system, *workers).run(ready=terminate)

    assert order == ["intake", "deliveries", "posts"]


@pytest.mark.parametrize("seed", range(12))
def test_a_signal_is_heard_at_any_moment(system: System, seed: int) -> None:
    """Also while the main thread is on its way into its wait: it neither blocks for ever nor oversleeps."""
    moment = random.Random(seed).uniform(0.0, 0.002)
    timer = threading.Timer(moment, terminate)

    code = service(system).run(ready=timer.start)

    timer.join()
    assert code == 0


def test_the_signals_are_given_back(system: System) -> None:
    """After the service the process handles signals as it did before."""
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]

    service(system).run(ready=terminate)

    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_a_second_service_is_refused(system: System) -> None:
    """It changes nothing of the first one's, which still answers."""
    refused: list[Refused] = []

    def second() -> None:
        with pytest.raises(Refused) as caught:
            service(system).run()
        refused.append(caught.value)
        ask(system.paths.service_socket, "ping", 5.0)
        terminate()

    code = service(system).run(ready=second)

    assert code == 0
    assert f"pid {os.getpid()}" in refused[0].message


def test_status_is_answered_while_the_sweep_goes_on(system: System) -> None:
    """Who waits for the sweep gets it in the end; who asks how things are gets an answer at once."""
    go = threading.Event()
    seen: dict[str, Mapping[str, Any]] = {}

    def sweep() -> Mapping[str, Any]:
        go.wait(10)
        return WELL

    def asking() -> None:
        seen["status"] = ask(system.paths.service_socket, "status", 5.0)
        go.set()
        seen["sweep"] = ask(system.paths.service_socket, "sweep", 5.0)
        terminate()

    service(system, sweep=sweep).run(ready=asking)

    names = [row["name"] for row in seen["status"]["services"]]
    assert names == ["service", "slack"]
    assert seen["sweep"] == WELL


def test_a_sweep_that_fails_leaves_the_service_up(system: System) -> None:
    """A broken store is no reason to be deaf: the report says what was wrong."""
    seen: list[Mapping[str, Any]] = []

    def sweep() -> Mapping[str, Any]:
        raise StoreBroken("the disk is full", "free some space")

    def asking() -> None:
        seen.append(ask(system.paths.service_socket, "sweep", 5.0))
        terminate()

    code = service(system, sweep=sweep).run(ready=asking)

    assert code == 0
    assert seen[0]["ok"] is False
    assert "the disk is full" in seen[0]["detail"]


def test_connections_tell_when_they_change() -> None:
    """From up to down or back is news; another detail is none."""
    connections = Connections(["slack"])

    changes = [
        connections.set("slack", True, "connected"),
        connections.set("slack", True, "connected again"),
        connections.set("slack", False, "lost"),
    ]

    assert changes == [True, False, True]
    assert [(row.running, row.detail) for row in connections.rows()] == [(False, "lost")]


def test_connection_that_is_shut_out_is_down_however_it_reads() -> None:
    """The socket of a revoked token may stay up; only one that comes up anew, or a post that is taken, ends it."""
    connections = Connections(["slack"])
    connections.set("slack", True, "connected")

    connections.shut_out("slack", "token_revoked")
    shut = connections.rows()
    connections.shut_out("slack", "")
    taken = connections.rows()
    connections.shut_out("slack", "token_revoked")
    connections.set("slack", True, "connected")

    assert [(row.running, row.detail) for row in shut] == [(False, "token_revoked")]
    assert [(row.running, row.detail) for row in (*taken, *connections.rows())] == [(True, "connected")] * 2


def test_what_a_connection_lacks_stands_beside_it() -> None:
    """It is up all the same; where it is down that says more."""
    connections = Connections(["slack"])
    connections.set("slack", True, "connected")

    connections.note("slack", "turns are not shown as they run")
    up = connections.rows()
    connections.set("slack", False, "lost")

    assert [(row.running, row.detail) for row in up] == [(True, "connected; turns are not shown as they run")]
    assert [(row.running, row.detail) for row in connections.rows()] == [(False, "lost")]


def test_a_connection_by_which_no_post_comes_back_is_deaf() -> None:
    """Two posts of a minute ago, and no event since: replies are lost, whatever the socket says. An event ends it."""
    clock = MovedClock()
    connections = Connections(["slack"], clock)
    connections.set("slack", True, "connected")

    connections.sent("slack")
    clock.move(minutes=5)
    after_one = connections.rows()
    connections.sent("slack")
    at_once = connections.rows()
    clock.move(minutes=2)
    later = connections.rows()
    connections.sensed("slack")

    assert [row.running for row in (*after_one, *at_once)] == [True, True]
    assert [(row.running, row.reason) for row in later] == [(False, "deaf")]
    assert [row.running for row in connections.rows()] == [True]
    assert connections.latest().keys() == {"slack"}


def test_posts_before_a_connection_came_up_say_nothing_about_it() -> None:
    """The events of a gap may be gone."""
    clock = MovedClock()
    connections = Connections(["slack"], clock)
    connections.sent("slack")
    connections.sent("slack")
    clock.move(minutes=5)

    connections.set("slack", True, "connected again")

    assert [row.running for row in connections.rows()] == [True]


@pytest.mark.parametrize("name", ["the-loop.db", "the-loop.db-wal", "service.lock", "service.sock"])
def test_a_service_ends_where_a_file_of_its_own_is_taken_away(system: System, name: str) -> None:
    """It would work on alone, and another could begin beside it: it says which file is gone, and exits with 1."""

    def lose() -> None:
        system.database.open()
        (system.paths.local / name).unlink()

    code = service(system, Worker("delivery", 1, until_told)).run(ready=lose)

    [gone] = events(system, "service.file_gone")
    [stopped] = events(system, "service.stopped")
    assert code == 1
    assert f"{system.paths.local / name}" in gone["detail"]
    assert "removed" in gone["detail"]
    assert (stopped["level"], stopped["reason"]) == ("error", "a file of its own is gone")


def test_no_second_service_begins_beside_one_whose_lock_was_removed(system: System) -> None:
    """It answers its socket, which says more than a lock's file that is new; and its socket is left alone."""
    told: list[str] = []

    def begin_another() -> None:
        system.paths.service_lock.unlink()
        other = World(system.paths.root.parent, "loop-test-none", system.paths.root.parent).system()
        with pytest.raises(Refused) as error:
            service(other).run(ready=terminate)
        told.append(str(error.value))
        told.append(str(ask(system.paths.service_socket, "ping", 5.0)["pid"]))

    code = service(system, Worker("delivery", 1, until_told)).run(ready=begin_another)

    assert code == 1
    assert told == [told[0], str(os.getpid())]
    assert "a service runs already" in told[0]
