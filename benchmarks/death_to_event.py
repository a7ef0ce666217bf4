"""From the death of an agent to its line in the event log, told by the service.

The floor is a bare pidfd: from the same kill to the poll that sees it, in a process that does nothing else.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.measuring import Ratio, compare, report
from benchmarks.stage import Stage, script, stage, wait_for

BOUND = 2000.0  #: two seconds, where the floor is a millisecond: no promise is made about the floor
RUNS = 15
NAME = "mortal"
_SLEEPER = "import time; print('READY', flush=True); time.sleep(3600)"


def ratios() -> Iterator[Ratio]:
    """Yield the ratio of the time until the event to the time until a bare poll returns."""
    with stage() as here:
        here.configure(_document())
        service = subprocess.Popen(
            [script("the-loop"), "serve"], env=here.environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            events = here.folder / "state" / "the-loop" / "local" / "events.jsonl"
            wait_for(lambda: _started(events), "the session is up", 60)
            yield compare(
                ("SIGKILL to standing.exited", lambda: _told(here, events)),
                ("SIGKILL to a pidfd's poll", _seen),
                bound=BOUND,
                runs=RUNS,
            )
        finally:
            service.terminate()
            service.wait(20)


def _document() -> dict[str, Any]:
    program = [sys.executable, "-S", "-c", _SLEEPER]
    return {
        "harnesses": {"mortal": {"start": program, "ready": "READY"}},
        "standingSessions": {"enabled": True, "sessions": [{"name": NAME, "harness": "mortal"}]},
        "service": {"port": 0},
    }


def _lines(events: Path, kind: str) -> list[dict[str, Any]]:
    if not events.exists():
        return []
    found = [json.loads(line) for line in events.read_text().splitlines()]
    return [event for event in found if event["event"] == kind]


def _started(events: Path) -> bool:
    return bool(_lines(events, "standing.started"))


def _told(here: Stage, events: Path) -> float:
    """Kill the session's program, wait for the event, and start the session again."""
    before = len(_lines(events, "standing.exited"))
    listed = subprocess.run(
        here.tmux("list-panes", "-t", f"=loop-standing-{NAME}:", "-F", "#{pane_pid}"),
        env=here.environ, capture_output=True, text=True, check=True, timeout=20,
    )  # fmt: skip
    begun = time.perf_counter()
    os.kill(int(listed.stdout), signal.SIGKILL)
    wait_for(lambda: events.stat().st_size and len(_lines(events, "standing.exited")) > before, "the event")
    took = 1000 * (time.perf_counter() - begun)
    subprocess.run(
        [script("the-loop"), "standing", "start", NAME], env=here.environ, capture_output=True, check=True, timeout=60
    )
    return took


def _seen() -> float:
    """Kill a program that sleeps, and wait on its pidfd."""
    with subprocess.Popen(["sleep", "3600"]) as sleeper:
        descriptor = os.pidfd_open(sleeper.pid)
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            begun = time.perf_counter()
            sleeper.kill()
            poll.poll()
            return 1000 * (time.perf_counter() - begun)
        finally:
            os.close(descriptor)


if __name__ == "__main__":
    sys.exit(report(list(ratios())))
