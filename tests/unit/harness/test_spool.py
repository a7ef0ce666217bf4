"""The spool of hook reports."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from core.harness.base import awaits_reading, discard, read_reports


def test_reports_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    """Names order the reports; half-written files and the folder of bad ones are not seen."""
    for name in ("3-1-Stop.json", "1-9-PreToolUse.json", "2-1-UserPromptSubmit.blocked.json"):
        (tmp_path / name).write_text(f'{{"n": "{name[0]}"}}')
    (tmp_path / ".4-1-Stop.tmp").write_text('{"n"')
    (tmp_path / "bad").mkdir()

    read = read_reports(tmp_path, "i-1")

    assert [report.payload["n"] for report in read.reports] == ["1", "2", "3"]
    assert {report.instance for report in read.reports} == {"i-1"}
    assert read.bad == ()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_what_is_no_report_is_put_aside_and_told(tmp_path: Path, content: bytes) -> None:
    """A file that is no JSON object goes to `bad/` once, and the others are read."""
    (tmp_path / "1-1-Stop.json").write_bytes(content)
    (tmp_path / "2-1-Stop.json").write_text("{}")

    read = read_reports(tmp_path, "i-1")

    assert [report.name for report in read.reports] == ["2-1-Stop.json"]
    assert [bad.name for bad in read.bad] == ["1-1-Stop.json"]
    assert read.bad[0].moved_to.read_bytes() == content
    assert read.bad[0].reason
    assert read_reports(tmp_path, "i-1").bad == ()


def test_what_stands_under_a_reports_name_and_is_no_file_is_put_aside(tmp_path: Path) -> None:
    """A folder, a FIFO and a link are no reports: nothing waits for them, and what came after them is read."""
    (tmp_path / "1-1-Stop.json").mkdir()
    os.mkfifo(tmp_path / "2-1-Stop.json")
    (tmp_path / "3-1-Stop.json").symlink_to("3-1-Stop.json")
    (tmp_path / "4-1-Stop.json").write_text("{}")

    read = read_reports(tmp_path, "i-1")

    assert [report.name for report in read.reports] == ["4-1-Stop.json"]
    assert [bad.name[0] for bad in read.bad] == ["1", "2", "3"]
    assert read_reports(tmp_path, "i-1").bad == ()


@pytest.mark.parametrize("name", [b"7-\xff-Stop.json", b"7-\n-Stop.json", b"x" * 240 + b".json", "7-ü.json".encode()])
def test_an_odd_name_is_put_aside_under_a_printable_one(tmp_path: Path, name: bytes) -> None:
    """Names that no reporter gives go into no database, and into the log only as printable text."""
    (tmp_path / os.fsdecode(name)).write_text("{}")

    (bad,) = read_reports(tmp_path, "i-1").bad

    assert bad.name.isascii()
    assert bad.name.isprintable()
    assert bad.moved_to.read_text() == "{}"


def test_what_was_put_aside_before_is_kept(tmp_path: Path) -> None:
    """A second one of the same name stands beside the first."""
    for content in ("one", "two"):
        (tmp_path / "1-1-Stop.json").write_text(content)
        read_reports(tmp_path, "i-1")

    assert sorted(kept.read_text() for kept in (tmp_path / "bad").iterdir()) == ["one", "two"]


@pytest.mark.parametrize("session_id", ["../../x", "a\0x", "a b", "x" * 129, "."])
def test_a_conversation_whose_id_is_none_is_refused(tmp_path: Path, session_id: str) -> None:
    """The id becomes part of a path: what is none is a bad report."""
    (tmp_path / "1-1-SessionStart.json").write_text(json.dumps({"session_id": session_id}))

    read = read_reports(tmp_path, "i-1")

    assert read.reports == ()
    assert read.bad[0].reason == "its session_id is no id"


def test_spool_that_is_not_there_is_empty(tmp_path: Path) -> None:
    """No folder, no reports."""
    assert read_reports(tmp_path / "none", "i-1").reports == ()


def test_spool_that_cannot_be_asked_is_not_taken_for_empty(tmp_path: Path) -> None:
    """A file in the folder's place raises."""
    (tmp_path / "spool").write_text("")

    with pytest.raises(OSError, match="spool"):
        read_reports(tmp_path / "spool", "i-1")


def test_discarded_report_is_gone_and_may_be_discarded_again(tmp_path: Path) -> None:
    """Two processes may take in the same report."""
    (tmp_path / "1-1-Stop.json").write_text("{}")
    (report,) = read_reports(tmp_path, "i-1").reports

    discard(tmp_path, report)
    discard(tmp_path, report)

    assert read_reports(tmp_path, "i-1").reports == ()


def test_a_report_that_was_never_finished_is_put_aside_after_a_minute(tmp_path: Path) -> None:
    """A hook that was killed leaves half a report, which nobody may wait for; a fresh one is being written."""
    fresh, old = tmp_path / ".1-1-Stop.tmp", tmp_path / ".2-1-Stop.tmp"
    for path in (fresh, old):
        path.write_text('{"hook_event_na')
    os.utime(old, (0, 0))
    with os.scandir(tmp_path) as entries:
        awaited = {entry.name for entry in entries if awaits_reading(entry, time.time())}

    found = read_reports(tmp_path, "i-1", time.time())

    assert awaited == {old.name}
    assert [(bad.name, "never finished" in bad.reason) for bad in found.bad] == [(old.name, True)]
    assert fresh.exists()
    assert not old.exists()


def test_a_report_whose_hook_still_runs_is_waited_for(tmp_path: Path) -> None:
    """A machine that slept has a clock far ahead of what its hooks began to write; they go on."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    running, left = (tmp_path / f".1-{pid}-Stop.tmp" for pid in (os.getpid(), ended.pid))
    for path in (running, left):
        path.write_text('{"hook_event_na')
    hour = time.time() + 3600

    found = read_reports(tmp_path, "i-1", hour)
    kept = running.exists()
    late = read_reports(tmp_path, "i-1", hour + 86_400)

    assert [bad.name for bad in found.bad] == [left.name]
    assert kept
    assert [bad.name for bad in late.bad] == [running.name]
