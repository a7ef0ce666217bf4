"""Install the hook reporter into a session's folder, and interpret what it reports (Gemini CLI 0.53.0 to 0.61.0).

Gemini waits for each of its hooks. `interpret` is pure and total: whatever the harness writes, the result is a tuple,
which may be empty.
"""

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from core.base.errors import TrustFailed
from core.harness.base import BLOCKED_SUFFIX, REPORTER, make_folders, object_of, text_of, write_private
from core.harness.gemini.record import end_of
from core.harness.reporting import reporter_script
from core.model.harness import (
    Ended,
    HarnessEvent,
    PromptReported,
    Ready,
    Report,
    SessionContext,
    ToolEnded,
    ToolStarted,
    TurnBlocked,
)
from core.model.tools import SERVER

DIALOG = "dialog"  #: in the session's folder: there while a permission dialog may be open
#: event -> milliseconds after which the harness gives up on the reporter
EVENTS: Mapping[str, int] = {
    "SessionStart": 10_000,
    "BeforeAgent": 10_000,
    "AfterAgent": 10_000,
    "BeforeTool": 10_000,
    "AfterTool": 10_000,
    "Notification": 10_000,
    "SessionEnd": 5_000,
}
_NAME = "the-loop"  #: a person's `hooksConfig.disabled` names hooks
_TOOL = f"mcp_{SERVER}_"  #: how it names our tools
_BY_PERSON = frozenset({"prompt_input_exit", "logout"})
_LEFT = "left"  #: what the reporter puts into the report of an end that `/quit` or `/exit` has asked for
_LONGEST = 500  #: characters of what a tool's call is shown by

_Payload = Mapping[str, Any]


def hook_settings(reporter: Path) -> dict[str, Any]:
    """Return the `hooks` that report every event we read."""
    return {
        event: [
            {
                "hooks": [
                    {
                        "type": "command",
                        "name": _NAME,
                        "command": f"{shlex.quote(str(reporter))} {event}",
                        "timeout": milliseconds,
                    }
                ]
            }
        ]
        for event, milliseconds in EVENTS.items()
    }


def install_reporter(context: SessionContext) -> Path:
    """Make the folders, write the reporter of this instance (0700) and return its path. Raises TrustFailed."""
    make_folders(context)
    path = context.folder / REPORTER
    try:
        (context.folder / DIALOG).unlink(missing_ok=True)
        write_private(path, reporter_script(context, Path(__file__).with_name("reporter.sh")), mode=0o700)
    except OSError as error:
        raise TrustFailed(
            f"{context.name}: the hook reporter cannot be written: {error.filename}: {error.strerror}",
            "make the state folder writable, then try again",
        ) from error
    return path


def interpret(report: Report) -> tuple[HarnessEvent, ...]:
    """Return what the report means; () for one that means nothing to us."""
    event = text_of(report.payload, "hook_event_name")
    if event == "BeforeAgent":
        prompt = text_of(report.payload, "prompt")
        return (TurnBlocked(prompt) if report.name.endswith(BLOCKED_SUFFIX) else PromptReported(prompt),)
    reading = _READINGS.get(event)
    return () if reading is None else reading(report.payload)


def _session_start(payload: _Payload) -> tuple[HarnessEvent, ...]:
    return (Ready(text_of(payload, "session_id") or None, text_of(payload, "source") or "startup"),)


def _before_tool(payload: _Payload) -> tuple[HarnessEvent, ...]:
    return (ToolStarted(tool_of(text_of(payload, "tool_name")), detail_of(object_of(payload, "tool_input"))),)


def _after_tool(payload: _Payload) -> tuple[HarnessEvent, ...]:
    return (ToolEnded(tool_of(text_of(payload, "tool_name"))),)


def tool_of(name: str) -> str:
    """Return a tool's name; one of ours as every harness with MCP is taken to call it."""
    return f"mcp__{SERVER}__{name.removeprefix(_TOOL)}" if name.startswith(_TOOL) else name


def detail_of(given: _Payload) -> str:
    """Return what says most about a tool's call."""
    keys = ("command", "file_path", "absolute_path", "url", "pattern", "query", "prompt", "description")
    text = next((text for key in keys if (text := text_of(given, key))), "")
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _after_agent(payload: _Payload) -> tuple[HarnessEvent, ...]:
    """Return the turn's end. What it said last stands in the conversation's record, which the reporter adds."""
    return (end_of(payload),)


def _session_end(payload: _Payload) -> tuple[HarnessEvent, ...]:
    reason = text_of(payload, "reason") or "other"
    return () if reason == "clear" else (Ended(reason, by_person=reason in _BY_PERSON or payload.get(_LEFT) is True),)


#: Not read, on purpose: Notification (its marker tells that a dialog opens, and the screen which), PreCompress.
_READINGS: Mapping[str, Callable[[_Payload], tuple[HarnessEvent, ...]]] = {
    "SessionStart": _session_start,
    "BeforeTool": _before_tool,
    "AfterTool": _after_tool,
    "AfterAgent": _after_agent,
    "SessionEnd": _session_end,
}
