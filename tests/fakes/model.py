"""A deterministic model server for real agents in tests: Anthropic's Messages API on loopback, standard library only.

The answer is `ECHO: <what was said last>`. Directives in that text make it do more, in their order:

    [[sleep S]]        wait S seconds before the first answer
    [[drip S]]         stream the final text in pieces for about S seconds
    [[tool bash CMD]]  call the shell tool
    [[bg CMD]]         call the shell tool in the background
    [[call NAME JSON]] call a tool with these arguments
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
beside the tool's result. What 2.1.332 puts round a paste is left out; `heard` tells of it. Nothing but the time of an
error that passes is kept between requests: all is worked out from the conversation that each carries. A request without
tools (a title, a topic check) gets a short echo.

`python -m tests.fakes.model [--port N]` prints `PORT <n>` and serves until it is ended.
"""

import json
import re
import select
import socket
import sys
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_DIRECTIVE = re.compile(r"\[\[(sleep|drip|tool bash|bg|call|say|text|error|limit)\s+(.*?)\]\]", re.DOTALL)
_NOISE = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_STEER = re.compile(
    r"The user sent a new message while you were working:\n(.*?)"
    r"(?:\n\nIMPORTANT: After|\n\nThis is how Claude Code surfaces|</system-reminder>|\Z)",
    re.DOTALL,
)
_DEFERRED = re.compile(r"deferred tools are now available via ToolSearch\..*?:\n((?:\S+(?:\n|\Z))+)", re.DOTALL)
_PASTE = re.compile(r'<pasted_content id="(\w+)">\n(.*?)\n</pasted_content id="\1">', re.DOTALL)
_ERROR = re.compile(r"(\d{3})(?: for ([\d.]+)| (now))?\s*(.*)", re.DOTALL)
_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_FILE = re.compile(r"(?:\(file: |Read all of it in )(/\S+) [,:]")
_DRIP_PAUSE = 0.2


@dataclass(frozen=True)
class Piece:
    """A part of what a person said, as the model was given it: typed, or marked as pasted."""

    text: str
    pasted: bool = False


@dataclass(frozen=True)
class Turn:
    """What a request says: the last thing that was said, and what followed it."""

    user: str
    last: str  #: of its prompts, where it has several
    results: tuple[str, ...]
    steers: tuple[str, ...]
    tools: tuple[str, ...]  #: whatever it may call: 2.1.332 names those of MCP servers, and describes them when asked
    model: str
    stream: bool


@dataclass
class Reply:
    """What is answered."""

    text: str
    call: tuple[str, dict[str, Any]] | None = None
    sleep: float = 0.0
    drip: float = 0.0
    error: int = 0
    message: str = ""  #: of the error
    final: bool = False  #: the error is not worth trying again
    limit: float = 0.0  #: seconds until the account's limit ends


@dataclass(frozen=True)
class Request:
    """One request as it was answered."""

    user: str
    reply: str
    tools: tuple[str, ...]
    messages: int
    body: Mapping[str, Any] = field(repr=False)


def parse(body: Mapping[str, Any]) -> Turn:
    """Read a Messages request."""
    said: list[str] = []
    results: list[str] = []
    steers: list[str] = []
    for message in body.get("messages", []):
        prompts, slipped = _said(message)
        steers += slipped
        if message.get("role") == "user":
            results += [_flat(block.get("content")) for block in _blocks(message) if block.get("type") == "tool_result"]
            if prompts:
                said, results, steers = [_typed(prompt) for prompt in prompts], [], []
    tools = {tool["name"] for tool in body.get("tools") or [] if "name" in tool}
    named = {name for message in body.get("messages", []) for name in _deferred(message)} if tools else set[str]()
    return Turn(
        user="\n".join(said),
        last=said[-1] if said else "",
        results=tuple(results),
        steers=tuple(map(_typed, steers)),
        tools=tuple(sorted(tools | named)),
        model=str(body.get("model", "")),
        stream=bool(body.get("stream")),
    )


def heard(body: Mapping[str, Any], part: str) -> tuple[tuple[Piece, ...], ...]:
    """Return each text of people in the conversation that holds the part, in the pieces that the model was given."""
    texts = [text for message in body.get("messages", []) for kind in _said(message) for text in kind]
    return tuple(_pieces(text) for text in texts if part in text)


def _said(message: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return what the message says for people: prompts, and what was slipped into a running turn."""
    prompts, slipped = [], []
    for block in _blocks(message):
        text = str(block.get("text", "")) if block.get("type") == "text" else ""
        found = [steer.strip() for steer in _STEER.findall(text)] if message.get("role") != "assistant" else []
        slipped += found
        if message.get("role") == "user" and not found and _clean(text):
            prompts.append(_clean(text))
    return prompts, slipped


def _deferred(message: Mapping[str, Any]) -> list[str]:
    texts = [_flat(block) for block in _blocks(message)] if message.get("role") == "system" else []
    return [name for text in texts for names in _DEFERRED.findall(text) for name in names.split()]


def _blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def _pieces(text: str) -> tuple[Piece, ...]:
    pieces, end = [], 0
    for found in _PASTE.finditer(text):
        pieces += [Piece(text[end : found.start()].strip()), Piece(found[2].strip(), pasted=True)]
        end = found.end()
    pieces.append(Piece(text[end:].strip()))
    return tuple(piece for piece in pieces if piece.text)


def _typed(text: str) -> str:
    """Return the text without what marks a part of it as pasted."""
    return "\n".join(piece.text for piece in _pieces(text))


def decide(turn: Turn, texts: Mapping[str, str], since: float = 0.0) -> Reply:
    """Return the reply to a request; `since` is how many seconds ago the same was first asked.

    It depends on these, and on the texts that the test has given, alone.
    """
    if not turn.tools:
        return Reply(f"ECHO: {turn.user}"[:60])
    reply = Reply(f"ECHO: {turn.user}")
    calls: list[tuple[str, dict[str, Any]]] = []
    said = None
    obeyed = turn.user if "[[" in turn.user else turn.user.replace("<<", "[[").replace(">>", "]]")
    named = _FILE.search(turn.user)
    for kind, written in _DIRECTIVE.findall(obeyed):
        argument = written.replace("$FILE", named[1]) if named else written
        if kind == "sleep":
            reply.sleep += 0.0 if turn.results else float(argument)
        elif kind == "drip":
            reply.drip = float(argument)
        elif kind in ("say", "text"):
            said = argument if kind == "say" else texts[argument]
        elif kind in ("error", "limit"):
            if written in turn.last:
                _fail(reply, kind, argument, since)
        else:
            calls.append(_call(kind, argument))
    done = len(turn.results)
    if done < len(calls):
        reply.call = calls[done]
    elif said is not None:
        reply.text = said
    elif done:
        reply.text = f"DONE: {turn.results[-1].strip()}"
    reply.text += "".join(f"\nSTEER: {text}" for text in turn.steers)
    return reply


def _fail(reply: Reply, kind: str, argument: str, since: float) -> None:
    if kind == "limit":
        reply.error, reply.limit, reply.final = 429, float(argument), True
        return
    found = _ERROR.fullmatch(argument)
    assert found is not None, f"[[error {argument}]]"
    code, seconds, final, message = found.groups()
    if seconds is None or since < float(seconds):
        reply.error, reply.message, reply.final = int(code), message, final is not None


def _call(kind: str, argument: str) -> tuple[str, dict[str, Any]]:
    if kind == "call":
        name, _, given = argument.strip().partition(" ")
        return name, json.loads(given or "{}")
    background = {"run_in_background": True} if kind == "bg" else {}
    return "Bash", {"command": argument, "description": "run a command", **background}


def _clean(text: str) -> str:
    return _NOISE.sub("", text).strip()


def _flat(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return _flat(content.get("text") or content.get("content"))
    return "\n".join(filter(None, map(_flat, content))) if isinstance(content, list) else ""


def _message(turn: Turn, reply: Reply) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": reply.text}
    if reply.call is not None:
        name, given = reply.call
        block = {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:24]}", "name": name, "input": given}
    return {
        "id": f"msg_{uuid.uuid4().hex[:24]}",
        "type": "message",
        "role": "assistant",
        "model": turn.model,
        "content": [block],
        "stop_reason": "end_turn" if reply.call is None else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": max(1, len(reply.text) // 4)},
    }


def _events(message: Mapping[str, Any], drip: float = 0.0) -> Iterator[dict[str, Any]]:
    """Yield the server-sent events that carry a message, a text in pieces for `drip` seconds."""
    block = message["content"][0]
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    if block["type"] == "text":
        opened, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
    else:
        opened = {**block, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    yield {"type": "content_block_start", "index": 0, "content_block": opened}
    for _ in range(int(drip / _DRIP_PAUSE) if block["type"] == "text" else 0):
        yield {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "drip "}}
        time.sleep(_DRIP_PAUSE)
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    stop = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": message["usage"]["output_tokens"]}}
    yield {"type": "message_stop"}


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

    def heard(self, part: str) -> tuple[tuple[Piece, ...], ...]:
        """Return the texts of people that hold the part, each in pieces, by the latest request that has any."""
        found = (heard(request.body, part) for request in reversed(self.requests()))
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
        """Answer whatever else it looks for."""
        self._whole({"data": []})

    def do_POST(self) -> None:
        """Answer a Messages request; anything else (telemetry, flags) gets an empty object."""
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        except ValueError:
            body = {}
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens"):
            self._whole({"input_tokens": 10})
        elif path.endswith("/messages"):
            self._answer(body)
        else:
            self._whole({})

    def _answer(self, body: Mapping[str, Any]) -> None:
        turn = parse(body)
        reply = decide(turn, self.server.texts, self.server.since(turn))
        said = f"call {reply.call[0]}" if reply.call else reply.text
        self.server.note(Request(turn.user, said, turn.tools, len(body.get("messages", [])), body))
        try:
            if self._gone_within(reply.sleep):
                self.close_connection = True
            elif reply.error:
                self._refuse(reply)
            elif turn.stream:
                self._stream(_events(_message(turn, reply), reply.drip))
            else:
                self._whole(_message(turn, reply))
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

    def _refuse(self, reply: Reply) -> None:
        """Answer with an error, as the real server words it."""
        kind = _ERROR_TYPES.get(reply.error, "api_error")
        error = {"type": kind, "message": reply.message or f"fake error {reply.error}"}
        headers = {"x-should-retry": "false"} if reply.final else {}
        if reply.limit:
            headers |= {
                "anthropic-ratelimit-unified-status": "rejected",
                "anthropic-ratelimit-unified-representative-claim": "five_hour",
                "anthropic-ratelimit-unified-reset": str(int(time.time() + reply.limit)),
                "retry-after": str(int(reply.limit)),
            }
        self._whole({"type": "error", "error": error}, reply.error, headers)

    def _whole(self, content: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterator[dict[str, Any]]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
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
