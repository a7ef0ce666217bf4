"""A state root of its own for each test, and the stores on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.paths import StatePaths
from core.store.database import SqliteDatabase
from core.store.inbox import SqliteInbox
from core.store.loops import SqliteLoops
from core.store.outbox import SqliteOutbox
from core.store.records import RecordFiles
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
def database(paths: StatePaths, clock: StandingClock) -> Iterator[SqliteDatabase]:
    """Return a new database."""
    database = SqliteDatabase(paths, clock)
    yield database
    database.close()


@pytest.fixture
def inbox(database: SqliteDatabase, clock: StandingClock) -> SqliteInbox:
    """Return an empty inbox."""
    return SqliteInbox(database, clock)


@pytest.fixture
def outbox(database: SqliteDatabase, clock: StandingClock) -> SqliteOutbox:
    """Return an empty outbox."""
    return SqliteOutbox(database, clock)


@pytest.fixture
def records(paths: StatePaths) -> RecordFiles:
    """Return the records of an empty state root."""
    return RecordFiles(paths)


@pytest.fixture
def loops(database: SqliteDatabase, clock: StandingClock) -> SqliteLoops:
    """Return the loops of an empty database."""
    return SqliteLoops(database, clock)
