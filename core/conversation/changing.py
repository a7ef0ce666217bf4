"""Edits and deletions: they act on what still waits; what was typed stays typed, which is told once."""

from collections.abc import Sequence

from core.conversation.inbound import reply_key, text_of
from core.domain.message import DELIVERED, IN_FLIGHT, WAITING, InboxRow, MessageState
from core.domain.reasons import Because, Reason
from core.errors import InvalidValue
from core.names import new_message_id
from core.ports import IncomingChange, IncomingReply, NewPost, OutboundKind
from core.session.steering import Authorized, may_steer
from core.system import System
from core.values import replace

_TYPED = IN_FLIGHT | DELIVERED | {MessageState.UNKNOWN}
LATE_QUOTES = "(what the link in my message before this one leads to)"
_UNDER_WAY = frozenset({Reason.STASHING, Reason.CLEARING})  #: keys for it stand in the pane already


class Changes:
    """Applies what authors did to messages after they had sent them."""

    def __init__(self, system: System, authorized: Authorized) -> None:
        self._system = system
        self._authorized = authorized

    def apply(self, changes: Sequence[IncomingChange]) -> tuple[IncomingReply, ...]:
        """Apply each in one durable transaction; a change of what never became a message is none. Raises StoreBroken.

        Return what has to be taken in as replies of their own: quotes that the chat added to messages that were typed
        already. Raises Refused where delivery moved a row on at this moment; then nothing was changed, and it is to be
        tried again.
        """
        with self._system.database.transaction(durable=True):
            return tuple(late for change in changes if (late := self._apply(change)) is not None)

    def _apply(self, change: IncomingChange) -> IncomingReply | None:
        reply = change.reply
        row = self._system.inbox.of_key(reply_key(reply))
        if row is None:
            return None
        if change.deleted:
            later = self._system.inbox.of_key(reply_key(_late_quotes(reply)))
            for each in (row, later) if later is not None and _waits(later) else (row,):
                self._delete(each)
            return None
        author = f"{reply.channel_kind}:{reply.author}"
        own = row.message.actor == author and not reply.is_bot and not reply.is_self
        if not own or not may_steer(self._system, self._authorized, row.message.name, reply.author):
            return None
        if change.only_quotes and not _waits(row):
            new = row.state in _TYPED and reply.quoted and reply.quoted not in row.message.text
            return _late_quotes(reply) if new else None
        self._edit(row, reply)
        return None

    def _delete(self, row: InboxRow) -> None:
        if _waits(row):
            self._system.inbox.advance(row, MessageState.CANCELLED, Because(Reason.AUTHOR_DELETED))
            self._emit(row, "deleted", "cancelled")
        elif row.state in _TYPED:
            self._too_late(row, "deleted")

    def _edit(self, row: InboxRow, reply: IncomingReply) -> None:
        if not row.message.text and not _waits(row):
            return  # its text is no longer kept: whether it was changed since cannot be said
        told = self._system.inbox.told_files(row.message.id)
        edited = _with_files(reply, told)
        if (edited, told) == ("", "") or edited == row.message.text:
            return  # where nothing is left of it: whoever wants it gone deletes it
        if _waits(row):
            self._system.inbox.edit(row, edited)
            self._emit(row, "edited", "replaced")
        elif row.state in _TYPED and row.message.text != _with_files(replace(reply, quoted=""), told):
            self._too_late(row, "edited")

    def _too_late(self, row: InboxRow, what: str) -> None:
        """Tell it once: every sweep that comes past the message finds it changed."""
        message, address = row.message, row.message.address
        if address is None:
            return
        text = f"Your message was {what} after it had been typed into `{message.name}`, which knows it as it was."
        if what == "edited":
            text += " To do: send what is new as another message"
        note = NewPost(
            id=f"p-{what}-{new_message_id()}",
            key=f"{what}:{message.id}",
            kind=OutboundKind.NOTE,
            uid=message.uid,
            name=message.name,
            channel_kind=address.channel_kind,
            text=text,
            channel=address.channel,
            thread=address.thread,
            about=message.id,
        )
        if any(self._system.outbox.add([note])):
            self._emit(row, what, "too-late")

    def _emit(self, row: InboxRow, reason: str, detail: str) -> None:
        address = row.message.address
        self._system.events.emit(
            "channel.edited",
            name=row.message.name,
            actor=row.message.actor,
            reason=reason,
            detail=detail,
            generation=row.message.generation,
            message=row.message.id,
            channel=address.channel if address else None,
            thread=address.thread if address else None,
        )


def _with_files(reply: IncomingReply, told: str | None) -> str:
    """Return a message's text as it would be kept; `told`: the lines about its files, None while they are fetched."""
    try:
        words = text_of(reply)
    except InvalidValue:
        words = ""
    return "\n".join(filter(None, (words, told)))


def _late_quotes(reply: IncomingReply) -> IncomingReply:
    """Return the quotes of a message that was typed without them, as a reply that follows it."""
    return replace(reply, text=LATE_QUOTES, files=(), piece="quotes")


def _waits(row: InboxRow) -> bool:
    return row.state in WAITING and row.reason not in _UNDER_WAY
