"""Writes docs/harness-matrix.md from what is kept of the suite's runs: `python -m tests.harness.matrix`.

Ends with 1 where a case has failed, once the page is written.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.harness.recording import LACKS, Capability

PAGE = Path(__file__).parents[2] / "docs" / "harness-matrix.md"
KEPT = Path(__file__).with_name("results")  #: one file a harness and version
_COMMON = "/test_cases.py::"  #: stands in the names of the cases that every harness runs
_HEAD = """\
# What each harness can do, by version

Written by `make harness-matrix`, from whole runs of `tests/harness`: each harness is the real program, and talks to a
model server on loopback. [harnesses.md](harnesses.md) tells how each harness is used, and explains what differs.

- **proven**: every case of it passed. **3 of 4**: one case failed. **not tried**: there was no case.
- **missing**: the harness cannot do it. The case has shown that the-loop says so, and promises nothing else.

What is not proven here may still work, without a promise. `the-loop status` says if the version on this machine is none
of these.
"""


@dataclass(frozen=True)
class Run:
    """What the file of a harness's version says."""

    harness: str
    version: str
    date: str
    cases: Mapping[str, Mapping[str, str]]

    @property
    def title(self) -> str:
        """What its column is called."""
        return f"{self.harness} {self.version}"

    def of(self, capability: str) -> list[Mapping[str, str]]:
        """Return the cases of a capability."""
        return [case for case in self.cases.values() if case["capability"] == capability]

    def common(self) -> dict[str, Mapping[str, str]]:
        """Return the cases that every harness runs, by their sentence."""
        return {_sentence(name): case for name, case in self.cases.items() if _COMMON in name}

    def own(self) -> dict[str, Mapping[str, str]]:
        """Return the cases of this harness alone, by their name."""
        return {name: case for name, case in self.cases.items() if _COMMON not in name}


def read(path: Path) -> Run:
    """Read a file of results."""
    content = json.loads(path.read_text())
    return Run(content["harness"], content["version"], content["date"], content["cases"])


def kept(folder: Path = KEPT) -> list[Run]:
    """Return all runs that are kept, by harness and version."""
    return sorted(map(read, folder.glob("*.json")), key=lambda run: (run.harness, _order(run.version)))


def _order(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def page(runs: Sequence[Run]) -> str:
    """Return the page: what each version can do, how each common case ended, and each harness's own cases."""
    head = ["capability", *(run.title for run in runs)]
    summary = [[kind.value, *(_summed(run.of(kind)) for run in runs)] for kind in Capability]
    parts = [_HEAD, _table(head, summary)]
    parts += ["Runs:\n", "\n".join(f"- {run.title} on {run.date}: {_counted(run)}" for run in runs) + "\n"]
    common = {sentence: case["capability"] for run in runs for sentence, case in run.common().items()}
    if common:
        rows = [
            [sentence, *(_word(run.common().get(sentence)) for run in runs)]
            for kind in Capability
            for sentence in sorted(common)
            if common[sentence] == kind
        ]
        parts += ["## The cases of every harness\n", _table(["case", *head[1:]], rows)]
    for harness in dict.fromkeys(run.harness for run in runs):
        parts += _own([run for run in runs if run.harness == harness])
    return "\n".join(parts)


def _own(runs: Sequence[Run]) -> list[str]:
    """Return the parts that tell of the cases that one harness alone has."""
    parts = []
    for kind in Capability:
        names = sorted({name for run in runs for name, case in run.own().items() if case["capability"] == kind})
        rows = [[_sentence(name), *(_word(run.own().get(name)) for run in runs)] for name in names]
        if rows:
            parts += [f"### {kind.value}\n", _table(["case", *(run.version for run in runs)], rows)]
    return [f"## Cases of {runs[0].harness} alone\n", *parts] if parts else []


def _counted(run: Run) -> str:
    outcomes = [case["outcome"] for case in run.cases.values()]
    lacks = sum(LACKS in case and case["outcome"] == "passed" for case in run.cases.values())
    return f"{outcomes.count('passed')} of {len(outcomes)} cases" + (f", {lacks} as missing" if lacks else "")


def _summed(cases: Sequence[Mapping[str, str]]) -> str:
    if not cases:
        return "not tried"
    passed = [case for case in cases if case["outcome"] == "passed"]
    if len(passed) < len(cases):
        return f"{len(passed)} of {len(cases)}"
    lacks = sum(LACKS in case for case in cases)
    if lacks == len(cases):
        return "missing"
    return f"proven, {lacks} missing" if lacks else "proven"


def _word(case: Mapping[str, str] | None) -> str:
    if case is None:
        return "not tried"
    if case["outcome"] != "passed":
        return {"failed": "**no**"}.get(case["outcome"], case["outcome"])
    return f"missing: {case[LACKS]}" if LACKS in case else "yes"


def _sentence(name: str) -> str:
    """Return a case's name as words: `tests/x.py::TestY::test_a_b[c]` is `a b [c]`."""
    words, bracket, parameters = name.rpartition("::test_")[2].partition("[")
    return words.replace("_", " ") + (f" `[{parameters}`" if bracket else "")


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines) + "\n"


def main() -> int:
    """Write the page, and return 1 where a case has failed."""
    runs = kept()
    PAGE.write_text(page(runs))
    return int(any(case["outcome"] == "failed" for run in runs for case in run.cases.values()))


if __name__ == "__main__":
    sys.exit(main())
