"""What the tests of the store run in processes of their own: `python -m … WHAT ROOT`, and what else it takes."""

import fcntl
import os
import resource
import signal
import sys
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from core.base.clock import SystemClock
from core.base.errors import CoreError, StoreBroken
from core.base.locks import Locks
from core.base.paths import StatePaths
from core.model.session import Thread
from core.store.database import Database
from core.store.eventlog import EventLog
from core.store.inbox import Inbox
from core.store.loops import Loops
from core.store.records import Records
from tests.unit.store.samples import a_loop, a_message, a_record


def say(word: str) -> None:
    """Tell the test how far this process has come."""
    print(word, flush=True)


def die() -> None:
    """End as under kill -9."""
    os.kill(os.getpid(), signal.SIGKILL)


def database(root: str) -> Database:
    """Return the database of the state root."""
    return Database(StatePaths(Path(root)), SystemClock())


def hammer(root: str, who: str, count: str) -> None:
    """Add messages whose keys every hammering process uses, and tell how many were new."""
    inbox = Inbox(database(root), SystemClock())
    say("ready")
    sys.stdin.readline()
    new = 0
    for number in range(int(count)):
        pair = [a_message(number, id=f"{who}-{number}-{key}", key=f"k{number}-{key}") for key in "ab"]
        new += sum(inbox.add(pair))
    say(str(new))


def die_in_transaction(root: str) -> None:
    """Die with messages written and not committed."""
    store = database(root)
    with store.transaction(durable=True):
        Inbox(store, SystemClock()).add([a_message(1), a_message(2)])
        die()


def die_after_commit(root: str) -> None:
    """Die at once after `add` has returned."""
    Inbox(database(root), SystemClock()).add([a_message(1), a_message(2)])
    die()


def claim(root: str, who: str) -> None:
    """Claim due runs, a few at a time, until none is left, and tell the ids."""
    loops = Loops(database(root), SystemClock())
    say("ready")
    sys.stdin.readline()
    now = SystemClock().now()
    while claimed := loops.claim(now, who, now + timedelta(hours=1), 7):
        for loop, run in claimed:
            say(f"{loop.id} {run.id}")
    say("done")


def open_loops(root: str, who: str, most_open: str) -> None:
    """Add twenty loops to one session, which may have so many, and tell how many were taken."""
    loops = Loops(database(root), SystemClock())
    say("ready")
    sys.stdin.readline()
    taken = [loops.add(a_loop(number, id=f"loop_{who}{number}"), int(most_open)) for number in range(20)]
    say(str(sum(taken)))


def die_with_claims(root: str) -> None:
    """Die with every due run claimed for an hour."""
    now = SystemClock().now()
    Loops(database(root), SystemClock()).claim(now, "dead", now + timedelta(hours=1), 1000)
    die()


def die_before_rename(root: str) -> None:
    """Die where the new record is written and not yet in its place."""

    def hook(event: str, _: tuple[object, ...]) -> None:
        if event == "os.rename":
            die()

    sys.addaudithook(hook)
    Records(StatePaths(Path(root))).write(a_record(generation=2))


def hold(root: str, name: str, purpose: str) -> None:
    """Hold the session's lock until a line comes."""
    with Locks(StatePaths(Path(root))).hold(name, purpose, 10):
        say("held")
        sys.stdin.readline()


def count_up(root: str, count: str) -> None:
    """Raise a number in a file under the lock, by reading and writing it."""
    paths = StatePaths(Path(root))
    locks = Locks(paths)
    number = paths.root / "number"
    for _ in range(int(count)):
        with locks.hold("scribe", "count", 30):
            number.write_text(str(int(number.read_text()) + 1))


def emit(root: str, who: str, count: str, max_bytes: str, keep: str) -> None:
    """Write that many events, numbered."""
    log = EventLog(StatePaths(Path(root)).events, SystemClock(), max_bytes=int(max_bytes), keep=int(keep))
    say("ready")
    sys.stdin.readline()
    for number in range(int(count)):
        log.emit("standing.said", actor=who, detail="x" * (number % 97), generation=number)
    say("done")


def hold_log(root: str) -> None:
    """Hold the event log's own lock until a line comes."""
    with StatePaths(Path(root)).events.with_name("events.jsonl.lock").open("rb+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        say("held")
        sys.stdin.readline()


def full_disk(root: str, limit: str) -> None:
    """Do one write of each kind where no file may grow beyond `limit` bytes, and tell what came of it."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    paths = StatePaths(Path(root))
    store = database(root)
    inbox = Inbox(store, SystemClock())

    def go_on_after_a_failure() -> None:
        with store.transaction(durable=True):
            inbox.add([a_message(3)])
            with suppress(StoreBroken):
                inbox.add([a_message(4, text="x" * 8_000_000)])

    for doing in (
        lambda: Records(paths).write(a_record(generation=2, thread=Thread("slack", "C" * 1_000_000, "1.1"))),
        lambda: inbox.add([a_message(2, text="x" * 2_000_000)]),
        go_on_after_a_failure,
    ):
        try:
            doing()
        except CoreError as error:
            say(f"{error.code}: {error}")
        else:
            say("written")
    EventLog(paths.events, SystemClock(), max_bytes=10**9, keep=1).emit("standing.said", detail="y" * 1_000_000)
    with Locks(paths).hold("scribe", "stop", 1):
        say("locked")
    say(f"read {len(inbox.unsettled('s-scribe'))}")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
