"""Tools of an MCP server: each call starts its program, speaks with it on its standard streams, and ends it."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

VERSION = "2025-06-18"
_CALL = 2  #: the id of the request that calls the tool
_READ = 1 << 16


class ToolCall:
    """One call that is under way."""

    def __init__(self, command: Sequence[str], name: str, arguments: Mapping[str, Any]) -> None:
        client = {"name": "bundled-agent", "version": "1"}
        greeting = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client}
        lines: list[dict[str, Any]] = [
            {"id": 1, "method": "initialize", "params": greeting},
            {"method": "notifications/initialized"},
            {"id": _CALL, "method": "tools/call", "params": {"name": name, "arguments": arguments}},
        ]
        self._process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        self._read = b""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            for line in lines:
                self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **line}).encode() + b"\n")
            self._process.stdin.flush()

    def fileno(self) -> int:
        """Return what becomes readable once the server says something, or ends."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def result(self) -> str | None:
        """Read what is there, and return what the tool said; None while it is at work."""
        data = os.read(self.fileno(), _READ)
        self._read += data
        *lines, self._read = self._read.split(b"\n")
        for line in lines:
            message = json.loads(line)
            if message.get("id") == _CALL:
                return _text(message)
        return None if data else "the tool's server ended without an answer"

    def end(self) -> None:
        """End the server."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def _text(message: Mapping[str, Any]) -> str:
    if "error" in message:
        return f"error: {message['error'].get('message')}"
    result = message["result"]
    text = "\n".join(part.get("text", "") for part in result.get("content", []))
    return f"error: {text}" if result.get("isError") else text
