"""Ask tmux over a persistent control client: a tenth of the cost of one process for each line.

The client is attached to a session of its own, takes no output of panes and does not affect window sizes. tmux answers
each command of a line in a block of its own, and their number depends on what the line does, so replies are not
counted: a second line prints a token, and everything before the block with the token is the answer.
"""

import fcntl
import os
import re
import secrets
import select
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from core.base.environment import shed_limit
from core.base.errors import TmuxSilent
from core.tmux.server import CONTROL_SESSION, TmuxServer
from core.tmux.transport import DATA, Job, Line, LoadFile, LoadFiles, Reply, silent, spell

_ATTACH = ("-N", "-C", "attach-session", "-f", "no-output,ignore-size", "-t", f"={CONTROL_SESSION}:")
_BUILD_SECONDS = 1.0  # what building a client may take of a call's time, and never more than half of it
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 30.0  # between attempts to build one
_PIPE_BYTES = 1 << 20
_FRAME = re.compile(rb"%(begin|end|error) (\d+ \d+) \d+")


class _Lost(Exception):
    """The client ended, or did not answer in time; why."""


class ControlTransport:
    """The Transport of a long-running process. Safe for several threads; one line is under way at a time.

    What was sent when the client died, or when time ran out, may or may not be run: TmuxSilent, and receipts settle
    it. Where no client can be had, each line takes a process; a line is never sent both ways.
    """

    def __init__(self, server: TmuxServer) -> None:
        self._server = server
        self._process = server.process()
        self._loads = LoadFiles(server.conf.parent / "load")
        self._lock = threading.Lock()
        self._client: _Client | None = None
        self._pause = _FIRST_PAUSE
        self._not_before = 0.0

    def run(self, line: Line, timeout: float, data: bytes | None = None) -> Reply:
        """See Transport. The data goes by a file of its own, since a control client has no other way."""
        return self.run_all([(line, data)], timeout)

    def run_all(self, jobs: Sequence[Job], timeout: float) -> Reply:
        """See Transport. All go out in one piece, so that tmux waits for nobody between them."""
        end = time.monotonic() + timeout
        if not self._lock.acquire(timeout=timeout):
            raise silent(f"no answer to an earlier command within {timeout:g} s")
        try:
            client = self._ready(end)
            written = None if client is None else self._with_files(jobs)
            if client is not None and written is not None:
                return self._exchanged(client, *written, end)
        finally:
            self._lock.release()
        return self._process.run_all(jobs, end - time.monotonic())

    def close(self) -> None:
        """See Transport."""
        with self._lock:
            self._drop()
            self._loads.close()

    @property
    def client_pid(self) -> int | None:
        """Return the client's process, None while there is none."""
        client = self._client
        return client.pid if client else None

    def _exchanged(self, client: "_Client", lines: Sequence[Line], loads: Sequence[LoadFile], end: float) -> Reply:
        try:
            return client.exchange(lines, end)
        except _Lost as error:
            self._drop()
            raise silent(f"the control client was lost during {lines[0][0][0]}: {error}") from error
        finally:
            for load in loads:
                load.remove()
            if loads:
                self._loads.prepare()

    def _ready(self, end: float) -> "_Client | None":
        """Return a living client, built if need be, or None where none can be had now."""
        if self._client is not None and self._client.lives():
            return self._client
        self._drop()
        now = time.monotonic()
        if now < self._not_before:
            return None
        try:
            self._client = self._built(min(now + _BUILD_SECONDS, now + (end - now) / 2))
        except (_Lost, TmuxSilent):
            self._not_before = time.monotonic() + self._pause
            self._pause = min(self._pause * 2, _LONGEST_PAUSE)
            return None
        if self._client is None:
            self._not_before = time.monotonic() + _FIRST_PAUSE
        else:
            self._pause = _FIRST_PAUSE
        return self._client

    def _built(self, end: float) -> "_Client | None":
        """Return a client that has answered, or None if no server runs. Raises _Lost, TmuxSilent, TmuxMissing."""
        asking = self._server.process(start=False)
        made = asking.run(self._server.control_session(), end - time.monotonic())
        if made.no_server:
            return None
        client = _Client((*self._server.command, *_ATTACH), self._server.environment())
        try:
            client.exchange((), end)
        except _Lost:
            client.end()
            raise
        return client

    def _drop(self) -> None:
        if self._client is not None:
            self._client.end()
            self._client = None

    def _with_files(self, jobs: Sequence[Job]) -> tuple[list[Line], list[LoadFile]] | None:
        """Return the lines and the files that they load; None where those cannot be written, or tmux not read them."""
        lines: list[Line] = []
        loads: list[LoadFile] = []
        for line, data in jobs:
            load = None if data is None else self._loads.written(data)
            if data is not None and load is None:
                for written in loads:
                    written.remove()
                return None
            lines.append(_with_path(line, load.path if load else None))
            loads += [load] if load else []
        return lines, loads


def _with_path(line: Line, path: str | None) -> Line:
    if path is None:
        return line
    return [[path if word == DATA else word for word in command] for command in line]


class _Client:
    """One `tmux -C` process and the pipes to it.

    The process has the reading end of its own output, too, so that the pipe never breaks: a server whose answer nobody
    can read keeps it, and a client with an answer that is kept is never told to exit, whatever becomes of its input
    (tmux 3.3a). So it ends with whoever holds it, even one that is killed in the middle of a line.
    """

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._stdout, written = os.pipe()
        _widen(self._stdout)
        shed_limit()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=written,
                stderr=subprocess.DEVNULL,
                env=dict(environ),
                start_new_session=True,
                bufsize=0,
                pass_fds=(self._stdout,),
            )
        except OSError as error:
            os.close(self._stdout)
            raise _Lost(f"{command[0]!r} could not be started: {error.strerror}") from error
        finally:
            os.close(written)
        if self._process.stdin is None:
            raise _Lost("its pipe was not made")
        self._stdin = self._process.stdin.fileno()
        os.set_blocking(self._stdin, False)
        os.set_blocking(self._stdout, False)
        self._unread = b""

    @property
    def pid(self) -> int:
        """Return the client's process."""
        return self._process.pid

    def lives(self) -> bool:
        """Return whether the client is there, and read what it said meanwhile (notifications, which nobody needs)."""
        if self._process.poll() is not None:
            return False
        try:
            while self._read():
                self._unread = b""
        except _Lost:
            return False
        return True

    def exchange(self, lines: Sequence[Line], end: float) -> Reply:
        """Send the lines and return what they answered. Raises _Lost once `end` (monotonic) is past, or at its end."""
        token = f"the-loop-{secrets.token_hex(8)}"
        sent = [spell(line) for line in (*lines, [("display-message", "-p", token)])]
        self._send("".join(f"{text}\n" for text in sent).encode(errors="surrogateescape"), end)
        return _answered(self._through(token.encode(), end))

    def end(self) -> None:
        """End the client; the server and its panes stay."""
        self._process.kill()
        self._process.wait()
        os.close(self._stdout)
        if self._process.stdin is not None:
            self._process.stdin.close()

    def _through(self, token: bytes, end: float) -> list[bytes]:
        """Return the lines up to the block with the token, which nothing else can hold. Raises _Lost."""
        last = token + b"\n%end "
        begun, end_of = 0, -1
        while end_of < 0:
            found = self._unread.find(last, begun)
            end_of = self._unread.find(b"\n", found + len(last)) if found >= 0 else -1
            if end_of < 0:
                begun = found if found >= 0 else max(0, len(self._unread) - len(last))
                if not self._read():
                    self._wait(self._stdout, select.POLLIN, end)
        seen, self._unread = self._unread[:found], self._unread[end_of + 1 :]
        return seen.split(b"\n")

    def _read(self) -> bool:
        """Read what is there and tell whether that was anything. Raises _Lost at the client's end."""
        try:
            data = os.read(self._stdout, 65536)
        except BlockingIOError:
            return False
        if not data:
            raise _Lost("it ended")
        self._unread += data
        return True

    def _send(self, data: bytes, end: float) -> None:
        while data:
            try:
                data = data[os.write(self._stdin, data) :]
            except BlockingIOError:
                self._wait(self._stdin, select.POLLOUT, end)
            except OSError as error:
                raise _Lost(f"it takes nothing: {error.strerror}") from error

    def _wait(self, descriptor: int, event: int, end: float) -> None:
        poll = select.poll()
        poll.register(descriptor, event)
        if not poll.poll(max(0.0, end - time.monotonic()) * 1000):
            raise _Lost("it did not answer in time")


def _widen(pipe: int) -> None:
    """Let the pipe hold more than any answer, where the system can: nobody may be there to read it (Linux)."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with suppress(OSError):  # the user has many wide pipes already
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


def _answered(lines: list[bytes]) -> Reply:
    """Return what the blocks hold: each ends with the number that it began with, whatever stands between."""
    out: list[bytes] = []
    err: list[bytes] = []
    number, body = b"", out
    for line in lines:
        frame = _FRAME.fullmatch(line) if line.startswith(b"%") else None
        if not number:
            if frame is not None and frame[1] == b"begin":
                number, body = frame[2], []
        elif frame is not None and frame[1] != b"begin" and frame[2] == number:
            (err if frame[1] == b"error" else out).extend(body)
            number = b""
        else:
            body.append(line)
    return Reply(1 if err else 0, _text(out), _text(err), by_server=True)


def _text(lines: list[bytes]) -> str:
    return "".join(f"{line.decode(errors='replace')}\n" for line in lines)
