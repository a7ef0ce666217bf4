"""The whole product with real Gemini CLI in its panes: an isolated home, a made-up key, a model of our own."""

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

from embedded.workspace.thread import WorkspaceThread
from tests.fakes.model import ModelServer, Request
from tests.harness.program import PROGRAMS
from tests.support.product import NAME, PROGRAM, Product, end
from tests.support.tmux import alive, wait_until

GEMINI = PROGRAMS["gemini"]
MODEL = ("--model", "gemini-2.5-flash")  #: its own choice would ask another model first, for each prompt
SECONDS = 90.0  #: a busy machine takes its time to load it


def login(model: ModelServer) -> dict[str, str]:
    """Return the variables by which Gemini CLI reaches the model, and nothing else."""
    return {"GOOGLE_GEMINI_BASE_URL": model.url, "GEMINI_API_KEY": "test-key-of-nobody", "COLORTERM": "truecolor"}


def gemini_environ(home: Path, model: ModelServer) -> dict[str, str]:
    """Return the whole environment of a Gemini CLI that knows nobody and reaches nothing but the model."""
    return {
        "HOME": str(home),
        "PATH": f"{GEMINI.programs}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        **login(model),
    }


class GeminiProduct(Product):
    """One the-loop whose sessions are Gemini CLI."""

    def __init__(self, folder: Path, workspace: WorkspaceThread | None, model: ModelServer) -> None:
        self.model = model
        super().__init__(folder, workspace)

    def document(self) -> dict[str, Any]:
        """Return the usual configuration, with Gemini CLI and a start that a busy machine can keep."""
        document = super().document()
        routing = document["routing"]
        tmux = {**routing["tmux"], "harnessKillGraceSeconds": 5, "startTimeoutSeconds": 90}
        document["routing"] = {
            **routing,
            "defaultHarness": "gemini",
            "harnessArgs": {"gemini": list(MODEL)},
            "tmux": tmux,
        }
        return document

    def environ(self, **changes: str) -> dict[str, str]:
        """Return the whole environment: nothing of the machine's own user reaches the agent."""
        environ = gemini_environ(self.folder / "home", self.model)
        environ["PATH"] = f"{PROGRAM.parent}:{environ['PATH']}"
        environ["TMUX_TMPDIR"] = str(self.folder / "tmux")
        return {**environ, "TERM": "xterm-256color", **self._tokens, **changes}

    def serve_ready(self, **env: str) -> str:
        """Bring the service up, wait until the boot turn is answered, and return the session's thread."""
        self.serve(env=env).wait_swept()
        thread = self.root()
        self.wait_reply(thread, "Look after it.", SECONDS)
        return thread

    def activity(self, name: str = NAME) -> str:
        """Return what the-loop says that the session does."""
        return str(self.cli("standing", "get", name, "--json").json["activity"])

    def wait_activity(self, activity: str, name: str = NAME, seconds: float = SECONDS) -> None:
        """Wait until the-loop says that it does this."""
        wait_until(lambda: self.activity(name) == activity, f"{name} is {activity}; {self.screen(name)}", seconds)

    def state_of(self, text: str) -> str:
        """Return the state of the message of that text, "" where there is none."""
        with closing(sqlite3.connect(self.paths.database, timeout=10)) as database:
            found = database.execute("SELECT state FROM inbox WHERE text = ?", (text,)).fetchall()
        return str(found[-1][0]) if found else ""

    def wait_state(self, text: str, *states: str) -> None:
        """Wait until the message is in one of these states."""
        wait_until(lambda: self.state_of(text) in states, f"{text!r} is {' or '.join(states)}", SECONDS)

    def wait_request(self, part: str, count: int = 1) -> Request:
        """Return the latest request whose text holds the part, once there are so many."""
        wait_until(lambda: len(self.model.requests(part)) >= count, f"{count} requests with {part!r}", SECONDS)
        return self.model.requests(part)[-1]

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
def gemini_product(workspace: WorkspaceThread | None, model: ModelServer) -> Iterator[GeminiProduct]:
    """Give a product in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="lg-"))
    running = GeminiProduct(folder, workspace, model)
    try:
        yield running
    finally:
        running.close()
        shutil.rmtree(folder, ignore_errors=True)
