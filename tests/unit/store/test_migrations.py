"""The database's layout, step by step."""

import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.base.clock import from_iso, iso
from core.base.errors import StoreBroken
from core.store.migrations import MIGRATIONS, migrate

_LATER = (
    *MIGRATIONS,
    ("CREATE TABLE later (id TEXT)", "INSERT INTO later SELECT key FROM inbox"),
    ("ALTER TABLE later ADD COLUMN more TEXT DEFAULT 'new'",),
)


_WITH_CODES = 25  #: the step since which a row holds a code, not a sentence


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """Return a connection to an empty database in autocommit mode."""
    connection = sqlite3.connect(tmp_path / "db", isolation_level=None)
    yield connection
    connection.close()


def _add_message(connection: sqlite3.Connection) -> None:
    why = "reason" if _version(connection) >= _WITH_CODES else "detail"
    connection.execute(
        "INSERT INTO inbox (id, key, uid, name, generation, kind, actor, who, via, marker, text, raw, order_us,"
        f" created_at, state, {why}, updated_at)"
        " VALUES ('m', 'k', 'u', 'n', 1, 'say', '', '', '', '', '', 0, 0, '', 'queued', '', '')"
    )


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _layout(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    return connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall()


@pytest.mark.parametrize("start", range(1, len(_LATER) + 1))
def test_each_earlier_layout_is_brought_up_to_date_with_its_rows(connection: sqlite3.Connection, start: int) -> None:
    """From whichever step a database stands at, the missing ones are applied once and its rows stay."""
    migrate(connection, "db", _LATER[:start])
    _add_message(connection)

    migrate(connection, "db", _LATER)
    migrate(connection, "db", _LATER)

    assert _version(connection) == len(_LATER)
    assert connection.execute("SELECT key FROM inbox").fetchall() == [("k",)]
    assert connection.execute("SELECT * FROM later").fetchall() == ([("k", "new")] if start <= len(MIGRATIONS) else [])


def test_an_upgraded_layout_is_the_same_as_a_new_one(connection: sqlite3.Connection, tmp_path: Path) -> None:
    """Step by step or all at once, the tables come out the same."""
    for end in range(1, len(_LATER) + 1):
        migrate(connection, "db", _LATER[:end])
    fresh = sqlite3.connect(tmp_path / "fresh", isolation_level=None)
    try:
        migrate(fresh, "fresh", _LATER)

        assert _layout(fresh) == _layout(connection)
    finally:
        fresh.close()


def test_a_step_that_fails_leaves_the_layout_as_it_was(connection: sqlite3.Connection) -> None:
    """All missing steps are one transaction: none is half done."""
    migrate(connection, "db", MIGRATIONS)
    before = _layout(connection)

    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, "db", (*MIGRATIONS, ("CREATE TABLE one (id TEXT)", "CREATE nonsense")))

    assert _layout(connection) == before
    assert _version(connection) == len(MIGRATIONS)
    assert not connection.in_transaction


def test_a_newer_database_is_refused_and_left_alone(connection: sqlite3.Connection) -> None:
    """An older release neither uses nor empties what a newer one wrote."""
    migrate(connection, "db", _LATER)
    before = _layout(connection)

    with pytest.raises(StoreBroken, match=r"newer release wrote this database.*upgrade the-loop"):
        migrate(connection, "/state/the-loop.db", MIGRATIONS)

    assert _layout(connection) == before


def test_posts_of_before_they_told_when_they_were_over_are_over_since_the_upgrade(
    connection: sqlite3.Connection,
) -> None:
    """Nothing of them goes at once, and the moment has the one spelling of stored times."""
    migrate(connection, "db", MIGRATIONS[:8])
    connection.execute(
        "INSERT INTO outbox (id, key, kind, uid, name, channel_kind, text, channel, thread, state)"
        " VALUES ('p', 'k', 'note', 'u', 'n', 'slack', '', '', '', 'sent')"
    )
    before = datetime.now(UTC) - timedelta(milliseconds=1)  # SQLite's clock tells whole milliseconds

    migrate(connection, "db")

    [(moment,)] = connection.execute("SELECT changed_at FROM outbox").fetchall()
    assert iso(from_iso(moment)) == moment
    assert before <= from_iso(moment) <= datetime.now(UTC)
