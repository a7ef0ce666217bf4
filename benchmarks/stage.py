"""A the-loop of a benchmark's own: a folder, a configuration, a tmux server on a private socket."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from core.base.names import new_instance, new_uid, target_for
from core.base.values import replace
from core.config.loading import load
from core.model.pane import Spawn
from core.model.session import SessionRecord, Status
from core.process.itself import OPEN
from core.service.wiring import build_system
from core.session.system import System

_T = TypeVar("_T")
_FOLDERS = {"HOME": "", "XDG_STATE_HOME": "state", "XDG_CONFIG_HOME": "config", "XDG_CACHE_HOME": "cache"}
#: What would change what is measured, or would make an agent of us.
_DROPPED = ("PYTHON", "THE_LOOP_", "TMUX")


class Stage:
    """Where a benchmark runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = f"loop-bench-{secrets.token_hex(4)}"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(_DROPPED)}
        folders = {name: str(folder / sub) for name, sub in _FOLDERS.items()}
        self.environ = {**inherited, **folders, "TMUX_TMPDIR": str(folder), OPEN: "1"}
        self._config = folder / "config" / "the-loop" / "cli-config.yaml"
        self._config.parent.mkdir(parents=True)

    def configure(self, document: Mapping[str, Any]) -> None:
        """Write the configuration, with the stage's own tmux server in it."""
        routing = {"spawnWorkdir": str(self.folder), "tmux": {"socketName": self.socket}}
        self._config.write_text(json.dumps({**document, "routing": routing}))  # JSON is YAML

    def system(self, *, persistent: bool = False) -> System:
        """Return the ports."""
        return build_system(load(None, self.environ), self.environ, persistent=persistent)

    def tmux(self, *words: str) -> list[str]:
        """Return the words of a tmux command on the stage's server."""
        return ["tmux", "-L", self.socket, *words]

    def record_all(self, program: str = "exec sleep 2147483647\n") -> None:
        """Record every declared session as started, each with a live pane that runs this shell script."""
        system = self.system()
        launcher = self.folder / "sleeping"
        launcher.write_text(f"#!/bin/sh\n{program}")
        launcher.chmod(0o700)
        now = system.clock.now()
        for definition in system.settings.standing.sessions:
            instance = new_instance()
            deadline = system.clock.now() + timedelta(seconds=60)
            system.runner.spawn(Spawn(target_for(definition.name), instance, launcher, self.folder, {}, deadline))
            record = SessionRecord(definition.name, new_uid(), definition, now, instance_id=instance)
            system.records.write(replace(record, status=Status.RUNNING, started_at=now))
        system.close()

    def close(self) -> None:
        """End the stage's tmux server, if there is one."""
        subprocess.run(self.tmux("kill-server"), env=self.environ, capture_output=True, timeout=20, check=False)


@contextmanager
def stage() -> Iterator[Stage]:
    """Give a stage in a folder that is gone afterwards: short, since the path of a Unix socket is limited."""
    folder = Path(tempfile.mkdtemp(prefix="lb-"))
    here = Stage(folder)
    try:
        yield here
    finally:
        here.close()
        shutil.rmtree(folder, ignore_errors=True)


def declared(count: int) -> dict[str, Any]:
    """Return a configuration that declares that many sessions."""
    return {
        "standingSessions": {
            "sessions": [{"name": f"session-{number:02}", "description": "one of many"} for number in range(count)]
        }
    }


def wait_for(look: Callable[[], _T | None], what: str, seconds: float = 30.0) -> _T:
    """Return what is found once it is neither None nor False. Raises TimeoutError."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found is not None and found is not False:
            return found
        if time.monotonic() > end:
            raise TimeoutError(f"not within {seconds:g} s: {what}")
        time.sleep(0.01)


def script(name: str) -> str:
    """Return the path of a program that is installed beside this interpreter."""
    return str(Path(sys.executable).with_name(name))
