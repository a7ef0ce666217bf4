"""How much one agent may write to another: so much an hour, and never on and on without a person."""

from datetime import datetime, timedelta

from core.domain.framing import AGENT_WAY
from core.domain.message import NewMessage
from core.domain.session import SessionRecord
from core.errors import InvalidValue, RecordUnreadable, Refused
from core.system import System

SAYS_AN_HOUR = 30  #: messages of one session to others
LONGEST_CHAIN = 20  #: messages of agents that lead to one another
_HOUR = timedelta(hours=1)


def admit(system: System, message: NewMessage) -> None:
    """Let an agent's message through and count it. Part of the open transaction that commits it.

    Raises InvalidValue for one to itself; Refused where its session has written too often, or where it and others
    answer one another without end.
    """
    sender = _sender(system, message)
    if sender is None:
        raise Refused("this process belongs to no session that runs now", "only a running session speaks")
    if sender.uid == message.uid:
        raise InvalidValue(f"{message.name} is you", "say it in your answer, or name another session")
    now = system.clock.now()
    if chain(system, sender.uid, now) >= LONGEST_CHAIN:
        raise Refused(
            f"the message was not taken: {LONGEST_CHAIN} messages of agents have led to one another, with no word of a "
            "person or of a loop between them",
            "end your turn and say what there is to decide; the next message of a person begins anew",
        )
    if not system.requests.spoke(sender.uid, now, now - _HOUR, SAYS_AN_HOUR, "say"):
        raise Refused(
            f"the message was not taken: {sender.name} has written to other sessions {SAYS_AN_HOUR} times within the "
            "last hour, which is all it may",
            "gather what there is to say, and say it later",
        )


def chain(system: System, uid: str, now: datetime) -> int:
    """Return how many messages of agents led to what the session does now, counted up to LONGEST_CHAIN.

    Each is the latest that its sender had taken before it wrote. What somebody typed into a terminal is in no inbox,
    so it ends no chain.
    """
    count, before = 0, now
    while count < LONGEST_CHAIN:
        row = system.inbox.last_taken(uid, before)
        if row is None or row.message.via != AGENT_WAY:
            return count
        count += 1
        sender = _sender(system, row.message)
        if sender is None:
            return count
        uid, before = sender.uid, row.message.created_at
    return count


def _sender(system: System, message: NewMessage) -> SessionRecord | None:
    try:
        return system.records.read(message.actor.partition(":")[2])
    except RecordUnreadable:
        return None
