"""Private tmux servers for tests, and a stand-in for a full-screen program that notes every read."""

import base64
import fcntl
import json
import os
import pty
import secrets
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from core.base.names import new_instance
from core.model.pane import Pane, Spawn
from core.tmux.runner import Runner
from core.tmux.server import TmuxServer
from core.tmux.transport import Transport

_READER = """\
import base64, json, os, sys, termios, time, tty
log = open(sys.argv[1], "a", buffering=1)
tty.setraw(0, termios.TCSANOW)
os.write(1, b"\\x1b[?2004hready\\r\\n")
log.write(json.dumps({"at": time.time(), "data": ""}) + "\\n")
while True:
    data = os.read(0, 65536)
    if not data:
        break
    log.write(json.dumps({"at": time.time(), "data": base64.b64encode(data).decode()}) + "\\n")
"""


PATIENCE = 40.0  #: seconds for what comes in a moment, on a machine that has far more to do than it can
_LONGEST_REST = 0.25  #: seconds


def wait_until(condition: Callable[[], object], what: str, seconds: float = PATIENCE, every: float = 0.01) -> None:
    """Wait for the condition. Raises AssertionError once the time is over.

    Between two looks is a rest of `every` so many seconds, or as long as the look took: one that runs a program would
    otherwise keep a processor from what it waits for.
    """
    end = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        if now > end:
            raise AssertionError(f"not within {seconds:g} s: {what}")
        time.sleep(max(every, min(now - began, _LONGEST_REST)))


def soon(seconds: float = PATIENCE) -> datetime:
    """Return a deadline that many seconds from now."""
    return datetime.now(UTC) + timedelta(seconds=seconds)


def alive(pid: int) -> bool:
    """Return whether the process runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@dataclass(frozen=True)
class Read:
    """One read of the stand-in: when it returned (epoch seconds), and what it brought."""

    at: float
    data: bytes


class Reader:
    """A program in raw mode that reads its terminal and notes each read in a file."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._log = folder / "reads.jsonl"
        script = folder / "reader.py"
        script.write_text(_READER)
        self.launcher = launcher(folder / "launch", f"exec {sys.executable} -S {script} {self._log}")

    def reads(self) -> list[Read]:
        """Return the reads so far; empty until the program reads at all."""
        if not self._log.exists():
            return []
        notes = [json.loads(line) for line in self._log.read_text().splitlines(keepends=True) if line.endswith("\n")]
        return [Read(note["at"], base64.b64decode(note["data"])) for note in notes]

    def received(self) -> bytes:
        """Return everything read so far."""
        return b"".join(read.data for read in self.reads())

    def wait_ready(self) -> None:
        """Wait until the program has set its terminal up."""
        wait_until(self.reads, "the stand-in reads its terminal")

    def wait_for(self, data: bytes) -> None:
        """Wait until at least as many bytes were read as `data` has."""
        wait_until(lambda: len(self.received()) >= len(data), f"{len(data)} bytes read")

    def wait_for_count(self, part: bytes, count: int) -> None:
        """Wait until the part was read so many times."""
        wait_until(lambda: self.received().count(part) >= count, f"{count} times {part!r} read")


def launcher(path: Path, body: str) -> Path:
    """Write an executable sh script and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


class Counted:
    """A `tmux` for one command alone, first on its PATH, that notes each call before it does what it is asked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._calls = folder / "calls"
        launcher(folder / "tmux", f'echo called >>"{self._calls}"\nexec "{shutil.which("tmux")}" "$@"')

    def environ(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the change of the command's environment."""
        return {"PATH": f"{self._folder}{os.pathsep}{environ['PATH']}"}

    def questions(self) -> int:
        """Return how many times the command has called tmux."""
        return len(self._calls.read_text().splitlines()) if self._calls.exists() else 0


class PrivateTmux:
    """A tmux server on a socket of its own, which only `private_tmux` makes and ends."""

    def __init__(self, folder: Path, environ: Mapping[str, str], hidden: frozenset[str]) -> None:
        self.folder = folder
        inherited = {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE")}
        self.environ = {**inherited, **environ, "TMUX_TMPDIR": str(folder)}
        self.server = TmuxServer(
            f"loop-test-{secrets.token_hex(4)}", folder / "tmux.conf", hidden, environ=self.environ
        )
        self._opened: list[Runner] = []

    def runner(
        self, transport: Transport | None = None, *, timeout: float = PATIENCE, remain_on_exit: bool = True
    ) -> Runner:
        """Return a runner, by processes unless a transport is given; it is closed with the server."""
        transport = transport or self.server.process()
        runner = Runner(self.server, transport, timeout=timeout, remain_on_exit=remain_on_exit)
        self._opened.append(runner)
        return runner

    def tmux(self, *words: str) -> str:
        """Run tmux on the server and return what it printed. Raises CalledProcessError."""
        done = subprocess.run(
            [*self.server.command, *words], env=self.environ, capture_output=True, text=True, timeout=20, check=True
        )
        return done.stdout

    def pid(self) -> int:
        """Return the server's process."""
        return int(self.tmux("display-message", "-p", "#{pid}"))

    @contextmanager
    def frozen(self) -> Iterator[int]:
        """Stop the server for the block, so that it answers nobody."""
        pid = self.pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            yield pid
        finally:
            os.kill(pid, signal.SIGCONT)

    @contextmanager
    def attached(self, *words: str, size: tuple[int, int] = (24, 80)) -> Iterator[int]:
        """Attach a client in a terminal of its own, of so many rows and columns, and give the terminal's other end."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        before = self.tmux("list-clients", "-F", "#{client_name}").count("/dev/")
        client = subprocess.Popen(
            [*self.server.command, "attach-session", *words],
            env=self.environ | {"TERM": "xterm"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        try:
            wait_until(
                lambda: self.tmux("list-clients", "-F", "#{client_name}").count("/dev/") > before,
                "the client is attached",
            )
            yield ours
        finally:
            client.kill()
            client.wait()
            os.close(ours)

    def spawn(
        self,
        runner: Runner,
        launch: Path,
        *,
        target: str = "loop-standing-test",
        instance: str | None = None,
        **env: str,
    ) -> Pane:
        """Spawn the launcher in the server's folder."""
        whole = {"PATH": self.environ["PATH"], "TMUX_TMPDIR": str(self.folder), **env}
        return runner.spawn(Spawn(target, instance or new_instance(), launch, self.folder, whole, soon()))

    def reading(self, runner: Runner, *, target: str = "loop-standing-test") -> tuple[Pane, Reader]:
        """Spawn a stand-in and wait until it reads."""
        reader = Reader(self.folder / f"reader-{secrets.token_hex(3)}")
        pane = self.spawn(runner, reader.launcher, target=target)
        reader.wait_ready()
        return pane, reader

    def close(self) -> None:
        """Close the runners and end the server, if it runs."""
        for runner in self._opened:
            runner.close()
        try:
            pid = self.pid()
        except subprocess.CalledProcessError:  # it never ran, or a test ended it
            return
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not alive(pid), "the private tmux server ends")


@contextmanager
def private_tmux(
    environ: Mapping[str, str] | None = None, hidden: frozenset[str] = frozenset()
) -> Iterator[PrivateTmux]:
    """Give a private server in a folder of its own: short, since the path of a Unix socket is limited."""
    folder = Path(tempfile.mkdtemp(prefix="lt-"))
    private = PrivateTmux(folder, environ or {}, hidden)
    try:
        yield private
    finally:
        private.close()
        shutil.rmtree(folder, ignore_errors=True)
