"""What stands in the place of a file of one session keeps its messages, and is told of."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from core.base.paths import StatePaths
from core.lifecycle.everything import status_all
from core.lifecycle.look import list_standing
from core.model.message import MessageState
from tests.support.simulated import Simulation, simulated
from tests.support.world import events, waiting_message

STUCK, OTHER = "stuck", "other"


@pytest.fixture
def simulation(tmp_path: Path) -> Iterator[Simulation]:
    """Give a simulation of two sessions."""
    found = simulated(tmp_path / "state")
    for name in (STUCK, OTHER):
        found.session(name)
    yield found
    found.system.close()


def make_file(path: Path) -> None:
    """Put a file there."""
    path.touch()


def a_lock(paths: StatePaths) -> Path:
    """Return the session's lock."""
    return paths.locks / STUCK


def a_hold(paths: StatePaths) -> Path:
    """Return the file that blocks turns."""
    return paths.session(f"s-{STUCK}") / "hold"


def an_asking(paths: StatePaths) -> Path:
    """Return the mark of an open dialog."""
    return paths.session(f"s-{STUCK}") / "asking"


def all_locks(paths: StatePaths) -> Path:
    """Return the folder of all locks."""
    return paths.locks


def all_sessions(paths: StatePaths) -> Path:
    """Return the folder of all sessions."""
    return paths.sessions


def the_spool(paths: StatePaths) -> Path:
    """Return the folder of the session's reports."""
    return paths.spool_of(f"i-{STUCK}")


CASES = pytest.mark.parametrize(
    ("place", "make"),
    [
        (a_lock, Path.mkdir),
        (a_hold, Path.mkdir),
        (an_asking, Path.mkdir),
        (all_locks, make_file),
        (all_sessions, os.mkfifo),
        (the_spool, make_file),
    ],
)


def put(path: Path, make: Callable[[Path], None]) -> Path:
    """Put something in a file's place, and return where that is now."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f"{path.name}.aside")
    if path.exists():
        path.rename(aside)
    make(path)
    return aside


def take_away(path: Path, aside: Path) -> None:
    """Put back what was there."""
    path.rmdir() if path.is_dir() else path.unlink()
    if aside.exists():
        aside.rename(path)


@CASES
def test_the_row_says_what_keeps_its_messages(
    simulation: Simulation, place: Callable[[StatePaths], Path], make: Callable[[Path], None]
) -> None:
    """File, reason and remedy; the answer to whether all is well is no, and the database is not blamed."""
    assert status_all(simulation.system, ()).ok
    path = place(simulation.system.paths)
    put(path, make)

    status = status_all(simulation.system, ())
    rows = {row.name: row for row in list_standing(simulation.system)}

    assert not status.ok
    assert [service.name for service in status.services] == []
    assert str(path) in rows[STUCK].detail
    assert "move" in rows[STUCK].detail
    assert (str(path) in rows[OTHER].detail) == (place in (all_locks, all_sessions))


@CASES
def test_what_keeps_messages_is_told_once_and_when_it_is_over(
    simulation: Simulation, place: Callable[[StatePaths], Path], make: Callable[[Path], None]
) -> None:
    """The message waits, however often it is tried, and goes in afterwards."""
    path = place(simulation.system.paths)
    aside = put(path, make)
    sent = waiting_message(simulation.system, STUCK).id

    for _ in range(3):
        simulation.clock.pause(1)
        simulation.deliverer.advance_all([f"s-{STUCK}"])
    told = [entry["name"] for entry in events(simulation.system, "standing.passed_over")]
    waiting = simulation.system.inbox.get(sent)
    take_away(path, aside)
    for _ in range(3):
        simulation.clock.pause(1)
        simulation.deliverer.advance_all([f"s-{STUCK}"])

    row = simulation.system.inbox.get(sent)
    assert waiting is not None
    assert row is not None
    assert (told, waiting.state, waiting.detail) == ([STUCK], MessageState.PENDING, "")
    assert row.state in (MessageState.ACCEPTED, MessageState.CONFIRMED)
    assert [entry["name"] for entry in events(simulation.system, "standing.taken_up")] == [STUCK]
