"""What every verb answers with: one row for each session, and the rows of `status` for everything else. No I/O."""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from functools import cache
from typing import Any

from core.base.clock import iso
from core.base.values import dataclass, field_names, replace
from core.model import oldchat
from core.model.activity import ActivityState
from core.model.session import FAILURES, Definition, Hold, HoldKind, Live, Outcome, Phase, Status, Thread


@dataclass(frozen=True)
class ServiceRow:
    """The service itself, or one channel's connection. `running` None: it could not be asked, which is no "no"."""

    name: str
    running: bool | None
    pid: int | None
    detail: str
    reason: str = ""  #: the code of the detail, where it has one

    def to_json(self) -> dict[str, Any]:
        """Return `{name, running, pid, detail, reason}`."""
        told = {"name": self.name, "running": self.running, "pid": self.pid}
        return {**told, "detail": self.detail, "reason": self.reason}


@dataclass(frozen=True)
class HarnessRow:
    """A program that sessions run, and whether its version was ever tried. `version` is "" where it does not tell."""

    name: str
    version: str
    tried: tuple[str, ...]  #: oldest first
    detail: str

    def to_json(self) -> dict[str, Any]:
        """Return `{name, version, tried, detail}`; version is null where it is not known."""
        return {"name": self.name, "version": self.version or None, "tried": list(self.tried), "detail": self.detail}


@dataclass(frozen=True)
class Row:
    """One session as every surface shows it. None means that there is none, or that it could not be asked."""

    name: str
    uid: str | None = None
    declared: bool = False
    description: str = ""
    auto_start: bool = False
    harness: str = ""
    cwd: str = ""
    tmux_target: str = ""
    attach: str = ""
    ref: str = ""
    status: Status | None = None
    running: bool | None = None
    live: Live = Live.UNKNOWN
    phase: Phase | None = None
    hold: Hold | None = None
    activity: ActivityState | None = None
    hooks: str | None = None  #: "reporting" or "silent"; None: nothing shows it yet
    permission_mode: str | None = None
    harness_version: str | None = None
    capabilities: Mapping[str, str] | None = None
    pending_tasks: tuple[str, ...] = ()
    working: Mapping[str, Any] | None = None  #: what its agent is doing, see Working.to_json; None: that is not known
    queued: int | None = None
    loops: int | None = 0
    harness_session_id: str | None = None
    thread: Thread | None = None
    started_at: datetime | None = None
    last_message_at: datetime | None = None
    drift: tuple[str, ...] = ()
    outcome: Outcome | None = None
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the row with its fixed camelCase keys, times as ISO 8601 in UTC.

        Its thread is `chat: {<kind>: {channel, thread}}`; that of the oldest chat has two keys of its own, too.
        """
        told = {_camel(name): _plain(getattr(self, name)) for name in field_names(self)}
        return {key: value for name, plain in told.items() for key, value in self._shown(name, plain)}

    def _shown(self, name: str, plain: Any) -> tuple[tuple[str, Any], ...]:
        if name != "thread":
            return ((name, plain),)
        place = self.thread
        chat = {place.kind: {"channel": place.channel, "thread": place.thread}} if place else {}
        known = place if place and place.kind == oldchat.KIND else None
        return (
            ("chat", chat),
            (oldchat.CHANNEL, known and known.channel),
            (oldchat.THREAD, known and known.thread),
        )

    def told(self, outcome: Outcome, detail: str) -> "Row":
        """Return the row with what a verb did; what the row itself had to say stays. Nothing is said twice."""
        said = dict.fromkeys(part for text in (detail, self.detail) if text for part in _remarks(text))
        return replace(self, outcome=outcome, detail="; ".join(said))


def _remarks(detail: str) -> list[str]:
    """Return the remarks of a detail that are side by side; what is in brackets belongs to its own."""
    made, unclosed = list[str](), 0
    for part in detail.split("; "):
        made = [*made[:-1], f"{made[-1]}; {part}"] if unclosed else [*made, part]
        unclosed = max(0, unclosed + part.count("(") - part.count(")"))
    return made


def concerns(verb: str, row: Mapping[str, Any]) -> bool:
    """Return whether `stop` or `pause` would change a session, by its row as JSON."""
    hold = row.get("hold")
    kind = hold["kind"] if hold else ""
    if verb == "stop":
        return row.get("uid") is not None and kind != HoldKind.STOPPED.value
    return row.get("running") is True and not kind


@dataclass(frozen=True)
class Answer:
    """What start, stop, restart, create and delete answer: a session's failure is a row, never an exception."""

    sessions: tuple[Row, ...]

    @property
    def ok(self) -> bool:
        """Return whether every session came to a good end."""
        return not any(row.outcome in FAILURES for row in self.sessions)

    def to_json(self) -> dict[str, Any]:
        """Return `{"sessions": [row…], "ok": bool}`."""
        return {"sessions": [row.to_json() for row in self.sessions], "ok": self.ok}


@dataclass(frozen=True)
class StatusReport:
    """The one health answer: services, sessions, and whether all is as a boot would have it."""

    services: tuple[ServiceRow, ...]
    harnesses: tuple[HarnessRow, ...]
    sessions: tuple[Row, ...]
    ok: bool

    def to_json(self) -> dict[str, Any]:
        """Return `{"services", "harnesses", "standingSessions", "ok"}`."""
        return {
            "services": [row.to_json() for row in self.services],
            "harnesses": [row.to_json() for row in self.harnesses],
            "standingSessions": [row.to_json() for row in self.sessions],
            "ok": self.ok,
        }


def misconfigured_row(detail: str) -> Row:
    """Return the one row that stands for all sessions where the configuration cannot be understood."""
    return Row(name="standingSessions", outcome=Outcome.MISCONFIGURED, detail=detail)


_KEYS = {
    "description": "description",
    "harness": "harness",
    "harnessArgs": "harness_args",
    "cwd": "cwd",
    "prompt": "prompt",
    "promptFile": "prompt_file",
    "autoStart": "auto_start",
    "restart": "restart",
    "idle": "idle",
}


def drift(recorded: Definition, declared: Definition) -> tuple[str, ...]:
    """Return the configuration's keys whose value has changed since the session was last started."""
    if recorded == declared:
        return ()
    changed = [key for key, field in _KEYS.items() if getattr(recorded, field) != getattr(declared, field)]
    chats = sorted({*recorded.chat, *declared.chat})
    return (*changed, *(kind for kind in chats if recorded.chat.get(kind) != declared.chat.get(kind)))


@cache
def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _plain(value: Any) -> Any:
    if value is None or type(value) in (str, bool, int):  # most are, and a list asks for thousands
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Hold):
        return _hold_json(value)
    return value


def _hold_json(hold: Hold) -> Mapping[str, Any]:
    return {
        "kind": hold.kind.value,
        "policy": hold.policy,
        "by": hold.by,
        "reason": hold.reason,
        "at": iso(hold.at),
    }
