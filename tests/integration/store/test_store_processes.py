"""The store between processes, and after their death."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from core.base.clock import SystemClock
from core.base.errors import LockBusy
from core.base.locks import Locks
from core.base.paths import StatePaths
from core.store.database import Database
from core.store.eventlog import EventLog
from core.store.inbox import Inbox
from core.store.records import Records
from tests.integration.store.conftest import REPOSITORY, Child, go_on, line
from tests.unit.store.samples import a_message, a_record

Run = Callable[..., Child]


def _texts(paths: StatePaths) -> list[str]:
    database = Database(paths, SystemClock())
    try:
        return [row.message.text for row in Inbox(database, SystemClock()).unsettled("s-scribe")]
    finally:
        database.close()


def test_two_processes_with_the_same_keys_store_each_once(paths: StatePaths, run: Run) -> None:
    """Both make the database at once, and every key is new to exactly one of them."""
    children = [run("hammer", who, "60") for who in ("one", "two")]
    assert [line(child) for child in children] == ["ready", "ready"]

    for child in children:
        go_on(child)
    new = [int(line(child)) for child in children]

    assert sum(new) == 120
    assert len(_texts(paths)) == 120


def test_a_process_killed_in_a_transaction_leaves_nothing_of_it(paths: StatePaths, run: Run) -> None:
    """What was not committed is not there, and the next writer does not wait for the dead."""
    child = run("die_in_transaction")

    assert child.wait(30) == -signal.SIGKILL
    assert _texts(paths) == []
    database = Database(paths, SystemClock(), busy_seconds=0.5)
    assert Inbox(database, SystemClock()).add([a_message(1)]) == (True,)
    database.close()


def test_a_process_killed_after_the_commit_leaves_all_of_it(paths: StatePaths, run: Run) -> None:
    """When `add` has returned, the messages are there whatever happens to the process."""
    child = run("die_after_commit")

    assert child.wait(30) == -signal.SIGKILL
    assert _texts(paths) == ["text 1", "text 2"]


def test_a_crash_between_temp_file_and_rename_leaves_the_old_record(paths: StatePaths, run: Run) -> None:
    """The record is the old one until the rename, and what the dead process left is nobody's record."""
    records = Records(paths)
    records.write(a_record())

    child = run("die_before_rename")

    assert child.wait(30) == -signal.SIGKILL
    assert len(os.listdir(paths.records)) == 2
    assert records.all() == (a_record(),)
    records.write(a_record(generation=3))
    assert records.read("scribe") == a_record(generation=3)


def test_a_lock_names_its_holder_in_another_process(paths: StatePaths, run: Run) -> None:
    """Whoever waits in vain learns which process holds the lock, and for what; once it ends the lock is free."""
    child = run("hold", "scribe", "stop")
    assert line(child) == "held"
    locks = Locks(paths)

    with pytest.raises(LockBusy, match=rf"held by pid {child.pid} to stop"), locks.hold("scribe", "say", 0.1):
        pass
    go_on(child)

    with locks.hold("scribe", "say", 10):
        pass


def test_a_killed_holder_frees_the_lock(paths: StatePaths, run: Run) -> None:
    """kill -9 of the holder is enough; its stale note changes nothing."""
    child = run("hold", "scribe", "stop")
    assert line(child) == "held"

    child.kill()

    with Locks(paths).hold("scribe", "start", 10):
        pass


def test_processes_exclude_each_other(paths: StatePaths, run: Run) -> None:
    """A number that two processes raise by reading and writing loses no step."""
    paths.root.mkdir()
    number = paths.root / "number"
    number.write_text("0")

    children = [run("count_up", "100") for _ in range(2)]

    assert [child.wait(60) for child in children] == [0, 0]
    assert number.read_text() == "200"


def test_two_writers_and_rotation_lose_no_line(paths: StatePaths, run: Run) -> None:
    """Lines of two processes never mix, and every one is kept, in its writer's order, across many rotations."""
    children = [run("emit", who, "300", "4000", "60") for who in ("one", "two")]
    assert [line(child) for child in children] == ["ready", "ready"]

    for child in children:
        go_on(child)
    assert [line(child) for child in children] == ["done", "done"]

    log = EventLog(paths.events, SystemClock(), max_bytes=4000, keep=60)
    events = list(log.read())
    for who in ("one", "two"):
        assert [event["generation"] for event in events if event["actor"] == who] == list(range(300))
    assert len(events) == 600
    assert len(list(paths.local.glob("events.jsonl.[0-9]*"))) > 10


def test_a_follower_sees_every_line_of_two_writers(paths: StatePaths, run: Run) -> None:
    """Following while two processes write and rotate yields each event once, in its writer's order."""
    log = EventLog(paths.events, SystemClock(), max_bytes=4000, keep=60)
    children = [run("emit", who, "200", "4000", "60") for who in ("one", "two")]
    assert [line(child) for child in children] == ["ready", "ready"]
    seen: list[tuple[str, int]] = []

    for child in children:
        go_on(child)
    for event in log.read(follow=True, stopping=lambda: len(seen) >= 400, interval=0.01):
        seen.append((event["actor"], event["generation"]))
        if len(seen) == 400:
            break

    for who in ("one", "two"):
        assert [number for writer, number in seen if writer == who] == list(range(200))


def test_a_writer_that_sleeps_in_the_lock_costs_no_line(paths: StatePaths, run: Run) -> None:
    """While another process holds the log's lock and does not go on, events are written all the same."""
    log = EventLog(paths.events, SystemClock(), max_bytes=10**6, keep=1)
    log.emit("service.started")
    child = run("hold_log")
    assert line(child) == "held"

    log.emit("service.stopped")

    assert [event["event"] for event in log.read()] == ["service.started", "service.stopped"]


def test_a_full_disk_is_said_and_damages_nothing(paths: StatePaths, run: Run) -> None:
    """Each write fails with its reason, what was there stays whole, and the lock and reading still work."""
    records, database = Records(paths), Database(paths, SystemClock())
    records.write(a_record())
    Inbox(database, SystemClock()).add([a_message(1)])
    database.close()
    log = EventLog(paths.events, SystemClock(), max_bytes=10**9, keep=1)
    log.emit("service.started")

    child = run("full_disk", str(paths.database.stat().st_size))
    said, complaints = child.communicate(timeout=60)

    record, message, joined, *rest = said.splitlines()
    assert record.startswith("store_broken: ")
    assert "scribe.json: cannot write the file: File too large; raise the limit" in record
    assert "the-loop.db: the disk failed, or is full" in message
    assert "the transaction was undone by an earlier failure" in joined
    assert rest == ["locked", "read 1"]
    assert "event log cannot be written" in complaints
    assert child.returncode == 0
    assert records.all() == (a_record(),)
    assert os.listdir(paths.records) == ["scribe.json"]
    assert _texts(paths) == ["text 1"]
    log.emit("service.stopped")
    assert [event["event"] for event in log.read()] == ["service.started", "service.stopped"]


def test_reading_records_and_counts_loads_nothing_heavy() -> None:
    """What every cold command loads of the store is light: no library, no slow part of the standard one."""
    modules = ("records", "database", "inbox", "outbox", "requests", "sessions", "loops", "eventlog")
    program = "import sys, " + ", ".join(f"core.store.{name}" for name in modules) + "; print(*sys.modules)"

    said = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)

    loaded = set(said.stdout.split())
    assert "core.store.records" in loaded
    assert not loaded & {
        "psutil",
        "filelock",
        "pydantic",
        "yaml",
        "logging",
        "asyncio",
        "subprocess",
        "tempfile",
        "uuid",
    }
