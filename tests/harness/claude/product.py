"""The whole product with real Claude Code in its panes: an isolated home, a made-up key, a model of our own."""

import json
import os
import re
import shutil
import signal
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from embedded.workspace.thread import WorkspaceThread
from tests.fakes.model import ModelServer, Request
from tests.harness.program import PROGRAMS
from tests.support.lines import entries
from tests.support.product import NAME, PROGRAM, Product, end
from tests.support.tmux import alive, wait_until
from tests.support.typist import Person

CLAUDE = PROGRAMS["claude"]
SLEEPING = ("--allowedTools", "Bash(sleep:*)")
LONG = "sleep 0 60"  #: a minute's work in a tool: 2.1.332 does not run a plain `sleep` of 25 seconds or more
KEY = "sk-ant-test-key-of-nobody-0123456789"
_TURN_SECONDS = 40.0  #: a busy machine takes its time


def claude_environ(home: Path, model: ModelServer) -> dict[str, str]:
    """Return the whole environment of a Claude Code that knows nobody and reaches nothing but the model."""
    return {
        "HOME": str(home),
        "PATH": f"{CLAUDE.programs}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": KEY,
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


class ClaudeProduct(Product):
    """One the-loop whose sessions are Claude Code. Sleeping needs no permission, everything else asks."""

    def __init__(self, folder: Path, workspace: WorkspaceThread | None, model: ModelServer) -> None:
        self.model = model
        super().__init__(folder, workspace)

    def document(self) -> dict[str, Any]:
        """Return the usual configuration, with Claude Code and a start that a busy machine can keep."""
        document = super().document()
        routing = document["routing"]
        tmux = {**routing["tmux"], "harnessKillGraceSeconds": 5, "startTimeoutSeconds": 60}
        document["routing"] = {
            **routing,
            "defaultHarness": "claude",
            "harnessArgs": {"claude": list(SLEEPING)},
            "tmux": tmux,
        }
        return document

    def allow(self, *tools: str) -> None:
        """Let the sessions use these tools without asking."""
        document = self.document()
        document["routing"]["harnessArgs"] = {"claude": ["--allowedTools", *tools]}
        self.configure(routing=document["routing"])

    def declare(self, *names: str) -> None:
        """Declare these sessions, without a brief's turn to wait for and without a thread."""
        sessions = [{"name": name, "prompt": "Wait."} for name in names]
        self.configure(standingSessions={"enabled": True, "sessions": sessions})

    def environ(self, **changes: str) -> dict[str, str]:
        """Return the whole environment: nothing of the machine's own user reaches the agent."""
        environ = claude_environ(self.folder / "home", self.model)
        environ["PATH"] = f"{PROGRAM.parent}:{environ['PATH']}"
        environ["TMUX_TMPDIR"] = str(self.folder / "tmux")
        return {**environ, "TERM": "xterm-256color", **self._tokens, **changes}

    # ------------------------------------------------------------ what is there

    def status(self, name: str = NAME) -> str:
        """Return what Claude Code's own file says of the session: idle, busy, waiting, shell; "" where it is silent."""
        path = self.folder / "home" / ".claude" / "sessions" / f"{self.panes().get(name, 0)}.json"
        try:
            return str(json.loads(path.read_text()).get("status", ""))
        except (OSError, ValueError):
            return ""

    def activity(self, name: str = NAME) -> str:
        """Return what the-loop says that the session does."""
        return str(self.cli("standing", "get", name, "--json").json["activity"])

    def wait_activity(self, activity: str, name: str = NAME, seconds: float = _TURN_SECONDS) -> None:
        """Wait until the-loop says that it does this."""
        wait_until(lambda: self.activity(name) == activity, f"{name} is {activity}", seconds)

    def wait_status(self, status: str, name: str = NAME) -> None:
        """Wait until Claude Code says so itself."""
        wait_until(lambda: self.status(name) == status, f"{name} is {status}", _TURN_SECONDS)

    def wait_rest(self, seconds: float = 1.0) -> None:
        """Wait until Claude Code has been idle for so long: what its queue held would have begun a turn."""
        since = [time.monotonic()]

        def rests() -> bool:
            if self.status() != "idle":
                since[0] = time.monotonic()
            return time.monotonic() - since[0] >= seconds

        wait_until(rests, f"it has been idle for {seconds:g} s", _TURN_SECONDS)

    def state_of(self, text: str) -> str:
        """Return the state of the message of that text, "" where there is none."""
        with closing(sqlite3.connect(self.paths.database, timeout=10)) as database:
            found = database.execute("SELECT state FROM inbox WHERE text = ?", (text,)).fetchall()
        return str(found[-1][0]) if found else ""

    def wait_state(self, text: str, *states: str) -> None:
        """Wait until the message is in one of these states."""
        wait_until(lambda: self.state_of(text) in states, f"{text!r} is {' or '.join(states)}", _TURN_SECONDS)

    def moves(self, text: str) -> list[str]:
        """Return by what evidence the message of that text moved on: accepted, confirmed."""
        with closing(sqlite3.connect(self.paths.database, timeout=10)) as database:
            [(message,)] = database.execute("SELECT id FROM inbox WHERE text = ?", (text,)).fetchall()
        return [event["detail"] for event in self.events("standing.confirmed") if event["message"] == message]

    def markers(self, *texts: str) -> list[str]:
        """Return the marker by which the message of each text is found again in Claude Code's records."""
        with closing(sqlite3.connect(self.paths.database, timeout=10)) as database:
            rows = [database.execute("SELECT marker FROM inbox WHERE text = ?", (text,)).fetchall() for text in texts]
        return [str(found[-1][0]) for found in rows]

    def queued(self) -> list[str]:
        """Return what Claude Code's own queue was given, by its conversations' files, in order."""
        files = (self.folder / "home" / ".claude" / "projects").rglob("*.jsonl")
        found = [entry for path in files for entry in entries(path)]
        return [entry["content"] for entry in found if entry.get("operation") == "enqueue" and "content" in entry]

    def wait_request(self, part: str, count: int = 1) -> Request:
        """Return the latest request whose text holds the part, once there are so many."""
        wait_until(lambda: len(self.model.requests(part)) >= count, f"{count} requests with {part!r}", _TURN_SECONDS)
        return self.model.requests(part)[-1]

    def unasked(self) -> tuple[Request, ...]:
        """Return the requests that a finished background task made."""
        return self.model.requests("<task-notification>")

    def keys(self, *keys: str, name: str = NAME) -> None:
        """Press keys in the session's pane, by tmux's names for them."""
        self.tmux("send-keys", "-t", f"=loop-standing-{name}:", *keys)

    def answer(self, option: str, name: str = NAME) -> None:
        """Answer the open dialog by the first option that begins with this word, or by Escape, as a person does.

        Its status comes before it is drawn, and it takes keys some tenths of a second after that.
        """
        pattern = re.compile(rf"(\d)\. {option}\b")
        if option != "Escape":
            wait_until(lambda: pattern.search(self.screen(name)), f"{option!r} is an option; {self.screen(name)}")
        found = pattern.search(self.screen(name))
        key = found[1] if found else option

        def pressed() -> bool:
            if self.status(name) == "waiting":
                self.keys(key, name=name)
            return self.status(name) != "waiting"

        wait_until(pressed, f"{option!r} answers the dialog; {self.screen(name)}", every=1.5)

    @contextmanager
    def person(self, name: str = NAME) -> Iterator[Person]:
        """Give a person at the session's terminal."""
        target = f"loop-standing-{name}"
        command = ["tmux", "-u", "-L", self.socket, "attach-session", "-t", f"={target}:"]
        person = Person(self.tmux, target, command, self.environ())
        try:
            yield person
        finally:
            person.close()

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


def times_in(request: Request, text: str) -> int:
    """Return how many times the request's conversation holds the text."""
    return json.dumps(request.body["messages"], ensure_ascii=False).count(text)


@contextmanager
def claude_product(
    workspace: WorkspaceThread | None, model: ModelServer, kind: type[ClaudeProduct] = ClaudeProduct
) -> Iterator[ClaudeProduct]:
    """Give a product in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="lc-"))
    running = kind(folder, workspace, model)
    try:
        yield running
    finally:
        running.close()
        shutil.rmtree(folder, ignore_errors=True)
