"""The whole product with real Claude Code in its panes."""

import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from embedded.workspace.thread import WorkspaceThread
from tests.fakes.model import ModelServer, Request
from tests.harness.product import HarnessProduct, Kit, times_in
from tests.harness.program import PROGRAMS
from tests.support.lines import entries
from tests.support.product import NAME
from tests.support.tmux import wait_until

__all__ = ["CLAUDE", "KEY", "KIT", "LONG", "SLEEPING", "ClaudeProduct", "claude_environ", "claude_product", "times_in"]

CLAUDE = PROGRAMS["claude"]
SLEEPING = ("--allowedTools", "Bash(sleep:*)")
LONG = "sleep 0 60"  #: a minute's work in a tool: 2.1.332 does not run a plain `sleep` of 25 seconds or more
KEY = "sk-ant-test-key-of-nobody-0123456789"
_TURN_SECONDS = 40.0  #: a busy machine takes its time


def _variables(home: Path, model: ModelServer) -> Mapping[str, str]:
    """Return the variables of a Claude Code that knows nobody and reaches nothing but the model."""
    return {
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": KEY,
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def _settle(home: Path, model: ModelServer) -> None:
    """Give the person settings of their own."""
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text(json.dumps({"cleanupPeriodDays": 900}))


def _hooks_off(home: Path) -> None:
    (home / ".claude" / "settings.json").write_text(json.dumps({"disableAllHooks": True}))


#: Sleeping needs no permission, everything else asks.
KIT = Kit(
    CLAUDE,
    _variables,
    _settle,
    args=SLEEPING,
    read='[[call Read {{"file_path": "{path}"}}]]',
    hooks_off=_hooks_off,
)


def claude_environ(home: Path, model: ModelServer) -> dict[str, str]:
    """Return the whole environment of a Claude Code in that home."""
    path = f"{CLAUDE.programs}:{os.environ['PATH']}"
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", **_variables(home, model)}


class ClaudeProduct(HarnessProduct):
    """One the-loop whose sessions are Claude Code."""

    def __init__(self, folder: Path, workspace: WorkspaceThread | None, model: ModelServer) -> None:
        super().__init__(folder, workspace, model, replace(KIT, settle=lambda home, model: None))

    def allow(self, *tools: str) -> None:
        """Let the sessions use these tools without asking."""
        document = self.document()
        document["routing"]["harnessArgs"] = {"claude": ["--allowedTools", *tools]}
        self.configure(routing=document["routing"])

    # ------------------------------------------------------------ what is there

    def status(self, name: str = NAME) -> str:
        """Return what Claude Code's own file says of the session: idle, busy, waiting, shell; "" where it is silent."""
        path = self.folder / "home" / ".claude" / "sessions" / f"{self.panes().get(name, 0)}.json"
        try:
            return str(json.loads(path.read_text()).get("status", ""))
        except (OSError, ValueError):
            return ""

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

    def queued(self) -> list[str]:
        """Return what Claude Code's own queue was given, by its conversations' files, in order."""
        files = (self.folder / "home" / ".claude" / "projects").rglob("*.jsonl")
        found = [entry for path in files for entry in entries(path)]
        return [entry["content"] for entry in found if entry.get("operation") == "enqueue" and "content" in entry]

    def unasked(self) -> tuple[Request, ...]:
        """Return the requests that a finished background task made."""
        return self.model.requests("<task-notification>")

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
