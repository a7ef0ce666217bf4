"""The page that tells which version of Claude Code can do what, and what it is made from."""

import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from core.harness.claude.adapter import TRIED
from core.model import activity
from tests.harness.matrix import PAGE, Run, page, read
from tests.harness.recording import VARIABLE, Capability, Recording

CASES = {
    "tests/harness/test_x.py::test_a_b_c": {"capability": "resume", "outcome": "passed"},
    "tests/harness/test_x.py::TestY::test_it[mid-turn]": {"capability": "resume", "outcome": "failed"},
    "tests/harness/test_x.py::test_d[a|b]": {"capability": "boot hook", "outcome": "passed"},
}
OLD = Run("2.1.1", "2026-01-01", CASES)
NEW = Run("2.1.2", "2026-02-01", {name: case for name, case in CASES.items() if "test_d" not in name})


def test_each_version_has_a_column_of_what_it_can_do() -> None:
    """All cases passed is proven, some are counted, and what no case tried is said to be so."""
    written = page([OLD, NEW]).splitlines()

    assert "Run: 2.1.1 on 2026-01-01, 2 of 3 cases; 2.1.2 on 2026-02-01, 1 of 2 cases." in written
    assert "| boot hook | proven | not tried |" in written
    assert "| resume | 1 of 2 | 1 of 2 |" in written
    assert "| background tasks | not tried | not tried |" in written


def test_each_case_has_a_row() -> None:
    """In words, below its capability; a case that one version alone has is not tried in the other."""
    written = page([OLD, NEW]).partition("## resume")

    assert "| a b c | yes | yes |" in written[2].splitlines()
    assert "| it `[mid-turn]` | **no** | **no** |" in written[2].splitlines()
    assert "| d `[a&#124;b]` | yes | not tried |" in written[0].splitlines()


def record(path: Path, name: str, *outcomes: Literal["passed", "failed", "skipped"]) -> None:
    """Record a run of one case, whose phases end like this."""
    recording = Recording("2.1.2", path)
    told = [("capability", "resume")]
    for outcome in outcomes:
        recording.pytest_runtest_logreport(
            pytest.TestReport(name, ("", 0, ""), {}, outcome, None, "call", user_properties=told)
        )
    recording.pytest_sessionfinish()


def test_a_case_that_fails_in_any_phase_has_failed(tmp_path: Path) -> None:
    """One whose clean-up fails is not told as passed."""
    record(tmp_path / "results.json", "a", "passed", "passed", "failed")

    assert read(tmp_path / "results.json").cases == {"a": {"capability": "resume", "outcome": "failed"}}


def test_a_run_of_one_case_leaves_the_others_as_they_were(tmp_path: Path) -> None:
    """It replaces its own, so that a case may be run again by itself."""
    path = tmp_path / "results.json"
    record(path, "a", "failed")
    record(path, "b", "passed")

    record(path, "a", "passed")

    assert {name: case["outcome"] for name, case in read(path).cases.items()} == {"a": "passed", "b": "passed"}


def test_of_several_workers_none_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that leads them is told of all cases, and would find a part of them overwritten."""
    path = tmp_path / "results.json"
    monkeypatch.setenv(VARIABLE, str(path))
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")

    recording = Recording.of_environment("2.1.2")
    recording.pytest_runtest_logreport(
        pytest.TestReport("a", ("", 0, ""), {}, "passed", None, "call", user_properties=[("capability", "resume")])
    )
    recording.pytest_sessionfinish()

    assert not path.exists()


def test_every_case_of_the_suite_names_what_it_shows() -> None:
    """The suite ends at once where one does not, which whoever adds a case without a Claude Code would not see."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/harness"],
        cwd=PAGE.parents[1],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-2000:]


def test_the_page_is_of_the_versions_that_are_told_as_tried() -> None:
    """What `status` calls tried was run whole; README and the make target name the same."""
    root = PAGE.parents[1]

    assert f"| capability | {' | '.join(TRIED)} |" in PAGE.read_text().splitlines()
    assert f"[Tried](docs/harness-matrix.md): {', '.join(TRIED)} |" in (root / "README.md").read_text()
    assert f"CLAUDE_CODE_TRIED := {' '.join(TRIED)}\n" in (root / "Makefile").read_text()


def test_the_matrix_has_a_row_for_whatever_a_session_is_said_to_lack() -> None:
    """What the rows call proven, guessed or missing has its cases, under the same name."""
    assert {each.value for each in activity.Capability} <= {each.value for each in Capability}
