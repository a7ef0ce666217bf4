"""What a message's sender is told in the thread that it came from: one note for each message and reason."""

import hashlib

from core.domain.buttons import Button, Press
from core.domain.delivering import CONFIRM
from core.domain.gate import HoldState, Observed, held_reason, seen_reason
from core.domain.message import InboxRow, MessageState
from core.ports import NewPost, OutboundKind

AGAIN = frozenset({MessageState.UNKNOWN, MessageState.EXPIRED, MessageState.REFUSED, MessageState.CANCELLED})
#: why a message is refused that a start would help
STARTABLE = frozenset(
    {
        held_reason(HoldState.STOPPED),
        held_reason(HoldState.FAILED),
        *(seen_reason(seen) for seen in (Observed.NEVER_RUN, Observed.DOWN, Observed.DEAD, Observed.LOST)),
    }
)
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
        buttons=buttons_of(row, state, reason),
    )


def buttons_of(row: InboxRow, state: MessageState, reason: str) -> tuple[Button, ...]:
    """Return what a person can do about it. Each button carries the message's id, and is checked when it is pressed."""
    target = row.message.id
    cancel, again = Button(Press.CANCEL, target, "Cancel"), Button(Press.SEND_AGAIN, target, "Send again")
    if state is MessageState.QUEUED:
        if reason.startswith(CONFIRM):
            return (Button(Press.CONFIRM, target, "Send it", style="primary"), cancel)
        interrupt = Button(Press.INTERRUPT, target, "Interrupt the turn", style="danger")
        return (cancel, interrupt) if reason == seen_reason(Observed.BUSY) else (cancel,)
    if state is MessageState.REFUSED and reason in STARTABLE:
        both = Button(Press.START_AND_SEND, target, "Start and send", style="primary")
        return (again, Button(Press.START, target, "Start"), both)
    return (again,) if state in AGAIN else ()
