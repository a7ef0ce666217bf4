"""What a host's service tells the command line of the fleet, over its real socket; and what is said without one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from core.cli.printing import print_hosts
from core.fleet.exchange import Fleet
from core.process.control import ControlSocket, ask, ask_for_bytes
from tests.support.fleethost import Host, Room, room_like
from tests.support.fleets import FleetRig
from tests.support.tmux import wait_until
from tests.unit.cli.conftest import Terminal, terminal

__all__ = ["terminal"]


@contextmanager
def answering(host: Host, path: Path) -> Iterator[Path]:
    """Let the host's service answer at a socket."""
    stopping = threading.Event()
    control = ControlSocket(path, {}, {"fleet": host.joined.talk})
    control.open()
    thread = threading.Thread(target=control.run, args=(stopping,))
    thread.start()
    try:
        yield path
    finally:
        stopping.set()
        thread.join()
        control.close()


@pytest.fixture
def pair(rig: FleetRig, tmp_path: Path) -> Iterator[tuple[Host, Host]]:
    """Give two hosts that are up, each with a session `guide`; `gate` is the gateway."""
    room = Room()
    made = []
    for name, gateway in (("gate", True), ("build", False)):
        folder = tmp_path / name
        folder.mkdir()
        fleet: Fleet = rig.admit(name, gateway=gateway)
        made.append(Host(folder, fleet, room if gateway else room_like(room), gateway=gateway))
        made[-1].session("guide")
    gate, build = made
    gate.up()
    build.up()
    yield gate, build
    for one in made:
        one.stop()


def test_each_host_lists_the_hosts_and_the_sessions_of_all(pair: tuple[Host, Host], short_path: Path) -> None:
    """Rows gain `host` and `hostSeen` and are passed on as the exchange gave them."""
    _, build = pair
    wait_until(lambda: build.joined.relay.gateway == "gate", "it knows the gateway", 30)
    with answering(build, short_path / "s") as path:
        told = ask(path, "fleet", 10.0, what="hosts")
        answer, rows = ask_for_bytes(path, "fleet", 10.0, what="sessions")
        _, of_one = ask_for_bytes(path, "fleet", 10.0, what="sessions", host="gate")
        unknown = ask(path, "fleet", 10.0, what="sessions", host="nobody")

    assert told["host"] == "build"
    assert [(one["host"], one["state"], one["speaks"]) for one in told["hosts"]] == [
        ("build", "active", False),
        ("gate", "active", True),
    ]
    assert rows == build.joined.relay.exchange.sessions()
    assert answer == {"bytes": len(rows)}
    assert [(one["host"], one["name"]) for one in json.loads(rows)] == [("build", "guide"), ("gate", "guide")]
    assert all(datetime.fromisoformat(one["hostSeen"]) for one in json.loads(rows))
    assert [one["host"] for one in json.loads(of_one)] == ["gate"]
    assert unknown["failed"]["code"] == "unknown_host"
    assert "fleet list" in unknown["failed"]["remedy"]


def test_a_host_that_cannot_ask_says_why(rig: FleetRig, pair: tuple[Host, Host], short_path: Path) -> None:
    """As one that was evicted: no old list is given out as one of now."""
    _, build = pair
    rig.evict("build")
    build.joined.relay.wake()
    wait_until(lambda: build.joined.relay.away, "it has learnt it", 30)

    with answering(build, short_path / "s") as path:
        told = ask(path, "fleet", 10.0, what="hosts")

    assert "build" in told["failed"]["message"]
    assert "hosts" not in told


def test_hosts_are_a_table_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    """With when each was last heard of, as every time is told, and which one speaks with the chat."""
    hub = {"host": "hub", "state": "active", "gateway": True, "speaks": True, "version": "1.2.3", "stopped": False}
    lap = {"host": "lap", "state": "invited", "gateway": False, "speaks": False, "version": "", "stopped": True}

    print_hosts(
        [
            {**hub, "hostSeen": "2026-12-01T14:03:00+00:00", "ageSeconds": 4},
            {**lap, "hostSeen": None, "ageSeconds": None},
        ]
    )

    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["HOST", "STATE", "GATEWAY", "VERSION", "SEEN"]
    assert "speaks with the chat" in first
    assert first.endswith("2026-12-01 14:03:00 UTC, 4 s ago")
    assert second.split() == ["lap", "invited", "never"]


@pytest.mark.parametrize(
    "words",
    [
        ("fleet", "list"),
        ("standing", "list", "--all"),
        ("standing", "list", "--host", "build"),
        ("standing", "say", "guide@build", "--text", "x"),
        ("standing", "get", "guide@build"),
        ("standing", "attach", "guide@build"),
    ],
    ids=" ".join,
)
def test_without_a_fleet_it_is_said_how_to_join_one(terminal: Terminal, words: tuple[str, ...]) -> None:
    """Nothing is sent, and nothing is listed in its place."""
    assert terminal.run(*words, "--json") == 1

    assert terminal.json["error"]["code"] == "not_in_fleet"
    assert "fleet join" in terminal.json["error"]["remedy"]


def test_a_command_for_another_host_is_refused_and_attach_prints_the_line(terminal: Terminal) -> None:
    """NAME@HOST of this host is its own session; a list without a service says what to start."""
    terminal.config.write_text(terminal.config.read_text() + "fleet: {enabled: true, host: desk}\n")

    assert terminal.run("standing", "say", "guide@build", "--text", "x", "--json") == 1
    refused = terminal.json["error"]
    assert terminal.run("standing", "attach", "guide@build", "--write") == 0
    line = terminal.out
    assert terminal.run("standing", "get", "scribe@desk", "--json") == 0
    mine = terminal.json
    assert terminal.run("standing", "list", "--all", "--json") == 1

    assert refused["code"] == "on_another_host"
    assert "nothing was sent" in refused["message"]
    assert "`ssh -t build the-loop standing say guide …`" in refused["remedy"]
    assert line == "ssh -t build 'the-loop standing attach guide --write'\n"
    assert mine["name"] == "scribe"
    assert "the-loop start" in terminal.json["error"]["remedy"].replace(f" --config {terminal.config}", "")
