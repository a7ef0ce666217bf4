"""The tests' own programs as processes that kill themselves at a crash point.

They are forked from a process that has imported the product: an interpreter and those imports cost 0.2 s of a
processor each time, and some two hundred tests kill one. `python -m tests.support.killed` is that process.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from core.base.failpoints import CRASH_VARIABLE, rearm
from tests.support import choosing, losing, pressing, supervising, talking, world

PROGRAMS = {
    "choosing": choosing.main,
    "losing": losing.main,
    "pressing": pressing.main,
    "supervising": supervising.main,
    "talking": talking.main,
    "world": world.main,
}
_LONGEST_SECONDS = 60


@dataclass(frozen=True)
class Ended:
    """How a program ended: its exit code, negative for a signal, and what it printed, both streams together."""

    code: int
    output: str


def run_until(point: str, folder: Path, program: str, *arguments: str) -> Ended:
    """Run a program in a process that dies at the point, or by SIGALRM after a minute; `folder` takes its output."""
    forker, output = _forker(), folder / f"{program}.out"
    assert forker.stdin is not None
    assert forker.stdout is not None
    environ = {**os.environ, CRASH_VARIABLE: point}
    asked = {"program": program, "arguments": arguments, "environ": environ, "output": str(output)}
    forker.stdin.write(json.dumps(asked) + "\n")
    forker.stdin.flush()
    return Ended(int(forker.stdout.readline()), output.read_text())


@cache
def _forker() -> "subprocess.Popen[str]":
    """Return this process's own one; it ends with this process, at the end of its input."""
    command = [sys.executable, "-m", "tests.support.killed"]
    forker = subprocess.Popen(
        command, cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(forker.communicate)
    return forker


def main() -> int:
    """Fork for each line of the input, and print how that process ended. In such a process the program's code."""
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(asked["environ"], asked["output"])
            return PROGRAMS[asked["program"]](asked["arguments"])
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    return 0


def _become(environ: Mapping[str, str], output: str) -> None:
    """Take over that environment, nothing as input, and the file as output."""
    os.environ.clear()
    os.environ.update(environ)
    rearm()
    for target, path, flags in ((0, os.devnull, os.O_RDONLY), (1, output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)):
        opened = os.open(path, flags, 0o600)
        os.dup2(opened, target)
        os.close(opened)
    os.dup2(1, 2)
    signal.alarm(_LONGEST_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
