"""Give Codex our hooks for one process, and interpret what they report.

Codex runs a hook only if somebody has trusted it, and keeps a hash of what was trusted. Hooks that come by `-c` can be
trusted by `-c`, too: the hash is one over the event and its handler, so that we trust ours by name and nobody else's.
Where a version computes it in another way, it asks about them in a dialog at its start. Seen of 0.159.3 and 0.171.0.

SessionStart comes with the first prompt of a conversation, and not before. While a hook of a permission request runs,
Codex shows no dialog. No hook tells of a turn that failed on the model's side, and none of SIGTERM.
"""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from core.harness.base import BLOCKED_SUFFIX, object_of, text_of
from core.harness.codex.arguments import toml
from core.harness.reporting import ASKING_SECONDS, detail_of, short
from core.model.activity import OUR_TOOL
from core.model.harness import (
    DialogReported,
    Ended,
    HarnessEvent,
    PromptReported,
    Ready,
    Report,
    ToolEnded,
    ToolStarted,
    TurnBlocked,
    TurnEnded,
)

#: event -> seconds after which Codex gives up on the reporter. It takes no more than three for an Interrupt.
EVENTS: Mapping[str, int] = {
    "SessionStart": 10,
    "UserPromptSubmit": 10,
    "PreToolUse": 10,
    "PostToolUse": 10,
    "PermissionRequest": ASKING_SECONDS,
    "Stop": 10,
    "SubagentStop": 10,
    "Interrupt": 3,
    "SessionEnd": 1,
}
_SOURCE = "/<session-flags>/config.toml"  #: what Codex calls the place of settings that came by `-c`
_INNER = re.compile(r"(?<!^)(?=[A-Z])")
_OUR_TOOL = OUR_TOOL.replace("-", "_")  #: no name of a tool holds a `-`

_Payload = Mapping[str, Any]


def hook_overrides(reporter: Path) -> Iterator[str]:
    """Yield the settings, each `key=value`, by which one Codex runs the reporter and trusts it."""
    trusted = {}
    for event, seconds in EVENTS.items():
        handler = {"type": "command", "command": f"{shlex.quote(str(reporter))} {event}", "timeout": seconds}
        yield f"hooks.{event}={toml([{'hooks': [handler]}])}"
        label = _INNER.sub("_", event).lower()
        trusted[f"{_SOURCE}:{label}:0:0"] = {"trusted_hash": _hash(label, handler)}
    yield f"hooks.state={toml(trusted)}"


def _hash(label: str, handler: Mapping[str, Any]) -> str:
    """Return the hash by which Codex knows a hook again."""
    known = {"event_name": label, "hooks": [{"async": False, **handler}]}
    text = json.dumps(known, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def interpret(report: Report) -> tuple[HarnessEvent, ...]:
    """Return what the report means; () for one that means nothing to us."""
    payload = report.payload
    event = text_of(payload, "hook_event_name")
    if event == "UserPromptSubmit" and report.name.endswith(BLOCKED_SUFFIX):
        return (TurnBlocked(text_of(payload, "prompt"), None),)
    reading = _READINGS.get(event)
    return () if reading is None else reading(payload)


def _session_start(payload: _Payload) -> tuple[HarnessEvent, ...]:
    return (Ready(text_of(payload, "session_id") or None, text_of(payload, "source") or "startup"),)


def _prompt(payload: _Payload) -> tuple[HarnessEvent, ...]:
    return (PromptReported(text_of(payload, "prompt"), turn=_turn(payload)),)


def _pre_tool_use(payload: _Payload) -> tuple[HarnessEvent, ...]:
    detail = short(detail_of(object_of(payload, "tool_input")))
    return (ToolStarted(_tool(payload), detail, _turn(payload)),)


def _post_tool_use(payload: _Payload) -> tuple[HarnessEvent, ...]:
    return (ToolEnded(_tool(payload)),)


def _permission_request(payload: _Payload) -> tuple[HarnessEvent, ...]:
    tool, detail = _tool(payload), detail_of(object_of(payload, "tool_input"))
    return (DialogReported(question=False, summary=short(f"{tool}: {detail}" if detail else tool)),)


def _stop(payload: _Payload) -> tuple[HarnessEvent, ...]:
    return (TurnEnded(text_of(payload, "last_assistant_message"), turn=_turn(payload)),)


def _interrupt(payload: _Payload) -> tuple[HarnessEvent, ...]:
    return (TurnEnded("", turn=_turn(payload)),)


def _session_end(payload: _Payload) -> tuple[HarnessEvent, ...]:
    """Only a person ends it so: there is none of a signal."""
    return (Ended(text_of(payload, "reason") or "other", by_person=True),)


def _turn(payload: _Payload) -> str:
    return text_of(payload, "turn_id")


def _tool(payload: _Payload) -> str:
    name = text_of(payload, "tool_name")
    return OUR_TOOL + name.removeprefix(_OUR_TOOL) if name.startswith(_OUR_TOOL) else name


_READINGS: Mapping[str, Callable[[_Payload], tuple[HarnessEvent, ...]]] = {
    "SessionStart": _session_start,
    "UserPromptSubmit": _prompt,
    "PreToolUse": _pre_tool_use,
    "PostToolUse": _post_tool_use,
    "PermissionRequest": _permission_request,
    "Stop": _stop,
    "Interrupt": _interrupt,
    "SessionEnd": _session_end,
}
