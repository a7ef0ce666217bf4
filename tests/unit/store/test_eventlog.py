"""The event log of one process."""

import hashlib
import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import StoreBroken
from core.base.redaction import Redactor
from core.model.events import Event
from core.model.message import MessageState
from core.store.eventlog import EventLog
from tests.unit.store.samples import StandingClock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the log is to be."""
    return tmp_path / "local" / "events.jsonl"


@pytest.fixture
def log(path: Path, clock: StandingClock) -> EventLog:
    """Return an empty log that never rotates here."""
    return EventLog(path, clock, max_bytes=10**6, keep=2)


def test_a_line_has_its_keys_in_order(log: EventLog, path: Path) -> None:
    """Every key that has a value, in the documented order, and the ref after the name."""
    log.emit(
        "standing.refused",
        level="warning",
        name="scribe",
        actor="cli:ann",
        reason="stopped",
        detail="it is stopped",
        instance="i-1",
        generation=2,
        message="m-1",
        channel="C1",
        thread="17.1",
        text="héllo",
    )

    line = json.loads(path.read_text())
    assert list(line) == [
        *("ts", "event", "level", "ref", "name", "actor", "reason", "detail", "instance", "generation", "message"),
        *("channel", "thread", "text"),
    ]
    assert line["ts"] == "2026-05-04T12:00:00.123456Z"
    assert line["ref"] == "standing:scribe"
    assert line["text"] == {"id": "m-1", "length": 5, "sha256": hashlib.sha256("héllo".encode()).hexdigest()}


@pytest.mark.parametrize("include_text", [False, True])
def test_no_secret_stands_in_the_log(path: Path, clock: StandingClock, *, include_text: bool) -> None:
    """A dying program prints its key, a person gives it as a reason; what is known and what looks like one goes."""
    made: list[Redactor] = []

    def redactor() -> Redactor:
        made.append(Redactor(["correct-horse-battery"]))
        return made[-1]

    log = EventLog(path, clock, max_bytes=10**6, keep=1, include_text=include_text, redactor=redactor)
    log.emit("standing.confirmed", name="scribe", detail=MessageState.CONFIRMED)
    before = len(made)
    secret = f"it said: invalid key sk-ant-{'Ab3' * 12}, correct-horse-battery"
    log.emit_all([("standing.exited", {"reason": secret, "detail": f"exited 1; {secret}", "text": secret})] * 2)

    written = path.read_text()
    assert "sk-ant" not in written
    assert "correct-horse" not in written
    assert written.count("it said: invalid key [redacted], [redacted]") == (6 if include_text else 4)
    assert (before, len(made)) == (0, 1)


def test_what_has_no_value_has_no_key(log: EventLog, path: Path) -> None:
    """A line holds what is known and no nulls."""
    log.emit(Event.SERVICE_STARTED)

    assert json.loads(path.read_text()) == {
        "ts": "2026-05-04T12:00:00.123456Z",
        "event": "service.started",
        "level": "info",
    }


def test_events_that_belong_together_are_not_parted_by_a_rotation(path: Path, clock: StandingClock) -> None:
    """Whoever finds one of them finds the other behind it, in the same file."""
    log = EventLog(path, clock, max_bytes=300, keep=1)
    log.emit("service.started", detail="room for one of the two, and not for both of them")

    log.emit_all([("channel.reply_received", {"name": "scribe"}), ("channel.mirror_skipped", {"name": "scribe"})])

    found = [json.loads(line)["event"] for line in path.read_text().splitlines()]
    assert found == ["channel.reply_received", "channel.mirror_skipped"]


@pytest.mark.parametrize("text", ["plain", "two\nlines", "\u2028 \ud800 \x00 🦀"])
def test_text_is_written_only_where_it_was_asked_for(path: Path, clock: StandingClock, text: str) -> None:
    """With includeText a line holds the text, whatever is in it, and stays one line."""
    silent = EventLog(path, clock, max_bytes=10**6, keep=1)
    open_log = EventLog(path, clock, max_bytes=10**6, keep=1, include_text=True)

    silent.emit("standing.said", message="m-1", text=text)
    open_log.emit("standing.said", message="m-1", text=text)

    first, second = path.read_bytes().splitlines()
    assert json.loads(first)["text"]["length"] == len(text)
    assert json.loads(second)["text"] == text


def test_an_unknown_event_is_a_fault(log: EventLog, path: Path) -> None:
    """A name that is not in the list is refused, so that no misspelling is ever written."""
    with pytest.raises(ValueError, match=r"'standing.strated'"):
        log.emit("standing.strated")

    assert not path.exists()


def test_the_log_is_private(log: EventLog, path: Path) -> None:
    """Its folder is 0700; it and its lock are 0600."""
    log.emit("service.started")

    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}


def test_a_log_that_cannot_be_written_stops_nobody(log: EventLog, path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The failure is told on the standard log, and the caller goes on."""
    path.mkdir(parents=True)

    log.emit("service.started")

    assert "event log cannot be written" in caplog.text


def test_files_are_put_aside_by_size(path: Path, clock: StandingClock) -> None:
    """No file grows above its limit, the latest are kept, and reading joins them in order."""
    log = EventLog(path, clock, max_bytes=300, keep=2)

    for number in range(20):
        log.emit("standing.said", message=f"m-{number:02}")

    assert sorted(file.name for file in path.parent.iterdir()) == [
        *("events.jsonl", "events.jsonl.1", "events.jsonl.2", "events.jsonl.lock")
    ]
    assert all(file.stat().st_size <= 300 for file in path.parent.iterdir())
    kept = [line["message"] for line in log.read()]
    assert kept == [f"m-{number:02}" for number in range(20 - len(kept), 20)]
    assert len(kept) >= 6


def test_without_files_to_keep_the_log_begins_anew(path: Path, clock: StandingClock) -> None:
    """keep 0 means one file."""
    log = EventLog(path, clock, max_bytes=100, keep=0)

    for number in range(3):
        log.emit("standing.said", message=f"m-{number}")

    assert [line["message"] for line in log.read()] == ["m-2"]
    assert sorted(file.name for file in path.parent.iterdir()) == ["events.jsonl", "events.jsonl.lock"]


def test_no_log_is_an_empty_one(log: EventLog) -> None:
    """Before the first event there is nothing to read, and that is no error."""
    assert list(log.read()) == []


@pytest.mark.parametrize("damage", [b'{"ts": "20', b"[" * 100_000, b"\xff\xfe"], ids=["half", "deep", "no text"])
def test_a_damaged_line_spoils_no_other(
    log: EventLog, path: Path, caplog: pytest.LogCaptureFixture, damage: bytes
) -> None:
    """What a power cut left, or somebody wrote, is reported and skipped; the next event has a line of its own."""
    log.emit("service.started")
    with path.open("ab") as file:
        file.write(damage)
    log.emit("service.stopped")

    assert [line["event"] for line in log.read()] == ["service.started", "service.stopped"]
    assert "no event" in caplog.text


def test_following_goes_on_across_rotations(path: Path, clock: StandingClock) -> None:
    """A follower sees every event once and in order, however often the log was rotated between two looks."""
    log = EventLog(path, clock, max_bytes=200, keep=9)
    for number in range(3):
        log.emit("standing.said", message=f"m-{number:02}")
    follower = log.read(follow=True)

    seen = [next(follower) for _ in range(3)]
    for number in range(3, 12):
        log.emit("standing.said", message=f"m-{number:02}")
    seen += [next(follower) for _ in range(9)]
    follower_closed(follower)

    assert [line["message"] for line in seen] == [f"m-{number:02}" for number in range(12)]


def test_following_waits_for_a_log_and_ends_when_asked(path: Path, clock: StandingClock) -> None:
    """A follower may come before the first event, and leaves when it is told to."""
    log = EventLog(path, clock, max_bytes=10**6, keep=1)
    looks = 0

    def stopping() -> bool:
        nonlocal looks
        looks += 1
        if looks == 3:
            log.emit("service.started")
        return looks > 5

    seen = [line["event"] for line in log.read(follow=True, stopping=stopping)]

    assert seen == ["service.started"]


def test_a_follower_of_a_removed_log_repeats_nothing(path: Path, clock: StandingClock) -> None:
    """Somebody who clears the log by hand makes the follower neither fail nor tell old events again."""
    log = EventLog(path, clock, max_bytes=10**6, keep=1)
    log.emit("service.started")
    looks = 0

    def stopping() -> bool:
        nonlocal looks
        looks += 1
        if looks == 3:
            path.unlink()
        if looks == 6:
            log.emit("service.stopped")
        return looks > 9

    seen = [line["event"] for line in log.read(follow=True, stopping=stopping)]

    assert seen == ["service.started", "service.stopped"]


@pytest.mark.parametrize("gone", ["rotated", "file", "folder"])
def test_a_log_that_is_taken_away_is_written_anew(path: Path, clock: StandingClock, gone: str) -> None:
    """What is kept open is never written to once it stands elsewhere: by another process's rotation, or by hand."""
    log = EventLog(path, clock, max_bytes=10**6, keep=2)
    log.emit("service.started")
    log.emit("service.started")
    if gone == "rotated":
        path.rename(path.with_name("events.jsonl.1"))
    elif gone == "file":
        path.unlink()
    else:
        shutil.rmtree(path.parent)

    log.emit("service.stopped")
    log.emit("service.stopped")

    assert [json.loads(line)["event"] for line in path.read_text().splitlines()] == ["service.stopped"] * 2
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_lines_of_threads_and_of_others_stand_whole_beside_one_another(path: Path, clock: StandingClock) -> None:
    """Threads share what is open, others have it open themselves, and all of them rotate: no line is lost or torn."""
    logs = [EventLog(path, clock, max_bytes=2000, keep=100) for _ in range(2)]

    def write(number: int) -> None:
        for line in range(25):
            logs[number % 2].emit("service.started", detail=f"{number}.{line}")

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()

    told = [line["detail"] for line in logs[0].read()]
    assert sorted(told) == sorted(f"{number}.{line}" for number in range(4) for line in range(25))


def test_a_log_keeps_two_files_open_and_lets_go_of_them(path: Path, clock: StandingClock) -> None:
    """However many lines and rotations there were, it has the lock's file and the log; nothing once it is gone."""

    def opened() -> int:
        links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
        return sum(os.readlink(link).startswith(str(path)) for link in links if os.path.lexists(link))

    log = EventLog(path, clock, max_bytes=500, keep=2)
    for _ in range(30):
        log.emit("service.started")
    while_used = opened()
    del log

    assert while_used <= 2
    assert opened() == 0


def follower_closed(follower: Iterator[dict[str, Any]]) -> None:
    """End a follower as its consumer does, so that its files are closed."""
    close = getattr(follower, "close", None)
    assert close is not None
    close()


def test_a_log_that_is_a_symbolic_link_is_not_followed(
    log: EventLog, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What it leads to is left alone, the trouble is told, and reading names the file."""
    path.parent.mkdir()
    precious = path.with_name("precious")
    precious.write_text("precious\n")
    path.symlink_to(precious)

    log.emit(Event.SERVICE_STARTED)

    assert precious.read_text() == "precious\n"
    assert "event log cannot be written" in caplog.messages
    with pytest.raises(StoreBroken, match=r"events\.jsonl"):
        list(log.read())


@pytest.mark.timeout(30)
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["a FIFO", "a folder"])
def test_what_stands_where_the_log_belongs_holds_nobody_up(
    log: EventLog, path: Path, caplog: pytest.LogCaptureFixture, make: Callable[[Path], None]
) -> None:
    """It is named by whoever writes, and by whoever reads, however much is written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)

    for _ in range(3):
        log.emit("standing.said", name="scribe", detail="x" * 40_000)  # a FIFO keeps 64 KiB, then who writes waits
    with pytest.raises(StoreBroken, match="cannot read the log"):
        list(log.read())

    assert [record.message for record in caplog.records] == ["event log cannot be written"] * 3
