"""Make a reply in a chat a committed inbox row. Each check is a function, and their order is part of the security.

A reply that fails a check leaves ids and a reason in the event log, never its text. A reply that passes is on the disk
when `receive` returns. The gate decides at delivery, where the allow-list is checked again.

Also here: a reply that answers an open question (it is not typed into the pane), what a refused sender is told (to them
alone, once a day), events about refused commands and presses, edits and deletions (they change only what still waits;
what was typed stays typed, and the sender is told so once), and a channel that was shared or unshared since a session
was announced there (its thread is not read until a person announces the session again). A standing session has no
ticket, so no copy of a reply is kept elsewhere yet.
"""

import logging
import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from core.base.errors import InvalidValue, RecordUnreadable, UnknownSession
from core.base.names import new_marker, new_message_id, standing_ref
from core.base.values import dataclass, replace
from core.config.settings import Settings
from core.delivery.permission_requests import Requests
from core.model.asking import Request, Role, understand
from core.model.channel import IncomingChange, IncomingPress, IncomingReply, Mirror, Verdict
from core.model.framing import clean, defused
from core.model.message import DELIVERED, IN_FLIGHT, WAITING, InboxRow, Kind, MessageState, NewMessage, ReplyAddress
from core.model.posts import NewPost, OutboundKind
from core.model.reasons import Because, Reason, Remedy
from core.model.session import Binding, SessionRecord
from core.model.texts import text
from core.session.notes import note_for
from core.session.sessions import Author, Authorized, definition_of, may_steer
from core.session.system import System
from core.store.eventlog import EventLog, Fields
from core.store.inbox import Inbox
from core.store.outbox import Outbox
from core.store.records import Records
from core.store.sessions import Bindings

_STALE = timedelta(days=1)
_TIME_STAMP = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,6})?", re.ASCII)


def note_of(
    reply: IncomingReply, binding: Binding, authorized: Callable[[str], bool], written: datetime, now: datetime
) -> NewPost | None:
    """Return the note with the id by which they can be listed; None for nobody who could be, and for what is days old.

    `authorized` is the channel's own list. Nothing of the reply but its author and place goes into the note.
    """
    member = reply.author.rpartition(":")[2]
    if not member or not (reply.author_team or reply.unlisted) or written < now - _STALE:
        return None
    once = f"{reply.channel_kind}:{reply.author_team}:{member}:{now.astimezone(UTC):%Y-%m-%d}"
    text = (
        f"Your reply did not reach `{binding.name}`, and nothing of it is kept: you are not on the list of people "
        f"who may steer it. {_identified(reply, member)}. To do: ask the operator of the-loop to add this id to "
        f"{_list_of(reply, binding, authorized)}; then reply again."
    )
    return _beside(reply, binding, "unlisted", once, text, only_for=member)


def _beside(reply: IncomingReply, binding: Binding, what: str, once: str, text: str, *, only_for: str = "") -> NewPost:
    """Return the note in a reply's thread that tells of it; of those of one `what`, each `once` is told one time."""
    return NewPost(
        id=f"p-{what}-{new_message_id()}",
        key=f"{what}:{once}",
        kind=OutboundKind.WHISPER if only_for else OutboundKind.NOTE,
        uid=binding.uid,
        name=binding.name,
        channel_kind=reply.channel_kind,
        text=text,
        channel=reply.channel,
        thread=reply.thread,
        only_for=only_for,
    )


def _identified(reply: IncomingReply, member: str) -> str:
    """Return the id as a list names it: outsiders and guests with the team before it. Who is a guest is not known."""
    with_team = f"{reply.author_team or 'T…'}:{member}"
    if reply.author == with_team or reply.author_team not in ("", reply.team):
        return f"Your member id is `{with_team}`"
    other = "a guest" if reply.author_team else "a guest or of another organization, with your team's id"
    return f"Your member id is `{member}` (if you are {other}: `{with_team}`)"


def _list_of(reply: IncomingReply, binding: Binding, authorized: Callable[[str], bool]) -> str:
    if authorized(reply.author):
        return f"`{reply.channel_kind}.authorizedUsers` of `{binding.name}`"
    return f"`channels.{reply.channel_kind}.authorizedUsers`"


SHARING = "sharing-changed"


def has_changed(binding: Binding, shared: bool | None) -> bool:
    """Return whether the channel is shared otherwise than at first sight; what nobody knows is no change."""
    return shared is not None and binding.shared is not None and shared is not binding.shared


def close_thread(outbox: Outbox, bindings: Bindings, events: EventLog, binding: Binding, *, shared: bool) -> None:
    """Unbind the thread, and tell it. Part of the open transaction. Done again it finds nothing. Raises StoreBroken."""
    if bindings.of_session(binding.uid, binding.channel_kind) != binding:
        return
    bindings.unbind(binding.uid, binding.channel_kind)
    outbox.add([_note(binding, shared)])
    events.emit(
        "channel.unbound",
        level="warning",
        name=binding.name,
        channel=binding.channel,
        thread=binding.thread,
        reason=SHARING,
    )


def _note(binding: Binding, shared: bool) -> NewPost:
    what = "was shared" if shared else "stopped being shared"
    return NewPost(
        id=f"p-sharing-{binding.uid}-{binding.thread}",
        key=f"sharing:{binding.uid}:{binding.thread}",
        kind=OutboundKind.NOTE,
        uid=binding.uid,
        name=binding.name,
        channel_kind=binding.channel_kind,
        text=f"This channel {what} with another organization after `{binding.name}` was announced. Replies here reach "
        f"nobody. To do: open a new thread: `the-loop standing announce {binding.name}`",
        channel=binding.channel,
        thread=binding.thread,
    )


_LOG = logging.getLogger(__name__)
SHAPES = frozenset({"plain", "file_share", "thread_broadcast", "me_message"})

UNMAPPED = "unmapped"
SELF_AUTHORED = "self-authored"
UNAUTHORIZED = "unauthorized-actor"
BAD_SHAPE = "shape"
EMPTY = "empty"
FULL = "queue-full"
GONE = "no-session"
REFUSED_BEFORE = "refused-before"
ASIDE = "aside"
BEFORE_LOSS = "before-loss"


@dataclass(frozen=True)
class Dropped:
    """A reply that goes no further. `silent`: too common to be worth a line, so it is counted.

    `again`: nobody can tell now whether it may go on, so that it has to come again.
    """

    reason: str
    silent: bool = False
    again: bool = False


@dataclass(frozen=True)
class Passed:
    """A reply that may steer the session."""

    reply: IncomingReply
    record: SessionRecord
    text: str
    binding: Binding


@dataclass(frozen=True)
class Taken:
    """What became of a batch. `tell` writes it to the event log, for whoever has something to do before that."""

    verdicts: tuple[Verdict | None, ...]  #: None: it was not taken, and has to come again
    uids: frozenset[str]  #: of the sessions that something new waits for
    tell: Callable[[], None]


class Inbound:
    """The pipeline of one channel. `authorized` is the channel's allow-list, by member id; an empty one denies all."""

    def __init__(self, system: System, authorized: Authorized, mirror: Mirror) -> None:
        self._system = system
        self._authorized = authorized
        self._mirror = mirror
        self.counters: Counter[str] = Counter()

    def receive(self, replies: Sequence[IncomingReply]) -> tuple[Verdict | None, ...]:
        """Take a batch, durably, and tell of it. Raises StoreBroken."""
        taken = self.take(replies)
        self._system.database.sync()
        taken.tell()
        return taken.verdicts

    def take(self, replies: Sequence[IncomingReply]) -> Taken:
        """Run the pipeline over a batch; what passes is committed in one transaction. Raises StoreBroken.

        It is durable once the database has been synced: nobody may be told before that it has arrived.
        """
        with self._system.database.transaction_to_sync():
            judged = [self._judge(reply) for reply in replies]
            results = [self._commit(verdict) if isinstance(verdict, Passed) else verdict for verdict in judged]
            for reply, verdict in zip(replies, judged, strict=True):
                self._keep_refusal(reply, verdict)
        new = (passed for passed, result in zip(judged, results, strict=True) if result is True)

        def tell() -> None:
            for reply, verdict, result in zip(replies, judged, results, strict=True):
                self._told(reply, verdict, result)

        return Taken(
            verdicts=tuple(_word(result) for result in results),
            uids=frozenset(passed.record.uid for passed in new if isinstance(passed, Passed)),
            tell=tell,
        )

    def add(self, passed: Passed) -> None:
        """Commit a message that another door has judged. Part of the open transaction. Raises StoreBroken."""
        self._commit(passed)

    # ------------------------------------------------------------ the steps, in order

    def _judge(self, reply: IncomingReply) -> Passed | Dropped:
        refused = check_shape(reply)
        if refused is not None:
            return refused
        binding = self._system.bindings.of_thread(reply.channel_kind, reply.team, reply.channel, reply.thread)
        if binding is None:
            return Dropped(UNMAPPED, silent=True)
        if is_aside(reply, self._prefix(reply)) and not (reply.is_self or reply.is_bot):
            return Dropped(ASIDE, silent=True)
        refused = check_author(reply) or check_age(reply, binding) or self._check_past(reply) or check_team(reply)
        if refused is None and not self._may_steer(reply, binding):
            refused = Dropped(UNAUTHORIZED)
        return refused or check_sharing(reply, binding) or self._read(reply, binding)

    def _may_steer(self, reply: IncomingReply, binding: Binding) -> bool:
        system, author = self._system, Author(reply.channel_kind, reply.author)
        return may_steer(system.settings, system.records, self._authorized, binding.name, author)

    def _prefix(self, reply: IncomingReply) -> str:
        return self._system.settings.channel(reply.channel_kind).aside

    def _check_past(self, reply: IncomingReply) -> Dropped | None:
        """Refuse what was refused before: whoever was let in since then says it again; no sweep says it for them."""
        refused = self._system.bindings.was_refused(reply_key(reply))
        return Dropped(REFUSED_BEFORE, silent=True) if refused else None

    def _read(self, reply: IncomingReply, binding: Binding) -> Passed | Dropped:
        record = self._record(binding)
        if isinstance(record, Dropped):
            return record
        try:
            return Passed(reply, record, text_of(reply), binding)
        except InvalidValue:
            return Passed(reply, record, "", binding) if reply.files else Dropped(EMPTY)

    def _record(self, binding: Binding) -> SessionRecord | Dropped:
        """Return the record of a bound thread's session. A deletion takes the binding away before the record.

        So one that is not there, or cannot be read, is missing for a moment, and nobody knows for how long.
        """
        try:
            record = self._system.records.read(binding.name)
            reason = "there is no record of it; put it back, or the folder that it was in"
        except RecordUnreadable as error:
            record, reason = None, str(error)
        if record is None:
            extra = {"session": binding.name, "reason": reason}
            _LOG.warning("a reply is not taken, and has to come again", extra=extra)
            return Dropped(GONE, again=True)
        return record if record.uid == binding.uid else Dropped(GONE)

    def _commit(self, passed: Passed) -> bool | Dropped:
        """Add the row and tell whether it was new; one too many is refused, with a note, in the same transaction."""
        message = message_of(passed, self._system.clock.now())
        if not self._system.inbox.add([message])[0]:
            return False
        limit = self._system.settings.limits.queued_per_session
        fits = not is_full(self._system.inbox, message, limit, itself=1)
        if fits:
            self._note_sharing(passed)
            if not (passed.reply.files or passed.reply.confirm):
                return True
        row = self._system.inbox.get(message.id)
        if row is None:
            return True
        if fits:
            self._make_wait(row, passed.reply)
            return True
        why = full(limit)
        self._system.inbox.advance(row, MessageState.REFUSED, why)
        note = note_for(self._system, row, MessageState.REFUSED, why, text(Remedy.SEND_AGAIN_THEN))
        if note is not None:
            self._system.outbox.add([note])
        return Dropped(FULL)

    def _note_sharing(self, passed: Passed) -> None:
        """Keep whether others are in the channel, where that was not known yet."""
        if passed.reply.shared is not None and passed.binding.shared is None:
            self._system.bindings.note_sharing(passed.binding, passed.reply.shared)

    def _make_wait(self, row: InboxRow, reply: IncomingReply) -> None:
        """Let a message wait for its files, or for a person's word where it comes late; note what is to be known."""
        if reply.files:
            self._system.inbox.add_files(row.message.id, reply.files)
        if reply.confirm:
            why = Because(Reason.CONFIRM, {"late": reply.confirm})
            moved = self._system.inbox.advance(row, MessageState.QUEUED, why)
            remedy = text(Remedy.CONFIRM, message=row.message.id)
            note = note_for(self._system, moved, MessageState.QUEUED, why, remedy)
            self._system.outbox.add([note] if note else [])
        elif reply.files:
            self._system.inbox.advance(row, MessageState.QUEUED, Because(Reason.FETCHING))

    def _keep_refusal(self, reply: IncomingReply, verdict: Passed | Dropped) -> None:
        """Remember a refused author's reply by its key, and close the thread of a channel whose sharing has changed.

        An author whose team is not known is no refusal for good: a sweep may know more. Who is on no list, and who sent
        nothing that could be read, is told.
        """
        if not isinstance(verdict, Dropped) or verdict.reason not in (UNAUTHORIZED, SHARING, EMPTY, ASIDE):
            return
        binding = self._system.bindings.of_thread(reply.channel_kind, reply.team, reply.channel, reply.thread)
        if binding is None:
            return
        if verdict.reason == SHARING:
            close_thread(
                self._system.outbox, self._system.bindings, self._system.events, binding, shared=bool(reply.shared)
            )
        elif verdict.reason == EMPTY:
            self._system.outbox.add([_empty_note(reply, binding)])
        elif verdict.reason == ASIDE:
            self._tell_aside(reply, binding)
        else:
            if reply.author_team:
                self._system.bindings.refuse(reply_key(reply), reply.channel, reply.thread, reply.ts)
            now = self._system.clock.now()
            written = datetime.fromtimestamp(order_of(reply.ts, now) / 1_000_000, UTC)
            note = note_of(reply, binding, self._authorized, written, now)
            self._system.outbox.add([note] if note else [])

    def _tell_aside(self, reply: IncomingReply, binding: Binding) -> None:
        """Tell somebody who may steer, alone and once a session, that what they wrote was taken for a note."""
        now = self._system.clock.now()
        old = datetime.fromtimestamp(order_of(reply.ts, now) / 1_000_000, UTC) < now - _STALE
        if old or check_team(reply) or not self._may_steer(reply, binding):
            return
        if self._system.inbox.of_key(reply_key(reply)) is None:  # else it was a message, and was edited since
            self._system.outbox.add([_aside_note(reply, binding, self._prefix(reply))])

    # ------------------------------------------------------------ what is told

    def _told(self, reply: IncomingReply, verdict: Passed | Dropped, taken: bool | Dropped) -> None:
        if isinstance(taken, Dropped):
            if not taken.again:
                self._drop(reply, taken)
        elif taken and isinstance(verdict, Passed):
            self._system.events.emit_all([_received(verdict), self._copied(verdict)])

    def _drop(self, reply: IncomingReply, refused: Dropped) -> None:
        self.counters[refused.reason] += 1
        if not refused.silent:
            said: Fields = {
                "level": "info" if refused.reason == SELF_AUTHORED else "warning",
                "actor": f"{reply.channel_kind}:{reply.author}",
                "reason": refused.reason,
                **_place(reply),
            }
            self._system.events.emit("channel.dropped", **said)

    def _copied(self, passed: Passed) -> tuple[str, Fields]:
        """Mirror the reply; a standing session has no ticket, and the event log is its paper trail."""
        name = passed.record.name
        if self._mirror.copy(standing_ref(name), passed.text):
            return "channel.mirrored", {"name": name, **_place(passed.reply)}
        return "channel.mirror_skipped", {"name": name, "reason": "standing-session", **_place(passed.reply)}


def _empty_note(reply: IncomingReply, binding: Binding) -> NewPost:
    text = (
        f"Your message contains nothing that could be read as text, so `{binding.name}` did not get it. "
        "To do: write it in words, or attach it as a file."
    )
    return _beside(reply, binding, "empty", reply_key(reply), text)


def _aside_note(reply: IncomingReply, binding: Binding, prefix: str) -> NewPost:
    member = reply.author.rpartition(":")[2]
    why = "it begins with a mention of somebody else" if reply.to_others else f"it begins with `{prefix}`"
    text = (
        f"Your message is a note to colleagues, because {why}: `{binding.name}` does not get it, and nothing of "
        "it is kept. If the agent should get it, edit it so that it begins in another way. (This is said once.)"
    )
    return _beside(reply, binding, "aside", f"{reply.channel_kind}:{binding.uid}:{member}", text, only_for=member)


def _received(passed: Passed) -> tuple[str, Fields]:
    return "channel.reply_received", {
        "name": passed.record.name,
        "actor": f"{passed.reply.channel_kind}:{passed.reply.author}",
        "generation": passed.record.generation,
        "text": passed.text,
        **_place(passed.reply),
    }


def _place(reply: IncomingReply) -> Fields:
    return {"message": reply.ts, "channel": reply.channel, "thread": reply.thread}


def _word(taken: bool | Dropped) -> Verdict | None:
    if isinstance(taken, Dropped):
        return None if taken.again else Verdict.DROPPED
    return Verdict.COMMITTED if taken else Verdict.DUPLICATE


def check_shape(reply: IncomingReply) -> Dropped | None:
    """Refuse what is no message of a person in a thread: edits, deletions, joins, and roots."""
    if reply.shape not in SHAPES:
        return Dropped(BAD_SHAPE, silent=True)
    return Dropped(UNMAPPED, silent=True) if not reply.thread or reply.thread == reply.ts else None


def is_aside(reply: IncomingReply, prefix: str) -> bool:
    """Return whether a reply is a note to colleagues, by its beginning: the prefix, or a mention of somebody else."""
    return reply.to_others or bool(prefix and reply.text.lstrip().startswith(prefix))


def check_author(reply: IncomingReply) -> Dropped | None:
    """Refuse what we or another bot wrote: an answer must never come back as an instruction."""
    return Dropped(SELF_AUTHORED) if reply.is_self or reply.is_bot else None


def check_age(reply: IncomingReply, binding: Binding) -> Dropped | None:
    """Refuse what stood in the thread when it was taken back: a database that is lost may have known it as taken."""
    if not binding.begins:
        return None
    past = order_of(reply.ts, binding.created_at) <= order_of(binding.begins, binding.created_at)
    return Dropped(BEFORE_LOSS, silent=True) if past else None


def check_team(reply: IncomingReply) -> Dropped | None:
    """Refuse members of another team, unless the channel names them with it (`T9:U1`), and whose team is not known."""
    outsider = reply.author_team != reply.team and not reply.author.startswith(f"{reply.author_team}:")
    return Dropped(UNAUTHORIZED) if not reply.author_team or outsider else None


def check_sharing(reply: IncomingReply, binding: Binding) -> Dropped | None:
    """Refuse replies of a channel that was shared with others, or no more, since the session was announced there."""
    return Dropped(SHARING) if has_changed(binding, reply.shared) else None


def reply_key(reply: IncomingReply) -> str:
    """Return what makes a second sight of the reply a no-op: `<chat>:<team>:<channel>:<ts>`, and its piece's name."""
    return ":".join(filter(None, (reply.channel_kind, reply.team, reply.channel, reply.ts, reply.piece)))


def is_full(inbox: Inbox, message: NewMessage, limit: int, itself: int = 0) -> bool:
    """Return whether so many messages wait for the session, or its queue is closed for the message's thread.

    `itself` is 1 where the message is among those that wait. Where one of a thread was refused, what follows there is
    refused, too, until all that waited before it has gone in: else the session would be told the end of what its person
    has to say without the middle.
    """
    others = inbox.waiting(message.uid) - itself
    if others >= limit:
        return True
    return others > 0 and message.address is not None and inbox.is_closed(message.uid, message.address)


def full(limit: int) -> Because:
    """Return why a message of a thread finds no place; the same for all of them, so that one note counts them."""
    return Because(Reason.QUEUE_FULL, {"limit": limit})


def text_of(reply: IncomingReply) -> str:
    """Return what the agent gets of a reply: its author's words, then what it quotes. Raises InvalidValue for none."""
    return clean("\n".join(filter(None, (reply.text, reply.quoted)))).text


def message_of(passed: Passed, now: datetime) -> NewMessage:
    """Return the row of a reply; its order is that of its own time stamp."""
    reply, record = passed.reply, passed.record
    return NewMessage(
        id=new_message_id(),
        key=reply_key(reply),
        uid=record.uid,
        name=record.name,
        generation=record.generation,
        kind=Kind.REPLY,
        actor=f"{reply.channel_kind}:{reply.author}",
        who=reply.author_name or reply.author,
        via=reply.channel_kind,
        marker=new_marker(),
        text=passed.text,
        raw=False,
        order_us=order_of(reply.ts, now),
        created_at=now,
        address=ReplyAddress(reply.channel_kind, reply.team, reply.channel, reply.thread, reply.ts),
    )


def order_of(ts: str, now: datetime) -> int:
    """Return a time stamp (`1712.000200`, seconds) as microseconds; one that is no number counts as now."""
    if not _TIME_STAMP.fullmatch(ts):
        return int(now.astimezone(UTC).timestamp() * 1_000_000)
    return int(Decimal(ts) * 1_000_000)


Holds = Callable[[str, Role], bool]


class TypedAnswers:
    """Takes replies as answers. Works under the session's lock, held by whoever delivers."""

    def __init__(self, system: System, holds: Holds, requests: Requests) -> None:
        self._system = system
        self._holds = holds
        self._requests = requests

    def take(self, rows: Sequence[InboxRow]) -> InboxRow | None:
        """Answer the oldest open question with the first reply that was written after it was asked, and return that.

        The reply is confirmed and the request answered in one transaction. None where nothing answers: no reply is
        newer than the question, its author is no approver, or nobody would get the answer now.
        """
        if not rows:
            return None
        for request in self._system.requests.open(rows[0].message.uid):
            row = next((row for row in rows if self._answers(row, request)), None)
            if row is None or not request.answerable_by_typing or not self._requests.waits(request):
                continue
            if not self._requests.overtaken(request):
                return self._taken(row, request)
        return None

    def _answers(self, row: InboxRow, request: Request) -> bool:
        message = row.message
        if row.state not in WAITING or message.kind is not Kind.REPLY or message.address is None:
            return False
        if message.order_us < int(request.asked_at.timestamp() * 1_000_000):
            return False
        kind = message.address.channel_kind
        author = Author(kind, message.actor.removeprefix(f"{kind}:"))
        settings, records = self._system.settings, self._system.records
        return may_steer(settings, records, lambda one: self._holds(one, Role.APPROVER), message.name, author)

    def _taken(self, row: InboxRow, request: Request) -> InboxRow | None:
        question = request.pending
        if question is None:
            return None
        message, text = row.message, understand(question, defused(row.message.text))
        with self._system.database.transaction(durable=True):
            moved = self._requests.answer(request, message.who, message.actor, text=text)
            if moved is None:
                return None
            taken = self._system.inbox.advance(row, MessageState.CONFIRMED, Because(Reason.ANSWERED))
        self._requests.wake()
        self._system.notify()
        return taken


def tell_refused(
    system: System, channel_kind: str, author: str, what: str, *, name: str = "", press: IncomingPress | None = None
) -> None:
    """Report who was refused what: a verb, or a button's action.

    `name` is told where a session is called so: anything else is just a word that somebody typed.
    """
    system.events.emit(
        "channel.dropped",
        level="warning",
        name=_known(system.settings, system.records, name),
        actor=f"{channel_kind}:{author}",
        reason=UNAUTHORIZED,
        detail=what,
        message=press.ts if press else None,
        channel=press.channel if press else None,
        thread=press.thread if press else None,
    )


def _known(settings: Settings, records: Records, name: str) -> str | None:
    try:
        return definition_of(settings, records, name).name if name else None
    except (InvalidValue, UnknownSession):
        return None


class NullMirror:
    """The Mirror of a product without a ticket system."""

    def copy(self, ref: str, text: str) -> bool:
        """Copy nothing: no ref has a ticket."""
        return False


_TYPED = IN_FLIGHT | DELIVERED | {MessageState.UNKNOWN}
LATE_QUOTES = "(what the link in my message before this one leads to)"
_WITHDRAWN = (
    "Your message was withdrawn when you made it a note to colleagues, and the agent does not get it. To do: send it "
    "again as another message"
)
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
        prefix = self._system.settings.channel(reply.channel_kind).aside
        aside = is_aside(reply, prefix)
        row = self._system.inbox.of_key(reply_key(reply))
        if row is None:
            was_aside = change.before is not None and is_aside(change.before, prefix)
            return reply if was_aside and not aside and not change.deleted else None
        if change.deleted:
            later = self._system.inbox.of_key(reply_key(_late_quotes(reply)))
            for each in (row, later) if later is not None and _waits(later) else (row,):
                self._delete(each)
            return None
        author = f"{reply.channel_kind}:{reply.author}"
        own = row.message.actor == author and not reply.is_bot and not reply.is_self
        if not own or not may_steer(
            self._system.settings,
            self._system.records,
            self._authorized,
            row.message.name,
            Author(reply.channel_kind, reply.author),
        ):
            return None
        if change.only_quotes and not _waits(row):
            new = row.state in _TYPED and reply.quoted and reply.quoted not in row.message.text
            return _late_quotes(reply) if new else None
        if aside and _waits(row):
            self._system.inbox.advance(row, MessageState.CANCELLED, Because(Reason.MADE_ASIDE))
            self._emit(row, "edited", "cancelled")
        elif not aside and row.reason is Reason.MADE_ASIDE:
            self._tell_once(row, "withdrawn", _WITHDRAWN)
        else:
            self._edit(row, reply)
        return None

    def _delete(self, row: InboxRow) -> None:
        if _waits(row):
            self._system.inbox.advance(row, MessageState.CANCELLED, Because(Reason.AUTHOR_DELETED))
            self._emit(row, "deleted", "cancelled")
        elif row.state is MessageState.ACCEPTED:
            self._told_meanwhile(row)
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
        """Report it once: each backfill that reads the message finds it changed."""
        told = "The agent has the old text. To do: send the change as another message"
        told = told if what == "edited" else "The agent has it already."
        if self._tell_once(row, what, f"You {what} your message to `{row.message.name}` after it was typed. {told}"):
            self._emit(row, what, "too-late")

    def _told_meanwhile(self, row: InboxRow) -> None:
        """Its program holds it, and may give it back before a turn takes it: then it is cancelled."""
        if row.reason is not Reason.AUTHOR_DELETED:
            self._system.inbox.advance(row, MessageState.ACCEPTED, Because(Reason.AUTHOR_DELETED))
        told = "Its program has it already. If no turn takes it and it comes back, it is cancelled."
        if self._tell_once(
            row, "deleted", f"You deleted your message to `{row.message.name}` after it was typed. {told}"
        ):
            self._emit(row, "deleted", "held")

    def _tell_once(self, row: InboxRow, what: str, told: str) -> bool:
        """Commit a note about a message, and return whether it is the first of its kind."""
        message, address = row.message, row.message.address
        if address is None:
            return False
        note = NewPost(
            id=f"p-{what}-{new_message_id()}",
            key=f"{what}:{message.id}",
            kind=OutboundKind.NOTE,
            uid=message.uid,
            name=message.name,
            channel_kind=address.channel_kind,
            text=told,
            channel=address.channel,
            thread=address.thread,
            about=message.id,
        )
        return any(self._system.outbox.add([note]))

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
