"""What a message's sender is told in the thread that it came from: one note for all that share a reason."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from core.domain.binding import CHANNEL
from core.domain.buttons import Button, Press
from core.domain.message import InboxRow, Kind, MessageState, NewMessage, ReplyAddress
from core.domain.reasons import Because, Reason, Remedy
from core.domain.texts import text
from core.session.steering import chat_of
from core.system import System
from core.values import dataclass, replace

if TYPE_CHECKING:
    from core.ports import NewPost, NoteStand

AGAIN = frozenset({MessageState.UNKNOWN, MessageState.EXPIRED, MessageState.REFUSED, MessageState.CANCELLED})
#: why a message is refused that a start would help
STARTABLE = frozenset(
    {Reason.STOPPED, Reason.FAILED, Reason.NEVER_RUN, Reason.DOWN, Reason.DEAD, Reason.LOST},
)
#: what sends a message again as its author's, whose right to it only a chat's lists know
_AS_AUTHOR = frozenset({Press.SEND_AGAIN, Press.START_AND_SEND})
_WHAT = {
    MessageState.QUEUED: "is waiting",
    MessageState.REFUSED: "was not delivered",
    MessageState.EXPIRED: "expired",
    MessageState.CANCELLED: "was cancelled",
    MessageState.UNKNOWN: "may not have been taken",
    MessageState.FAILED: "could not be delivered",
    MessageState.CONFIRMED: "was taken by a turn that failed",  # of any other nothing is said
}


_MANY = {
    MessageState.QUEUED: "are waiting",
    MessageState.REFUSED: "were not delivered",
    MessageState.EXPIRED: "expired",
    MessageState.CANCELLED: "were cancelled",
    MessageState.UNKNOWN: "may not have been taken",
    MessageState.FAILED: "could not be delivered",
    MessageState.CONFIRMED: "were taken by a turn that failed",
}
#: whose arguments are one message's own matter: a note counts them all
_EACH_ITS_OWN = frozenset({Reason.CONFIRM, Reason.PAUSED})
_BURST = timedelta(seconds=30)  #: from a note about what is over: what follows for the same reason joins it
_MOST = 100  #: of messages that a note's buttons are about
_LONGEST_TARGET = 1_900  #: characters of a button's value; Slack takes 2,000


@dataclass(frozen=True)
class Told:
    """A note about messages that met the same fate in the same thread, as it stands after its latest edit."""

    id: str  #: of the post that made it
    first: str  #: the id of its first message
    stand: NoteStand
    messages: tuple[str, ...]  #: their ids; no longer all of them where they are many

    @property
    def count(self) -> int:
        """How many messages it tells of."""
        return self.stand.count

    @property
    def target(self) -> str:
        """What its buttons are about; "" where there is no room for all of them."""
        joined = " ".join(self.messages)
        return joined if len(self.messages) == self.count and len(joined) <= _LONGEST_TARGET else ""

    def edited(self, messages: tuple[str, ...], count: int) -> Told:
        """Return its next edit, about so many messages; `messages`: the ids that are known of them."""
        return replace(self, stand=replace(self.stand, edits=self.stand.edits + 1, count=count), messages=messages)


def note_for(system: System, row: InboxRow, state: MessageState, because: Because, remedy: str) -> NewPost | None:
    """Return the note to the sender of a row that is in that state now; None for one whose sender is told otherwise.

    One note for what waits in a thread for the same reason, and for what went no further there within half a minute:
    each further message is an edit that counts it, none where it was counted. Part of the open transaction.
    """
    message, address, why = row.message, told_in(system, row), _for_all(because)
    if address is None or (message.address is None and state is MessageState.QUEUED):
        return None
    of_chat = chat_of(system.settings, row) is not None
    group = _group(message.uid, address, state, why, of_chat=of_chat)
    before = _open(system, group, message.id, state)
    if before is not None and message.id in before.messages:
        return None
    if before is not None:
        told = before.edited((*before.messages, message.id)[:_MOST], before.count + 1)
    else:
        told = _begun(message.id, group, int(system.clock.now().timestamp() * 1_000_000))
    if state in (MessageState.QUEUED, MessageState.UNKNOWN):
        from core.ports import NoteWait

        doubtful = state is MessageState.UNKNOWN
        system.outbox.note_wait(told.id, NoteWait(message.id, why, remedy, doubtful=doubtful))
    return post_of(message, address, told, *words_of(system, row, state, why, remedy, told))


def told_in(system: System, row: InboxRow) -> ReplyAddress | None:
    """Return where its sender is told of a row: in the thread that it came from.

    A command, of a chat or of any other surface, is answered once, that its message waits or stands in the harness's
    own queue among it; what becomes of it then is told in the thread of its session, if that has one. None for what
    nobody said: a tick, a notice, a boot prompt. Raises StoreBroken.
    """
    message = row.message
    kind = chat_of(system.settings, row) or (CHANNEL if message.kind is Kind.SAY else None)
    if message.address is not None or kind is None:
        return message.address
    bound = system.bindings.of_session(message.uid, kind)
    return None if bound is None else ReplyAddress(kind, bound.team, bound.channel, bound.thread, "")


def _for_all(because: Because) -> Because:
    """Return the reason as a note tells it: how many were ahead of one message is not told of the next."""
    return Because(Reason.PAUSED, {"ahead": 0}) if because.reason is Reason.PAUSED else because


def _group(uid: str, address: ReplyAddress, state: MessageState, because: Because, *, of_chat: bool) -> str:
    """Return what those have in common that one note tells of. Those of no chat have notes with other buttons."""
    way = "reply" if of_chat else "command"
    shared = because.code if because.reason in _EACH_ITS_OWN else f"{because.code} {because.given}"
    return f"{uid} {address.channel} {address.thread} {way} {state.value} {shared}"


def _begun(first: str, group: str, at: int) -> Told:
    import hashlib  # loads OpenSSL

    from core.ports import NoteStand

    short = hashlib.sha256(group.encode()).hexdigest()[:8]  # it may be told of otherwise at the very same moment
    return Told(f"p-note-{first}-{short}-{at}", first, NoteStand(group, at, 0, 1), (first,))


def latest_of(system: System, group: str) -> Told | None:
    """Return the group's latest note, as it stands after its latest edit. Raises StoreBroken."""
    found = system.outbox.latest_note(group)
    if found is None or found.note is None:
        return None
    messages = tuple(dict.fromkeys(one for button in found.buttons for one in button.target.split()))
    return Told(found.edits or found.id, found.about, found.note, messages or (found.about,))


def _open(system: System, group: str, message_id: str, state: MessageState) -> Told | None:
    """Return the note that a message joins: one of its messages still waits, or it is no half minute old."""
    told = latest_of(system, group)
    if told is None:
        return None
    if state is MessageState.QUEUED:
        waiting = [wait.message for wait in system.outbox.waits_in(told.id) if not wait.ended]
        still = system.inbox.still(waiting, state)
        messages = tuple(one for one in waiting if one in still or one == message_id)
        stand = replace(told.stand, count=len(messages))
        return replace(told, stand=stand, messages=messages) if messages else None
    began = datetime.fromtimestamp(told.stand.start / 1_000_000, UTC)
    return told if system.clock.now() - began <= _BURST else None


def words_of(
    system: System, row: InboxRow, state: MessageState, because: Because, remedy: str, told: Told
) -> tuple[str, tuple[Button, ...]]:
    """Return the note's text and buttons, about the row or as many as it tells of."""
    message, reason = row.message, because.reason
    if told.count == 1:
        sentence = f"{subject_of(message)} {_what_and_why(_WHAT[state], because)}."
    else:
        if because.reason is Reason.CONFIRM:
            because, remedy = Because(Reason.CONFIRM_ALL), text(Remedy.LISTED, name=message.name)
        sentence = f"{told.count} messages to `{message.name}` {_what_and_why(_MANY[state], because)}."
    shown = f"{sentence} To do: {remedy}" if remedy else sentence
    of_chat = chat_of(system.settings, row) is not None
    buttons = buttons_of(told.target, told.first, told.count, state, reason)
    return shown, tuple(button for button in buttons if of_chat or button.press not in _AS_AUTHOR)


def _what_and_why(what: str, because: Because) -> str:
    """Return both in one sentence, no word of it twice: "was cancelled by cli:ann"."""
    if because.reason is Reason.CANCELLED_BY:
        return f"{what} by {because.args['actor']}"
    return f"{what}: {because.text}"


def subject_of(message: NewMessage) -> str:
    """Return what a note calls one message, to whoever reads the thread."""
    if message.address is None:
        return f"{message.who}'s message to `{message.name}`, sent by a command,"
    return f"Your message to `{message.name}`"


def post_of(
    message: NewMessage, address: ReplyAddress, told: Told, text: str, buttons: tuple[Button, ...] = ()
) -> NewPost:
    """Return the post of a note, or its next edit."""
    from core.ports import NewPost, OutboundKind

    post_id = f"{told.id}-{told.stand.edits}" if told.stand.edits else told.id
    return NewPost(
        id=post_id,
        key=f"note:{post_id}",
        kind=OutboundKind.NOTE,
        uid=message.uid,
        name=message.name,
        channel_kind=address.channel_kind,
        text=text,
        channel=address.channel,
        thread=address.thread,
        buttons=buttons,
        edits=told.id if told.stand.edits else "",
        about=told.first,
        note=told.stand,
    )


def buttons_of(target: str, first: str, count: int, state: MessageState, reason: Reason) -> tuple[Button, ...]:
    """Return what a person can do about the messages. Each is looked at again when a button is pressed.

    `target`: their ids; "" where they are too many, and only what is no single message's matter is offered.
    """
    every = " all" if count > 1 else ""
    cancel, again = (
        Button(Press.CANCEL, target, f"Cancel{every}"),
        Button(Press.SEND_AGAIN, target, f"Send{every} again"),
    )
    offered: tuple[Button, ...] = ()
    if state is MessageState.QUEUED:
        if reason is Reason.CONFIRM:
            offered = (Button(Press.CONFIRM, target, f"Send {'all' if every else 'it'}", style="primary"), cancel)
        elif reason is Reason.BUSY:
            offered = (cancel, Button(Press.INTERRUPT, target or first, "Interrupt the turn", style="danger"))
        else:
            offered = (cancel,)
    elif state is MessageState.REFUSED and reason in STARTABLE:
        both = Button(Press.START_AND_SEND, target, f"Start and send{every}", style="primary")
        offered = (again, Button(Press.START, target or first, "Start"), both)
    elif state in AGAIN or state is MessageState.CONFIRMED:
        offered = (again,)
    return tuple(button for button in offered if button.target)
