"""The real product for end-to-end tests: its own home, state root, tmux server and configuration, run as processes.

Everything that a test starts is ended by its pid, and the tmux server by its socket, when the product is closed.
"""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from core.base.paths import StatePaths
from core.process.control import NoAnswer, ask
from core.process.itself import OPEN
from core.process.presence import running_service
from embedded.workspace.model import Json
from embedded.workspace.thread import WorkspaceThread
from tests.support.lines import entries
from tests.support.tmux import PATIENCE, alive, wait_until

PROGRAM = Path(sys.executable).with_name("the-loop")
BOT_VARIABLE, APP_VARIABLE = "THE_LOOP_SLACK_BOT_TOKEN", "THE_LOOP_SLACK_APP_TOKEN"
NAME = "scribe"
#: whether each product is a fleet of one, as `make test-relay` has it
RELAYED = bool(os.environ.get("THE_LOOP_TEST_RELAY"))
DEBUGGABLE = {OPEN: "1"}  #: the environment of a service whose descriptors are to be looked at


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return standard output as the one JSON value that it must be."""
        return json.loads(self.out)

    @property
    def services(self) -> dict[str, dict[str, Any]]:
        """Return the rows of the service and of what it is connected to, by name."""
        return {row["name"]: dict(row) for row in self.json["services"]}

    @property
    def row(self) -> dict[str, Any]:
        """Return the only row of a verb's answer."""
        [row] = self.json["sessions"]
        return dict(row)


def bounded(ulimit: str) -> tuple[str, ...]:
    """Return the words before a command that bound it by the shell's `ulimit`, which takes such as `-n 128`."""
    return ("/bin/sh", "-c", f'ulimit {ulimit}; exec "$0" "$@"')


class Serving:
    """A service that runs in the foreground of a process of its own."""

    def __init__(self, product: "Product", process: "subprocess.Popen[bytes]", output: Path) -> None:
        self._product = product
        self._process = process
        self._output = output

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    def output(self) -> str:
        """Return what it has printed so far, both streams together."""
        return self._output.read_text()

    def wait_up(self) -> "Serving":
        """Wait until it answers its socket."""
        wait_until(lambda: self._product.answers(self.pid) or self._process.poll() is not None, "the service answers")
        assert self._process.poll() is None, self.output()
        return self

    def wait_swept(self, seconds: float = PATIENCE) -> "Serving":
        """Wait until its boot sweep is over."""
        ask(self._product.paths.service_socket, "sweep", seconds)
        return self

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Signal it and return its exit code."""
        self._process.send_signal(number)
        return self._process.wait(PATIENCE)

    def kill(self) -> None:
        """End it as a crash would."""
        self._process.kill()
        self._process.wait(10)

    def ended(self, seconds: float = PATIENCE) -> int:
        """Wait for its end and return its exit code."""
        return self._process.wait(seconds)


class Product:
    """One the-loop, addressed by the command line as people do."""

    def __init__(self, folder: Path, workspace: WorkspaceThread | None, executable: Path = PROGRAM) -> None:
        self.folder = folder
        self._executable = executable
        self.socket = f"loop-test-{secrets.token_hex(4)}"
        self.paths = StatePaths(folder / "state")
        self.config = folder / "cli-config.yaml"
        self._workspace = workspace
        self._tokens = {BOT_VARIABLE: workspace.bot_token, APP_VARIABLE: workspace.app_token} if workspace else {}
        self.relayed = RELAYED
        self._processes: list[subprocess.Popen[bytes]] = []
        for name in ("home", "tmux", "work"):
            (folder / name).mkdir()
        self.configure()

    # ------------------------------------------------------------ configuration

    def document(self) -> dict[str, Any]:
        """Return the configuration that most tests want: one declared session of the bundled agent."""
        document: dict[str, Any] = {
            "state": {"root": str(self.paths.root)},
            "routing": {
                "defaultHarness": "bundled",
                "spawnWorkdir": str(self.folder / "work"),
                "tmux": {"socketName": self.socket, "harnessKillGraceSeconds": 2, "startTimeoutSeconds": 20},
            },
            "service": {"port": 0},
            "standingSessions": {
                "enabled": True,
                "sessions": [{"name": NAME, "prompt": "Look after it.", "slack": {"enabled": True}}],
            },
        }
        if self.relayed:
            document["fleet"] = {"enabled": True, "host": "here", "gateway": True}
        if self._workspace is not None:
            document["channels"] = {"slack": self.slack_block()}
        return document

    def slack_block(self, **changes: Any) -> dict[str, Any]:
        """Return the channel's block: the workspace's channel #agents, steered by alice."""
        workspace = self.workspace
        return {
            "enabled": True,
            "apiUrl": workspace.api_url,
            "channel": workspace.channel_id("agents"),
            "authorizedUsers": [workspace.user_id("alice")],
            **changes,
        }

    def configure(self, text: str | None = None, **blocks: Any) -> None:
        """Write the configuration: the text as it is, or the usual one with some blocks replaced."""
        self.config.write_text(text if text is not None else yaml.safe_dump({**self.document(), **blocks}))

    @property
    def workspace(self) -> WorkspaceThread:
        """Return the workspace on the other side."""
        assert self._workspace is not None, "this product has no workspace"
        return self._workspace

    def environ(self, **changes: str) -> dict[str, str]:
        """Return the environment of every process of the product."""
        environ = {**os.environ, "HOME": str(self.folder / "home"), "TMUX_TMPDIR": str(self.folder / "tmux")}
        environ.pop("PYTHONUNBUFFERED", None)
        environ["PATH"] = f"{self._executable.parent}{os.pathsep}{environ['PATH']}"
        relayed = {"THE_LOOP_FLEET_URL": "memory:"} if self.relayed else {}
        return {**environ, **self._tokens, **relayed, **changes}

    def forget_tokens(self) -> None:
        """Have no token of the workspace any more."""
        self._tokens = {}

    # ------------------------------------------------------------ processes

    def cli(
        self,
        *words: str,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        config: Path | None = None,
        seconds: float = 3 * PATIENCE,
        within: Sequence[str] = (),
    ) -> Done:
        """Run one command with this product's configuration; see `begin` for `within`."""
        chosen, environ = ("--config", str(config or self.config)), {**self.environ(), **(env or {})}
        return self.program((*chosen, *words), stdin=stdin, env=environ, seconds=seconds, within=within)

    def program(
        self,
        words: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        seconds: float = 3 * PATIENCE,
        within: Sequence[str] = (),
    ) -> Done:
        """Run the program with these words alone; see `begin` for `within`."""
        done = subprocess.run(
            [*within, str(self._executable), *words],
            input=stdin,
            capture_output=True,
            env=dict(env or self.environ()),
            cwd=self.folder / "work",
            timeout=seconds,
            check=False,
        )
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())

    def begin(
        self, *words: str, env: Mapping[str, str] | None = None, within: Sequence[str] = ()
    ) -> "tuple[subprocess.Popen[bytes], Path]":
        """Start a command that goes on, and return it with the file that takes what it prints.

        `within` are the words before it: a command that becomes the one behind it, such as `bounded` gives.
        """
        output = self.folder / f"output-{len(self._processes)}"
        with output.open("wb") as stream:
            process = subprocess.Popen(
                [*within, str(self._executable), *words],
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                env=dict(env or self.environ()),
                cwd=self.folder / "work",
                start_new_session=True,
            )
        self._processes.append(process)
        return process, output

    def serve(self, *, env: Mapping[str, str] | None = None, within: Sequence[str] = ()) -> Serving:
        """Run the service in the foreground of a process and wait until it answers; see `begin` for `within`."""
        environ = {**self.environ(), **(env or {})}
        process, output = self.begin("--config", str(self.config), "serve", env=environ, within=within)
        return Serving(self, process, output).wait_up()

    def http_url(self) -> str:
        """Return where the service listens for HTTP, once it does."""

        def rows() -> list[str]:
            answer = ask(self.paths.service_socket, "status", PATIENCE)["services"]
            return [row["detail"].split(": ")[0] for row in answer if row["name"] == "http" and row["running"]]

        wait_until(rows, "the service listens for HTTP")
        return rows()[0]

    def answers(self, pid: int) -> bool:
        """Return whether the service with that pid answers its socket."""
        try:
            return bool(ask(self.paths.service_socket, "ping", 1.0)["pid"] == pid)
        except NoAnswer:
            return False

    # ------------------------------------------------------------ what is there

    def tmux(self, *words: str) -> str:
        """Run tmux on the product's server and return what it printed. Raises CalledProcessError."""
        done = subprocess.run(
            ["tmux", "-L", self.socket, *words],
            env=self.environ(),
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
        return done.stdout

    def panes(self) -> dict[str, int]:
        """Return the pid of each session's pane, by the session's name."""
        try:
            lines = self.tmux("list-panes", "-a", "-F", "#{session_name} #{pane_pid}").splitlines()
        except subprocess.CalledProcessError:  # no server runs
            return {}
        found = (line.split() for line in lines if line.startswith("loop-standing-"))
        return {name.removeprefix("loop-standing-"): int(pid) for name, pid in found}

    def screen(self, name: str = NAME) -> str:
        """Return what the session's pane shows, its history included, lines joined as they were written."""
        return self.tmux("capture-pane", "-p", "-J", "-S", "-", "-t", f"=loop-standing-{name}:")

    def record(self, name: str = NAME) -> dict[str, Any]:
        """Return the session's record as it stands on the disk."""
        record: dict[str, Any] = json.loads((self.paths.records / f"{name}.json").read_text())
        return record

    def taken(self, name: str = NAME) -> list[str]:
        """Return what the agent's turns took from people, by its conversation's own file, in order."""
        record = self.record(name)
        folder = self.paths.session(record["uid"]) / "agent" / "conversations"
        path = folder / f"{record['harnessSessionId']}.jsonl"
        return [
            str(entry["message"]["content"])
            for entry in entries(path)
            if entry["type"] == "user" and entry.get("origin") == {"kind": "human"}
        ]

    def count(self, text: str, name: str = NAME) -> int:
        """Return how many times the agent took the text."""
        return sum(taken.count(text) for taken in self.taken(name))

    def times(self, text: str, name: str = NAME) -> int:
        """Return how many times the agent took the text, once it did: the hook comes before the conversation's line."""
        wait_until(lambda: self.count(text, name), f"{name} took {text!r}")
        return self.count(text, name)

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the events of these kinds, oldest first; without kinds, all."""
        found = entries(self.paths.events)
        return [event for event in found if not kinds or event["event"] in kinds]

    def wait_event(self, kind: str, count: int = 1, seconds: float = PATIENCE) -> list[dict[str, Any]]:
        """Return the events of that kind once there are so many."""
        wait_until(lambda: len(self.events(kind)) >= count, f"{count} {kind}", seconds)
        return self.events(kind)

    # ------------------------------------------------------------ the thread

    def root(self, name: str = NAME, seconds: float = PATIENCE) -> str:
        """Return the thread of the session, once it is announced and bound."""
        announced = self.workspace.wait_for_message(lambda message: is_root(message, name), seconds)
        bound = "standing.announced"
        wait_until(lambda: any(e["name"] == name for e in self.events(bound)), "the thread is bound", seconds)
        return str(announced["ts"])

    def roots(self, name: str = NAME) -> list[Json]:
        """Return every announcement of the session that opened a thread."""
        return [message for message in self.workspace.messages("agents") if is_root(message, name)]

    def wait_reply(self, thread: str, part: str, seconds: float = PATIENCE) -> Json:
        """Return the first message in the thread that the bot wrote and that holds the part."""
        return self.workspace.wait_for_message(
            lambda m: m.get("thread_ts") == thread and m["ts"] != thread and "bot_id" in m and part in m["text"],
            seconds,
        )

    def bot_replies(self, thread: str) -> list[str]:
        """Return what the bot wrote in the thread, oldest first."""
        return [message["text"] for message in self.workspace.replies("agents", thread) if "bot_id" in message]

    # ------------------------------------------------------------ the end

    def close(self) -> None:
        """End every process that is ours: those we started, a detached service, the tmux server."""
        for process in self._processes:
            if process.poll() is None:
                process.terminate()
        for process in self._processes:
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(10)
        service = running_service(self.paths.service_lock)
        if service:
            end(service)
        agents = self.panes().values()
        end_tmux(self.socket, self.environ())
        wait_until(lambda: not any(map(alive, agents)), "the agents end, whose last hooks write to the folder")


def is_root(message: Json, name: str = NAME) -> bool:
    """Return whether the message is the announcement of the session, whose thread is the session's."""
    own_thread = message.get("thread_ts") in (None, message["ts"])
    return own_thread and "bot_id" in message and f"`standing:{name}`" in message["text"]


def end(pid: int, number: int = signal.SIGTERM, seconds: float = PATIENCE) -> None:
    """End one process by its pid."""
    os.kill(pid, number)
    wait_until(lambda: not alive(pid), f"process {pid} ends", seconds)


def end_tmux(socket: str, environ: Mapping[str, str]) -> None:
    """End the tmux server of a socket name, if it runs."""
    found = subprocess.run(
        ["tmux", "-L", socket, "display-message", "-p", "#{pid}"],
        env=dict(environ),
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    if found.returncode == 0:
        end(int(found.stdout))


@contextmanager
def product(workspace: WorkspaceThread | None = None, executable: Path = PROGRAM) -> Iterator[Product]:
    """Give a product in a folder of its own: short, since the path of a Unix socket is limited."""
    folder = Path(tempfile.mkdtemp(prefix="lp-"))
    running = Product(folder, workspace, executable)
    try:
        yield running
    finally:
        running.close()
        shutil.rmtree(folder, ignore_errors=True)
