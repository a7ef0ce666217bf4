"""The settings that make a harness with Claude Code's hooks run the reporter, merged into what the operator gave."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Longer than any wait that `limits.approvalWaitSeconds` allows: the service ends the wait, and says so in the thread.
#: Claude Code 2.1.197 shows its dialog meanwhile, and a person there may be first.
ASKING_SECONDS = 86_400 + 120
#: event -> seconds after which the harness gives up on the reporter. All run synchronously: it costs milliseconds,
#: reports keep the order of the events, and the markers of PreToolUse and PermissionRequest are there in time.
#: SessionEnd hooks are cut off after about 1.4 s whatever is said here (Claude Code 2.1.197).
EVENTS: Mapping[str, int] = {
    "SessionStart": 10,
    "UserPromptSubmit": 10,
    "PreToolUse": 10,
    "PostToolUse": 10,
    "PostToolUseFailure": 10,
    "PermissionRequest": ASKING_SECONDS,
    "Stop": 10,
    "StopFailure": 10,
    "SubagentStop": 10,  # a subagent that is gone waits for nobody
    "SessionEnd": 1,
}
_MATCHED = frozenset({"PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest"})


def hook_settings(reporter: Path) -> dict[str, Any]:
    """Return `{"hooks": …}` that reports every event we read."""
    return {"hooks": {event: [_entry(reporter, event, seconds)] for event, seconds in EVENTS.items()}}


def _entry(reporter: Path, event: str, seconds: int) -> dict[str, Any]:
    command = {"type": "command", "command": f"{shlex.quote(str(reporter))} {event}", "timeout": seconds}
    return {"matcher": "*", "hooks": [command]} if event in _MATCHED else {"hooks": [command]}


def merged(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> dict[str, Any]:
    """Return both: objects are merged, lists are joined (theirs first), and of two other values ours stands."""
    result = dict(theirs)
    for key, value in ours.items():
        present = result.get(key)
        if isinstance(present, dict) and isinstance(value, dict):
            result[key] = merged(present, value)
        elif isinstance(present, list) and isinstance(value, list):
            result[key] = [*present, *value]
        else:
            result[key] = value
    return result
