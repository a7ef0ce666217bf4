"""Runs the hooks that the settings name: the event's JSON on stdin, exit 2 blocks."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping
from typing import Any

from core.agent.conversation import working_folder

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
