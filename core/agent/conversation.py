"""One conversation as a JSONL file, in the shape of Claude Code's; it is there from the first prompt on."""

import json
import os
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def working_folder() -> str:
    """Return the folder that the agent works in; where it was removed under it, the one that it was started in."""
    try:
        return os.getcwd()
    except OSError:
        return os.environ.get("PWD", "")


class Conversation:
    """Appends lines, and remembers what the earlier ones say."""

    def __init__(self, state: Path, session_id: str) -> None:
        self.session_id = session_id
        self.path = state / "conversations" / f"{session_id}.jsonl"
        self.prompts: list[str] = []  #: what people said, oldest first
        self.open_tasks: dict[str, str] = {}  #: background tasks whose end nobody was told: id -> command
        self._last: str | None = None

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
        message = {"role": "assistant", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
        self._append(
            {"type": "assistant", "message": message, **({"error": error, "isApiErrorMessage": True} if error else {})}
        )

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
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, (json.dumps(line) + "\n").encode())
        finally:
            os.close(descriptor)

    def _remember(self, entry: dict[str, Any]) -> None:
        if entry.get("type") == "user" and entry.get("origin") == {"kind": "human"}:
            self.prompts.append(str(entry["message"]["content"]))
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
