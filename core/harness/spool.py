"""The spool: hook reports that nobody has taken in yet, one file each, ordered by name."""

import json
from dataclasses import dataclass
from pathlib import Path

from core.domain.harness import Report

BLOCKED_SUFFIX = ".blocked.json"  #: the turn gate blocked the turn that this report is about
BAD = "bad"  #: folder beside the reports that could not be understood


@dataclass(frozen=True)
class BadReport:
    """A file of the spool that is no JSON object: its name, and where it has been moved to."""

    name: str
    moved_to: Path
    reason: str


@dataclass(frozen=True)
class Reports:
    """What lay in the spool: the reports in order, and what had to be put aside."""

    reports: tuple[Report, ...]
    bad: tuple[BadReport, ...] = ()


def read_reports(folder: Path, instance: str) -> Reports:
    """Return an instance's reports in the order of their names; half-written ones are not seen.

    A folder that is not there holds none. A file that is no JSON object is moved to `bad/` and told of. Raises OSError
    where the folder cannot be read: that says nothing about whether reports are there.
    """
    try:
        names = sorted(entry.name for entry in folder.iterdir() if _is_report(entry.name))
    except FileNotFoundError:
        return Reports(())
    reports: list[Report] = []
    bad: list[BadReport] = []
    for name in names:
        path = folder / name
        try:
            payload = json.loads(path.read_bytes())
            if not isinstance(payload, dict):
                raise ValueError("it is no JSON object")
        except FileNotFoundError:
            continue  # another process has taken it in
        except (ValueError, RecursionError) as error:
            bad.append(_put_aside(path, str(error)))
        else:
            reports.append(Report(instance, name, payload))
    return Reports(tuple(reports), tuple(bad))


def discard(folder: Path, report: Report) -> None:
    """Remove a report that has been taken in; absent is fine. Raises OSError."""
    (folder / report.name).unlink(missing_ok=True)


def _is_report(name: str) -> bool:
    return name.endswith(".json") and not name.startswith(".")


def _put_aside(path: Path, reason: str) -> BadReport:
    folder = path.parent / BAD
    folder.mkdir(mode=0o700, exist_ok=True)
    target = folder / path.name
    path.replace(target)
    return BadReport(path.name, target, reason)
