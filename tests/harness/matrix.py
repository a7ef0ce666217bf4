"""Writes docs/harness-matrix.md from what the suite's runs have recorded: `python -m tests.harness.matrix FILE…`.

Ends with 1 where a case has failed, once the page is written.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.harness.recording import Capability

PAGE = Path(__file__).parents[2] / "docs" / "harness-matrix.md"
_HEAD = """\
# Versions of Claude Code

Written by `make harness-matrix`: every case of `tests/harness`, run with the real program against a model server on
loopback. What is not proven here may still work, without a promise. `the-loop status` says if the Claude Code of this
machine is not one of these versions.
"""


@dataclass(frozen=True)
class Run:
    """What a version's file says."""

    version: str
    date: str
    cases: Mapping[str, Mapping[str, str]]

    def outcomes(self, capability: str) -> list[str]:
        """Return how the cases of a capability ended."""
        return [case["outcome"] for case in self.cases.values() if case["capability"] == capability]


def read(path: Path) -> Run:
    """Read a file of results."""
    content = json.loads(path.read_text())
    return Run(content["version"], content["date"], content["cases"])


def page(runs: Sequence[Run]) -> str:
    """Return the page: what each version can do, and how each case ended, the capabilities in their order."""
    dates = [f"{run.version} on {run.date}, {_counted(run)}" for run in runs]
    summary = [[kind.value, *(_summed(run.outcomes(kind)) for run in runs)] for kind in Capability]
    parts = [_HEAD, f"Run: {'; '.join(dates)}.\n", _table(["capability", *(run.version for run in runs)], summary)]
    for kind in Capability:
        names = sorted({name for run in runs for name, case in run.cases.items() if case["capability"] == kind})
        rows = [[_sentence(name), *(_word(run, name) for run in runs)] for name in names]
        if rows:
            parts += [f"## {kind.value}\n", _table(["case", *(run.version for run in runs)], rows)]
    return "\n".join(parts)


def _counted(run: Run) -> str:
    outcomes = [case["outcome"] for case in run.cases.values()]
    return f"{outcomes.count('passed')} of {len(outcomes)} cases"


def _summed(outcomes: Sequence[str]) -> str:
    if not outcomes:
        return "not tried"
    passed = outcomes.count("passed")
    return "proven" if passed == len(outcomes) else f"{passed} of {len(outcomes)}"


def _word(run: Run, name: str) -> str:
    case = run.cases.get(name)
    return {"passed": "yes", "failed": "**no**"}.get(case["outcome"], case["outcome"]) if case else "not tried"


def _sentence(name: str) -> str:
    """Return a case's name as words: `tests/x.py::TestY::test_a_b[c]` is `a b [c]`."""
    words, bracket, parameters = name.rpartition("::test_")[2].partition("[")
    return words.replace("_", " ") + (f" `[{parameters}`" if bracket else "")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines) + "\n"


def main(paths: Sequence[str]) -> int:
    """Write the page, and return 1 where a case has failed."""
    runs = [read(Path(path)) for path in paths]
    PAGE.write_text(page(runs))
    return int(any(case["outcome"] == "failed" for run in runs for case in run.cases.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
