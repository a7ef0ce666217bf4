"""The page that tells which version of which harness can do what, and what it is made from."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest

from core.model import activity
from tests.harness.matrix import PAGE, Run, kept, page, read
from tests.harness.program import PROGRAMS, ROOT, Program
from tests.harness.recording import LACKS, VARIABLE, Capability, Recording

CASES = {
    "tests/harness/one/test_x.py::test_a_b_c": {"capability": "resume", "outcome": "passed"},
    "tests/harness/one/test_x.py::TestY::test_it[mid-turn]": {"capability": "resume", "outcome": "failed"},
    "tests/harness/one/test_x.py::test_d[a|b]": {"capability": "boot hook", "outcome": "passed"},
}
COMMON = {
    "tests/harness/{}/test_cases.py::TestCases::test_it_works": {"capability": "tools", "outcome": "passed"},
    "tests/harness/{}/test_cases.py::TestCases::test_it_waits": {
        "capability": "tools",
        "outcome": "passed",
        LACKS: "it has no tools",
    },
}


def common(harness: str) -> dict[str, dict[str, str]]:
    """Return the results of a harness in the cases that every harness runs."""
    return {name.format(harness): case for name, case in COMMON.items()}


OLD = Run("one", "2.1.1", "2026-01-01", CASES)
NEW = Run("one", "2.1.2", "2026-02-01", {name: case for name, case in CASES.items() if "test_d" not in name})
OTHER = Run("two", "7.0.0", "2026-03-01", common("two"))


def test_each_version_has_a_column_of_what_it_can_do() -> None:
    """All cases passed is proven, some are counted, and what no case tried is said to be so."""
    written = page([OLD, NEW, OTHER]).splitlines()

    assert "- one 2.1.1 on 2026-01-01: 2 of 3 cases" in written
    assert "- two 7.0.0 on 2026-03-01: 2 of 2 cases, 1 as missing" in written
    assert "| capability | one 2.1.1 | one 2.1.2 | two 7.0.0 |" in written
    assert "| boot hook | proven | not tried | not tried |" in written
    assert "| resume | 1 of 2 | 1 of 2 | not tried |" in written
    assert "| tools | not tried | not tried | proven, 1 missing |" in written


def test_each_case_of_one_harness_has_a_row() -> None:
    """In words, below its capability; a case that one version alone has is not tried in the other."""
    written = page([OLD, NEW, OTHER]).partition("### resume")

    assert "| a b c | yes | yes |" in written[2].splitlines()
    assert "| it `[mid-turn]` | **no** | **no** |" in written[2].splitlines()
    assert "| d `[a&#124;b]` | yes | not tried |" in written[0].splitlines()
    assert "Cases of two alone" not in "".join(written)


def test_what_every_harness_runs_is_one_table() -> None:
    """With a column for each version of each; what one cannot do by its nature is told with the reason."""
    failed = {name: {**case, "outcome": "failed"} for name, case in common("one").items()}

    written = page([Run("one", "2.1.3", "2026-01-01", failed), OTHER]).splitlines()

    assert "| case | one 2.1.3 | two 7.0.0 |" in written
    assert "| it works | **no** | yes |" in written
    assert "| it waits | **no** | missing: it has no tools |" in written


def record(folder: Path, name: str, *outcomes: Literal["passed", "failed", "skipped"], lacks: str = "") -> None:
    """Record a run of one case, whose phases end like this."""
    recording = Recording(folder, {"one": "2.1.2"})
    told = [("capability", "resume"), *([(LACKS, lacks)] if lacks else [])]
    for outcome in outcomes:
        recording.pytest_runtest_logreport(
            pytest.TestReport(f"tests/harness/one/{name}", ("", 0, ""), {}, outcome, None, "call", user_properties=told)
        )
    recording.pytest_sessionfinish()


def results(folder: Path) -> dict[str, dict[str, str]]:
    """Return what was recorded, by the case's name."""
    run = read(folder / "one-2.1.2.json")
    return {name.removeprefix("tests/harness/one/"): dict(case) for name, case in run.cases.items()}


def test_a_case_that_fails_in_any_phase_has_failed(tmp_path: Path) -> None:
    """One whose clean-up fails is not told as passed."""
    record(tmp_path, "a", "passed", "passed", "failed")

    assert results(tmp_path) == {"a": {"capability": "resume", "outcome": "failed"}}


def test_what_a_harness_lacks_is_kept_with_the_reason(tmp_path: Path) -> None:
    """The case has passed, by showing that the truth is told."""
    record(tmp_path, "a", "passed", lacks="no such hook")

    assert results(tmp_path) == {"a": {"capability": "resume", "outcome": "passed", LACKS: "no such hook"}}


def test_a_run_of_one_case_leaves_the_others_as_they_were(tmp_path: Path) -> None:
    """It replaces its own, so that a case may be run again by itself."""
    record(tmp_path, "a", "failed")
    record(tmp_path, "b", "passed")

    record(tmp_path, "a", "passed")

    assert {name: case["outcome"] for name, case in results(tmp_path).items()} == {"a": "passed", "b": "passed"}


def test_of_several_workers_none_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that leads them is told of all cases, and would find a part of them overwritten."""
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")

    recording = Recording.of_environment()
    recording.pytest_runtest_logreport(
        pytest.TestReport("a", ("", 0, ""), {}, "passed", None, "call", user_properties=[("capability", "resume")])
    )
    recording.pytest_sessionfinish()

    assert not list(tmp_path.iterdir())


def test_every_case_of_the_suite_names_what_it_shows() -> None:
    """The suite ends at once where one does not, which whoever adds a case without a Claude Code would not see."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/harness"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout[-2000:]


def test_the_page_is_what_the_kept_runs_say() -> None:
    """Nobody writes it by hand."""
    assert PAGE.read_text() == page(kept())


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=lambda program: program.harness)
def test_the_versions_that_are_told_as_tried_were_run(program: Program) -> None:
    """What `status` calls tried was run whole, and README names the same."""
    run = [each.version for each in kept() if each.harness == program.harness]
    [row] = re.findall(rf"^\| `{program.harness}` \|.*$", (ROOT / "README.md").read_text(), flags=re.MULTILINE)

    assert set(program.tried) <= set(run)
    tried = ", ".join(program.tried) or "no version in every case yet"
    assert f"[Tried](docs/harness-matrix.md): {tried} |" in row


def test_the_matrix_has_a_row_for_whatever_a_session_is_said_to_lack() -> None:
    """What the rows call proven, guessed or missing has its cases, under the same name."""
    assert {each.value for each in activity.Capability} <= {each.value for each in Capability}
