"""What a message's sender is told in the thread that it came from: one note for all messages that share a reason.

A note about messages that wait or are in doubt is edited once that is no longer true, or left out if it was not posted
yet. This uses only what is stored, so nothing is missed or doubled, whenever a process was killed. Only the thread that
posts may do it: what it leaves out, it has not sent.

Also here: the commands that are named where a post cannot have buttons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from core.base.values import dataclass, replace
from core.model.asking import Button, Press
from core.model.message import IN_FLIGHT, WAITING, InboxRow, Kind, MessageState, NewMessage, ReplyAddress
from core.model.posts import (
    ANEW,
    BACK,
    IN_QUEUE,
    MOVED,
    NewPost,
    NoteStand,
    NoteWait,
    OutboundKind,
    OutboxRow,
    PostState,
)
from core.model.reasons import Because, Reason, Remedy
from core.model.texts import text
from core.session.sessions import Unforeseen, apart, chat_of
from core.session.system import System

if TYPE_CHECKING:
    from core.config.settings import Settings
    from core.store.outbox import Outbox
    from core.store.sessions import Bindings


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
    MessageState.UNKNOWN: "was delivered",  # of which it is said that nobody knows it
    MessageState.FAILED: "could not be delivered",
    MessageState.CONFIRMED: "was taken by a turn that failed",  # of any other nothing is said
}


_MANY = {
    MessageState.QUEUED: "are waiting",
    MessageState.REFUSED: "were not delivered",
    MessageState.EXPIRED: "expired",
    MessageState.CANCELLED: "were cancelled",
    MessageState.UNKNOWN: "were delivered",
    MessageState.FAILED: "could not be delivered",
    MessageState.CONFIRMED: "were taken by a turn that failed",
}
#: whose arguments are one message's own matter: a note counts them all
_EACH_ITS_OWN = frozenset({Reason.CONFIRM, Reason.PAUSED})
_BURST = timedelta(seconds=30)  #: from a note about what is over: what follows for the same reason joins it
_MOST = 100  #: of messages that a note's buttons are about
_LONGEST_TARGET = 1_900  #: characters of a button's value; a chat takes 2,000


@dataclass(frozen=True)
class NoteState:
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

    def edited(self, messages: tuple[str, ...], count: int) -> NoteState:
        """Return its next edit, about so many messages; `messages`: the ids that are known of them."""
        return replace(self, stand=replace(self.stand, edits=self.stand.edits + 1, count=count), messages=messages)


def note_for(system: System, row: InboxRow, state: MessageState, because: Because, remedy: str) -> NewPost | None:
    """Return the note to the sender of a row that is in that state now; None for one whose sender is told otherwise.

    One note for what waits in a thread for the same reason, and for what went no further there within half a minute:
    each further message is an edit that counts it, none where it was counted. Part of the open transaction.
    """
    message, address, why = row.message, told_in(system.settings, system.bindings, row), _for_all(because)
    if address is None or (message.address is None and state is MessageState.QUEUED):
        return None
    of_chat = chat_of(system.settings, row) is not None
    group = _group(message.uid, address, state, why, of_chat=of_chat)
    before = _open(system, group, message.id, state)
    if before is not None and message.id in before.messages:
        return None
    if before is not None and message.again_of not in before.messages:  # that one came to nothing: it is told anew
        told = before.edited((*before.messages, message.id)[:_MOST], before.count + 1)
    else:
        told = _begun(message.id, group, int(system.clock.now().timestamp() * 1_000_000))
    if state in (MessageState.QUEUED, MessageState.UNKNOWN):
        doubtful = state is MessageState.UNKNOWN
        system.outbox.note_wait(told.id, NoteWait(message.id, why, remedy, doubtful=doubtful))
    return post_of(message, address, told, *words_of(system.settings, row, state, why, remedy, told))


def line_emptied(system: System, uid: str) -> None:
    """See that nobody is asked to send what no longer stands in the session's input line. Raises StoreBroken."""
    why, remedy = Because(Reason.LINE_EMPTIED), text(Remedy.SEND_AGAIN)
    if system.outbox.tell_anew(uid, Reason.AT_TERMINAL, why, remedy):
        system.notify()


def told_in(settings: Settings, bindings: Bindings, row: InboxRow) -> ReplyAddress | None:
    """Return where its sender is told of a row: in the thread that it came from.

    A command, of a chat or of any other surface, is answered once, that its message waits or stands in the harness's
    own queue among it; what becomes of it then is told in the thread of its session, if that has one. None for what
    nobody said: a tick, a notice, a boot prompt. Raises StoreBroken.
    """
    message = row.message
    if message.address is not None or not (message.kind is Kind.SAY or chat_of(settings, row)):
        return message.address
    bound = bindings.of_session(message.uid)
    return None if bound is None else ReplyAddress(bound.channel_kind, bound.team, bound.channel, bound.thread, "")


def _for_all(because: Because) -> Because:
    """Return the reason as a note tells it: how many were ahead of one message is not told of the next."""
    return Because(Reason.PAUSED, {"ahead": 0}) if because.reason is Reason.PAUSED else because


def _group(uid: str, address: ReplyAddress, state: MessageState, because: Because, *, of_chat: bool) -> str:
    """Return what those have in common that one note tells of. Those of no chat have notes with other buttons."""
    way = "reply" if of_chat else "command"
    shared = because.code if because.reason in _EACH_ITS_OWN else f"{because.code} {because.given}"
    return f"{uid} {address.channel} {address.thread} {way} {state.value} {shared}"


def _begun(first: str, group: str, at: int) -> NoteState:
    import hashlib  # loads OpenSSL

    short = hashlib.sha256(group.encode()).hexdigest()[:8]  # it may be told of otherwise at the very same moment
    return NoteState(f"p-note-{first}-{short}-{at}", first, NoteStand(group, at, 0, 1), (first,))


def latest_of(outbox: Outbox, group: str) -> NoteState | None:
    """Return the group's latest note, as it stands after its latest edit. Raises StoreBroken."""
    found = outbox.latest_note(group)
    if found is None or found.note is None:
        return None
    messages = tuple(dict.fromkeys(one for button in found.buttons for one in button.target.split()))
    return NoteState(found.edits or found.id, found.about, found.note, messages or (found.about,))


def _open(system: System, group: str, message_id: str, state: MessageState) -> NoteState | None:
    """Return the note that a message joins: one of its messages still waits, or it is no half minute old."""
    told = latest_of(system.outbox, group)
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
    settings: Settings, row: InboxRow, state: MessageState, because: Because, remedy: str, told: NoteState
) -> tuple[str, tuple[Button, ...]]:
    """Return the note's text and buttons, about the row or as many as it tells of."""
    message, reason = row.message, because.reason
    if told.count == 1:
        sentence = _sentence(subject_of(message), _WHAT[state], state, because)
    else:
        if because.reason is Reason.CONFIRM:
            because, remedy = _of_many(because), text(Remedy.LISTED, name=message.name)
        sentence = _sentence(_many_of(message, told.count), _MANY[state], state, because)
    shown = f"{sentence} To do: {remedy}" if remedy else sentence
    of_chat = chat_of(settings, row) is not None
    buttons = buttons_of(told.target, told.first, told.count, state, reason)
    return shown, tuple(button for button in buttons if of_chat or button.press not in _AS_AUTHOR)


def _sentence(subject: str, what: str, state: MessageState, because: Because) -> str:
    if state is MessageState.UNKNOWN and because.reason in _NOT_IN:
        return f"{subject} did not go in: {because.text}."
    whole = _what_and_why(what, because)
    return f"{_in_doubt(subject, whole) if state is MessageState.UNKNOWN else f'{subject} {whole}'}."


def _in_doubt(subject: str, what: str) -> str:
    within = f"your{subject.removeprefix('Your')}" if subject.startswith("Your ") else subject
    return f"It is not known whether {within} {what}"


def _what_and_why(what: str, because: Because) -> str:
    """Return both in one sentence, no word of it twice: "was cancelled by cli:ann"."""
    if because.reason is Reason.CANCELLED_BY:
        return f"{what} by {because.args['actor']}"
    if because.reason is Reason.CUT_OFF_BY:
        return f"{what.removesuffix('failed')}was cut off by {because.args['what']}"
    return f"{what}: {because.text}"


def subject_of(message: NewMessage) -> str:
    """Return what a note calls one message, to whoever reads the thread."""
    if message.address is None:
        return f"{message.who}'s message to `{message.name}`, sent by a command,"
    return f"Your message to `{message.name}`"


def _many_of(message: NewMessage, count: int) -> str:
    return f"{count} messages to `{message.name}`"


def _of_many(because: Because) -> Because:
    """Return the reason as a note about several tells it: each has its own age."""
    return Because(Reason.CONFIRM_ALL) if because.reason is Reason.CONFIRM else because


def post_of(
    message: NewMessage, address: ReplyAddress, told: NoteState, text: str, buttons: tuple[Button, ...] = ()
) -> NewPost:
    """Return the post of a note, or its next edit."""
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


_OPEN = WAITING | IN_FLIGHT
#: how a message's waiting or doubt ended, as it is stored with its note: never shown, see `_TOLD`
_ELSEWHERE, _FORGOTTEN, _WENT_IN, _ENTERED = "waiting for something else now", "over", "in", "entered"
_NOBODY_KNOWS, _NOT_DELIVERED = "perhaps in, which nobody can tell", "not delivered"
_TAKEN_BACK = "in the input line of the terminal"
_GOES_ON = frozenset({IN_QUEUE, BACK, ANEW})  #: ended as the note told, and followed to its end
_ENDED = {
    MessageState.SUBMITTED: _ENTERED,
    MessageState.CONFIRMED: _WENT_IN,
    MessageState.UNKNOWN: _NOBODY_KNOWS,
    MessageState.REFUSED: _NOT_DELIVERED,
    MessageState.EXPIRED: "expired",
    MessageState.CANCELLED: "cancelled",
    MessageState.FAILED: _NOT_DELIVERED,
}
#: why a message is UNKNOWN of which it is known for now that no turn has it; how its waiting ended by that
_NOT_IN = {Reason.BLOCKED: _NOT_DELIVERED, Reason.AT_TERMINAL: _TAKEN_BACK}
#: what the note says of it: of one message, of several that ended alike, and behind the number of those among others
_TOLD = {
    _WENT_IN: ("was delivered", "were delivered", "delivered"),
    _ENTERED: (
        "was entered; this program cannot prove more",
        "were entered; this program cannot prove more",
        "entered",
    ),
    IN_QUEUE: ("is in the program's queue", "are in the program's queue", "in the program's queue"),
    BACK: (
        "waits again, because the program gave it back",
        "wait again, because the program gave them back",
        "waiting again",
    ),
    _NOBODY_KNOWS: ("was delivered", "were delivered", "possibly delivered"),  # said to be in doubt
    _NOT_DELIVERED: ("was not delivered", "were not delivered", "not delivered"),
    _TAKEN_BACK: (
        "was taken back into the input line of the terminal",
        "were taken back into the input line of the terminal",
        "taken back into the input line of the terminal",
    ),
    "expired": ("expired", "expired", "expired"),
    "cancelled": ("was cancelled", "were cancelled", "cancelled"),
    _FORGOTTEN: ("is no longer kept", "are no longer kept", "no longer kept"),
    _ELSEWHERE: ("now waits for another reason", "now wait for another reason", "waiting for another reason"),
}


def mend_notes(system: System, channel_kind: str) -> None:
    """Bring the chat's notes about what waits up to date. Raises StoreBroken."""
    if not system.outbox.outdated_notes(channel_kind):
        return
    with system.database.transaction(durable=False):
        for note in system.outbox.outdated_notes(channel_kind):  # asked again: a press may have seen to one since
            posted = system.outbox.get(note)
            name = posted.post.name if posted is not None else note
            with suppress(Unforeseen), apart(system.events, name), system.database.transaction(durable=False):
                _mend(system, note, posted)


def _mend(system: System, note: str, posted: OutboxRow | None) -> None:
    waits = []
    for wait in system.outbox.waits_in(note):
        ended = _how(wait, system.inbox.get(wait.message))
        if ended != wait.ended:
            system.outbox.end_wait(note, wait.message, ended)
        waits.append(replace(wait, ended=ended))
    untold = posted is None or posted.state in (PostState.FAILED, PostState.SKIPPED)
    needless = posted is not None and posted.state is PostState.PENDING and all(wait.ended for wait in waits)
    if untold or needless or all(wait.ended and wait.ended not in _GOES_ON for wait in waits):
        system.outbox.forget_waits(note, [wait.message for wait in waits])
    if posted is None or untold:
        return
    if needless:
        system.outbox.advance(posted, PostState.SKIPPED, because=Because(Reason.OVER_BEFORE))
    else:
        _edit(system, posted, waits)


def _how(wait: NoteWait, row: InboxRow | None) -> str:
    """Return how a message's waiting or doubt ended; "" while it waits, is on its way in, or nobody can tell.

    What only a hook has received stands as it did: more is known in a moment.
    """
    if wait.ended == MOVED:
        return _ELSEWHERE
    if wait.ended and wait.ended not in _GOES_ON:
        return wait.ended
    if row is None:
        return _FORGOTTEN
    if row.state is MessageState.ACCEPTED:
        return IN_QUEUE if row.queued_at is not None else wait.ended
    if row.state in _OPEN and not row.final:
        return BACK if wait.ended or wait.doubtful else ""
    if wait.doubtful and row.state is MessageState.UNKNOWN and wait.ended in ("", ANEW):
        return ""
    if row.state is MessageState.UNKNOWN and row.reason in _NOT_IN:
        return _NOT_IN[row.reason]
    return _ENDED[row.state]


def _edit(system: System, posted: OutboxRow, waits: Sequence[NoteWait]) -> None:
    """Commit the note's next edit: about those that still wait, or what became of all."""
    told = latest_of(system.outbox, posted.post.note.group) if posted.post.note is not None else None
    waiting = tuple(wait.message for wait in waits if not wait.ended)
    row = system.inbox.get(waiting[0] if waiting else waits[0].message)
    address = told_in(system.settings, system.bindings, row) if row is not None else None
    if told is None or row is None or address is None:
        return
    told = told.edited(waiting, len(waiting))
    message, wait = row.message, waits[0]
    if waiting:
        state = MessageState.UNKNOWN if wait.doubtful else MessageState.QUEUED
        text, buttons = words_of(system.settings, row, state, wait.because, wait.remedy, told)
        post = post_of(message, address, told, text, buttons)
    else:
        post = post_of(message, address, told, _over(message, waits))
    system.outbox.add([post])


def _told(ended: str) -> tuple[str, str, str]:
    """Return what a note says of it; a word of another release is shown as it is."""
    return _TOLD.get(ended, (f"is {ended}", f"are {ended}", ended))


def _over(message: NewMessage, waits: Sequence[NoteWait]) -> str:
    """Return what is true now, and then what the note said before: that is no longer so."""
    wait, because = waits[0], waits[0].because
    counted = Counter(each.ended for each in waits)
    if len(waits) == 1:
        subject, what = subject_of(message), _told(wait.ended)[0]
    else:
        subject, what, because = _many_of(message, len(waits)), _told(wait.ended)[1], _of_many(because)
    if len(counted) > 1:
        now = f"{subject}: {', '.join(f'{number} {_told(ended)[2]}' for ended, number in counted.items())}"
    else:
        now = _in_doubt(subject, what) if wait.ended == _NOBODY_KNOWS else f"{subject} {what}"
    return f"{now}. {earlier(because)}"


def earlier(because: Because) -> str:
    """Return the last sentence of a note that is over: the reason that it gave, which is no longer true."""
    return f"Earlier this note said: {because.text}."


def attach_of(name: str) -> str:
    """Return the command by which a person answers at a session's terminal."""
    return f"`the-loop standing attach {name} --write`"


def without_buttons(post: NewPost, exact: Callable[[str], str], *, replies: bool) -> NewPost:
    """Return a post without its buttons and with a line that says how to do what they would have done.

    What the text says already is not said again; the options of a question stand in it. `exact` makes commands such
    that they can be typed; `replies` tells whether what is written in the thread is read.
    """
    found = dict.fromkeys(exact(way) for button in post.buttons for way in _ways(button, post.name, replies))
    ways = [way for way in found if "`" not in way or way[way.index("`") :] not in post.text]
    told = f"\nThere are no buttons here. {'; '.join(ways)}." if ways else ""
    return replace(post, buttons=(), text=post.text + told)


def _ways(button: Button, name: str, replies: bool) -> Iterator[str]:
    match button.press:
        case Press.ALLOW | Press.DENY | Press.REMEMBER | Press.CHOOSE:
            yield f"Answer it at its terminal: {attach_of(name)}"
        case Press.CANCEL | Press.CONFIRM if " " in button.target:
            yield f"One by one: `the-loop standing queue {name}` lists them"
        case Press.CANCEL:
            yield f"To cancel it: `the-loop standing cancel {button.target}`"
        case Press.CONFIRM:
            yield f"To send it: `the-loop standing confirm {button.target}`"
        case Press.INTERRUPT:
            yield f"To end the turn: `the-loop standing interrupt {name}`"
        case Press.START | Press.START_AND_SEND:
            yield f"To start it: `the-loop standing start {name}`"
        case Press.SCREEN:
            yield f"To look at its terminal: `the-loop standing screen {name}`"
        case Press.RESUME:
            yield f"To resume it: `the-loop standing resume {name}`"
        case Press.BRING_UP:
            yield f"To start it: `the-loop standing start {name}`"
        case Press.STOP_LOOP:
            yield f"To stop the loop: `the-loop loop stop {button.target}`"
        case Press.OPTION | Press.SEND_AGAIN:
            pass
        case Press.STOP | Press.RESTART | Press.ANEW | Press.STATUS | Press.PAUSE | Press.BREAK:
            pass  # offered besides: what the post is about does not ask for it
    if button.press in (Press.SEND_AGAIN, Press.START_AND_SEND):
        say = f"`the-loop standing say {name} --text TEXT`"
        yield "To send it again: write it here again" if replies else f"To send it again: {say}"
