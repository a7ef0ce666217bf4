"""What the SDK answers with. Each is the JSON object of the API with its keys in snake_case, times as aware datetimes.

Words of the product (`live`, `state`, `outcome` …) are texts: a later service may have more of them than this release's
docs/openapi.yaml names.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from core.base.values import dataclass, field

_T = TypeVar("_T")


@dataclass(frozen=True)
class Place:
    """Where a session's thread is in a chat."""

    channel: str
    thread: str


@dataclass(frozen=True)
class Hold:
    """The durable mark that keeps a session from working: paused, stopped or failed, by whom, and since when."""

    kind: str
    policy: str
    by: str
    reason: str
    at: datetime


@dataclass(frozen=True)
class Session:
    """One session. None: there is none, or it could not be asked."""

    name: str
    live: str  #: live | dead | absent | foreign | unknown, as tmux says
    running: bool | None
    declared: bool
    auto_start: bool
    description: str
    harness: str
    cwd: str
    ref: str
    tmux_target: str
    attach: str  #: the command that attaches to its terminal, read-only
    detail: str
    uid: str | None = None
    status: str | None = None
    phase: str | None = None
    hold: Hold | None = None
    activity: str | None = None  #: idle, busy …
    hooks: str | None = None
    permission_mode: str | None = None
    harness_version: str | None = None
    capabilities: Mapping[str, str] | None = None
    pending_tasks: tuple[str, ...] = ()
    working: Mapping[str, Any] | None = None  #: plan, tool, model, usage …
    queued: int | None = None
    loops: int | None = None
    harness_session_id: str | None = None
    chat: Mapping[str, Place] = field(default_factory=dict)  #: by kind
    started_at: datetime | None = None
    last_message_at: datetime | None = None
    drift: tuple[str, ...] = ()
    outcome: str | None = None  #: what a verb did


@dataclass(frozen=True)
class Answer:
    """What a verb did: a session's failure is the `outcome` and `detail` of its row, and no exception."""

    sessions: tuple[Session, ...]
    ok: bool


@dataclass(frozen=True)
class Said:
    """What became of a message within the time that was waited for."""

    name: str
    message_id: str
    state: str
    delivered: bool  #: True only if a turn is known to have taken it
    reason: str  #: a code, which is never renamed
    messages: tuple[str, ...]
    answer_comes: str = ""  #: where its answer can be read


@dataclass(frozen=True)
class Left:
    """An earlier conversation of a session."""

    id: str
    harness: str
    reason: str  #: how it was left
    at: datetime


@dataclass(frozen=True)
class Deleted:
    """A session that was deleted; what is not known of it is ""."""

    name: str
    at: str
    by: str
    harness: str
    cwd: str
    conversation: str


@dataclass(frozen=True)
class History:
    """The conversations of a session, the earlier ones oldest first, and deleted sessions of its name."""

    name: str
    conversation: str | None
    harness: str
    new: bool  #: the present one has had no turn, as far as is known
    earlier: tuple[Left, ...]
    deleted: tuple[Deleted, ...]


@dataclass(frozen=True)
class Entry:
    """A message to a session (`to`), or a post in its thread."""

    id: str
    at: datetime
    to: bool
    kind: str
    who: str
    actor: str
    text: str
    state: str
    reason: str
    detail: str
    file: str | None = None


@dataclass(frozen=True)
class Conversation:
    """The latest messages to a session, and the posts of its thread, oldest first."""

    name: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Message:
    """A message that was cancelled or confirmed."""

    id: str
    name: str
    state: str
    reason: str
    detail: str


@dataclass(frozen=True)
class Queued:
    """A message that no turn is known to have taken."""

    id: str
    kind: str
    actor: str
    created_at: datetime
    age_seconds: int
    state: str
    detail: str
    reason: str
    length: int
    text: str | None = None  #: where it was asked for


@dataclass(frozen=True)
class Queue:
    """A session's messages that no turn is known to have taken, in order, and how many may wait."""

    name: str
    limit: int
    messages: tuple[Queued, ...]


@dataclass(frozen=True)
class Window:
    """The tmux window that shows a terminal."""

    id: str
    columns: int
    rows: int
    history: int
    history_limit: int
    alternate: bool
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Screen:
    """The end of a terminal. `ended`: it is there no more, and this was kept of it."""

    name: str
    screen: str
    ended: bool
    window: Window | None = None


@dataclass(frozen=True)
class Exit:
    """How a program ended; None where that is not known."""

    status: int | None
    signal: int | None


@dataclass(frozen=True)
class Ended:
    """The last output of the instance that ended."""

    at: datetime | None
    exit: Exit | None
    output: str


@dataclass(frozen=True)
class Logs:
    """What a session showed. None: there is none."""

    name: str
    live: str
    screen: str | None
    ended: Ended | None


@dataclass(frozen=True)
class Loop:
    """A loop of a session."""

    id: str
    session: str
    mode: str
    instruction: str
    status: str
    run_count: int
    keep_alive: bool
    created_by: str
    created_at: datetime
    declared: str | None = None
    interval: str | None = None
    cron: str | None = None
    time_zone: str | None = None
    max_runs: int | None = None
    held: str | None = None
    last_run_at: datetime | None = None
    last_result: str | None = None
    last_error: str | None = None
    next_run_at: datetime | None = None
    reason: str | None = None


@dataclass(frozen=True)
class Loops:
    """The loop that was asked about (None: a list), those of its session, and what was done in a sentence."""

    loop: Loop | None
    loops: tuple[Loop, ...]
    said: str


@dataclass(frozen=True)
class Option:
    """One choice of a question."""

    label: str
    description: str


@dataclass(frozen=True)
class Question:
    """One question."""

    question: str
    several: bool
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Request:
    """A permission, a question or a dialog that waits for a person, or waited. Show `unseen` before `detail`."""

    id: str
    name: str
    agent: str
    kind: str
    state: str
    asked_at: datetime
    expires_at: datetime
    tool: str
    detail: str
    unseen: tuple[str, ...]  #: sentences about what `detail` does not show
    questions: tuple[Question, ...]
    answers: tuple[str, ...]
    allowed: bool | None
    by: str
    reason: str
    waits: bool  #: somebody would get an answer now
    rules: tuple[str, ...] = ()  #: of a permission: by these the program can allow the like, until it ends
    remembered: bool = False  #: it was allowed so


@dataclass(frozen=True)
class Service:
    """The service itself, or a connection. `running` None: it could not be asked."""

    name: str
    running: bool | None
    pid: int | None
    detail: str
    reason: str


@dataclass(frozen=True)
class Harness:
    """A program that sessions run."""

    name: str
    version: str | None
    tried: tuple[str, ...]
    detail: str


@dataclass(frozen=True)
class Status:
    """Whether everything is up."""

    services: tuple[Service, ...]
    harnesses: tuple[Harness, ...]
    standing_sessions: tuple[Session, ...]
    ok: bool


@dataclass(frozen=True)
class Event:
    """One event of the log. `id` is where whoever has read it goes on; `data` is the whole line."""

    id: str
    event: str
    ts: datetime
    name: str | None
    data: Mapping[str, Any]


@dataclass(frozen=True)
class Posted:
    """A post on its way; `redacted` counts values that were taken out, since they look like secrets."""

    name: str
    post_id: str
    redacted: int = 0


@dataclass(frozen=True)
class Reply:
    """What a person answered."""

    name: str
    answer: str
    by: str
    redacted: int = 0


def decode(kind: type[_T], told: Mapping[str, Any]) -> _T:
    """Return the value of a class above that an object of the API stands for; keys that it does not have are left out.

    Raises KeyError for an object without a key that it needs, ValueError for a time that is none.
    """
    hints = _hints(kind)
    given = {name: told[key] for name, key in ((name, _key(name)) for name in hints) if key in told}
    return kind(**{name: _value(hints[name], value) for name, value in given.items()})


def decode_event(told: Mapping[str, Any]) -> Event:
    """Return an event of the API."""
    data = {key: value for key, value in told.items() if key != "id"}
    return Event(told["id"], told["event"], datetime.fromisoformat(told["ts"]), told.get("name"), data)


_HINTS: dict[type[Any], dict[str, Any]] = {}


def _hints(kind: type[Any]) -> dict[str, Any]:
    if kind not in _HINTS:
        _HINTS[kind] = get_type_hints(kind)
    return _HINTS[kind]


def _key(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _value(hint: Any, value: Any) -> Any:
    if value is None:
        return None
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        [hint] = [one for one in arguments if one is not type(None)]
        return _value(hint, value)
    if origin is tuple:
        return tuple(_value(arguments[0], one) for one in value)
    if origin is not None:  # a mapping
        return {key: _value(arguments[1], one) for key, one in value.items()}
    if hint is datetime:
        return datetime.fromisoformat(value)
    return decode(hint, value) if isinstance(value, dict) and hint is not Any else value
