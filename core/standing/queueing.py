"""queue: what waits for a session and what is on its way, in the order in which it goes in."""

from datetime import datetime
from typing import Any

from core.clock import iso
from core.commands import exact_for
from core.domain.message import InboxRow
from core.domain.reasons import Because, Reason, code_of
from core.session.sessions import definition_of
from core.system import System
from core.values import dataclass


@dataclass(frozen=True)
class Queued:
    """One message of a queue, at the moment `now` (UTC). Its text is told as its length unless it is asked for."""

    row: InboxRow
    now: datetime
    detail: str  #: what it waits for, or where it stands, as it is now; its commands can be typed

    def to_json(self, *, text: bool = False) -> dict[str, Any]:
        """Return the fixed keys; `length` is in characters, `ageSeconds` since it was committed."""
        message = self.row.message
        return {
            "id": message.id,
            "kind": message.kind.value,
            "actor": message.actor,
            "createdAt": iso(message.created_at),
            "ageSeconds": max(0, int((self.now - message.created_at).total_seconds())),
            "state": self.row.state.value,
            "detail": self.detail,
            "reason": code_of(self.row.because),
            "length": len(message.text),
            **({"text": message.text} if text else {}),
        }


@dataclass(frozen=True)
class Queue:
    """A session's messages that wait or are in flight, and how many may wait (limits.queuedPerSession)."""

    name: str
    limit: int
    messages: tuple[Queued, ...]

    def to_json(self, *, text: bool = False) -> dict[str, Any]:
        """Return the fixed keys."""
        return {
            "name": self.name,
            "limit": self.limit,
            "messages": [message.to_json(text=text) for message in self.messages],
        }


def queue_of(system: System, name: str) -> Queue:
    """Return the session's queue: first what is in flight, then what waits. Raises UnknownSession, InvalidValue,
    RecordUnreadable."""
    known = definition_of(system.settings, system.records, name)
    if known.unreadable is not None:
        raise known.unreadable
    now = system.clock.now()
    rows = system.inbox.unsettled(known.record.uid) if known.record else ()
    limit = system.settings.limits.queued_per_session
    return Queue(name, limit, tuple(Queued(row, now, _told(system, row, ahead)) for ahead, row in enumerate(rows)))


def _told(system: System, row: InboxRow, ahead: int) -> str:
    """Return its reason in words, as it is now: how many are ahead was counted when it came."""
    if row.because is None:
        return ""
    counted = row.because.args.get("ahead") if row.reason is Reason.PAUSED else None
    why = Because(Reason.PAUSED, {"ahead": ahead}) if counted else row.because
    return exact_for(system, why.text)
