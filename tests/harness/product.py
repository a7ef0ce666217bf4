"""The whole product with a real harness in its panes: an isolated home, a made-up key, a model of our own."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import psutil

from core.base.environment import MARKER
from embedded.workspace.thread import WorkspaceThread
from tests.fakes.model import ModelServer, Request
from tests.harness.program import Program
from tests.support.product import NAME, PROGRAM, Product, end
from tests.support.tmux import alive, wait_until
from tests.support.typist import Person

TURN = 120.0  #: seconds for a turn: a busy machine takes its time


FAILURES = {
    "[[error 401 now nobody]]": "not logged in",
    "[[error 400 now no]]": "refused the request",
}


class Ability(StrEnum):
    """What a harness may lack by its nature: the cases then show that the truth is told."""

    ANSWER = "a hook or another door answers a permission"
    TASKS = "it tells of jobs that go on after a turn"
    LEAVING = "it tells that a person has left it"
    HOOKS_OFF = "settings of the person's own can switch its hooks off"
    FOLDER = "it takes messages while its folder is gone"


@dataclass(frozen=True)
class Kit:
    """What the cases must know of a harness besides what the product is told."""

    program: Program
    variables: Callable[[Path, ModelServer], Mapping[str, str]]  #: of the pane, by home and model; HOME, PATH are there
    settle: Callable[[Path, ModelServer], None] = lambda home, model: None  #: write what its person has in the home
    args: tuple[str, ...] = ()  #: routing.harnessArgs
    work: str = "[[tool bash sleep 0 {seconds}]]"  #: a tool that works so many seconds, and asks for nothing
    worker: str = "sleep 0 {seconds}"  #: how its process is called
    asks: str = "[[tool bash touch made-by-test]]"  #: asks for a permission; it makes that file in the session's folder
    job: str = "[[bg sleep {seconds}]]"  #: a job that goes on after the turn
    read: str = "[[tool bash head -c 300 {path}]]"  #: reads a file
    cancel: tuple[str, ...] = ("Escape",)  #: the keys that end a turn
    reject: tuple[str, ...] = ("Escape",)  #: the keys that reject what its dialog asks for
    leave: str = "/exit"  #: what a person types to leave it
    anew: str = "/clear"  #: what a person types to begin a new conversation
    choices: Mapping[str, str] = field(default_factory=dict)  #: of its dialog, for Allow and Deny: see Ability.ANSWER
    failures: Mapping[str, str] = field(
        default_factory=lambda: FAILURES
    )  #: what the model's server does -> what is told
    hooks_off: Callable[[Path], None] | None = None  #: switch its hooks off in the person's own settings, by home
    lacks: Mapping[Ability, str] = field(default_factory=dict)  #: what it lacks, and why


class HarnessProduct(Product):
    """One the-loop whose sessions are one harness."""

    def __init__(self, folder: Path, workspace: WorkspaceThread | None, model: ModelServer, kit: Kit) -> None:
        self.model = model
        self.kit = kit
        super().__init__(folder, workspace)
        kit.settle(self.home, model)

    @property
    def home(self) -> Path:
        """The home of the person whose sessions these are."""
        return self.folder / "home"

    def document(self) -> dict[str, Any]:
        """Return the usual configuration, with the harness and a start that a busy machine can keep."""
        document = super().document()
        routing = document["routing"]
        tmux = {**routing["tmux"], "harnessKillGraceSeconds": 5, "startTimeoutSeconds": 60, "commandTimeoutSeconds": 20}
        harness = self.kit.program.harness
        arguments = {"harnessArgs": {harness: list(self.kit.args)}} if self.kit.args else {}
        document["routing"] = {**routing, "defaultHarness": harness, **arguments, "tmux": tmux}
        return document

    def declare(self, *names: str) -> None:
        """Declare these sessions, without a brief's turn to wait for and without a thread."""
        sessions = [{"name": name, "prompt": "Wait."} for name in names]
        self.configure(standingSessions={"enabled": True, "sessions": sessions})

    def environ(self, **changes: str) -> dict[str, str]:
        """Return the whole environment: nothing of the machine's own user reaches the agent."""
        path = f"{PROGRAM.parent}:{self.kit.program.programs}:{os.environ['PATH']}"
        environ = {"HOME": str(self.home), "PATH": path, "LANG": "C.UTF-8", "TERM": "xterm-256color"}
        environ |= {**self.kit.variables(self.home, self.model), "TMUX_TMPDIR": str(self.folder / "tmux")}
        return {**environ, **self._tokens, **changes}

    # ------------------------------------------------------------ what is there

    def row(self, name: str = NAME) -> dict[str, Any]:
        """Return the session's row."""
        found: dict[str, Any] = self.cli("standing", "get", name, "--json").json
        return found

    def activity(self, name: str = NAME) -> str:
        """Return what the-loop says that the session does."""
        return str(self.row(name)["activity"])

    def wait_activity(self, activity: str, name: str = NAME, seconds: float = TURN) -> None:
        """Wait until the-loop says that it does this."""
        seen: list[str] = []

        def does() -> bool:
            seen.append(self.activity(name))
            return seen[-1] == activity

        try:
            wait_until(does, f"{name} is {activity}", seconds, every=1.0)
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {seen[-1]}; its screen:\n{self.shown(name)}") from error

    def state_of(self, text: str) -> str:
        """Return the state of the message of that text, "" where there is none."""
        with closing(sqlite3.connect(self.paths.database, timeout=10)) as database:
            found = database.execute("SELECT state FROM inbox WHERE text = ?", (text,)).fetchall()
        return str(found[-1][0]) if found else ""

    def wait_state(self, text: str, *states: str, seconds: float = TURN) -> None:
        """Wait until the message is in one of these states."""
        try:
            wait_until(lambda: self.state_of(text) in states, f"{text[:80]!r} is {' or '.join(states)}", seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {self.state_of(text)}; the screen:\n{self.shown()}") from error

    def wait_confirmed(self, text: str, name: str = NAME, seconds: float = TURN) -> None:
        """Wait until a turn is known to have taken it: without a service that is found out by whoever looks."""
        wait_until(
            lambda: self.row(name) and self.state_of(text) == "confirmed",
            f"{text[:80]!r} is confirmed; {self.state_of(text)}; {self.shown(name)}",
            seconds,
            every=1.0,
        )

    def moves(self, text: str) -> list[str]:
        """Return by what evidence the message of that text moved on, once it is confirmed: accepted, confirmed.

        The answer may be posted before: the turn's end tells of it, and the record is read a moment later.
        """
        with closing(sqlite3.connect(self.paths.database, timeout=10)) as database:
            [(message,)] = database.execute("SELECT id FROM inbox WHERE text = ?", (text,)).fetchall()

        def told() -> list[str]:
            return [event["detail"] for event in self.events("standing.confirmed") if event["message"] == message]

        wait_until(lambda: "confirmed" in told(), f"{text[:80]!r} is confirmed; it is {self.state_of(text)}", 20)
        return told()

    def markers(self, *texts: str) -> list[str]:
        """Return the marker by which the message of each text is found again in the harness's records."""
        with closing(sqlite3.connect(self.paths.database, timeout=10)) as database:
            rows = [database.execute("SELECT marker FROM inbox WHERE text = ?", (text,)).fetchall() for text in texts]
        return [str(found[-1][0]) for found in rows]

    def wait_request(self, part: str, count: int = 1) -> Request:
        """Return the latest request whose text holds the part, once there are so many."""
        wait_until(lambda: len(self.model.requests(part)) >= count, f"{count} requests with {part!r}", TURN)
        return self.model.requests(part)[-1]

    def said(self, part: str) -> list[str]:
        """Return each text of people that holds the part, by the latest conversation that the model was sent."""
        return ["".join(piece.text for piece in pieces) for pieces in self.model.heard(part)]

    def shown(self, name: str = NAME) -> str:
        """Return what the session's pane shows, or why nothing."""
        try:
            return self.screen(name)
        except subprocess.CalledProcessError as error:
            return str(error.stderr)

    def keys(self, *keys: str, name: str = NAME) -> None:
        """Press keys in the session's pane, by tmux's names for them."""
        self.tmux("send-keys", "-t", f"=loop-standing-{name}:", *keys)

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

    # ------------------------------------------------------------ the end

    def close(self) -> None:
        """End what a product ends, and whatever an agent of this home has left."""
        try:
            super().close()
        finally:
            for pid in self.left():
                with suppress(ProcessLookupError):  # it was ending by itself
                    end(pid, signal.SIGKILL)

    def left(self, command: str = "") -> Sequence[int]:
        """Return the processes that live with this product's home in their environment, by their command where told."""
        found = [process.pid for process in psutil.process_iter() if self._is_of_home(process)]
        return [pid for pid in found if not command or command_of(pid) == command]

    def agents(self) -> Sequence[int]:
        """Return the processes of its sessions: below their panes, and what carries a session's marker elsewhere."""
        below = set[int]()
        for pane in self.panes().values():
            with suppress(psutil.NoSuchProcess):
                below |= {pane, *(child.pid for child in psutil.Process(pane).children(recursive=True))}
        return [pid for pid in self.left() if pid in below or _is_marked(pid)]

    def _is_of_home(self, process: psutil.Process) -> bool:
        try:
            return process.environ().get("HOME") == str(self.home) and alive(process.pid)
        except psutil.Error:
            return False


def _is_marked(pid: int) -> bool:
    try:
        return MARKER in psutil.Process(pid).environ()
    except psutil.Error:
        return False


def command_of(pid: int) -> str:
    """Return the command line of a process, "" where it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
    except OSError:
        return ""


def times_in(request: Request, text: str) -> int:
    """Return how many times the request's conversation holds the text."""
    [talk] = [request.body[key] for key in ("messages", "input", "contents") if key in request.body]
    return json.dumps(talk, ensure_ascii=False).count(text)


@contextmanager
def harness_product(workspace: WorkspaceThread | None, model: ModelServer, kit: Kit) -> Iterator[HarnessProduct]:
    """Give a product in a folder of its own."""
    folder = Path(tempfile.mkdtemp(prefix="lh-"))
    running = HarnessProduct(folder, workspace, model, kit)
    try:
        yield running
    finally:
        running.close()
        shutil.rmtree(folder, ignore_errors=True)
