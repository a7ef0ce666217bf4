"""What hook reports mean."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.harness.claude.files import line_events
from core.harness.claude.hooks import failure_of, interpret
from core.model.activity import Failure
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
    TurnFailed,
)

TURN = "391a300e-4427-4ec3-beb0-71b93bcf3592"
COMMON = {
    "session_id": "eee0f377-dd78-4baf-8915-f7068b5aa162",
    "transcript_path": "/home/ann/.claude/projects/-work/eee0f377-dd78-4baf-8915-f7068b5aa162.jsonl",
    "cwd": "/work",
    "prompt_id": TURN,
    "permission_mode": "default",
}
NOTE = "<task-notification>\n<task-id>bnyggtyon</task-id>\n<status>completed</status>\n</task-notification>"
WRAPPED = "".join(
    f'look at\n\n<pasted_content id="3770">\n{text}\n</pasted_content id="3770">\n'
    for text in ("a\nb", "<\\pasted_content> c")
)
KILLED = NOTE.replace("completed", "killed")
BACKGROUND = {"command": "sleep 3", "description": "run a command", "run_in_background": True}
RAN = {"stdout": "", "stderr": "", "interrupted": False, "isImage": False, "noOutputExpected": False}
TASK = {"id": "bnyggtyon", "type": "shell", "status": "running", "description": "run a command", "command": "sleep 3"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
EVENT_NAMES = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PermissionRequest",
    "Notification",
    "Stop",
    "StopFailure",
    "SubagentStop",
    "SessionEnd",
]
FIELDS = [
    "session_id",
    "source",
    "prompt",
    "tool_name",
    "tool_input",
    "tool_response",
    "background_tasks",
    "last_assistant_message",
    "error",
    "reason",
]


def report(event: str, name: str = "1795961738569305809-1-X.json", **fields: Any) -> Report:
    """Return a report with the fields that every event has."""
    return Report("i-1", name, {**COMMON, "hook_event_name": event, **fields})


GOLDEN: list[tuple[str, Report, tuple[HarnessEvent, ...]]] = [
    (
        "start",
        report("SessionStart", source="startup", model="claude-opus-4-8[1m]"),
        (Ready(COMMON["session_id"], "startup"),),
    ),
    ("start after clear", report("SessionStart", source="clear"), (Ready(COMMON["session_id"], "clear"),)),
    ("prompt", report("UserPromptSubmit", prompt="[boot #b0] hi"), (PromptReported("[boot #b0] hi", turn=TURN),)),
    (
        "prompt with pasted parts",
        report("UserPromptSubmit", prompt=WRAPPED),
        (PromptReported(WRAPPED, turn=TURN, pasted=("a\nb", "<\\pasted_content> c")),),
    ),
    (
        "notification",
        report("UserPromptSubmit", prompt=NOTE),
        (PromptReported(NOTE, internal=True, task="bnyggtyon", turn=TURN),),
    ),
    (
        "blocked",
        report("UserPromptSubmit", name="1795961738569305809-1-UserPromptSubmit.blocked.json", prompt=NOTE),
        (TurnBlocked(NOTE, "bnyggtyon"),),
    ),
    (
        "blocked, of a task that was ended",
        report("UserPromptSubmit", name="1795961738569305809-1-UserPromptSubmit.blocked.json", prompt=KILLED),
        (TurnBlocked(KILLED, "bnyggtyon", cut_off=True),),
    ),
    (
        "tool begins",
        report("PreToolUse", tool_name="Bash", tool_input=BACKGROUND, tool_use_id="toolu_6e1a"),
        (ToolStarted("Bash", "sleep 3", TURN, "toolu_6e1a"),),
    ),
    (
        "tool leaves a task",
        report(
            "PostToolUse",
            tool_name="Bash",
            tool_input=BACKGROUND,
            tool_response={**RAN, "backgroundTaskId": "bnyggtyon"},
            duration_ms=51,
        ),
        (ToolEnded("Bash", "bnyggtyon", "sleep 3"),),
    ),
    ("tool ends", report("PostToolUse", tool_name="Bash", tool_input={}, tool_response=RAN), (ToolEnded("Bash"),)),
    (
        "tool ends with a text",
        report("PostToolUse", tool_name="mcp__x__y", tool_response="ok"),
        (ToolEnded("mcp__x__y"),),
    ),
    (
        "tool fails",
        report("PostToolUseFailure", tool_name="Bash", tool_input={}, error="Exit code 1", is_interrupt=False),
        (ToolEnded("Bash", failed=True),),
    ),
    (
        "permission",
        report(
            "PermissionRequest",
            tool_name="Bash",
            tool_input={"command": "touch made", "description": "run a command"},
            permission_suggestions=[{"type": "setMode", "mode": "acceptEdits", "destination": "session"}],
        ),
        (DialogReported(question=False, summary="Bash: touch made"),),
    ),
    (
        "permission for a file",
        report("PermissionRequest", tool_name="Write", tool_input={"file_path": "/etc/x", "content": "y"}),
        (DialogReported(question=False, summary="Write: /etc/x"),),
    ),
    (
        "question",
        report(
            "PermissionRequest",
            tool_name="AskUserQuestion",
            tool_input={"questions": [{"question": "Which?"}, {"question": "And when?"}]},
        ),
        (DialogReported(question=True, summary="Which? / And when?"),),
    ),
    ("late notice of a dialog", report("Notification", notification_type="permission_prompt"), ()),
    ("no proof of idleness", report("Notification", notification_type="idle_prompt"), ()),
    (
        "end of turn",
        report("Stop", stop_hook_active=False, last_assistant_message="done", background_tasks=[], session_crons=[]),
        (TurnEnded("done", turn=TURN),),
    ),
    (
        "end of turn with a task",
        report(
            "Stop",
            last_assistant_message="started",
            background_tasks=[TASK, {**TASK, "id": "b2", "status": "completed"}],
        ),
        (TurnEnded("started", ("bnyggtyon",), TURN, {"bnyggtyon": "sleep 3"}),),
    ),
    (
        "failure",
        report("StopFailure", error="rate_limit", last_assistant_message="API Error: 429"),
        (TurnFailed("rate_limit", "API Error: 429", Failure.LIMIT, TURN),),
    ),
    ("subagent", report("SubagentStop"), ()),
    ("signal", report("SessionEnd", reason="other"), (Ended("other", by_person=False),)),
    ("exit", report("SessionEnd", reason="prompt_input_exit"), (Ended("prompt_input_exit", by_person=True),)),
    ("clear is no end", report("SessionEnd", reason="clear"), ()),
    ("another conversation is no end", report("SessionEnd", reason="resume"), ()),
    ("unknown", report("SomethingNew", prompt="x"), ()),
]


@pytest.mark.parametrize(("given_report", "meaning"), [case[1:] for case in GOLDEN], ids=[case[0] for case in GOLDEN])
def test_hook_payload_means(given_report: Report, meaning: tuple[HarnessEvent, ...]) -> None:
    """Each payload, as Claude Code 2.1.197 writes it, means what it should."""
    assert interpret(given_report) == meaning


@given(st.dictionaries(st.sampled_from(FIELDS) | st.text(), JSON), st.sampled_from(EVENT_NAMES) | JSON, st.booleans())
def test_no_payload_breaks_the_reading(payload: dict[str, Any], event: Any, blocked: bool) -> None:
    """Whatever JSON object comes, the answer is a tuple that can be stored as UTF-8."""
    name = "1-1-X.blocked.json" if blocked else "1-1-X.json"

    events = interpret(Report("i-1", name, {**payload, "hook_event_name": event}))

    assert isinstance(events, tuple)
    repr(events).encode()


@given(JSON)
def test_no_line_breaks_the_reading_of_a_conversation(entry: Any) -> None:
    """Whatever JSON a line holds, the answer is a tuple."""
    assert isinstance(line_events(json.dumps(entry).encode()), tuple)


@given(
    st.sampled_from(["user", "attachment", "queue-operation"]),
    st.dictionaries(st.sampled_from(["message", "attachment", "origin", "operation", "content", "isSidechain"]), JSON),
)
def test_no_line_of_a_known_type_breaks_the_reading(kind: str, entry: dict[str, Any]) -> None:
    """Known types with unexpected fields mean something or nothing, and never raise."""
    assert isinstance(line_events(json.dumps({**entry, "type": kind}).encode()), tuple)


def test_lone_surrogates_are_replaced() -> None:
    """Half a character that JSON allows becomes a replacement character, which every store takes."""
    payload = json.loads('{"hook_event_name": "Stop", "last_assistant_message": "cut \\ud83d"}')

    (event,) = interpret(Report("i-1", "1.json", payload))

    assert event == TurnEnded("cut \N{REPLACEMENT CHARACTER}")


def test_what_is_asked_is_kept_short() -> None:
    """A command of any length makes a summary of at most 500 characters."""
    (event,) = interpret(report("PermissionRequest", tool_name="Bash", tool_input={"command": "x" * 10_000}))

    assert isinstance(event, DialogReported)
    assert len(event.summary) == 500


@pytest.mark.parametrize(
    ("error", "message", "failure"),
    [
        ("authentication_failed", "Not logged in · Please run /login", Failure.LOGIN),
        ("authentication_failed", "Please run /login · API Error: 403 no access", Failure.LOGIN),
        ("billing_error", "Credit balance is too low", Failure.ACCOUNT),
        ("rate_limit", "API Error: Request rejected (429)", Failure.LIMIT),
        ("unknown", "You have reached your specified API usage limits", Failure.LIMIT),
        ("invalid_request", "Prompt is too long", Failure.LENGTH),
        ("model_not_found", "There's an issue with the selected model", Failure.MODEL),
        ("server_error", "API Error: Repeated 529 Overloaded errors", Failure.SERVICE),
        ("unknown", "API Error: 400 fake", Failure.OTHER),
        ("a name of tomorrow", "", Failure.OTHER),
    ],
)
def test_errors_are_understood_as_what_a_person_can_do_something_about(
    error: str, message: str, failure: Failure
) -> None:
    """By the names and words that Claude Code 2.1.197 and 2.1.332 give them."""
    assert failure_of(error, message) is failure
