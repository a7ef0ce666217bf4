"""A message from `say` to the program in the pane: committed, through gate, lock and delivery, over the control client.

The floor is the bare paste by one tmux process, which loads standard input into a buffer and pastes it.
"""

from __future__ import annotations

import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.measuring import Ratio, compare, report
from benchmarks.stage import Stage, stage
from core.delivery.saying import say
from core.lifecycle.start import start_standing

BOUND = 1.3
RUNS = 51
NAME = "scribe"
TARGET = f"=loop-standing-{NAME}:"
TOLD = "told"  #: the socket of the program in the pane
_ACTOR = "cli:bench"
_SECONDS = 10.0


class Pane:
    """The other end: what the program in the pane tells."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / TOLD
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(self.path))
        self._socket.settimeout(_SECONDS)

    def close(self) -> None:
        """Let go of the socket."""
        self._socket.close()

    def read_at(self, word: bytes) -> int:
        """Return when the program had read the word (CLOCK_MONOTONIC, ns). Raises TimeoutError."""
        seen = b""
        while word not in seen:
            at, _, data = self._socket.recv(1 << 20).partition(b" ")
            seen += data
        return int(at)


def ratios() -> Iterator[Ratio]:
    """Yield the ratio of a say to the bare paste, each until the bytes were read."""
    with stage() as here, closing(Pane(here.folder)) as pane:
        here.configure(reading_session(here.folder))
        start(here)
        system = here.system(persistent=True)
        try:
            yield compare(
                ("say to bytes read", _latency(pane, lambda word: say(system, NAME, word, actor=_ACTOR, wait=5.0))),
                ("`tmux load-buffer - ; paste-buffer` to bytes read", _latency(pane, lambda word: _paste(here, word))),
                bound=BOUND,
                runs=RUNS,
            )
        finally:
            system.close()


def start(here: Stage) -> None:
    """Start the session, from another system: a control client is not had before the server runs, nor right after."""
    system = here.system()
    try:
        started = start_standing(system, NAME, _ACTOR)
    finally:
        system.close()
    if not started.ok:
        raise RuntimeError(started.sessions[0].detail)


def reading_session(folder: Path) -> dict[str, Any]:
    """Return a configuration of one session, whose program reads and tells when."""
    program = [sys.executable, "-S", str(Path(__file__).with_name("reader.py")), str(folder / TOLD)]
    return {
        "harnesses": {"reader": {"start": program, "ready": "READY", "settleMs": 0}},
        "standingSessions": {"sessions": [{"name": NAME, "harness": "reader"}]},
    }


def _latency(pane: Pane, send: Callable[[str], object]) -> Callable[[], float]:
    def measure() -> float:
        word = secrets.token_hex(8)
        begun = time.monotonic_ns()
        send(word)
        return (pane.read_at(word.encode()) - begun) / 1e6

    return measure


def _paste(here: Stage, word: str) -> None:
    words = here.tmux("load-buffer", "-b", "bench", "-", ";", "paste-buffer", "-d", "-r", "-b", "bench", "-t", TARGET)
    subprocess.run(words, env=here.environ, input=word.encode(), capture_output=True, check=True, timeout=20)


if __name__ == "__main__":
    sys.exit(report(list(ratios())))
