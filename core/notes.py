"""What a message's sender is told in the thread that it came from: one note for each message and reason."""

import hashlib

from core.domain.message import InboxRow, MessageState
from core.ports import NewPost, OutboundKind

_WHAT = {
    MessageState.QUEUED: "is waiting",
    MessageState.REFUSED: "was not delivered",
    MessageState.EXPIRED: "expired",
    MessageState.CANCELLED: "was cancelled",
    MessageState.UNKNOWN: "may not have been taken",
    MessageState.FAILED: "could not be delivered",
}


def note_of(row: InboxRow, state: MessageState, reason: str, remedy: str) -> NewPost | None:
    """Return the note for a row that came from a chat, or None for any other. A second one of its key is a no-op."""
    message = row.message
    if message.address is None:
        return None
    text = f"Your message to `{message.name}` {_WHAT[state]}: {reason}."
    told = f"{text} To do: {remedy}" if remedy else text
    short = hashlib.sha256(f"{state.value}:{reason}".encode()).hexdigest()[:8]
    return NewPost(
        id=f"p-note-{message.id}-{short}",
        key=f"note:{message.id}:{short}",
        kind=OutboundKind.NOTE,
        uid=message.uid,
        name=message.name,
        channel_kind=message.address.channel_kind,
        text=told,
        channel=message.address.channel,
        thread=message.address.thread,
    )
