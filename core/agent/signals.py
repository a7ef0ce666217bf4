"""Signals: which of them end the agent, with which status, and a descriptor that wakes a wait for something else."""

import os
import signal
from collections.abc import Callable
from types import FrameType

HUNG_UP = 129
_ENDS = {signal.SIGTERM: 143, signal.SIGHUP: HUNG_UP, signal.SIGINT: 0}


def watch_signals(end_with: Callable[[int], None]) -> int:
    """Call `end_with` with the exit status of a signal that ends, and return what becomes readable at every signal."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC) if hasattr(os, "pipe2") else os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def ended(number: int, frame: FrameType | None) -> None:
        end_with(_ENDS[signal.Signals(number)])

    for number in _ENDS:
        signal.signal(number, ended)
    for number in (signal.SIGCHLD, signal.SIGWINCH):
        signal.signal(number, lambda *_: None)
    return reading
