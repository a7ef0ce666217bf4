"""A scheduler in a process of its own, which can be killed.

`python -m tests.support.scheduling ROOT LEASE_SECONDS` fires what is due under the state root until it is killed, or
until its input ends.
"""

import os
import sys
import threading
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from core.loops.scheduler import Scheduler
from core.service.wiring import build_system
from core.session.system import System
from tests.support.simulated import settings_of


def fire(system: System, lease: timedelta) -> None:
    """Fire until the input ends."""
    stopping = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        stopping.set()

    threading.Thread(target=listen, daemon=True).start()
    scheduler = Scheduler(system, lease=lease)
    print("ready", flush=True)
    while not stopping.is_set():
        scheduler.look_at_everything()
        scheduler.turn(stopping)
        stopping.wait(0.02)


def main(arguments: Sequence[str]) -> int:
    """Fire what is due under the root."""
    root, lease = arguments
    system = build_system(settings_of(Path(root)), dict(os.environ))
    fire(system, timedelta(seconds=float(lease)))
    system.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
