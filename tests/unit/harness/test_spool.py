"""The spool of hook reports."""

from pathlib import Path

import pytest

from core.harness.spool import discard, read_reports


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
