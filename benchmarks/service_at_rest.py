"""What the service keeps in memory while nothing happens: connected to Slack, one session running and announced.

The floor is a process that has imported a web framework and Bolt, and does nothing.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.measuring import Ratio, compare, report
from benchmarks.stage import Stage, script, stage, wait_for
from embedded.workspace.thread import WorkspaceThread

BOUND = 1.5
RUNS = 5
CHANNEL = "agents"
_FLOOR = "import sys, fastapi, slack_bolt; print('ready', flush=True); sys.stdin.read()"
_STEADY_SECONDS = 1.0
_STOP_SECONDS = 20.0


def ratios() -> Iterator[Ratio]:
    """Yield the ratio of the memory of the service, its children included, to that of the floor."""
    with WorkspaceThread() as workspace, stage() as here:
        here.configure(_document(workspace))
        here.environ["THE_LOOP_SLACK_BOT_TOKEN"] = workspace.bot_token
        here.environ["THE_LOOP_SLACK_APP_TOKEN"] = workspace.app_token
        try:
            yield compare(
                ("`the-loop serve` at rest", lambda: _service(here, workspace)),
                ("a process that imported fastapi and slack_bolt", lambda: _floor(here)),
                bound=BOUND,
                runs=RUNS,
                unit="MiB",
            )
        finally:
            subprocess.run([script("the-loop"), "standing", "stop"], env=here.environ, capture_output=True, check=False)


def _document(workspace: WorkspaceThread) -> dict[str, Any]:
    slack = {"enabled": True, "apiUrl": workspace.api_url, "channel": workspace.channel_id(CHANNEL)}
    session = {"name": "scribe", "harness": "bundled", "slack": {"enabled": True}}
    return {
        "service": {"port": 0},
        "channels": {"slack": {**slack, "authorizedUsers": []}},
        "standingSessions": {"enabled": True, "sessions": [session]},
    }


def _service(here: Stage, workspace: WorkspaceThread) -> float:
    with running([script("the-loop"), "serve"], here.environ) as process:
        workspace.wait_for_connections(1, 30.0)
        wait_for(lambda: workspace.messages(workspace.channel_id(CHANNEL)), "the session is announced")
        return steady(process)


def _floor(here: Stage) -> float:
    with running([sys.executable, "-c", _FLOOR], here.environ) as process:
        if process.stdout is None or process.stdout.readline() != b"ready\n":
            raise RuntimeError("fastapi and slack_bolt cannot be imported: type `make bench`")
        return steady(process)


@contextmanager
def running(command: list[str], environ: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run the program, and end it gently."""
    process = subprocess.Popen(
        command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    with process:
        try:
            yield process
        finally:
            process.terminate()
            process.wait(_STOP_SECONDS)


def steady(process: subprocess.Popen[bytes]) -> float:
    """Return the memory in MiB once it has been the same, to one part in a hundred, for a second."""
    seen = [(time.monotonic(), _memory(process.pid))]

    def look() -> float | None:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode}")
        at, memory = time.monotonic(), _memory(process.pid)
        if abs(memory - seen[0][1]) > seen[0][1] / 100:
            seen[0] = (at, memory)
        return memory if at - seen[0][0] > _STEADY_SECONDS else None

    return wait_for(look, "the memory is steady")


def _memory(pid: int) -> float:
    """Return the proportional set size of the process and its children in MiB: what is shared counts once in all.

    From /proc, so on Linux alone. A child that has just ended counts nothing.
    """
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
        children = _children(pid)
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    own = next((int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:")), 0)
    return own / 1024 + sum(_memory(child) for child in children)


def _children(pid: int) -> list[int]:
    tasks = os.listdir(f"/proc/{pid}/task")
    return [int(child) for task in tasks for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]


if __name__ == "__main__":
    sys.exit(report(list(ratios())))
