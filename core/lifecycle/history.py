"""history: the conversations that a session had, and the sessions that were deleted, with how to take them up again."""

import shlex
from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypedDict

from core.base.clock import iso
from core.base.errors import UnknownSession
from core.base.values import dataclass
from core.config.settings import Settings
from core.model.session import Left, SessionRecord
from core.session.sessions import definition_of, names_of, resolve_record
from core.store.eventlog import EventLog
from core.store.records import Records


@dataclass(frozen=True)
class Deleted:
    """A session that was deleted, as far as the event log goes back."""

    name: str
    at: str  #: ISO 8601, UTC
    by: str
    harness: str
    cwd: str
    conversation: str

    def to_json(self) -> dict[str, Any]:
        """Return the fixed keys; what is not known is ""."""
        told = {"name": self.name, "at": self.at, "by": self.by}
        return {**told, "harness": self.harness, "cwd": self.cwd, "conversation": self.conversation}

    @property
    def remedy(self) -> str:
        """Return the commands that make it again, in its conversation; "" where that is not known."""
        if not self.conversation:
            return ""
        made = shlex.join((self.name, "--harness", self.harness, "--cwd", self.cwd, "--no-start"))
        started = shlex.join((self.name, "--conversation", self.conversation))
        return f"`the-loop standing create {made}`, then `the-loop standing start {started}`"


@dataclass(frozen=True)
class History:
    """The conversations of a session, oldest first, and deleted sessions of that name (without a name: all)."""

    name: str
    conversation: str | None  #: the present one's id; None: it has none, or its harness tells none
    harness: str
    new: bool  #: the present one has had no turn, as far as anybody knows
    earlier: tuple[Left, ...]
    deleted: tuple[Deleted, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the fixed keys; times as ISO 8601 in UTC."""
        return {
            "name": self.name,
            "conversation": self.conversation,
            "harness": self.harness,
            "new": self.new,
            "earlier": [_left(one.id, one.harness, one.reason, one.at) for one in self.earlier],
            "deleted": [one.to_json() for one in self.deleted],
        }


def _left(id: str, harness: str, reason: str, at: datetime) -> Mapping[str, Any]:
    return {"id": id, "harness": harness, "reason": reason, "at": iso(at)}


def history_of(settings: Settings, records: Records, events: EventLog, name: str) -> History:
    """Return the history of a session, "" for that of no session: then all that were deleted.

    Raises UnknownSession for a name that no session has and none is known to have had, InvalidValue,
    RecordUnreadable, StoreBroken.
    """
    deleted = tuple(_deleted(event) for event in events.read() if event.get("event") == "standing.deleted")
    if not name:
        return History("", None, "", False, (), deleted)
    of_name = tuple(one for one in deleted if one.name == name)
    try:
        known = definition_of(settings, records, name)
    except UnknownSession:
        if not of_name:
            raise UnknownSession(name, names_of(settings, records)) from None
        return History(name, None, "", False, (), of_name)
    if known.unreadable is not None:
        raise known.unreadable
    if known.record is None:
        return History(name, None, known.definition.harness, False, (), of_name)
    record = known.record
    harness = resolve_record(record, settings).harness
    return History(name, record.conversation, harness, record.fresh is not None, record.history, of_name)


def _deleted(event: Mapping[str, Any]) -> Deleted:
    texts = (str(event.get(key) or "") for key in ("name", "ts", "actor", "harness", "cwd", "conversation"))
    return Deleted(*texts)


class Was(TypedDict):
    """What the event of its deletion tells of a session."""

    conversation: str | None
    harness: str
    cwd: str


def what_was(settings: Settings, record: SessionRecord) -> Was:
    """Return what the event of its deletion tells of a session, so that it can be made again."""
    resolved = resolve_record(record, settings)
    return Was(conversation=record.conversation, harness=resolved.harness, cwd=str(resolved.cwd))
