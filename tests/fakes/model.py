"""A deterministic model server for real agents in tests: four protocols on loopback, standard library only.

The answer is `ECHO: <what was said last>`. Directives in that text make it do more, in their order:

    [[sleep S]]        wait S seconds before the first answer
    [[drip S]]         stream the final text in pieces for about S seconds
    [[tool bash CMD]]  call the shell tool, by whichever name the harness offers it
    [[bg CMD]]         call the shell tool in the background, where the harness offers that
    [[call NAME JSON]] call a tool with these arguments; of a name such as mcp__x__NAME its end is enough
    [[say TEXT]]       the final text
    [[text NAME]]      the final text is the one that the test has put under that name
    [[error CODE]]     answer with that HTTP status: `CODE for S` for so many seconds from the first such request on,
                       `CODE now` as one that is not worth trying again; words behind it are the error's message.
                       Claude Code sends a prompt that failed again with the next one: it is the last that counts
    [[limit S]]        answer 429 as to an account whose usage limit is reached for S more seconds

In a directive `$FILE` is the path of the file that the text names, as a message does that came with one or is one.
A prompt for a subagent, which stands inside a directive, writes `<<` and `>>` for the brackets.
Tools are called one a request; when the last result is back the text is `DONE: <result>`. Text that was slipped into a
running turn is added as `STEER: <text>`: Claude Code 2.1.197 sends it as a system message, 2.1.280 and later as a text
beside the tool's result; other harnesses send it as a prompt, which is echoed. What Claude Code 2.1.332 puts round a
paste is left out; `heard` tells of it. Nothing but the time of an error that passes is kept between requests: all is
worked out from the conversation that each carries. A request without tools (a title, a topic check) gets a short echo.

The protocols are in tests/fakes/protocols.py, what is answered in tests/fakes/turns.py.

`python -m tests.fakes.model [--port N]` prints `PORT <n>` and serves until it is ended.
"""

import json
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes.protocols import Event, Speech, heard, speech_of
from tests.fakes.turns import Piece, Turn, decide

MODELS = ("fake-model", "claude-sonnet-4-5", "gpt-5", "gemini-2.5-pro")


@dataclass(frozen=True)
class Request:
    """One request as it was answered."""

    user: str
    reply: str
    tools: tuple[str, ...]
    body: Mapping[str, Any] = field(repr=False)
    said: tuple[str, ...] = field(repr=False)  #: every text of people in its conversation, in order
    used: tuple[int, int, int] = (0, 0, 0)  #: tokens that the answer told of: fresh ones, written ones, cached ones


class ModelServer(ThreadingHTTPServer):
    """The server, the texts that it is to say, and every request with tools that it has answered."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self._lock = threading.Lock()
        self._requests: list[Request] = []
        self._first: dict[str, float] = {}  #: when each text was asked first, on the monotonic clock
        self.texts: dict[str, str] = {}  #: for [[text NAME]]

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def note(self, request: Request) -> None:
        """Remember a request."""
        with self._lock:
            self._requests.append(request)

    def since(self, turn: Turn) -> float:
        """Return how many seconds ago a request with tools said this for the first time."""
        now = time.monotonic()
        with self._lock:
            return now - self._first.setdefault(turn.user, now) if turn.tools else 0.0

    def requests(self, containing: str = "") -> tuple[Request, ...]:
        """Return the requests with tools whose last said text contains this."""
        with self._lock:
            return tuple(seen for seen in self._requests if seen.tools and containing in seen.user)

    def used(self, containing: str = "") -> tuple[int, int, int]:
        """Return the tokens of these requests together: fresh ones, written ones, cached ones."""
        fresh, written, cached = zip(*(request.used for request in self.requests(containing)), strict=True)
        return sum(fresh), sum(written), sum(cached)

    def heard(self, part: str) -> tuple[tuple[Piece, ...], ...]:
        """Return the texts of people that hold the part, each in pieces, by the latest request that has any."""
        found = (heard(request.said, part) for request in reversed(self.requests()))
        return next((texts for texts in found if texts), ())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ModelServer

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a test asks the server."""

    def do_HEAD(self) -> None:
        """Answer the probe that a harness sends at its start."""
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        """Answer which models there are, and whatever else it looks for."""
        self._whole({"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS], "models": []})

    def do_POST(self) -> None:
        """Answer what a model is asked; anything else (telemetry, flags) gets an empty object."""
        raw = self._read()
        try:
            body = json.loads(raw or b"{}")
        except ValueError:
            body = {}
        path = self.path.partition("?")[0]
        speech = speech_of(path)
        if path.endswith(("/count_tokens", ":countTokens")):
            tokens = max(1, len(raw) // 4)
            self._whole({"input_tokens": tokens} if path.endswith("/count_tokens") else {"totalTokens": tokens})
        elif speech is not None:
            self._answer(speech, speech.parse(path, body), body)
        else:
            self._whole({})

    def _read(self) -> bytes:
        """Return the body, whether its length is told or it comes in chunks."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _answer(self, speech: Speech, turn: Turn, body: Mapping[str, Any]) -> None:
        reply = decide(turn, self.server.texts, self.server.since(turn))
        said = f"call {reply.call[0]}" if reply.call else reply.text
        used = (0, 0, 0) if reply.error else (reply.fresh, reply.written, reply.cached)
        self.server.note(Request(turn.user, said, turn.tools, body, tuple(speech.said(body)), used))
        try:
            if self._gone_within(reply.sleep):
                self.close_connection = True
            elif reply.error:
                refusal, headers = speech.refusal(reply)
                self._whole(refusal, reply.error, headers)
            elif turn.stream:
                self._stream(speech.events(turn, reply))
            else:
                self._whole(speech.whole(turn, reply))
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _gone_within(self, seconds: float) -> bool:
        """Wait; True as soon as the client has closed the connection."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self.connection], [], [], min(left, 0.2))[0]:
                try:
                    gone: bool = self.connection.recv(1, socket.MSG_PEEK) == b""
                except OSError:
                    return True
                return gone
        return False

    def _whole(self, content: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[Event]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for name, told in events:
            event = f"event: {name}\n" if name else ""
            data = f"{event}data: {told if isinstance(told, str) else json.dumps(told)}\n\n".encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()


@contextmanager
def serving() -> Iterator[ModelServer]:
    """Serve on a free port of loopback while the block runs."""
    server = ModelServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


if __name__ == "__main__":
    given = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=False))
    alone = ModelServer(int(given.get("--port", 0)))
    print(f"PORT {alone.server_address[1]}", flush=True)
    try:
        alone.serve_forever()
    except KeyboardInterrupt:
        alone.server_close()
