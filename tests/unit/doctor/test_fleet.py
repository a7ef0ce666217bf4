"""What the doctor says of a fleet."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from core.base.files import private_folder
from core.base.paths import StatePaths
from core.doctor import fleet
from core.fleet.access import FILE, Access, keep
from core.model.health import State
from core.process.control import ControlSocket


def reached(servers: str, sslmode: str) -> Access:
    """Return the access of a host whose database is there."""
    return Access("lap", servers, "5432", "fleet", "role", "hidden", sslmode)


@pytest.mark.parametrize(
    ("servers", "sslmode", "state"),
    [
        ("db.example", "verify-full", State.OK),
        ("127.0.0.1", "prefer", State.OK),
        ("db.example", "prefer", State.WARNING),
        ("127.0.0.1,db.example", "prefer", State.WARNING),
    ],
)
def test_a_database_elsewhere_has_to_prove_itself(servers: str, sslmode: str, state: State) -> None:
    """The secret is never told."""
    found = fleet.connection(reached(servers, sslmode))

    assert found.state is state
    assert "hidden" not in found.detail + found.remedy
    assert bool(found.remedy) == (state is State.WARNING)


def test_a_host_that_has_not_joined_is_told_how(tmp_path: Path) -> None:
    """So is one whose file cannot be read."""
    paths = StatePaths(tmp_path)
    [missing] = fleet.joined(paths)
    keep(paths.fleet, reached("localhost", "prefer"))
    [well] = fleet.joined(paths)
    (paths.fleet / FILE).write_text("{")
    [broken] = fleet.joined(paths)

    assert [one.state for one in (missing, well, broken)] == [State.FAILED, State.OK, State.FAILED]
    assert "fleet join" in missing.remedy
    assert "cannot be read" in broken.detail


def host(name: str, **told: Any) -> Mapping[str, Any]:
    """Return a host as the service tells of it."""
    return {"host": name, "state": "active", "gateway": False, "speaks": False, **told}


@pytest.mark.parametrize(
    ("answer", "states", "remedy"),
    [
        ({"listening": True, "hosts": [host("hub", gateway=True, speaks=True)]}, [State.OK, State.OK], ""),
        ({"listening": False, "hosts": [host("hub", speaks=True)]}, [State.WARNING, State.OK], "--address"),
        ({"listening": True, "hosts": [host("hub", gateway=True)]}, [State.OK, State.FAILED], "on hub"),
        ({"listening": True, "hosts": [host("lap")]}, [State.OK, State.FAILED], "--gateway"),
        ({"failed": {"message": "has not answered since 14:03", "remedy": "look"}}, [State.FAILED], "look"),
        ({"error": "unknown operation"}, [State.UNKNOWN], "restart"),
    ],
    ids=["well", "pooler", "gateway-down", "no-gateway", "away", "older-service"],
)
def test_the_service_says_how_it_stands(
    short_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Mapping[str, Any], states: list[State], remedy: str
) -> None:
    """Over its real socket; what cannot be asked is not called bad."""
    paths = StatePaths(short_path)
    private_folder(paths.service_socket.parent)
    [nobody] = fleet.asked(paths)
    monkeypatch.setattr(fleet, "running_service", lambda _: 1)
    stopping = threading.Event()
    control = ControlSocket(paths.service_socket, {"fleet": lambda: answer})
    control.open()
    thread = threading.Thread(target=control.run, args=(stopping,))
    thread.start()
    try:
        found = list(fleet.asked(paths))
    finally:
        stopping.set()
        thread.join()
        control.close()

    assert nobody.state is State.UNKNOWN
    assert [one.state for one in found] == states
    assert remedy in " ".join(one.remedy for one in found)
    json.dumps([one.to_json() for one in found])
