"""A the-loop of its own for each test, with a private tmux server and the bundled agent in its panes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.delivery.saying import say
from core.lifecycle.start import start_standing
from core.model.activity import ActivityState
from core.session.system import System
from tests.support.talking import record_of, rows, talking
from tests.support.tmux import PrivateTmux, private_tmux, wait_until
from tests.support.typist import Typist
from tests.support.world import ACTOR, World


@pytest.fixture
def private() -> Iterator[PrivateTmux]:
    """Give a tmux server that nobody else knows."""
    with private_tmux() as server:
        yield server


@pytest.fixture
def world(private: PrivateTmux, tmp_path: Path) -> World:
    """Give a world that declares `scribe` and `scribe-two`."""
    world = World(tmp_path, private.server.socket_name, private.folder, declared=("scribe", "scribe-two"))
    world.cwd.mkdir()
    return world


@pytest.fixture
def quick(world: World) -> System:
    """Give the same ports, which wait for tmux for a moment only: it is going to be silent."""
    return talking(replace(world, command_seconds=1.5))


@pytest.fixture
def system(world: World) -> System:
    """Give the world's ports, with nothing started."""
    return talking(world)


@pytest.fixture
def scribe(system: System) -> System:
    """Give the world's ports with `scribe` started and its boot turn over."""
    answer = start_standing(system, "scribe", ACTOR)
    assert answer.ok, answer.to_json()
    settle(system)
    return system


def settle(system: System, name: str = "scribe") -> None:
    """Wait until the session is idle by its own word."""
    record = system.records.read(name)
    assert record is not None

    def idle() -> bool:
        system.ingest(record.uid)
        activity = system.activities.get(record.uid)
        return activity is not None and activity.state.value == "idle"

    wait_until(idle, f"{name} is idle; {rows(system, name)}")


@pytest.fixture
def typist(scribe: System, private: PrivateTmux) -> Iterator[Typist]:
    """Give a person who sits at the terminal of `scribe`, a second after its turn began: tmux tells keys by seconds."""
    uid, _ = record_of(scribe)
    activity = scribe.activities.get(uid)
    began = activity.turn_started_at if activity else None
    assert began is not None
    wait_until(lambda: (scribe.clock.now() - began).total_seconds() > 1.0, "the turn's second is over")
    person = Typist(private, "loop-standing-scribe")
    yield person
    person.close()


def open_dialog(system: System, private: PrivateTmux) -> Path:
    """Make `scribe` ask for a permission and return its marker, once it takes keys and its report is in."""
    say(system, "scribe", "ask permission", actor=ACTOR)
    shown = "Escape: none"
    wait_until(lambda: shown in private.tmux("capture-pane", "-p", "-t", "=loop-standing-scribe:"), "the dialog shows")
    uid, _ = record_of(system)

    def told() -> bool:
        system.ingest(uid)
        activity = system.activities.get(uid)
        return activity is not None and activity.state is ActivityState.PERMISSION

    wait_until(told, "the dialog is reported, by a hook that runs beside it")
    return system.paths.session(uid) / "asking"
