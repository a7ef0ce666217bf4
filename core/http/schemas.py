"""What the API answers with, as JSON Schema 2020-12. Tests hold each to the values that the product really gives."""

from __future__ import annotations

from typing import Any

from core.model import oldchat
from core.model.activity import ActivityState
from core.model.asking import RequestKind, RequestState
from core.model.message import Kind as MessageKind
from core.model.message import MessageState
from core.model.session import HoldKind, Live, Outcome, Phase, Status

Json = dict[str, Any]

TEXT: Json = {"type": "string"}
WHOLE: Json = {"type": "integer"}
TRUTH: Json = {"type": "boolean"}
TIME: Json = {"type": "string", "format": "date-time"}


def _or_null(schema: Json) -> Json:
    if "enum" in schema:
        return {"type": [schema["type"], "null"], "enum": [*schema["enum"], None]}
    if isinstance(schema.get("type"), str):
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def _one_of(kind: Any) -> Json:
    return {"type": "string", "enum": [one.value for one in kind]}


def _list(of: Json) -> Json:
    return {"type": "array", "items": of}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(about: str, properties: Json, *, optional: tuple[str, ...] = ()) -> Json:
    required = [key for key in properties if key not in optional]
    return {"type": "object", "description": about, "properties": properties, "required": required}


_EXIT = _object("How it ended.", {"status": _or_null(WHOLE), "signal": _or_null(WHOLE)})
_PLACE = _object("Where its thread is.", {"channel": TEXT, "thread": TEXT})
_HOLD = _object(
    "The durable mark that keeps it from working.",
    {"kind": _one_of(HoldKind), "policy": TEXT, "by": TEXT, "reason": TEXT, "at": TIME},
)
_SESSION: Json = {
    "name": TEXT,
    "uid": _or_null(TEXT),
    "declared": TRUTH,
    "description": TEXT,
    "autoStart": TRUTH,
    "harness": TEXT,
    "cwd": TEXT,
    "tmuxTarget": TEXT,
    "attach": {**TEXT, "description": "The command that attaches to its terminal, read-only."},
    "ref": TEXT,
    "status": _or_null(_one_of(Status)),
    "running": {"type": ["boolean", "null"], "description": "null: tmux could not be asked."},
    "live": _one_of(Live),
    "phase": _or_null(_one_of(Phase)),
    "hold": _or_null(_HOLD),
    "activity": _or_null(_one_of(ActivityState)),
    "hooks": _or_null({"type": "string", "enum": ["reporting", "silent"]}),
    "permissionMode": _or_null(TEXT),
    "harnessVersion": _or_null(TEXT),
    "capabilities": _or_null({"type": "object", "additionalProperties": TEXT}),
    "pendingTasks": _list(TEXT),
    "working": {"type": ["object", "null"], "description": "What its agent is doing: plan, tool, model, usage."},
    "queued": _or_null(WHOLE),
    "loops": _or_null(WHOLE),
    "harnessSessionId": _or_null(TEXT),
    "chat": {"type": "object", "description": "By the kind of chat.", "additionalProperties": _PLACE},
    oldchat.CHANNEL: _or_null(TEXT),
    oldchat.THREAD: _or_null(TEXT),
    "startedAt": _or_null(TIME),
    "lastMessageAt": _or_null(TIME),
    "drift": _list(TEXT),
    "outcome": _or_null(_one_of(Outcome)),
    "detail": TEXT,
}
_LOOP: Json = {
    "id": TEXT,
    "session": TEXT,
    "declared": _or_null(TEXT),
    "mode": TEXT,
    "instruction": TEXT,
    "interval": _or_null(TEXT),
    "cron": _or_null(TEXT),
    "timeZone": _or_null(TEXT),
    "keepAlive": TRUTH,
    "maxRuns": _or_null(WHOLE),
    "status": TEXT,
    "held": _or_null(TEXT),
    "runCount": WHOLE,
    "lastRunAt": _or_null(TIME),
    "lastResult": _or_null(TEXT),
    "lastError": _or_null(TEXT),
    "nextRunAt": _or_null(TIME),
    "reason": _or_null(TEXT),
    "createdBy": TEXT,
    "createdAt": TIME,
}
_QUEUED: Json = {
    "id": TEXT,
    "kind": _one_of(MessageKind),
    "actor": TEXT,
    "createdAt": TIME,
    "ageSeconds": WHOLE,
    "state": _one_of(MessageState),
    "detail": TEXT,
    "reason": TEXT,
    "length": WHOLE,
    "text": TEXT,
}
_WINDOW: Json = {
    "id": TEXT,
    "columns": WHOLE,
    "rows": WHOLE,
    "history": WHOLE,
    "historyLimit": WHOLE,
    "alternate": TRUTH,
    "options": {"type": "object"},
}
_OPTION = _object("A choice.", {"label": TEXT, "description": TEXT})
_QUESTION = _object("A question.", {"question": TEXT, "several": TRUTH, "options": _list(_OPTION)})
_REQUEST: Json = {
    "id": TEXT,
    "name": TEXT,
    "agent": TEXT,
    "kind": _one_of(RequestKind),
    "state": _one_of(RequestState),
    "askedAt": TIME,
    "expiresAt": TIME,
    "tool": TEXT,
    "detail": {**TEXT, "description": "The tool's input or the dialog, shortened, without secrets."},
    "unseen": {**_list(TEXT), "description": "Sentences about what is not shown, in Markdown. Show them first."},
    "questions": _list(_QUESTION),
    "rules": {**_list(TEXT), "description": "By these the program can allow the like, until it ends; see `remember`."},
    "answers": {**_list(TEXT), "description": "To the questions, in their order; the next one is to be answered."},
    "allowed": _or_null(TRUTH),
    "remembered": {**TRUTH, "description": "Whether the like is allowed from now on, by the rules."},
    "by": TEXT,
    "reason": TEXT,
    "waits": {**TRUTH, "description": "Whether somebody would get an answer now."},
}
_LINKED: Json = {"kind": TEXT, "channel": TEXT, "thread": TEXT, "url": TEXT}
_ENTRY: Json = {
    "id": TEXT,
    "at": TIME,
    "to": {**TRUTH, "description": "true: a message to the session; false: a post in its thread."},
    "kind": {**TEXT, "description": "What kind of message or post."},
    "who": TEXT,
    "actor": TEXT,
    "text": {**TEXT, "description": "Of a post: Markdown."},
    "state": TEXT,
    "reason": TEXT,
    "detail": TEXT,
    "file": {**TEXT, "description": "The name of a file that is attached."},
}
_SERVICE: Json = {"name": TEXT, "running": _or_null(TRUTH), "pid": _or_null(WHOLE), "detail": TEXT, "reason": TEXT}
_HARNESS: Json = {"name": TEXT, "version": _or_null(TEXT), "tried": _list(TEXT), "detail": TEXT}
_EVENT: Json = {"id": TEXT, "ts": TIME, "event": TEXT, "level": TEXT}
_REDACTED: Json = {"redacted": WHOLE, "said": TEXT}

SCHEMAS: Json = {
    "Error": _object(
        "Every error.",
        {
            "error": _object(
                "What happened, and what to do.",
                {"code": {**TEXT, "description": "Never renamed."}, "message": TEXT, "remedy": TEXT},
            )
        },
    ),
    "Session": _object("One session.", _SESSION),
    "Sessions": _object("All sessions.", {"sessions": _list(_ref("Session"))}),
    "Answer": _object(
        "What a verb did. A session's failure is its row's `outcome` and `detail`, not an error.",
        {"sessions": _list(_ref("Session")), "ok": {**TRUTH, "description": "Every session came to a good end."}},
    ),
    "Said": _object(
        "What became of a message within the time that was waited for.",
        {
            "name": TEXT,
            "messageId": TEXT,
            "state": _one_of(MessageState),
            "delivered": {**TRUTH, "description": "true only if a turn is known to have taken it."},
            "exitCode": {**WHOLE, "description": "Of the command line's `standing say`."},
            "reason": {**TEXT, "description": "A code, which is never renamed."},
            "messages": _list(TEXT),
            "answerComes": {**TEXT, "description": "Where the answer can be read; empty where none can come."},
        },
    ),
    "Screen": _object(
        "The end of a terminal.",
        {
            "name": TEXT,
            "screen": TEXT,
            "ended": {**TRUTH, "description": "It is there no more, and this was kept of it."},
            "window": _object("The window that shows it.", _WINDOW),
        },
        optional=("window",),
    ),
    "Logs": _object(
        "What a session showed.",
        {
            "name": TEXT,
            "live": _one_of(Live),
            "screen": _or_null(TEXT),
            "ended": _or_null(
                _object(
                    "The last output of the instance that ended.",
                    {"at": _or_null(TIME), "exit": _or_null(_EXIT), "output": TEXT},
                )
            ),
        },
    ),
    "History": _object(
        "The conversations of a session, the earlier ones oldest first, and deleted sessions of its name.",
        {
            "name": TEXT,
            "conversation": {**_or_null(TEXT), "description": "The id of the present one."},
            "harness": TEXT,
            "new": {**TRUTH, "description": "The present one has had no turn, as far as is known."},
            "earlier": _list(_object("One that was left.", {"id": TEXT, "harness": TEXT, "reason": TEXT, "at": TIME})),
            "deleted": _list(
                _object(
                    "A session that was deleted. What is not known is empty.",
                    {"name": TEXT, "at": TEXT, "by": TEXT, "harness": TEXT, "cwd": TEXT, "conversation": TEXT},
                )
            ),
        },
    ),
    "Queue": _object(
        "What no turn is known to have taken, in order.",
        {"name": TEXT, "limit": WHOLE, "messages": _list(_object("A message.", _QUEUED, optional=("text",)))},
    ),
    "Conversation": _object(
        "What a session was told, and what was said of and by it, oldest first.",
        {
            "name": TEXT,
            "thread": _or_null(_object('Its thread. url: "" where its chat tells none.', _LINKED)),
            "entries": _list(_object("A message or a post.", _ENTRY, optional=("file",))),
        },
    ),
    "Message": _object(
        "A message that was cancelled or confirmed.",
        {"id": TEXT, "name": TEXT, "state": _one_of(MessageState), "reason": TEXT, "detail": TEXT},
    ),
    "Loop": _object("A loop.", _LOOP),
    "Loops": _object(
        "The loop that was asked about, those of its session, and what was done.",
        {"loop": _or_null(_ref("Loop")), "loops": _list(_ref("Loop")), "said": TEXT},
    ),
    "Request": _object("A permission, a question or a dialog.", _REQUEST),
    "Requests": _object("What waits for a person, oldest first.", {"requests": _list(_ref("Request"))}),
    "Status": _object(
        "Whether everything is up.",
        {
            "services": _list(_object("The service, or a connection.", _SERVICE)),
            "harnesses": _list(_object("A program that sessions run.", _HARNESS)),
            "standingSessions": _list(_ref("Session")),
            "ok": TRUTH,
        },
    ),
    "Events": _object(
        "Events, oldest first. docs/events.md names them and their fields.",
        {
            "events": _list({**_object("An event.", _EVENT), "additionalProperties": True}),
            "end": {**TEXT, "description": "The position behind the last event that was looked at."},
            "complete": {**TRUTH, "description": "Nothing more is kept behind `end`."},
            "lost": {**TRUTH, "description": "What `after` names is kept no more: these begin with the oldest."},
        },
    ),
    "Posted": _object("A post on its way.", {"name": TEXT, "postId": TEXT, **_REDACTED}, optional=tuple(_REDACTED)),
    "Reply": _object(
        "What a person answered.", {"name": TEXT, "answer": TEXT, "by": TEXT, **_REDACTED}, optional=tuple(_REDACTED)
    ),
}
