"""A hundred idle sessions for a minute (`--minutes 10` for the whole measure): what keeping them costs the service.

CPU against one core, memory at the end against memory at the beginning, processes against sessions.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

from benchmarks.measuring import Ratio, report
from benchmarks.stage import Stage, declared, script, stage, wait_for
from core.model.activity import Activity, ActivityState
from core.model.session import SessionRecord

SESSIONS = 100
MINUTES = 1.0
CPU_BOUND, MEMORY_BOUND, PROCESS_BOUND = 0.02, 1.05, 0.05
_SETTLE_SECONDS = 20.0  #: after the boot's sweep, before the measure begins
_TICKS = os.sysconf("SC_CLK_TCK")


def ratios(minutes: float = MINUTES) -> Iterator[Ratio]:
    """Yield the three ratios."""
    with stage() as here:
        document = declared(SESSIONS)
        document["standingSessions"]["enabled"] = True
        here.configure({**document, "service": {"port": 0}})
        here.record_all()
        _all_idle(here)
        service = subprocess.Popen(
            [script("the-loop"), "serve"], env=here.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            events = here.folder / "state" / "the-loop" / "local" / "events.jsonl"
            wait_for(
                lambda: events.exists() and events.read_text().count("standing.adopted") == SESSIONS, "adopted", 60
            )
            time.sleep(_SETTLE_SECONDS)
            yield from _measured(service.pid, 60 * minutes)
        finally:
            service.terminate()
            service.wait(20)


def _all_idle(here: Stage) -> None:
    """Say of every session that it has been idle for an hour, by its own word: none of them is just beginning."""
    system = here.system()
    since = system.clock.now() - timedelta(hours=1)
    with system.database.transaction(durable=False):
        for record in system.records.all():
            if isinstance(record, SessionRecord):
                system.activities.put(Activity(record.uid, record.instance_id or "", ActivityState.IDLE, since))
    system.close()


def _measured(pid: int, seconds: float) -> Iterator[Ratio]:
    before_cpu, before_memory, begun = _cpu(pid), _memory(pid), time.monotonic()
    time.sleep(seconds)
    took, cpu, memory = time.monotonic() - begun, _cpu(pid) - before_cpu, _memory(pid)
    what = f"the service with {SESSIONS} idle sessions"
    yield Ratio(f"CPU of {what}", f"one core for {took:.0f} s", "s", (cpu,), (took,), CPU_BOUND)
    yield Ratio(f"memory of {what}, at the end", "at the beginning", "MiB", (memory,), (before_memory,), MEMORY_BOUND)
    processes = 1.0 + len(_children(pid))
    yield Ratio(f"processes of {what}", "sessions", "", (processes,), (float(SESSIONS),), PROCESS_BOUND)


def _cpu(pid: int) -> float:
    """Return the seconds that the process and its children have computed; from /proc, so on Linux alone."""
    total = 0.0
    for each in (pid, *_children(pid)):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        total += sum(int(fields[index]) for index in (11, 12, 13, 14)) / _TICKS
    return total


def _memory(pid: int) -> float:
    """Return the proportional set size of the process in MiB."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in rollup if line.startswith("Pss:")) / 1024


def _children(pid: int) -> list[int]:
    tasks = os.listdir(f"/proc/{pid}/task")
    return [int(child) for task in tasks for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    return report(list(ratios(parser.parse_args(arguments).minutes)))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
