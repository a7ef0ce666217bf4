"""Cancels what waits: the whole queue of a session that is stopped, or one message; and tells who sent it."""

import hashlib
from collections import Counter
from collections.abc import Sequence

from core.domain.message import WAITING, InboxRow, Kind, MessageState, ReplyAddress
from core.domain.reasons import Because, Reason, Remedy
from core.domain.session import SessionRecord
from core.domain.texts import text
from core.effects import Effect, effect
from core.errors import Refused, UnknownMessage
from core.loops.holding import hold_with_session
from core.ports import NewPost, OutboundKind
from core.session.notes import note_for, told_in
from core.system import System

STOPPED = "its session was stopped"


def cancel_queue(system: System, record: SessionRecord) -> int:
    """Cancel all that waits for a session that was stopped by name, and return how much that was.

    Each thread in which senders of cancelled messages are told gets one note, which says how many. Done again it finds
    nothing. Raises StoreBroken.
    """
    with effect(Effect.STOP_CANCEL), system.database.transaction(durable=True):
        cancelled = system.inbox.cancel_waiting(record.uid, Because(Reason.QUEUE_CANCELLED, {"name": record.name}))
        hold_with_session(system, record, STOPPED)
        notes = _notes(system, record, cancelled)
        if notes:
            system.outbox.add(notes)
    if notes:
        system.poke()
    return len(cancelled)


def hold_loops(system: System, record: SessionRecord) -> None:
    """Hold the loops of a session that was stopped without its name: what waits is kept. Raises StoreBroken."""
    with effect(Effect.STOP_CANCEL), system.database.transaction(durable=True):
        hold_with_session(system, record, STOPPED)


def _notes(system: System, record: SessionRecord, rows: Sequence[InboxRow]) -> list[NewPost]:
    addresses = (told_in(system, row) for row in rows)
    threads = Counter(_thread(address) for address in addresses if address is not None)
    return [_note(record, thread, count) for thread, count in threads.items()]


def _thread(address: ReplyAddress) -> tuple[str, str, str]:
    return address.channel_kind, address.channel, address.thread


def _note(record: SessionRecord, thread: tuple[str, str, str], count: int) -> NewPost:
    kind, channel, root = thread
    short = hashlib.sha256(f"{record.generation}:{channel}:{root}".encode()).hexdigest()[:8]
    what = "1 message that waited was" if count == 1 else f"{count} messages that waited were"
    return NewPost(
        id=f"p-cancelled-{record.uid}-{short}",
        key=f"cancelled:{record.uid}:{short}",
        kind=OutboundKind.NOTE,
        uid=record.uid,
        name=record.name,
        channel_kind=kind,
        text=(
            f"`{record.name}` was stopped; {what} cancelled. "
            f"To do: start it: `the-loop standing start {record.name}`, then send again what still counts"
        ),
        channel=channel,
        thread=root,
    )


def cancel_message(system: System, message_id: str, actor: str, *, told: bool = True) -> InboxRow:
    """Cancel one message that waits, durably; its sender's thread is told, if `told`.

    Raises UnknownMessage, and Refused for one that is in flight or over.
    """
    row = system.inbox.get(message_id)
    if row is None:
        raise UnknownMessage(message_id)
    _check_waits(row)
    by = Because(Reason.CANCELLED_BY, {"actor": actor})
    try:
        with effect(Effect.QUEUE_CANCEL), system.database.transaction(durable=True):
            cancelled = system.inbox.advance(row, MessageState.CANCELLED, by)
            remedy = text(Remedy.SEND_AGAIN_IF_COUNTS)
            note = note_for(system, cancelled, MessageState.CANCELLED, by, remedy) if told else None
            if note is not None:
                system.outbox.add([note])
    except Refused:
        _check_waits(system.inbox.get(message_id) or row)
        raise
    system.events.emit(
        "standing.refused",
        name=row.message.name,
        actor=actor,
        reason=by.text,
        detail=MessageState.CANCELLED,
        generation=row.message.generation,
        message=message_id,
    )
    system.poke()
    return cancelled


def _check_waits(row: InboxRow) -> None:
    message = row.message
    if message.kind is Kind.BOOT:
        raise Refused(
            f"{message.id} is the boot prompt of {message.name}, which no conversation goes without",
            f"stop the session instead: `the-loop standing stop {message.name}`",
        )
    if row.state not in WAITING:
        raise Refused(
            f"message {message.id} cannot be cancelled: it is {row.state.value}",
            f"only what waits can be: `the-loop standing queue {message.name}`",
        )
