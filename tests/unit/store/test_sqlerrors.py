"""SQLite's errors, each made for real."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.base.errors import StoreBroken
from core.store.sqlerrors import Translated


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a database of one small table."""
    path = tmp_path / "the-loop.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE small (word TEXT UNIQUE)")
    connection.close()
    return path


@pytest.fixture
def connection(path: Path) -> Iterator[sqlite3.Connection]:
    """Return a connection to it that does not wait."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    yield connection
    connection.close()


def test_a_full_disk_is_told_as_such(path: Path, connection: sqlite3.Connection) -> None:
    """The remedy is space."""
    connection.execute("PRAGMA max_page_count = 3")

    with pytest.raises(StoreBroken, match=r"the-loop\.db: the disk is full .*free some space"), Translated(path):
        connection.execute("INSERT INTO small VALUES (?)", ("x" * 100_000,))


@pytest.mark.parametrize("value", ["half a pair \udcff", 1 << 70])
def test_a_value_that_no_database_keeps_is_told_as_such(
    path: Path, connection: sqlite3.Connection, value: str | int
) -> None:
    """It is Python that refuses it, and the caller is told as of any other failure."""
    with pytest.raises(StoreBroken, match=r"the-loop\.db: a value cannot be kept"), Translated(path):
        connection.execute("INSERT INTO small VALUES (?)", (value,))


def test_a_read_only_database_is_told_as_such(path: Path) -> None:
    """The remedy is rights."""
    readonly = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)
    try:
        with pytest.raises(StoreBroken, match=r"read-only .*SQLITE_READONLY.*make that file"), Translated(path):
            readonly.execute("INSERT INTO small VALUES ('x')")
    finally:
        readonly.close()


def test_a_locked_database_is_told_as_such(path: Path, connection: sqlite3.Connection) -> None:
    """The remedy is to find who holds it."""
    other = sqlite3.connect(path, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBroken, match=r"stayed locked by another process.*find the process"), Translated(path):
            connection.execute("BEGIN IMMEDIATE")
    finally:
        other.close()


def test_a_file_that_is_no_database_is_told_as_damaged(tmp_path: Path) -> None:
    """The remedy is a copy; the file is not touched."""
    path = tmp_path / "other"
    path.write_text("no database " * 100)
    connection = sqlite3.connect(path)
    try:
        with pytest.raises(StoreBroken, match=r"damaged \(SQLITE_NOTADB.*move the file aside"), Translated(path):
            connection.execute("SELECT * FROM sqlite_schema")
    finally:
        connection.close()


def test_a_fault_of_ours_is_told_as_one(path: Path, connection: sqlite3.Connection) -> None:
    """What no disk and no person caused asks for a report, with SQLite's words in it."""
    connection.execute("INSERT INTO small VALUES ('x')")

    with pytest.raises(StoreBroken, match=r"UNIQUE.*please report"), Translated(path):
        connection.execute("INSERT INTO small VALUES ('x')")
