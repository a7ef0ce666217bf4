"""Confirms a message that came too late to go in by itself."""

from core.domain.delivering import awaits_confirmation
from core.domain.message import InboxRow, MessageState
from core.domain.reasons import Because, Reason
from core.errors import Refused, UnknownMessage
from core.system import System


def confirm_message(system: System, message_id: str, actor: str) -> InboxRow:
    """Let a message go in that waits to be confirmed; the gate and the allow-list are asked as ever.

    Raises UnknownMessage, and Refused for one that does not wait for that.
    """
    row = system.inbox.get(message_id)
    if row is None:
        raise UnknownMessage(message_id)
    if not awaits_confirmation(row):
        raise Refused(
            f"message {message_id} does not wait to be confirmed: it is {row.state.value}",
            f"look at what waits: `the-loop standing queue {row.message.name}`",
        )
    by = Because(Reason.CONFIRMED_BY, {"actor": actor})
    with system.database.transaction(durable=True):
        waits = system.inbox.told_files(message_id) is None
        confirmed = system.inbox.advance(row, MessageState.QUEUED, Because(Reason.FETCHING) if waits else by)
    system.events.emit(
        "standing.queued",
        name=row.message.name,
        actor=actor,
        reason=by.text,
        generation=row.message.generation,
        message=message_id,
    )
    system.poke()
    return confirmed
