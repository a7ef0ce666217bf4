"""How each case of a run ended, kept for the matrix: one JSON file a version, named by HARNESS_RESULTS.

    {"version": "2.1.332", "date": "2026-11-30",
     "cases": {"tests/harness/test_story_claude.py::test_a_…": {"capability": "resume", "outcome": "passed"}}}

A run that is a part of the suite replaces its own cases alone. The capability that a case belongs to is said by its
marker; a case without one ends the collection.
"""

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

VARIABLE = "HARNESS_RESULTS"


class Capability(StrEnum):
    """What the product needs of Claude Code, in the order of the matrix."""

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

    def __init__(self, version: str, path: Path | None) -> None:
        self._version = version
        self._path = path
        self._cases: dict[str, dict[str, str]] = {}

    @classmethod
    def of_environment(cls, version: str) -> "Recording":
        """Return one that writes to the file that the environment names, or to none."""
        named = "" if "PYTEST_XDIST_WORKER" in os.environ else os.environ.get(VARIABLE)  # the one that leads writes
        return cls(version, Path(named).resolve() if named else None)

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
        told = self._cases.setdefault(report.nodeid, {"capability": properties["capability"], "outcome": "passed"})
        if report.outcome != "passed":
            told["outcome"] = report.outcome

    @pytest.hookimpl
    def pytest_sessionfinish(self) -> None:
        """Write the file."""
        if self._path is None or not self._cases:
            return
        before = json.loads(self._path.read_text()) if self._path.exists() else {"cases": {}}
        cases = {**before["cases"], **self._cases}
        told = {"version": self._version, "date": datetime.now(UTC).date().isoformat(), "cases": cases}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(told, indent=1) + "\n")
