"""Runs the hooks that the settings name: the event's JSON on stdin, exit 2 blocks."""

import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any

_TIMEOUT = 60.0  #: seconds, where the entry names none


class Hooks:
    """The commands of the settings' `hooks`, by event."""

    def __init__(self, entries: Mapping[str, Any]) -> None:
        self._entries = entries

    def run(self, event: str, session_id: str, transcript: str, **fields: Any) -> str | None:
        """Run every command of the event, one after the other, and return the reason if one of them blocks.

        A hook that fails otherwise, or does not end in time, changes nothing.
        """
        payload = {
            "session_id": session_id,
            "transcript_path": transcript,
            "cwd": os.getcwd(),
            "permission_mode": "default",
            "hook_event_name": event,
            **fields,
        }
        data = json.dumps(payload, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
        reasons = [reason for entry in self._commands(event) if (reason := _run(entry, data)) is not None]
        return reasons[0] if reasons else None

    def _commands(self, event: str) -> list[Mapping[str, Any]]:
        return [command for group in self._entries.get(event, []) for command in group.get("hooks", [])]


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
