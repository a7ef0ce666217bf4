"""The service's observer and supervisor at work on real panes of the bundled agent, with a thread that is read back."""

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.config.settings import Settings, Standing
from core.lifecycle.start import start_standing
from core.lifecycle.supervise import Supervisor
from core.model.posts import OutboundKind
from core.model.session import Binding, Definition, Restart, SessionRecord
from core.service.watching import ObserverWorker
from core.session.system import System
from tests.integration.delivery.conftest import settle
from tests.support.talking import settings_of
from tests.support.tmux import PrivateTmux, alive, private_tmux, wait_until
from tests.support.world import ACTOR, World, definition, recorded

THREAD = "1700.000000"


class Supervised:
    """A service of observer and supervisor. What it leaves may be taken up by another."""

    def __init__(self, system: System, swept: threading.Event | None = None) -> None:
        settled = swept.is_set if swept else lambda: True
        self.supervisor = Supervisor(system, lambda: system.settings, settled)
        self.observer = ObserverWorker(system, lambda _: None, ended=self.supervisor.wake, swept=settled)
        self.failures: list[BaseException] = []
        self._system = system
        self._stopping = threading.Event()
        runs = (self.observer.run, self.supervisor.run)
        self._threads = [threading.Thread(target=self._run, args=(run,), daemon=True) for run in runs]

    def _run(self, run: object) -> None:
        try:
            assert callable(run)
            run(self._stopping)
        except BaseException as error:
            self.failures.append(error)
            raise

    def start(self) -> "Supervised":
        """Start the threads and wait until every live pane is watched."""
        for thread in self._threads:
            thread.start()
        wait_until(self._watches_all, "every live pane is watched")
        return self

    def _watches_all(self) -> bool:
        living = {pane.tag for pane in self._system.runner.survey().panes if pane.tag and not pane.dead}
        return all(self.observer.watches(tag) for tag in living)

    def stop(self) -> None:
        """Stop the threads."""
        self._stopping.set()
        self._system.notify()
        self.supervisor.wake()
        for thread in self._threads:
            thread.join(15)
        assert not self.failures


@pytest.fixture
def private() -> Iterator[PrivateTmux]:
    """Give a tmux server that nobody else knows."""
    with private_tmux() as server:
        yield server


@pytest.fixture
def world(private: PrivateTmux, tmp_path: Path) -> World:
    """Give a world that declares `scribe`."""
    world = World(tmp_path, private.server.socket_name, private.folder, declared=("scribe",), command_seconds=2.0)
    world.cwd.mkdir()
    return world


@pytest.fixture
def system(world: World) -> Iterator[System]:
    """Give the world's ports, with nothing started."""
    system = world.system(settings_of(world))
    yield system
    system.close()


def with_sessions(system: System, *sessions: Definition) -> System:
    """Return the ports with a configuration that declares these."""
    return replace(system, settings=system.settings._replace(standing=Standing(True, sessions)))


def restarting(system: System, *, per_hour: int = 5, names: tuple[str, ...] = ("scribe",)) -> System:
    """Return the ports with sessions that come back after crashes."""
    settings: Settings = system.settings
    limits = settings.limits._replace(restarts_per_hour=per_hour)
    sessions = tuple(replace(definition(name), restart=Restart.ON_FAILURE) for name in names)
    return replace(system, settings=settings._replace(limits=limits, standing=Standing(True, sessions)))


def up(system: System, *names: str) -> System:
    """Start the sessions, wait until their boot turns are over, and give each a thread."""
    for name in names or ("scribe",):
        answer = start_standing(system, name, ACTOR)
        assert answer.ok, answer.to_json()
        settle(system, name)
        uid = recorded(system, name).uid
        system.bindings.bind(Binding("slack", "T1", "C1", f"{THREAD}{name}", uid, name, datetime.now(UTC)))
    return system


def pid_of(system: System, name: str = "scribe") -> int:
    """Return the pid of the session's program."""
    pane = system.runner.survey().of_instance(recorded(system, name).instance_id or "")
    assert pane is not None
    return pane.pid


def crash(system: System, name: str = "scribe", number: int = signal.SIGKILL) -> None:
    """End the session's program by a signal, and wait until it is gone and tmux knows: it learns of it later."""
    pid = pid_of(system, name)
    os.kill(pid, number)
    wait_until(lambda: not alive(pid), "the program is gone")
    wait_until(lambda: all(pane.dead for pane in system.runner.survey().panes if pane.pid == pid), "tmux knows")


def notes(system: System, part: str, name: str = "scribe", kind: OutboundKind = OutboundKind.NOTE) -> list[str]:
    """Return the posts of the kind to the session's thread that hold the part, however far they have come."""
    import sqlite3

    connection = sqlite3.connect(system.paths.database)
    try:
        rows = connection.execute(
            "SELECT text FROM outbox WHERE kind = ? AND name = ? ORDER BY seq", (kind.value, name)
        )
        return [text for (text,) in rows.fetchall() if part in text]
    finally:
        connection.close()


def back(system: System, before: SessionRecord) -> bool:
    """Return whether the session runs in another pane than before, and is settled."""
    record = recorded(system, before.name)
    if record.instance_id == before.instance_id or record.phase.value != "settled":
        return False
    pane = system.runner.survey().of_instance(record.instance_id or "")
    return pane is not None and not pane.dead
