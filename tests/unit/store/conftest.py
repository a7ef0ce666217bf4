"""A state root of its own for each test, and the stores on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.base.paths import StatePaths
from core.store.database import Database
from core.store.inbox import Inbox
from core.store.loops import Loops
from core.store.outbox import Outbox
from core.store.records import Records
from tests.unit.store.samples import StandingClock


@pytest.fixture
def paths(tmp_path: Path) -> StatePaths:
    """Return the layout of a state root that is not there yet."""
    return StatePaths(tmp_path / "state")


@pytest.fixture
def clock() -> StandingClock:
    """Return a clock that stands still."""
    return StandingClock()


@pytest.fixture
def database(paths: StatePaths, clock: StandingClock) -> Iterator[Database]:
    """Return a new database."""
    database = Database(paths, clock)
    yield database
    database.close()


@pytest.fixture
def inbox(database: Database, clock: StandingClock) -> Inbox:
    """Return an empty inbox."""
    return Inbox(database, clock)


@pytest.fixture
def outbox(database: Database, clock: StandingClock) -> Outbox:
    """Return an empty outbox."""
    return Outbox(database, clock)


@pytest.fixture
def records(paths: StatePaths) -> Records:
    """Return the records of an empty state root."""
    return Records(paths)


@pytest.fixture
def loops(database: Database, clock: StandingClock) -> Loops:
    """Return the loops of an empty database."""
    return Loops(database, clock)
