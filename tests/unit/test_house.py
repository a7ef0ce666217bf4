"""Rules of the house that no tool checks by itself."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", ["run", "build", "dev"])
def test_every_requirement_is_pinned_with_hashes_and_names_no_index(name: str) -> None:
    """What is installed is the same everywhere; where it comes from is the operator's business."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")

    pins = re.findall(r"^(\S+)==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", text, flags=re.MULTILINE)

    assert len(pins) == len(re.findall(r"^[^\s#]", text, flags=re.MULTILINE))
    assert not re.search(r"https?:|file:/|--index|--find-links|--extra-index", text)


def test_the_run_time_requirements_are_those_of_the_distribution() -> None:
    """Whoever installs the distribution by other means needs what `make` installs."""
    declared = {re.split(r"[>=]", line)[0] for line in _pyproject()["project"]["dependencies"]}
    wanted = (ROOT / "requirements" / "run.in").read_text(encoding="utf-8").splitlines()

    assert declared == {line for line in wanted if line and not line.startswith("#")}


CHAT_OF_OLD = {"model/oldchat.py"}  #: the names that files and answers of earlier releases have


def test_core_names_no_chat() -> None:
    """A chat is what its own package makes it: core has its kind and its name from there, in texts and comments too."""
    core = ROOT / "core"
    files = [path for path in core.rglob("*") if path.suffix in {".py", ".sh", ".sql", ".conf"}]

    named = {str(path.relative_to(core)) for path in files if "slack" in path.read_text(encoding="utf-8").lower()}

    assert named == CHAT_OF_OLD


def test_every_file_of_the_lint_exceptions_exists() -> None:
    """An exception whose file has moved is removed with it."""
    ignored = _pyproject()["tool"]["ruff"]["lint"]["per-file-ignores"]

    missing = [pattern for pattern in ignored if not (ROOT / pattern.removesuffix("/**")).exists()]

    assert missing == []


def test_every_decision_has_a_number_of_its_own() -> None:
    """Its title bears it, and what the documents name is there."""
    decisions = {path.name[:4]: path for path in sorted((ROOT / "docs" / "adr").glob("[0-9]*.md"))}
    titles = {number: path.read_text(encoding="utf-8").split("\n", 1)[0] for number, path in decisions.items()}
    named = {
        number
        for path in [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")]
        for number in re.findall(r"adr/([0-9]{4})", path.read_text(encoding="utf-8"))
    }

    assert len(decisions) == len(list((ROOT / "docs" / "adr").glob("[0-9]*.md")))
    assert [number for number, title in titles.items() if not title.startswith(f"# {number}: ")] == []
    assert named <= decisions.keys()
