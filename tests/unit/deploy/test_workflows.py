"""What runs by a schedule reports, and does nothing else."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.harness.program import PROGRAMS

FILES = sorted((Path(__file__).parents[3] / ".github" / "workflows").glob("*.yml"))


def steps(path: Path) -> list[dict[str, Any]]:
    """Return the steps of every job."""
    return [step for job in yaml.safe_load(path.read_text())["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_workflow_opens_nothing(path: Path) -> None:
    """It may read the repository alone, holds no secret, and leaves no token where a program could find it."""
    text = path.read_text()
    content = yaml.safe_load(text)
    [checkout] = [step for step in steps(path) if step.get("uses", "").startswith("actions/checkout@")]

    assert content["permissions"] == {"contents": "read"}
    assert not any("permissions" in job for job in content["jobs"].values())
    assert "secrets." not in text
    assert "token" not in text.lower()
    assert checkout["with"] == {"persist-credentials": False}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_workflow_runs_what_was_looked_at(path: Path) -> None:
    """Actions are pinned by their commits; what somebody types at its start is no part of a script."""
    for step in steps(path):
        assert re.search(r"@[0-9a-f]{40}$", step["uses"]) if "uses" in step else "${{" not in step["run"]


def test_the_newest_of_each_harness_is_tried_by_a_schedule() -> None:
    """Every night, each that has cases, with the suite that writes the matrix."""
    [path] = [path for path in FILES if path.stem == "newest-harnesses"]
    content = yaml.safe_load(path.read_text())

    assert set(PROGRAMS) <= set(content["jobs"]["matrix"]["strategy"]["matrix"]["harness"])

    assert content[True]["schedule"]  # `on` is a boolean in YAML 1.1
    assert any("make harness-matrix" in step.get("run", "") for step in steps(path))
    assert any("GITHUB_STEP_SUMMARY" in step.get("run", "") for step in steps(path))
