"""Connections and transactions."""

import errno
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from core.base.clock import SystemClock
from core.base.errors import Refused, StoreBroken, StoreGone
from core.base.paths import StatePaths
from core.store import queries
from core.store.database import Database
from core.store.inbox import Inbox
from core.store.outbox import Outbox
from tests.unit.store.samples import StandingClock, a_message, a_post


class Holding:
    """Another process that has a database open."""

    def __init__(self, path: Path) -> None:
        code = (
            "import sqlite3, sys\n"
            f"connection = sqlite3.connect({str(path)!r}, isolation_level=None)\n"
            "connection.execute('SELECT count(*) FROM sqlite_schema').fetchone()\n"
            "print('open', flush=True)\n"
            "for query in sys.stdin:\n"
            "    print(connection.execute(query).fetchone()[0], flush=True)\n"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", code], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._answer() == "open"

    def ask(self, query: str) -> int:
        """Return the number that a query gives there."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{query}\n")
        self._process.stdin.flush()
        return int(self._answer())

    def end(self) -> None:
        """Let it close the database and end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


Holder = Callable[[Path], AbstractContextManager[Holding]]


@pytest.fixture
def holder() -> Holder:
    """Return what keeps a database open in another process for a block."""

    @contextmanager
    def hold(path: Path) -> Iterator[Holding]:
        holding = Holding(path)
        try:
            yield holding
        finally:
            holding.end()

    return hold


def test_the_database_and_what_sqlite_puts_beside_it_are_private(database: Database, paths: StatePaths) -> None:
    """The file, its log and its shared memory are 0600, whatever the umask allows."""
    before = os.umask(0)
    try:
        with database.transaction(durable=True):
            database.ingested("i-1", "r-1")
    finally:
        os.umask(before)

    modes = {path.name: path.stat().st_mode & 0o777 for path in paths.local.iterdir()}
    assert modes == {"the-loop.db": 0o600, "the-loop.db-wal": 0o600, "the-loop.db-shm": 0o600}


def test_a_database_that_is_open_to_others_is_tightened(database: Database, paths: StatePaths) -> None:
    """A file that was there with a loose mode becomes private."""
    paths.local.mkdir(parents=True)
    paths.database.touch(mode=0o644)

    database.forget_reports("i-1")

    assert paths.database.stat().st_mode & 0o777 == 0o600


def test_nothing_is_opened_before_it_is_used(paths: StatePaths, clock: StandingClock) -> None:
    """A command that needs no database makes none and is not stopped by a broken one."""
    Database(paths, clock).close()

    assert not paths.root.exists()


def test_a_report_is_taken_in_once(database: Database) -> None:
    """The second time is told apart, until the instance's reports are forgotten."""
    with database.transaction(durable=True):
        first = [database.ingested("i-1", "r-1"), database.ingested("i-1", "r-2"), database.ingested("i-2", "r-1")]
        again = database.ingested("i-1", "r-1")
    database.forget_reports("i-1")
    with database.transaction(durable=True):
        after, other = database.ingested("i-1", "r-1"), database.ingested("i-2", "r-1")

    assert first == [True, True, True]
    assert (again, after, other) == (False, True, False)


def test_a_request_that_was_heard_is_known_over_a_restart_until_its_time(
    paths: StatePaths, clock: StandingClock
) -> None:
    """The next service tells the second sight of it apart, unless it was not taken; after that time it is gone."""
    now = clock.now()
    until = now + timedelta(minutes=10)
    with closing(Database(paths, clock)) as earlier:
        first = [earlier.heard("slack", mark, now, until, durable=True) for mark in ("v0=a", "v0=b")]
        earlier.unheard("slack", "v0=b")
    with closing(Database(paths, clock)) as later:
        again = [later.heard("slack", mark, now, until, durable=False) for mark in ("v0=a", "v0=b")]
        late = [
            later.heard("slack", mark, until + timedelta(seconds=1), until, durable=False) for mark in ("v0=c", "v0=a")
        ]

    assert first == [True, True]
    assert again == [False, True]
    assert late == [True, True]


def test_a_report_outside_of_a_transaction_is_a_fault(database: Database) -> None:
    """A report that is marked as taken in apart from its effects could lose them."""
    with pytest.raises(RuntimeError, match="outside of a transaction"):
        database.ingested("i-1", "r-1")


def test_a_failed_transaction_stores_nothing(
    database: Database, inbox: Inbox, outbox: Outbox, clock: StandingClock
) -> None:
    """What the stores did inside the block goes as one."""

    def fail() -> None:
        with database.transaction(durable=True):
            inbox.add([a_message()])
            outbox.add([a_post()])
            database.ingested("i-1", "r-1")
            raise KeyError

    with pytest.raises(KeyError):
        fail()

    assert inbox.get("m-1") is None
    assert outbox.due("slack", clock.now()) == ()
    with database.transaction(durable=False):
        assert database.ingested("i-1", "r-1")


def test_a_joined_block_that_fails_is_undone_alone(database: Database, inbox: Inbox) -> None:
    """Who catches a refusal inside a transaction keeps the rest of it, and nothing of what was refused."""

    def be_refused() -> None:
        with database.transaction(durable=False):
            inbox.add([a_message(2)])
            raise Refused("no")

    with database.transaction(durable=True):
        inbox.add([a_message(1)])
        with pytest.raises(Refused):
            be_refused()
        inbox.add([a_message(3)])

    assert [row.message.id for row in inbox.unsettled("s-scribe")] == ["m-1", "m-3"]


@pytest.mark.parametrize(("outer", "inner"), [(True, True), (True, False), (False, True), (False, False)])
def test_blocks_of_either_kind_join(database: Database, outer: bool, inner: bool) -> None:
    """Durable or not, a block inside another commits with it."""
    with database.transaction(durable=outer), database.transaction(durable=inner):
        database.ingested("i-1", "r-1")

    assert len(database.read("SELECT * FROM reports")) == 1


@pytest.mark.parametrize(("durable", "level"), [(True, 2), (False, 1)])
def test_what_is_durable_is_synced_at_its_commit(database: Database, durable: bool, level: int) -> None:
    """Intake and marks wait for the disk (FULL), progress does not (NORMAL), in whichever order they come."""
    with database.transaction(durable=not durable):
        pass
    with database.transaction(durable=durable):
        seen = database.read("PRAGMA synchronous")[0][0]

    assert seen == level
    assert database.read("PRAGMA journal_mode")[0][0] == "wal"


def test_what_is_synced_afterwards_does_not_wait_at_its_commit(database: Database) -> None:
    """Others see it from its commit on; the disk is waited for by whoever calls `sync`."""
    with database.transaction_to_sync(), database.transaction(durable=True):
        database.ingested("i-1", "r-1")
        seen = database.read("PRAGMA synchronous")[0][0]
    database.sync()

    assert seen == 1
    assert len(database.read("SELECT * FROM reports")) == 1


def test_a_statement_alone_is_undone_with_the_transaction_that_it_is_part_of(database: Database) -> None:
    """Without a savepoint of its own it is stored and lost with the rest; outside of one it commits itself."""

    def overtaken() -> None:
        with database.transaction(durable=False):
            database.write_alone(queries.ADD_REPORT, ("i-1", "r-1"), durable=True)
            raise Refused("somebody was faster", "read it again")

    with pytest.raises(Refused):
        overtaken()
    database.write_alone(queries.ADD_REPORT, ("i-2", "r-2"), durable=True)

    assert [row["instance"] for row in database.read("SELECT instance FROM reports")] == ["i-2"]


def test_a_disk_that_fails_is_told_by_the_sync(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be brought to the disk is named, never taken for durable."""

    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("core.store.database._SYNC", fail)
    with database.transaction_to_sync():
        database.ingested("i-1", "r-1")

    with pytest.raises(StoreBroken, match=r"the-loop\.db-wal: cannot sync the file: Input/output error"):
        database.sync()


def test_threads_do_not_join_one_another(database: Database, inbox: Inbox) -> None:
    """A transaction belongs to its thread: another one neither sees nor ends it, and reads meanwhile."""
    seen: list[object] = []
    with database.transaction(durable=True):
        inbox.add([a_message()])
        reader = threading.Thread(target=lambda: seen.append(inbox.get("m-1")))
        reader.start()
        reader.join()

    assert seen == [None]
    assert inbox.get("m-1") is not None


def test_a_thread_that_ended_leaves_no_connection(database: Database, paths: StatePaths) -> None:
    """However many threads come and go, the open files do not pile up."""

    def use() -> None:
        database.read("SELECT 1")

    for _ in range(8):
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
    database.read("SELECT 1")

    links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
    targets = [os.readlink(link) for link in links if link.exists()]
    assert targets.count(str(paths.database)) <= 2


def test_a_locked_database_is_broken_after_the_deadline(paths: StatePaths, clock: StandingClock) -> None:
    """A writer that does not let go is waited for, then named as the reason."""
    patient, other = Database(paths, clock, busy_seconds=0.05), Database(paths, clock)
    try:
        with other.transaction(durable=False), pytest.raises(StoreBroken, match=r"stayed locked.*SQLITE_BUSY"):
            patient.forget_reports("i-1")
    finally:
        patient.close()
        other.close()


@pytest.mark.parametrize("damage", ["head", "middle"])
def test_a_damaged_database_is_said_and_left_alone(
    paths: StatePaths, clock: StandingClock, database: Database, inbox: Inbox, damage: str
) -> None:
    """Damage is an error with a remedy; nothing is emptied or made anew."""
    inbox.add([a_message(number, text="x" * 2000) for number in range(40)])
    database.close()
    whole = paths.database.read_bytes()
    damaged = b"not a database..." + whole[17:] if damage == "head" else whole[:4096] + b"\x55" * (len(whole) - 4096)
    paths.database.write_bytes(damaged)

    with pytest.raises(StoreBroken, match=r"the-loop\.db: the database is damaged .*move the file aside"):
        Inbox(database, clock).unsettled("s-scribe")

    database.close()
    assert paths.database.read_bytes() == damaged


def test_a_newer_database_is_refused(paths: StatePaths, database: Database) -> None:
    """The message says that the release is too old, and the file stays as it is."""
    with database.transaction(durable=False):
        database.read("SELECT 1")
    database.close()
    with sqlite3.connect(paths.database) as newer:
        newer.execute("PRAGMA user_version = 99")
    newer.close()

    with pytest.raises(StoreBroken, match=r"layout 99.*upgrade the-loop"):
        database.read("SELECT 1")


def test_reading_makes_no_database(paths: StatePaths, database: Database) -> None:
    """Where nothing was ever stored there is nothing to read, and a command that only looks leaves no file behind."""
    found = database.read("SELECT * FROM inbox")

    assert found == []
    assert not paths.local.exists()


def test_a_folder_in_place_of_the_database_is_said(paths: StatePaths, database: Database) -> None:
    """What cannot be opened is named with its path."""
    paths.database.mkdir(parents=True)

    with pytest.raises(StoreBroken, match=r"the-loop\.db"):
        database.read("SELECT 1")


def removed(path: Path) -> None:
    """Take the database away, as somebody does who wants to begin anew."""
    path.unlink()


def replaced(path: Path) -> None:
    """Put a copy in its place, as a restore does."""
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.replace(path)


def emptied(path: Path) -> None:
    """Cut it to nothing."""
    os.truncate(path, 0)


def without_log(path: Path) -> None:
    """Take away the log, which holds what was committed last."""
    path.with_name(path.name + "-wal").unlink()


def with_empty_log(path: Path) -> None:
    """Cut the log to nothing, which holds what was committed last."""
    os.truncate(path.with_name(path.name + "-wal"), 0)


def without_index(path: Path) -> None:
    """Take away the index of the log: who opens the database next makes another one, and neither sees the other."""
    path.with_name(path.name + "-shm").unlink()


def with_another_index(path: Path) -> None:
    """Put an empty file in the place of the log's index."""
    without_index(path)
    path.with_name(path.name + "-shm").touch()


def linked(path: Path) -> None:
    """Move it, and leave a link to it: SQLite looks for the log beside the file that the link leads to."""
    path.symlink_to(path.rename(path.with_name("elsewhere")))


LOSSES = pytest.mark.parametrize(
    "lose",
    [removed, replaced, emptied, without_log, with_empty_log, without_index, with_another_index, linked],
)


@LOSSES
def test_nothing_is_kept_in_a_file_that_is_not_the_databases_any_more(
    paths: StatePaths, database: Database, inbox: Inbox, lose: Callable[[Path], None]
) -> None:
    """Neither a read nor a write, in whichever thread, works on; what stands in its place is not touched."""
    inbox.add([a_message(1)])
    lose(paths.database)
    place = paths.database.read_bytes() if paths.database.exists() else None
    errors: list[str] = []

    def elsewhere() -> None:
        with pytest.raises(StoreGone) as told:
            inbox.add([a_message(2)])
        errors.append(str(told.value))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()

    for attempt in (lambda: inbox.add([a_message(3)]), lambda: inbox.unsettled("s-scribe"), database.sync):
        with pytest.raises(StoreGone, match=r"the-loop\.db.* while it was in use; (put it back|`the-loop start`)"):
            attempt()
    assert len(errors) == 1
    assert (paths.database.read_bytes() if paths.database.exists() else None) == place


@pytest.mark.parametrize("lose", [removed, replaced, emptied, without_log, without_index, with_another_index, linked])
def test_what_was_lost_while_it_was_written_is_not_told_as_kept(
    paths: StatePaths, database: Database, lose: Callable[[Path], None]
) -> None:
    """The commit went into a file that nobody finds: whoever asked for it is told that nothing is stored."""
    database.open()

    def write() -> None:
        with database.transaction(durable=False):
            database.ingested("i-1", "r-1")
            lose(paths.database)

    with pytest.raises(StoreGone):
        write()


def test_many_reads_of_a_moment_look_at_the_files_once(paths: StatePaths, database: Database, inbox: Inbox) -> None:
    """In a checked block a read does not look again; a transaction does, and so does the next read behind it."""
    inbox.add([a_message(1)])

    with database.checked():
        removed(paths.database)
        found = inbox.unsettled("s-scribe")
        with pytest.raises(StoreGone):
            inbox.add([a_message(2)])

    assert len(found) == 1
    with pytest.raises(StoreGone):
        inbox.unsettled("s-scribe")
    with pytest.raises(StoreGone), database.checked():
        pass


def test_a_checked_block_makes_no_database(paths: StatePaths, database: Database, inbox: Inbox) -> None:
    """Reading one that does not exist creates none."""
    with database.checked():
        found = inbox.unsettled("s-scribe")

    assert (found, paths.database.exists()) == ((), False)


@pytest.mark.parametrize("lose", [without_log, without_index, with_another_index])
def test_nobody_begins_beside_a_process_whose_files_were_taken_away(
    paths: StatePaths, database: Database, holder: Holder, lose: Callable[[Path], None]
) -> None:
    """Neither would see what the other commits: it is an error that names the file, and nothing is written."""
    database.open()
    with holder(paths.database):
        database.close()
        lose(paths.database)

        with pytest.raises(StoreGone, match=r"the-loop\.db-(wal|shm): .* while another process uses it; "):
            database.forget_reports("i-1")


def test_a_process_that_is_there_is_joined(paths: StatePaths, database: Database, holder: Holder) -> None:
    """What one commits the other finds."""
    database.open()
    with holder(paths.database) as other:
        database.close()
        database.forget_reports("i-1")
        found = other.ask("PRAGMA user_version")

    assert found == database.read("PRAGMA user_version")[0][0]


def test_who_begins_waits_for_a_process_that_lost_its_files_to_end(paths: StatePaths, holder: Holder) -> None:
    """A service which finds them gone ends within seconds: whoever comes meanwhile begins after it."""
    with closing(Database(paths, SystemClock())) as database:
        database.open()
        with holder(paths.database) as other:
            database.close()
            without_index(paths.database)
            threading.Timer(0.3, other.end).start()
            database.forget_reports("i-1")

        assert database.read("PRAGMA user_version")[0][0]


def test_a_log_that_a_checkpoint_has_emptied_is_well(paths: StatePaths, database: Database, inbox: Inbox) -> None:
    """What copies a database, or somebody at a shell, may do that at any time, and takes nothing away."""
    inbox.add([a_message(1)])
    with closing(sqlite3.connect(paths.database)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    empty = paths.database.with_name(paths.database.name + "-wal").stat().st_size == 0

    inbox.add([a_message(2)])

    assert (empty, len(inbox.unsettled("s-scribe"))) == (True, 2)


def test_a_file_that_has_come_back_is_not_worked_with_any_more(paths: StatePaths, database: Database) -> None:
    """Others may have begun another one meanwhile: only a new process begins with what is there."""
    database.open()
    aside = paths.database.with_name("aside")
    paths.database.rename(aside)
    with pytest.raises(StoreGone):
        database.same_file()
    aside.rename(paths.database)

    with pytest.raises(StoreGone):
        database.read("SELECT 1")


def test_an_emptied_file_is_not_called_locked(paths: StatePaths, database: Database) -> None:
    """A process that has it open keeps it from becoming a database again; the reason is that it is empty."""
    database.open()
    os.truncate(paths.database, 0)
    other = Database(paths, SystemClock(), busy_seconds=0.1)

    with pytest.raises(StoreBroken, match=r"the database is damaged \(it was emptied.*move the file aside"):
        other.read("SELECT 1")


def test_an_empty_file_is_no_database_to_read(paths: StatePaths, database: Database) -> None:
    """Whoever looks makes none of it: what is lost shows until somebody begins anew."""
    paths.local.mkdir(parents=True)
    paths.database.touch()

    found = database.read("SELECT * FROM inbox")

    assert (found, database.is_there(), paths.database.stat().st_size) == ([], False, 0)


def test_a_database_of_something_else_is_left_alone(paths: StatePaths, database: Database) -> None:
    """Tables of ours are no gift to it."""
    paths.local.mkdir(parents=True)
    with sqlite3.connect(paths.database) as theirs:
        theirs.execute("CREATE TABLE theirs (word TEXT)")
    theirs.close()

    with pytest.raises(StoreBroken, match=r"no database of the-loop.*move it away"):
        database.open()

    with sqlite3.connect(paths.database) as theirs:
        assert [row[0] for row in theirs.execute("SELECT name FROM sqlite_schema")] == ["theirs"]
    theirs.close()


def test_a_database_that_lacks_a_table_is_damaged(paths: StatePaths, database: Database) -> None:
    """It is not told as a fault of the-loop, which nobody could do anything about."""
    database.open()
    with sqlite3.connect(paths.database) as other:
        other.execute("DROP TABLE inbox")
    other.close()

    with pytest.raises(StoreBroken, match=r"lacks what it should hold.*move the file aside"):
        database.read("SELECT * FROM inbox")


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/nowhere/at-all")], ids=["FIFO", "link"])
def test_what_is_no_file_is_not_taken_for_a_database(
    paths: StatePaths, database: Database, make: Callable[[Path], None]
) -> None:
    """It is named, with what helps; it holds nobody up, and is not read as "there is none"."""
    paths.local.mkdir(parents=True)
    make(paths.database)

    with pytest.raises(StoreBroken, match=r"the-loop\.db: cannot use the file: it is .*; move "):
        database.read("SELECT 1")


def test_damage_where_nothing_reads_is_found_by_the_check(paths: StatePaths, database: Database, inbox: Inbox) -> None:
    """A page that no look at a session needs is looked at as well."""
    inbox.add([a_message(number, text="x" * 3000) for number in range(40)])
    database.check()
    database.close()
    whole = bytearray(paths.database.read_bytes())
    page = whole.index(b"x" * 2000) // 4096 * 4096
    whole[page : page + 4096] = b"\x55" * 4096
    paths.database.write_bytes(whole)

    with pytest.raises(StoreBroken, match=r"the database is damaged .*move the file aside"):
        database.check()


def test_a_check_of_a_large_database_ends_in_time(
    paths: StatePaths, inbox: Inbox, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could not be looked at in time is not called damaged."""
    inbox.add([a_message(number) for number in range(40)])
    monkeypatch.setattr("core.store.database._CHECK_SECONDS", 0.0)
    monkeypatch.setattr("core.store.database._CHECK_STEPS", 1)

    database.check()

    assert inbox.unsettled("s-scribe")


def test_a_database_that_is_begun_is_told(paths: StatePaths, clock: StandingClock) -> None:
    """Once, by whoever made it."""
    told: list[str] = []
    for _ in range(2):
        database = Database(paths, clock, begun=lambda: told.append("begun"))
        database.open()
        database.close()

    assert told == ["begun"]


def test_a_thread_that_leaves_begins_anew_and_takes_no_file_along(database: Database) -> None:
    """What a thread holds is let go of where others hold the files open, and all that was written is there for it."""

    def held() -> int:
        return len(database._sessions)

    database.open()
    database.leave()
    assert held() == 1  # the last one: SQLite would remove the log with it, and others are told that it is gone
    left, ended = threading.Event(), threading.Event()

    def other() -> None:
        database.open()
        left.set()
        ended.wait(40)

    thread = threading.Thread(target=other)
    thread.start()
    assert left.wait(40)
    with database.transaction(durable=False):
        assert database.ingested("i-1", "r-1")
    database.leave()
    assert held() == 1
    with database.transaction(durable=False):
        assert not database.ingested("i-1", "r-1")
    assert held() == 2
    ended.set()
    thread.join()
