"""A service's observer and supervisor in one thread of a process that can be killed.

As a program, given WORLD.json and SECONDS, it looks and acts for so long.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from core.config.settings import Standing
from core.lifecycle.supervise import Supervisor
from core.model.session import Idle, Restart
from core.service.watching import ObserverWorker
from core.session.system import System
from tests.support.talking import settings_of
from tests.support.world import World, definition, load

STOP_AFTER = timedelta(seconds=1)


def watched_system(world: World) -> System:
    """Return the ports of a world whose `scribe` comes back after crashes, and whose `sleeper` is idle for a second."""
    settings = settings_of(world)
    scribe = replace(definition("scribe"), restart=Restart.ON_FAILURE)
    sleeper = replace(definition("sleeper"), idle=Idle(STOP_AFTER))
    return world.system(settings._replace(standing=Standing(True, (scribe, sleeper))))


class Stepped:
    """Looks and acts when it is told to."""

    def __init__(self, system: System) -> None:
        self._supervisor = Supervisor(system, lambda: system.settings)
        self._observer = ObserverWorker(system, lambda _: None)

    def step(self) -> None:
        """Do one round of each."""
        self._observer.survey()
        self._observer.take_in()
        self._supervisor.turn()


def main(arguments: Sequence[str]) -> int:
    """Supervise the described world for a while."""
    path, seconds = arguments
    stepped = Stepped(watched_system(load(Path(path))))
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        stepped.step()
        time.sleep(0.02)
    return 0
