"""Rules of the house that no tool checks by itself."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def version() -> str:
    """Return the version that the distribution declares."""
    return str(_pyproject()["project"]["version"])


@pytest.mark.parametrize("name", ["run", "fleet", "build", "dev"])
def test_every_requirement_is_pinned_with_hashes_and_names_no_index(name: str) -> None:
    """What is installed is the same everywhere; where it comes from is the operator's business."""
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")

    pins = re.findall(r"^(\S+)==\S+ \\\n    --hash=sha256:[0-9a-f]{64}", text, flags=re.MULTILINE)

    assert len(pins) == len(re.findall(r"^[^\s#]", text, flags=re.MULTILINE))
    assert not re.search(r"https?:|file:/|--index|--find-links|--extra-index", text)


def _declared(part: str) -> list[str]:
    """Return the requirements of the distribution, or of one of its extras."""
    project = _pyproject()["project"]
    found: list[str] = project["dependencies"] if part == "run" else project["optional-dependencies"][part]
    return found


@pytest.mark.parametrize("part", ["run", "fleet"])
def test_the_run_time_requirements_are_those_of_the_distribution(part: str) -> None:
    """Whoever installs the distribution by other means needs what `make` installs."""
    declared = {Requirement(line).name for line in _declared(part)}
    wanted = (ROOT / "requirements" / f"{part}.in").read_text(encoding="utf-8").splitlines()

    assert declared == {line for line in wanted if line and not line.startswith(("#", "-c "))}


@pytest.mark.parametrize("part", ["run", "fleet"])
def test_every_requirement_is_bounded_on_both_sides_and_allows_what_is_pinned(part: str) -> None:
    """Whoever installs the distribution without our pins gets no release that changed what we use."""
    text = (ROOT / "requirements" / f"{part}.txt").read_text(encoding="utf-8")
    pins = dict(re.findall(r"^(\S+)==(\S+) ", text, flags=re.MULTILINE))
    requirements = [Requirement(line) for line in _declared(part)]

    assert [str(one) for one in requirements if {clause.operator for clause in one.specifier} != {">=", "<"}] == []
    assert [str(one) for one in requirements if not one.specifier.contains(pins[one.name])] == []


def test_what_the_product_imports_it_requires() -> None:
    """By its own name, not by that of another package which happens to require it today.

    A package whose version another one pins exactly (pydantic its core, mcp its types) comes with that one.
    """
    declared = {Requirement(line).name for line in [*_declared("run"), *_declared("fleet")]}
    lines = [Requirement(line) for name in declared for line in _requires(name)]
    declared |= {one.name for one in lines if {clause.operator for clause in one.specifier} == {"=="}}
    files = [ROOT / "the_loop.py", *(path for name in OWN for path in (ROOT / name).rglob("*.py"))]
    imported = {name.split(".")[0] for path in files for name in _imports(path)}
    providers = metadata.packages_distributions()

    foreign = imported - set(sys.stdlib_module_names) - OWN
    assert [name for name in sorted(foreign) if not {*map(_normal, providers.get(name, [name]))} & declared] == []


def _requires(name: str) -> list[str]:
    """Return what an installed package requires; what only an extra needs may not be installed."""
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []


def test_every_file_of_the_packages_is_code_or_named_as_data() -> None:
    """setuptools leaves out of the wheel what no pattern names; tests/e2e/test_wheel.py builds it."""
    data = _pyproject()["tool"]["setuptools"]["package-data"]
    named = {file for package, patterns in data.items() for one in patterns for file in _of(package).glob(one)}
    files = {path for name in OWN for path in (ROOT / name).rglob("*") if path.is_file()}

    assert {path for path in files - named if path.suffix != ".py" and path.parent.name != "__pycache__"} == set()
    assert {path for path in named if path.suffix == ".py"} == set()


def _of(package: str) -> Path:
    return ROOT.joinpath(*package.split("."))


OWN = {"bot", "core", "embedded", "the_loop"}


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


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
