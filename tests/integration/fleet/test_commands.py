"""`the-loop fleet …` over a real database: one machine is the admin's, each host has a home and a state root."""

from __future__ import annotations

import io
import json
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.base.paths import StatePaths
from core.cli import fleet
from core.cli.main import run
from core.fleet import access
from core.fleet.exchange import Evicted, HostState
from tests.support.fleets import THREAD, PostgresRig, call, session, started


@dataclass
class Machine:
    """A home with a configuration, and the command line in it."""

    folder: Path
    capture: Callable[[], tuple[str, str]]
    patch: pytest.MonkeyPatch
    out: str = ""
    err: str = ""

    @property
    def paths(self) -> StatePaths:
        """Where its state is."""
        return StatePaths(self.folder / "state")

    def run(self, *words: str, given: str = "", url: str = "") -> int:
        """Run one command, with that on standard input, and the admin's URL if it is given."""
        self.folder.mkdir(exist_ok=True)
        config = self.folder / "config.yaml"
        config.write_text(f"state: {{root: {self.paths.root}}}\n")
        with self.patch.context() as here:
            here.setenv("HOME", str(self.folder))
            here.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given.encode())))
            (here.setenv(fleet.ADMIN, url) if url else here.delenv(fleet.ADMIN, raising=False))
            code = run(["--config", str(config), "fleet", *words])
        self.out, self.err = self.capture()
        return code

    @property
    def json(self) -> Any:
        """Return the whole of standard output as one JSON value."""
        return json.loads(self.out)


@pytest.fixture
def machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str], Machine]:
    """Give what makes a machine of that name."""

    def capture() -> tuple[str, str]:
        seen = capsys.readouterr()
        return seen.out, seen.err

    return lambda name: Machine(tmp_path / name, capture, monkeypatch)


def test_from_an_empty_database_to_a_host_that_leaves(postgres: PostgresRig, machine: Callable[[str], Machine]) -> None:
    """The invitation goes from one command's output into the other's input; no secret is printed, but that one."""
    desk, build = machine("desk"), machine("build")
    assert desk.run("init", url=postgres.url) == 0
    assert "fleet invite HOST --gateway" in desk.out

    assert desk.run("invite", "build-3", "--gateway", url=postgres.url) == 0
    invitation, told = desk.out, desk.err
    assert build.run("join", given=invitation) == 0

    assert "the host build-3" in build.out
    assert "works once" in told
    assert invitation.strip() not in told
    file = build.paths.fleet / access.FILE
    kept = access.kept(build.paths.fleet)
    assert (stat.S_IMODE(file.stat().st_mode), kept.host) == (0o600, "build-3")
    assert kept.secret not in build.out + build.err
    opened = postgres.opened(kept)
    [row] = started(opened).hosts()
    assert (row.name, row.state, row.gateway) == ("build-3", HostState.ACTIVE, True)
    assert all(postgres.cluster.secret not in path.read_text() for path in desk.folder.rglob("*") if path.is_file())

    assert build.run("leave", "--json") == 0
    assert (build.json, file.exists()) == ({"host": "build-3"}, False)


def test_a_used_invitation_and_none_are_refused(postgres: PostgresRig, machine: Callable[[str], Machine]) -> None:
    """What to do is said, and what this host had is left alone."""
    desk, build = machine("desk"), machine("build")
    desk.run("invite", "build-3", "--json", url=postgres.url)
    invitation = desk.json["invitation"]
    assert (desk.json["host"], desk.json["gateway"], desk.json["seconds"]) == ("build-3", False, 3600)
    build.run("join", given=invitation)
    kept = access.kept(build.paths.fleet)

    again = machine("other").run("join", "--json", given=invitation)
    none = build.run("join", "--json")

    assert (again, none) == (1, 2)
    assert build.json["error"]["message"] == "no invitation was given"
    assert "fleet invite HOST" in build.json["error"]["remedy"]
    assert access.kept(build.paths.fleet) == kept


def test_an_evicted_host_cannot_come_back(postgres: PostgresRig, machine: Callable[[str], Machine]) -> None:
    """Its service is refused, and a second eviction or an unknown host says what is so."""
    desk, lap = machine("desk"), machine("lap")
    desk.run("invite", "lap", url=postgres.url)
    lap.run("join", given=desk.out)
    host = started(postgres.opened(access.kept(lap.paths.fleet)))

    assert desk.run("evict", "lap", "--json", url=postgres.url) == 0

    assert desk.json == {"host": "lap"}
    with pytest.raises(Evicted):
        host.take(1)
    assert desk.run("evict", "nobody", "--json", url=postgres.url) == 1
    assert desk.json["error"]["code"] == "unknown_host"
    assert lap.run("leave", "--json") == 1
    assert "lap" in lap.json["error"]["remedy"]


def test_leaving_waits_for_what_is_not_taken(postgres: PostgresRig, machine: Callable[[str], Machine]) -> None:
    """The numbers are said, and the host's access is kept."""
    build = machine("build")
    hub = postgres.admit("hub", gateway=True)
    started(hub)
    machine("desk").run("invite", "build", url=postgres.url)
    desk = machine("desk")
    desk.run("invite", "build", url=postgres.url)
    build.run("join", given=desk.out)
    started(postgres.opened(access.kept(build.paths.fleet))).publish([session("u1", THREAD)])
    lease = hub.as_gateway().lease()
    assert lease is not None
    hub.as_gateway().send(lease, [call("build", "1")])

    assert build.run("leave", "--json") == 1

    assert build.json["error"]["code"] == "still_waiting"
    assert "1 messages" in build.json["error"]["message"]
    assert access.kept(build.paths.fleet).host == "build"


def test_a_machine_that_becomes_another_host_is_told_of_the_old_one(
    postgres: PostgresRig, machine: Callable[[str], Machine]
) -> None:
    """As a copy of a machine does, which needs a name of its own."""
    desk, copy = machine("desk"), machine("copy")
    desk.run("invite", "old", url=postgres.url)
    copy.run("join", given=desk.out)
    desk.run("invite", "new", url=postgres.url)

    assert copy.run("join", given=desk.out) == 0

    assert "Before, it was old" in copy.out
    assert access.kept(copy.paths.fleet).host == "new"


@pytest.mark.parametrize("words", [("init",), ("invite", "lap"), ("evict", "lap")], ids=" ".join)
def test_the_admins_url_comes_by_its_variable_alone(machine: Callable[[str], Machine], words: tuple[str, ...]) -> None:
    """Without it nothing is asked; one that leads nowhere is told without its secret."""
    desk = machine("desk")

    assert desk.run(*words, "--json") == 2
    assert fleet.ADMIN in desk.json["error"]["message"]

    assert desk.run(*words, "--json", url="postgresql://admin:hidden@127.0.0.1:1/none") == 1
    assert desk.json["error"]["code"] == "exchange_away"
    assert "hidden" not in desk.out + desk.err


def test_a_machine_without_the_library_is_told_what_to_install(
    machine: Callable[[str], Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One machine alone does not need it."""
    monkeypatch.delitem(sys.modules, "core.fleet.membership", raising=False)
    monkeypatch.delattr("core.fleet.membership", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    desk = machine("desk")

    assert desk.run("init", "--json") == 1

    assert desk.json["error"]["code"] == "library_missing"
    assert "make fleet" in desk.json["error"]["remedy"]
