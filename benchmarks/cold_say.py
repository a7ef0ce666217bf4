"""Cold `the-loop standing say`: what a script pays until the agent has read its message, without a service.

The settle time is 0, so that the Enter follows the text at once.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing

from benchmarks.measuring import Measure, Ratio, compare, process_time, report
from benchmarks.say_to_pane import NAME, Pane, reading_session, start
from benchmarks.stage import Stage, script, stage

BOUND = 9.0
RUNS = 21


def ratios() -> Iterator[Ratio]:
    """Yield the ratio to a bare interpreter from its start to its end."""
    with stage() as here, closing(Pane(here.folder)) as pane:
        here.configure(reading_session(here.folder))
        start(here)
        yield compare(
            ("`the-loop standing say` to bytes read", until_read(here, pane)),
            ("`python -c pass`", process_time([sys.executable, "-c", "pass"], here.environ)),
            bound=BOUND,
            runs=RUNS,
        )


def until_read(here: Stage, pane: Pane) -> Measure:
    """Return a measure of the command from its start until the program in the pane has read the text."""
    command = [script("the-loop"), "standing", "say", NAME, "--text"]

    def measure() -> float:
        word = secrets.token_hex(8)
        begun = time.monotonic_ns()
        with subprocess.Popen([*command, word], env=here.environ, stdout=subprocess.DEVNULL) as process:
            taken = (pane.read_at(word.encode()) - begun) / 1e6
            if process.wait(60) != 0:
                raise RuntimeError(f"the message was not delivered: exit code {process.returncode}")
        return taken

    return measure


if __name__ == "__main__":
    sys.exit(report(list(ratios())))
