"""The stdio side of the tools: speaks MCP with a harness and asks the service on its socket. Standard library alone.

A copy of this file is in each session's folder, and the harness runs it (`python -I -S toolbridge.py TOKEN-FILE`);
`the-loop mcp` runs it too. It answers by itself what needs no service: the handshake, and the list of tools, which is
beside the token. So a harness finds its tools whenever it starts. While the service is away, a call is answered with
what to do.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
import uuid

TYPE_CHECKING = False  # the module of that name costs each start ten milliseconds
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import IO, Any

    Message = dict[str, Any]

TOOLS = "tools.json"  #: beside the token: `{"name", "version", "instructions", "tools"}`
SOCKET = "service.sock"
VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")  #: of the protocol, all alike for what is done here
CONNECT_SECONDS = 5.0  # for a service that is there to say that it has heard
RETRY_SECONDS = (0.2, 0.5, 1.0)  # a restart of the service takes about so long
LOST_SECONDS = 60.0  # that a service which went away is looked for
LONGEST_ANSWER = 1 << 24  # bytes
LONGEST_WAIT = 86_400.0 + 120  # seconds; nobody may configure more than a day
LONGEST_CALL = 1_000_000  # bytes; the service reads a line of 1 MiB
LONGEST_LINE = 1 << 24  # bytes; what follows in a longer one is refused as another line
PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602


class Unserved(Exception):
    """No answer came. `sent`: the service had the call, and may have done what it asks."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.sent = sent


class Bridge:
    """One client on standard input and output; each of its calls has a thread and a connection of its own."""

    def __init__(self, token_file: str) -> None:
        """Read what stands beside the token too. Raises OSError, ValueError."""
        folder = os.path.dirname(os.path.abspath(token_file))
        with open(token_file, encoding="utf-8") as stream:
            self._token = stream.read().strip()  # once: that of a later instance is not this process's
        with open(os.path.join(folder, TOOLS), encoding="utf-8") as stream:
            self._told: Message = json.load(stream)
        self._read_only = {tool["name"] for tool in self._told["tools"] if tool["annotations"]["readOnlyHint"]}
        self._socket = os.path.join(os.path.dirname(os.path.dirname(folder)), SOCKET)
        self._writing = threading.Lock()
        self._calls: dict[Any, Call] = {}

    def serve(self, lines: IO[bytes]) -> None:
        """Answer until the client hangs up."""
        while line := lines.readline(LONGEST_LINE):
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                self._refuse(None, PARSE_ERROR, "the line is no JSON")
                continue
            for each in message if isinstance(message, list) and message else [message]:
                self._take(each)

    def _take(self, message: Any) -> None:
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            if not (isinstance(message, dict) and ("result" in message or "error" in message)):
                self._refuse(None, INVALID_REQUEST, "the message is no request")
            return
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if "id" not in message:
            self._note(message["method"], params)
            return
        number = message["id"]
        if isinstance(number, bool) or not isinstance(number, str | int):
            self._refuse(None, INVALID_REQUEST, "the request's id is neither a text nor a number")
            return
        self._answer(number, message["method"], params)

    def _note(self, method: str, params: Message) -> None:
        number = params.get("requestId")
        call = self._calls.get(number) if isinstance(number, str | int) else None
        if method == "notifications/cancelled" and call is not None:
            call.cancel()

    def _answer(self, number: Any, method: str, params: Message) -> None:
        if method == "initialize":
            self._send({"id": number, "result": self._greeting(params.get("protocolVersion"))})
        elif method == "ping":
            self._send({"id": number, "result": {}})
        elif method == "tools/list":
            self._send({"id": number, "result": {"tools": self._told["tools"]}})
        elif method == "tools/call" and isinstance(params.get("name"), str):
            self._begin(number, params["name"], params.get("arguments"))
        elif method == "tools/call":
            self._refuse(number, INVALID_PARAMS, "the call names no tool")
        else:
            self._refuse(number, NO_METHOD, f"there is no method {method[:80]!r}")

    def _greeting(self, version: Any) -> Message:
        return {
            "protocolVersion": version if version in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": self._told["name"], "version": self._told["version"]},
            "instructions": self._told["instructions"],
        }

    def _begin(self, number: Any, name: str, arguments: Any) -> None:
        request = {"op": "tool", "token": self._token, "call": str(uuid.uuid4()), "name": name, "arguments": arguments}
        line = json.dumps(request).encode() + b"\n"
        if len(line) > LONGEST_CALL:
            result = failed("invalid_value", f"the arguments have {len(line):,} bytes", "send less, or name a file")
            self._send({"id": number, "result": result})
            return
        call = Call(self._socket, line, again=name in self._read_only or name == "ask")
        self._calls[number] = call
        threading.Thread(target=self._finish, args=(number, call), daemon=True).start()

    def _finish(self, number: Any, call: Call) -> None:
        result = call.result()
        self._calls.pop(number, None)
        if not call.cancelled:  # nobody listens to the answer of a call that was taken back
            self._send({"id": number, "result": result})

    def _refuse(self, number: Any, code: int, message: str) -> None:
        self._send({"id": number, "error": {"code": code, "message": message}})

    def _send(self, message: Message) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        with self._writing:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()


class Call:
    """One call of a tool. `again`: it may be asked once more where its connection was lost, and means the same call."""

    def __init__(self, path: str, line: bytes, *, again: bool) -> None:
        self._path = path
        self._line = line
        self._again = again
        self._connection: socket.socket | None = None
        self._until = float("inf")  #: what the first service that heard it has granted; monotonic
        self.cancelled = False

    def cancel(self) -> None:
        """Hang up, so that the service knows that nobody waits any more."""
        self.cancelled = True
        connection = self._connection
        if connection is not None:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                return  # it was over

    def result(self) -> Message:
        """Return the tool's result, or one that tells why there is none."""
        deadline = 0.0  # a service that went away is looked for again until then, or as often as RETRY_SECONDS has it
        attempt = 0
        while True:
            began = time.monotonic()
            try:
                return self._asked()
            except Unserved as error:
                now = time.monotonic()
                if error.sent and not self._again:
                    return failed(
                        "unclear",
                        f"the service went away while it worked on this ({error}); it may have been done",
                        "look whether it was done before you try again",
                    )
                if error.sent and (deadline == 0.0 or now - began > LOST_SECONDS):
                    attempt, deadline = 0, now + LOST_SECONDS
                if now >= self._until or (attempt >= len(RETRY_SECONDS) and now >= deadline):
                    return failed(
                        "no_service",
                        f"the service of the-loop does not answer ({error})",
                        "ask your operator to run `the-loop start`; once it runs, this tool works again by itself",
                    )
                if self.cancelled:
                    return failed("cancelled", "the call was taken back", "")
                time.sleep(RETRY_SECONDS[min(attempt, len(RETRY_SECONDS) - 1)])
                attempt += 1

    def _asked(self) -> Message:
        sent = False
        try:
            with _connected(self._path) as connection:
                self._connection = connection
                connection.sendall(self._line)
                lines = Lines(connection)
                first = lines.object(time.monotonic() + CONNECT_SECONDS)
                if "wait" not in first:
                    return _result(first)
                sent = True
                self._until = min(self._until, time.monotonic() + granted(first))
                return _result(lines.object(self._until + CONNECT_SECONDS))
        except (OSError, ValueError, TypeError) as error:
            raise Unserved(str(error) or type(error).__name__, sent=sent) from error


def failed(code: str, message: str, remedy: str) -> Message:
    """Return the result of a call that failed, in the form of the service's own."""
    text = f"{code}: {message}" + (f"; {remedy}" if remedy else "")
    error = {"code": code, "message": message, "remedy": remedy}
    return {"content": [{"type": "text", "text": text}], "structuredContent": {"error": error}, "isError": True}


def _result(answer: Message) -> Message:
    found = answer.get("result")
    if not isinstance(found, dict):
        raise ValueError(str(answer.get("error") or "it said no result"))
    return found


class Lines:
    """The lines that the other end says, each whole, of a bounded length, and in time.

    The same stands in askclient.py: each of the two is one file that runs alone in a session's folder.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._said = bytearray()

    def object(self, deadline: float) -> dict[str, Any]:
        """Return the next line as the object that it says. `deadline`: monotonic. Raises OSError, ValueError."""
        while b"\n" not in self._said:
            if len(self._said) > LONGEST_ANSWER:
                raise ValueError("its answer does not end")
            self._connection.settimeout(max(deadline - time.monotonic(), 0.001))
            more = self._connection.recv(65536)
            if not more:
                raise ValueError("it hung up")
            self._said += more
            if time.monotonic() >= deadline and b"\n" not in self._said:
                raise TimeoutError("it took too long")
        line, _, rest = bytes(self._said).partition(b"\n")
        self._said = bytearray(rest)
        answer = json.loads(line)
        if not isinstance(answer, dict):
            raise ValueError("it said no object")
        return answer


def granted(first: dict[str, Any]) -> float:
    """Return how many seconds the answer may take. Raises ValueError, TypeError."""
    seconds = float(first["wait"])
    if not 0 <= seconds <= LONGEST_WAIT:
        raise ValueError("it says of no time how long it takes")
    return seconds


def _connected(path: str) -> socket.socket:
    """Return a connection; a path too long for the kernel's address goes through its folder (Linux)."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = None
    try:
        connection.settimeout(CONNECT_SECONDS)
        if len(os.fsencode(path)) > 100 and sys.platform.startswith("linux"):
            folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            path = f"/proc/self/fd/{folder}/{os.path.basename(path)}"
        connection.connect(path)
    except BaseException:
        connection.close()
        raise
    finally:
        if folder is not None:
            os.close(folder)
    return connection


def main(words: Sequence[str]) -> int:
    """Serve the client on standard input with the token in the file that is named; 1 where that cannot be."""
    [path] = words
    try:
        bridge = Bridge(path)
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.stderr.write(f"the-loop mcp: {path} is no session's token: {error}\n")
        return 1
    bridge.serve(sys.stdin.buffer)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
