"""The whole product with real OpenCode in its panes: an isolated home, a made-up key, a model of our own."""

import json
import os
import shutil
import signal
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from core.process.control import ask
from embedded.workspace.thread import WorkspaceThread
from tests.fakes.model import ModelServer
from tests.harness.program import PROGRAMS
from tests.support.product import NAME, PROGRAM, Product, end
from tests.support.tmux import alive, wait_until

OPENCODE = PROGRAMS["opencode"]
TURN_SECONDS = 90.0  #: a busy machine takes its time
START_SECONDS = 180.0  #: of a start there


def write_settings(home: Path, model: ModelServer) -> None:
    """Write a person's own configuration: one model, and a shell that asks about all but sleeping and echo."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Fake",
        "options": {"baseURL": f"{model.url}/v1", "apiKey": "test-key"},
        "models": {
            "fake-model": {
                "name": "Fake",
                "limit": {"context": 200_000, "output": 8_000},
                "cost": {"input": 1, "output": 2},
            }
        },
    }
    settings = {
        "model": "fake/fake-model",
        "small_model": "fake/fake-model",
        "share": "disabled",
        "provider": {"fake": provider},
        "permission": {"bash": {"*": "ask", "sleep *": "allow", "echo *": "allow"}},
    }
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.json").write_text(json.dumps(settings))


def opencode_environ(home: Path) -> dict[str, str]:
    """Return the whole environment of an OpenCode that reaches nothing but the model of its settings."""
    return {
        "HOME": str(home),
        "PATH": f"{OPENCODE.programs}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "npm_config_registry": "http://127.0.0.1:9/",  # what it installs for plugins of a person's own
    }


class OpenCodeProduct(Product):
    """One the-loop whose sessions are OpenCode."""

    def __init__(self, folder: Path, workspace: WorkspaceThread | None, model: ModelServer) -> None:
        self.model = model
        super().__init__(folder, workspace)
        write_settings(folder / "home", model)

    def document(self) -> dict[str, Any]:
        """Return the usual configuration, with OpenCode and a start that a busy machine can keep."""
        document = super().document()
        routing = document["routing"]
        tmux = {**routing["tmux"], "harnessKillGraceSeconds": 8, "startTimeoutSeconds": START_SECONDS}
        document["routing"] = {**routing, "defaultHarness": "opencode", "tmux": tmux}
        return document

    def up(self) -> None:
        """Bring the service up and wait until its boot sweep is over, which starts the sessions."""
        self.serve()
        ask(self.paths.service_socket, "sweep", START_SECONDS)

    def environ(self, **changes: str) -> dict[str, str]:
        """Return the whole environment: nothing of the machine's own user reaches the agent."""
        environ = opencode_environ(self.folder / "home")
        environ["PATH"] = f"{PROGRAM.parent}:{environ['PATH']}"
        environ["TMUX_TMPDIR"] = str(self.folder / "tmux")
        return {**environ, "TERM": "xterm-256color", **self._tokens, **changes}

    # ------------------------------------------------------------ what is there

    def row(self, name: str = NAME) -> dict[str, Any]:
        """Return what the-loop says of the session."""
        return dict(self.cli("standing", "get", name, "--json").json)

    def wait_activity(self, activity: str, name: str = NAME, seconds: float = TURN_SECONDS) -> None:
        """Wait until the-loop says that it does this."""
        wait_until(lambda: self.row(name)["activity"] == activity, f"{name} is {activity}; {self.row(name)}", seconds)

    def state_of(self, text: str) -> str:
        """Return the state of the latest message of that text, "" where there is none."""
        with closing(sqlite3.connect(self.paths.database, timeout=10)) as database:
            found = database.execute("SELECT state FROM inbox WHERE text = ?", (text,)).fetchall()
        return str(found[-1][0]) if found else ""

    def wait_state(self, text: str, *states: str) -> None:
        """Wait until the message is in one of these states."""
        wait_until(lambda: self.state_of(text) in states, f"{text!r} is {' or '.join(states)}", TURN_SECONDS)

    def keys(self, *keys: str, name: str = NAME) -> None:
        """Press keys in the session's pane, by tmux's names for them."""
        self.tmux("send-keys", "-t", f"=loop-standing-{name}:", *keys)

    def close(self) -> None:
        """End what a product ends, and whatever an agent of this home has left."""
        try:
            super().close()
        finally:
            for pid in self.left():
                with suppress(ProcessLookupError):  # it was ending by itself
                    end(pid, signal.SIGKILL)

    def left(self) -> Sequence[int]:
        """Return the processes that live with this product's home in their environment."""
        return [process.pid for process in psutil.process_iter() if self._is_of_home(process)]

    def _is_of_home(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get("HOME") == str(self.folder / "home") and alive(process.pid)
        except psutil.Error:
            return False


@contextmanager
def opencode_product(workspace: WorkspaceThread | None, model: ModelServer) -> Iterator[OpenCodeProduct]:
    """Give a product in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="lo-"))
    running = OpenCodeProduct(folder, workspace, model)
    try:
        yield running
    finally:
        running.close()
        shutil.rmtree(folder, ignore_errors=True)
