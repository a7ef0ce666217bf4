"""Install the hook reporter into a session's folder, and interpret what it reports.

The settings that run the reporter are merged into the operator's. `interpret` serves every harness with Claude Code's
hooks: its versions 2.1.197 to 2.1.332 and the bundled agent. It is pure and total: whatever a harness writes, the
result is a tuple, which may be empty.
"""

import json
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from core.base.errors import TrustFailed
from core.base.values import replace
from core.harness.base import (
    BLOCKED_SUFFIX,
    SCHEDULED_PART,
    SETTINGS,
    list_of,
    make_folders,
    object_of,
    text_of,
    write_private,
)
from core.harness.reporting import ASKING_SECONDS, detail_of, install_reporter, short
from core.model.activity import Failure
from core.model.harness import (
    DialogReported,
    Ended,
    HarnessEvent,
    PromptReported,
    Ready,
    Report,
    SessionContext,
    ToolEnded,
    ToolStarted,
    TurnBlocked,
    TurnEnded,
    TurnFailed,
)

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
#: Tools by which the harness schedules prompts of its own, which begin turns that nobody types.
_SCHEDULING = "CronCreate|ScheduleWakeup"
_SCHEDULED = "Scheduled"  #: what the reporter is told of their calls by


def hook_settings(reporter: Path) -> dict[str, Any]:
    """Return `{"hooks": …}` that reports every event we read."""
    hooks = {event: [_entry(reporter, event, seconds)] for event, seconds in EVENTS.items()}
    scheduling = {**_entry(reporter, _SCHEDULED, EVENTS["PostToolUse"]), "matcher": _SCHEDULING}
    return {"hooks": {**hooks, "PostToolUse": [*hooks["PostToolUse"], scheduling]}}


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


def install_hooks(context: SessionContext, theirs: Mapping[str, Any]) -> Path:
    """Make the folders, write the reporter and the settings (`theirs` and our hooks), and return the settings' path.

    Raises TrustFailed.
    """
    make_folders(context)
    path = context.folder / SETTINGS
    try:
        settings = merged(theirs, hook_settings(install_reporter(context)))
        write_private(path, json.dumps(settings, ensure_ascii=False, indent=2) + "\n")
    except OSError as error:
        raise TrustFailed(
            f"{context.name}: the hook settings cannot be written: {error.filename}: {error.strerror}",
            "make the state folder writable, then try again",
        ) from error
    return path


NOTIFICATION = "<task-notification>"  #: begins a prompt that the harness gives itself when background work ends
#: Around what 2.1.332 takes for pasted from somewhere else; it escapes the same in a text (`<\\pasted_content`).
_PASTED = re.compile(r'<pasted_content id="(\w+)">\n(.*?)\n</pasted_content id="\1">', re.DOTALL)
_TASK_ID = re.compile(r"<task-id>\s*([^<\s]{1,80})\s*</task-id>")
QUESTION_TOOL = "AskUserQuestion"
_STATUS = re.compile(r"<status>\s*(killed|stopped)\s*</status>")
_OVER = frozenset({"completed", "failed", "killed", "stopped"})
_GOES_ON = frozenset({"clear", "resume"})  #: SessionEnd reasons after which the same process reads on
_BY_PERSON = frozenset({"prompt_input_exit", "logout"})
_TASK_LIMIT = 80  #: characters of what a background task runs

_Payload = Mapping[str, Any]


def is_internal(prompt: str) -> bool:
    """Return whether nobody typed this prompt: the harness gave it to itself."""
    return prompt.lstrip().startswith(NOTIFICATION)


def task_of(prompt: str) -> str | None:
    """Return the id of the background task whose end the prompt tells, None for any other prompt."""
    found = _TASK_ID.search(prompt) if is_internal(prompt) else None
    return found[1] if found else None


def pasted_parts(prompt: str) -> tuple[str, ...]:
    """Return the parts of a prompt of which its model is told that they were pasted from somewhere else."""
    return tuple(found[2] for found in _PASTED.finditer(prompt))


def _cut_off(prompt: str) -> bool:
    """Return whether the prompt says of a background task that it was ended before it had finished."""
    return is_internal(prompt) and _STATUS.search(prompt) is not None


def interpret(report: Report) -> tuple[HarnessEvent, ...]:
    """Return what the report means; () for one that means nothing to us."""
    payload = report.payload
    event = text_of(payload, "hook_event_name")
    if event == "UserPromptSubmit":
        prompt = text_of(payload, "prompt")
        scheduled = SCHEDULED_PART in report.name
        if report.name.endswith(BLOCKED_SUFFIX):
            return (TurnBlocked(prompt, task_of(prompt), _cut_off(prompt), scheduled),)
        turn, internal = text_of(payload, "prompt_id"), scheduled or is_internal(prompt)
        return (PromptReported(prompt, internal, task_of(prompt), turn, pasted_parts(prompt), scheduled),)
    reading = _READINGS.get(event)
    return () if reading is None else reading(payload)


def _session_start(payload: _Payload) -> tuple[HarnessEvent, ...]:
    return (Ready(text_of(payload, "session_id") or None, text_of(payload, "source") or "startup"),)


def _pre_tool_use(payload: _Payload) -> tuple[HarnessEvent, ...]:
    detail = short(detail_of(object_of(payload, "tool_input")))
    call = text_of(payload, "tool_use_id")
    return (ToolStarted(text_of(payload, "tool_name"), detail, text_of(payload, "prompt_id"), call),)


def _post_tool_use(payload: _Payload) -> tuple[HarnessEvent, ...]:
    tool, task = text_of(payload, "tool_name"), text_of(object_of(payload, "tool_response"), "backgroundTaskId")
    call = text_of(payload, "tool_use_id")
    if not task:
        return (ToolEnded(tool, call=call),)
    return (ToolEnded(tool, task, _task_name(object_of(payload, "tool_input")), call),)


def _post_tool_use_failure(payload: _Payload) -> tuple[HarnessEvent, ...]:
    return tuple(replace(event, failed=True) for event in _post_tool_use(payload) if isinstance(event, ToolEnded))


def _permission_request(payload: _Payload) -> tuple[HarnessEvent, ...]:
    tool, given = text_of(payload, "tool_name"), object_of(payload, "tool_input")
    if tool == QUESTION_TOOL:
        return (DialogReported(question=True, summary=_questions(given)),)
    detail = detail_of(given)
    return (DialogReported(question=False, summary=short(f"{tool}: {detail}" if detail else tool)),)


def _questions(given: _Payload) -> str:
    texts = [text_of(question, "question") for question in list_of(given, "questions") if isinstance(question, dict)]
    return short(" / ".join(text for text in texts if text))


def _stop(payload: _Payload) -> tuple[HarnessEvent, ...]:
    tasks = [task for task in list_of(payload, "background_tasks") if isinstance(task, dict)]
    pending = {
        name: _task_name(task)
        for task in tasks
        if (name := text_of(task, "id")) and text_of(task, "status").lower() not in _OVER
    }
    names = {task: name for task, name in pending.items() if name}
    return (
        TurnEnded(text_of(payload, "last_assistant_message"), tuple(pending), text_of(payload, "prompt_id"), names),
    )


def _task_name(given: _Payload) -> str:
    """Return in one line what a background task runs."""
    return short(" ".join((text_of(given, "command") or text_of(given, "description")).split()), _TASK_LIMIT)


def _stop_failure(payload: _Payload) -> tuple[HarnessEvent, ...]:
    error, message = text_of(payload, "error") or "unknown", text_of(payload, "last_assistant_message")
    return (TurnFailed(error, message, failure_of(error, message), text_of(payload, "prompt_id")),)


def failure_of(error: str, message: str) -> Failure:
    """Return what Claude Code's name for an error means, with its words where the name says too little."""
    words = message.lower()
    if error == "invalid_request" and "too long" in words:
        return Failure.LENGTH
    return Failure.LIMIT if "usage limit" in words else _FAILURES.get(error, Failure.OTHER)


#: Its names of errors (2.1.332); those that only ever mean a refused request are left out.
_FAILURES = {
    "authentication_failed": Failure.LOGIN,
    "cloud_credential_error": Failure.LOGIN,
    "oauth_org_not_allowed": Failure.ACCOUNT,
    "account_on_hold": Failure.ACCOUNT,
    "verification_required": Failure.ACCOUNT,
    "billing_error": Failure.ACCOUNT,
    "rate_limit": Failure.LIMIT,
    "model_not_found": Failure.MODEL,
    "overloaded": Failure.SERVICE,
    "server_error": Failure.SERVICE,
}


def _session_end(payload: _Payload) -> tuple[HarnessEvent, ...]:
    reason = text_of(payload, "reason") or "other"
    return () if reason in _GOES_ON else (Ended(reason, by_person=reason in _BY_PERSON),)


#: Not read, on purpose: Notification (its `idle_prompt` may fire in the middle of a later turn, its `permission_prompt`
#: comes six seconds after PermissionRequest) and SubagentStop (the turn goes on).
_READINGS: Mapping[str, Callable[[_Payload], tuple[HarnessEvent, ...]]] = {
    "SessionStart": _session_start,
    "PreToolUse": _pre_tool_use,
    "PostToolUse": _post_tool_use,
    "PostToolUseFailure": _post_tool_use_failure,
    "PermissionRequest": _permission_request,
    "Stop": _stop,
    "StopFailure": _stop_failure,
    "SessionEnd": _session_end,
}
