"""How each case of a run ended, kept for the matrix: one JSON file a harness and version, in HARNESS_RESULTS.

    {"harness": "claude", "version": "2.1.332", "date": "2026-11-30",
     "cases": {"tests/harness/claude/test_story.py::test_a_…": {"capability": "resume", "outcome": "passed"}}}

A run that is a part of the suite replaces its own cases alone. The capability that a case belongs to is said by its
marker; a case without one ends the collection. A case that a harness cannot keep by its nature says why ("lacks"): it
has shown that the product tells the truth about it.
"""

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

from tests.harness.program import PROGRAMS

VARIABLE = "HARNESS_RESULTS"
LACKS = "lacks"  #: the property of a case that says why its harness cannot keep it
FOLDER = "tests/harness/"


class Capability(StrEnum):
    """What the product needs of a harness, in the order of the matrix."""

    BOOT = "boot hook"  #: it starts without a dialog of its own, and its hook says when it reads
    EDGES = "turn edges"  #: hooks, status file and transcript say when a turn begins, fails and ends
    PASTING = "pasting"  #: a text arrives once, whole, as it was sent
    INPUT = "input line"  #: what somebody has half typed is kept apart from what we send
    QUEUE = "queue evidence"  #: its records say what it has queued, taken, given back
    PERMISSION = "permission hook"  #: a hook tells of a permission or a question, and may answer it
    DIALOGS = "dialogs"  #: a screen that waits for a key is seen, and nothing is typed into it
    MODE = "mode"  #: the permission mode that runs is the one that was chosen
    TRANSCRIPT = "transcript form"  #: the conversation's file is where we look for it, in the form that we read
    RESUME = "resume"  #: a conversation goes on after a stop, a crash, a restart
    APPROVAL = "MCP approval"  #: which servers of a project it asks about is foretold
    TASKS = "background tasks"  #: what ends later wakes nobody against our will
    TOOLS = "tools"  #: the tools that we give it are there and run without a question


class Recording:
    """Collects how the cases of one run end."""

    def __init__(self, folder: Path | None, versions: Mapping[str, str]) -> None:
        """`versions`: which version runs, by the harness."""
        self._folder = folder
        self._versions = versions
        self._cases: dict[str, dict[str, dict[str, str]]] = {}

    @classmethod
    def of_environment(cls) -> "Recording":
        """Return one that writes to the folder that the environment names, or to none."""
        named = "" if "PYTEST_XDIST_WORKER" in os.environ else os.environ.get(VARIABLE)  # the one that leads writes
        if not named:
            return cls(None, {})
        return cls(Path(named).resolve(), {name: program.version for name, program in PROGRAMS.items()})

    @pytest.hookimpl
    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        """Give each report its case's capability. Raises UsageError for a case that names none, or an unknown one."""
        for item in items:
            marker = item.get_closest_marker("capability")
            try:
                named = Capability(marker.args[0] if marker else "")
            except ValueError:
                raise pytest.UsageError(f"{item.nodeid}: mark it with one of tests.harness.recording") from None
            item.user_properties.append(("capability", named.value))

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in a phase of a case: one that failed in any has failed."""
        properties: dict[str, Any] = dict(report.user_properties)
        cases = self._cases.setdefault(report.nodeid.removeprefix(FOLDER).partition("/")[0], {})
        told = cases.setdefault(report.nodeid, {"capability": properties["capability"], "outcome": "passed"})
        if LACKS in properties:
            told[LACKS] = properties[LACKS]
        if report.outcome != "passed":
            told["outcome"] = report.outcome

    @pytest.hookimpl
    def pytest_sessionfinish(self) -> None:
        """Write the files."""
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        for harness, cases in self._cases.items():
            version = self._versions[harness]
            path = self._folder / f"{harness}-{version}.json"
            before = json.loads(path.read_text())["cases"] if path.exists() else {}
            told = {"harness": harness, "version": version, "date": datetime.now(UTC).date().isoformat()}
            path.write_text(json.dumps({**told, "cases": {**before, **cases}}, indent=1) + "\n")
