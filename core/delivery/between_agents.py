"""How much one agent may write to others: so many messages an hour, and so many exchanges without a person.

What is over a limit is refused, and the agent is told what to do instead.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from core.base.errors import InvalidValue, RecordUnreadable, Refused
from core.model.framing import AGENT_WAY
from core.model.message import NewMessage
from core.model.session import SessionRecord
from core.session.system import System

if TYPE_CHECKING:
    from core.store.inbox import Inbox
    from core.store.records import Records


SAYS_AN_HOUR = 30  #: messages of one session to others
LONGEST_CHAIN = 20  #: messages of agents that lead to one another
_HOUR = timedelta(hours=1)


def admit(system: System, message: NewMessage) -> None:
    """Let an agent's message through and count it. Part of the open transaction that commits it.

    Raises InvalidValue for one to itself; Refused where its session has written too often, or where it and others
    answer one another without end.
    """
    sender = _sender(system.records, message)
    if sender is None:
        raise Refused("this process belongs to no session that runs now", "only a running session can send a message")
    if sender.uid == message.uid:
        raise InvalidValue(f"{message.name} is you", "say it in your answer, or name another session")
    now = system.clock.now()
    if chain(system.records, system.inbox, sender.uid, now) >= LONGEST_CHAIN:
        raise Refused(
            f"the message was not taken: agents have exchanged {LONGEST_CHAIN} messages without input from a person or "
            "a loop",
            "end your turn and say what has to be decided; a message from a person resets this limit",
        )
    if not system.requests.spoke(sender.uid, now, now - _HOUR, SAYS_AN_HOUR, "say"):
        raise Refused(
            f"the message was not taken: {sender.name} has written to other sessions {SAYS_AN_HOUR} times within the "
            "last hour, and that is the limit",
            "collect your points and send them in one message later",
        )


def chain(records: Records, inbox: Inbox, uid: str, now: datetime) -> int:
    """Return how many messages of agents led to what the session does now, counted up to LONGEST_CHAIN.

    Each is the latest that its sender had taken before it wrote. What somebody typed into a terminal is in no inbox,
    so it ends no chain.
    """
    count, before = 0, now
    while count < LONGEST_CHAIN:
        row = inbox.last_taken(uid, before)
        if row is None or row.message.via != AGENT_WAY:
            return count
        count += 1
        sender = _sender(records, row.message)
        if sender is None:
            return count
        uid, before = sender.uid, row.message.created_at
    return count


def _sender(records: Records, message: NewMessage) -> SessionRecord | None:
    try:
        return records.read(message.actor.partition(":")[2])
    except RecordUnreadable:
        return None
