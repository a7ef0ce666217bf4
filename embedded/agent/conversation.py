"""The agent's command line, its hooks, and one conversation as a JSONL file in Claude Code's format.

`--state DIR (--session-id ID | --resume ID) [--settings F] [--mcp-config F] [--ask "TEXT | A | B"] [-- TEXT]`

It counts words where a model counts tokens; what was said before counts as read from a cache.
A hook gets the event's JSON on stdin, and exit 2 blocks. The conversation's file exists from the first prompt on.
"""

import contextlib
import json
import os
import signal
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from core.base.values import dataclass


def working_folder() -> str:
    """Return the folder that the agent works in; where it was removed under it, the one that it was started in."""
    try:
        return os.getcwd()
    except OSError:
        return os.environ.get("PWD", "")


class Unwritten(Exception):
    """The conversation cannot be written, so that what is said would not be found again; the message says why."""


class Conversation:
    """Appends lines, and remembers what the earlier ones say."""

    def __init__(self, state: Path, session_id: str) -> None:
        self.session_id = session_id
        self.path = state / "conversations" / f"{session_id}.jsonl"
        self.prompts: list[str] = []  #: what people said, oldest first
        self.open_tasks: dict[str, str] = {}  #: background tasks whose end nobody was told: id -> command
        self._last: str | None = None
        self._call = ""  #: the id of the latest tool call
        self._fresh = self._known = 0  #: words that no answer has counted yet, and all others

    def load(self) -> None:
        """Read an existing conversation; a line that was cut off by a crash is passed over. Raises OSError."""
        for line in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                self._remember(json.loads(line))
            except (ValueError, RecursionError):
                continue

    def user(self, text: str, origin: str, turn: str) -> None:
        """Append a prompt that the turn of that id took; `origin` is human or task-notification."""
        message = {"role": "user", "content": text}
        self._append({"type": "user", "message": message, "origin": {"kind": origin}, "promptId": turn})

    def interrupted(self) -> None:
        """Append that the turn was interrupted."""
        content = [{"type": "text", "text": "[Request interrupted by user]"}]
        self._append({"type": "user", "message": {"role": "user", "content": content}})

    def assistant(self, text: str, error: str = "") -> None:
        """Append the answer, or an error that stands in its place."""
        if error:
            content = [{"type": "text", "text": text}]
            message = {"role": "assistant", "content": content, "stop_reason": "end_turn"}
            self._append({"type": "assistant", "message": message, "error": error, "isApiErrorMessage": True})
        else:
            self._answer({"type": "text", "text": text}, len(text.split()), "end_turn")

    def called(self, tool: str, given: Mapping[str, object]) -> str:
        """Append that a tool is called, and return the call's id; `returned` appends that it is over."""
        self._call = f"toolu_{uuid.uuid4().hex[:24]}"
        self._answer({"type": "tool_use", "id": self._call, "name": tool, "input": given}, 1, "tool_use")
        return self._call

    def returned(self) -> None:
        """Append that the latest tool call is over."""
        content = [{"type": "tool_result", "tool_use_id": self._call, "content": "done"}]
        self._append({"type": "user", "message": {"role": "user", "content": content}})

    def _answer(self, block: Mapping[str, object], words: int, stop_reason: str) -> None:
        usage = {"input_tokens": self._fresh, "cache_read_input_tokens": self._known, "output_tokens": words}
        named = {"id": f"msg_{uuid.uuid4().hex[:24]}", "model": "bundled", "usage": usage}
        message = {"role": "assistant", "content": [block], "stop_reason": stop_reason, **named}
        self._append({"type": "assistant", "message": message})

    def over(self) -> None:
        """Append that a turn went to its end."""
        self._append({"type": "system", "subtype": "turn_duration"})

    def queue(self, operation: str, text: str) -> None:
        """Append what happened to the queue: enqueue, dequeue, or popAll: it came back into the input line."""
        self._append({"type": "queue-operation", "operation": operation, "content": text})

    def blocked(self, text: str, reason: str) -> None:
        """Append that a hook blocked a prompt."""
        content = f"UserPromptSubmit operation blocked by hook: {reason}\nOriginal prompt: {text}"
        self._append({"type": "system", "subtype": "informational", "preventContinuation": True, "content": content})

    def task(self, task_id: str, command: str, status: str) -> None:
        """Append where a background task stands: running, or reported."""
        self._append({"type": "task", "id": task_id, "command": command, "status": status})

    def _append(self, entry: dict[str, Any]) -> None:
        self._remember(entry)
        line = {
            "uuid": str(uuid.uuid4()),
            "parentUuid": self._last,
            "sessionId": self.session_id,
            "timestamp": datetime.now(UTC).isoformat(),
            "cwd": working_folder(),
            **entry,
        }
        self._last = str(line["uuid"])
        try:
            self._write((json.dumps(line) + "\n").encode())
        except OSError as error:
            raise Unwritten(f"its conversation cannot be written: {error.strerror}: {self.path}") from error

    def _write(self, line: bytes) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line)
        finally:
            os.close(descriptor)

    def _remember(self, entry: dict[str, Any]) -> None:
        if entry.get("type") == "user" and entry.get("origin") == {"kind": "human"}:
            self.prompts.append(str(entry["message"]["content"]))
            self._fresh += len(self.prompts[-1].split())
        elif entry.get("type") == "assistant" and "usage" in entry["message"]:
            self._fresh, self._known = 0, sum(map(int, entry["message"]["usage"].values()))
        elif entry.get("type") == "task" and entry.get("status") == "running":
            self.open_tasks[str(entry["id"])] = str(entry["command"])
        elif entry.get("type") == "task":
            self.open_tasks.pop(str(entry["id"]), None)


def summary(prompts: Sequence[str]) -> str:
    """Return in a line what was said so far."""
    if not prompts:
        return "nothing has been said yet"
    turns = "1 message" if len(prompts) == 1 else f"{len(prompts)} messages"
    return f"{turns} so far, the last: {shortened(prompts[-1])}"


def shortened(text: str, limit: int = 200) -> str:
    """Return the text on one line, cut after `limit` characters."""
    line = " ".join(text.split())
    return f"“{line}”" if len(line) <= limit else f"“{line[:limit]}…” ({len(text)} characters)"


_TIMEOUT = 60.0  #: seconds, where the entry names none


class Hooks:
    """The commands of the settings' `hooks`, by event."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._entries = entries

    def run(self, event: str, session_id: str, transcript: str, **fields: Any) -> str | None:
        """Run every command of the event, one after the other, and return the reason if one of them blocks.

        A hook that fails otherwise, or does not end in time, changes nothing.
        """
        data = _data(event, session_id, transcript, fields)
        reasons = [reason for entry in self._commands(event) if (reason := _run(entry, data)) is not None]
        return reasons[0] if reasons else None

    def start(self, event: str, session_id: str, transcript: str, **fields: Any) -> "list[Running]":
        """Start every command of the event and wait for none: a dialog is shown meanwhile, and one may answer it."""
        data = _data(event, session_id, transcript, fields)
        return [Running(str(entry.get("command", "")), data) for entry in self._commands(event)]

    def _commands(self, event: str) -> list[Mapping[str, Any]]:
        return [command for group in self._entries.get(event, []) for command in group.get("hooks", [])]


def _data(event: str, session_id: str, transcript: str, fields: Mapping[str, Any]) -> bytes:
    payload = {
        "session_id": session_id,
        "transcript_path": transcript,
        "cwd": working_folder(),
        "permission_mode": "default",
        "hook_event_name": event,
        **fields,
    }
    return json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


class Running:
    """A hook that decides a dialog, while the dialog is shown."""

    def __init__(self, command: str, data: bytes) -> None:
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError), self._process.stdin as stream:
            stream.write(data)

    def fileno(self) -> int:
        """Return what becomes readable once it says something, or ends."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def decision(self) -> Mapping[str, Any]:
        """Read what it decided: `behavior`, and what comes with it; nothing where it left the dialog alone."""
        assert self._process.stdout is not None
        printed = self._process.stdout.read()
        self.end()
        try:
            output = json.loads(printed)["hookSpecificOutput"]["decision"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return {}
        return output if isinstance(output, dict) else {}

    def end(self) -> None:
        """End it, as a dialog does that somebody has answered."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()


def _run(entry: Mapping[str, Any], data: bytes) -> str | None:
    try:
        ended = subprocess.run(
            ["/bin/sh", "-c", str(entry.get("command", ""))],
            input=data,
            capture_output=True,
            timeout=float(entry.get("timeout", _TIMEOUT)),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stderr.decode("utf-8", "replace").strip() if ended.returncode == 2 else None


class BadOption(Exception):
    """The command line cannot be obeyed; the message says why."""


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    state: Path  #: holds the conversations and the status file
    session_id: str
    resume: bool
    hooks: Mapping[str, Any]
    prompt: str | None
    servers: Mapping[str, Sequence[str]]  #: MCP servers: name -> command
    ask: str = ""  #: a menu that comes before everything else


def parse(argv: Sequence[str]) -> Options:
    """Read the command line. Raises BadOption."""
    given: dict[str, str] = {}
    prompt = None
    words = iter(argv)
    for word in words:
        if word == "--":
            prompt = next(words, None)
            break
        if word not in ("--state", "--session-id", "--resume", "--settings", "--mcp-config", "--ask"):
            raise BadOption(f"unknown option '{word}'")
        given[word] = next(words, "")
    if not given.get("--state"):
        raise BadOption("--state is missing: name the folder that keeps the conversations")
    resume = "--resume" in given
    session_id = given.get("--resume") or given.get("--session-id") or str(uuid.uuid4())
    try:
        uuid.UUID(session_id)
    except ValueError as error:
        raise BadOption("Invalid session ID. Must be a valid UUID.") from error
    hooks, servers = _hooks(given.get("--settings")), _servers(given.get("--mcp-config"))
    return Options(Path(given["--state"]), session_id, resume, hooks, prompt, servers, given.get("--ask", ""))


def _hooks(settings: str | None) -> Mapping[str, Any]:
    if settings is None:
        return {}
    try:
        hooks = json.loads(Path(settings).read_bytes()).get("hooks", {})
    except (OSError, ValueError, AttributeError, RecursionError) as error:
        raise BadOption(f"--settings {settings}: {error}") from error
    if not isinstance(hooks, dict):
        raise BadOption(f"--settings {settings}: `hooks` is no object")
    return hooks


def _servers(config: str | None) -> Mapping[str, Sequence[str]]:
    if config is None:
        return {}
    try:
        found = json.loads(Path(config).read_bytes())["mcpServers"]
        return {name: (server["command"], *server["args"]) for name, server in found.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadOption(f"--mcp-config {config}: {error!r}") from error
