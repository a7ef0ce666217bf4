"""`say`, `queue`, `confirm` and `cancel`: put a message into the inbox, show what waits, release or discard it.

A message never starts a session. The queue shows what waits and what is being delivered, in the order in which it goes
in. `cancel` discards one message, or the whole queue of a stopped session, and tells the senders.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from core.base.clock import Deadline, iso
from core.base.errors import (
    InvalidValue,
    LockBusy,
    NotPermitted,
    NotRunning,
    Refused,
    StoreBroken,
    TmuxMissing,
    TmuxSilent,
    UnknownMessage,
)
from core.base.failpoints import Failpoint, failpoint
from core.base.files import is_there
from core.base.names import new_marker, new_message_id
from core.base.paths import StatePaths
from core.base.values import dataclass
from core.config.settings import Settings
from core.delivery.between_agents import admit
from core.delivery.deliverer import Deliverer, is_over, waits_long
from core.delivery.hook_ingest import ingest_record
from core.delivery.snapshot import Looker, Sight, ask_again
from core.loops.transitions import hold_with_session
from core.model.activity import ASKING_STATES
from core.model.delivering import awaits_confirmation
from core.model.framing import AGENT_WAY, clean
from core.model.gate import Action, Wake
from core.model.message import (
    EXIT_ZERO,
    IN_FLIGHT,
    MOST_TEXT,
    WAITING,
    InboxRow,
    Kind,
    MessageState,
    NewMessage,
    ReplyAddress,
)
from core.model.posts import NewPost, OutboundKind
from core.model.reasons import Because, Reason, Remedy, code_of, text_of
from core.model.session import SessionRecord
from core.model.texts import text
from core.process.presence import running_service
from core.session.commands import exact_for
from core.session.folder import ASKING
from core.session.notes import note_for, told_in
from core.session.sessions import Known, definition_of
from core.session.system import System
from core.store.inbox import Inbox
from core.store.sessions import Bindings

NO_SERVICE = "no service is running"
_POLL_SECONDS = 0.02
MOST_SECONDS = 86400  #: a day: who waits longer does not watch


@dataclass(frozen=True)
class Said:
    """What became of a message within the time that its sender waited."""

    name: str
    message_id: str
    state: MessageState
    messages: tuple[str, ...]
    reason: str = ""  #: the code of why it stands where it stands; "" where there is nothing to tell

    @property
    def delivered(self) -> bool:
        """Return whether a turn is known to have taken the text."""
        return self.state is MessageState.CONFIRMED

    def to_json(self) -> dict[str, Any]:
        """Return the fixed keys."""
        return {
            "name": self.name,
            "messageId": self.message_id,
            "state": self.state.value,
            "delivered": self.delivered,
            "exitCode": 0 if self.state in EXIT_ZERO else 1,
            "reason": self.reason,
            "messages": list(self.messages),
        }


def say(
    system: System, name: str, text: str, *, actor: str, who: str = "", raw: bool = False, wait: float = 10.0
) -> Said:
    """Put a message into a session's terminal, once, and wait up to `wait` seconds for its harness's word.

    `actor`: `cli:ann`, `agent:builder`, `<chat>:U1`; `who`: what the frame calls them, "" for as `actor` does.
    With a service the row is committed and watched; without one it is delivered here, behind those before it.
    Raises InvalidValue (bad name, empty text, a wait that is none), UnknownSession, NotRunning and Refused (by state,
    or too many messages wait), RecordUnreadable, StoreBroken.
    """
    if not 0 <= wait <= MOST_SECONDS:  # which no NaN is
        raise InvalidValue(f"cannot wait {wait} seconds", f"give 0 to {MOST_SECONDS}")
    known = definition_of(system.settings, system.records, name)
    if raw and actor.partition(":")[0] == AGENT_WAY:
        raise NotPermitted(f"{actor} may not leave out the frame", "agents speak in their own name: leave --raw out")
    cleaned = clean(text)
    if len(cleaned.text) > MOST_TEXT:
        raise InvalidValue(
            f"the message has {len(cleaned.text):,} characters, and at most {MOST_TEXT:,} are accepted",
            "put it where the agent can read it, and say where",
        )
    if known.unreadable is not None:
        raise known.unreadable
    deliverer = Deliverer(system)
    needed = wait > 0 and not is_served(system.paths)
    with system.database.checked(), _lock_if_needed(system, known, needed=needed) as locked:
        known = definition_of(system.settings, system.records, name) if locked else known
        record, sight = _accepting(system, known)
        message = _message(record, cleaned.text, actor, who, raw, system.clock.now())
        _commit(system, record, message)
        if locked:
            deliverer.begin(record, message.id, sight)
    _sync(system, message)
    dropped = (f"{cleaned.dropped} control characters were left out",) if cleaned.dropped else ()
    row, served = _watched(system, deliverer, message, wait)
    return _said(system, message, row, dropped, served, waited=wait > 0)


@contextmanager
def _lock_if_needed(system: System, known: Known, *, needed: bool) -> Iterator[bool]:
    """Hold the session's lock if it is free, and tell whether it is held.

    Under it, one look serves both the answer and the first step of the delivery. Whoever else holds it works on the
    session: then the message is committed without, and delivered in its turn.
    """
    locked = False
    with ExitStack() as held:
        if needed and known.record is not None:
            ingest_record(system, known.record)  # may need the lock itself
            _look_again(system, known.record)
            with suppress(LockBusy):
                held.enter_context(system.locks.hold(known.name, "take a message", 0.0))
                locked = True
        yield locked


def _look_again(system: System, record: SessionRecord) -> None:
    """Find out whether a dialog is over of which no hook tells: without a service nobody else does."""
    activity = system.activities.get(record.uid)
    told = activity is not None and activity.state in ASKING_STATES
    if not told and not is_there(system.paths.session(record.uid) / ASKING):
        return
    with suppress(TmuxSilent, TmuxMissing):
        ask_again(system, record, system.runner.survey().of_instance(record.instance_id or ""))


def _accepting(system: System, known: Known) -> tuple[SessionRecord, Sight]:
    """Return the record of a session that takes messages now, and how it was seen. Raises NotRunning."""
    looker = Looker(system, lambda _: True)
    record = known.record
    sight = looker.see(known.name, record)
    decision = looker.gate(Wake.SAY, sight, known.name, record)
    if decision.action is Action.REFUSE or record is None:
        system.events.emit("standing.refused", name=known.name, reason=decision.because.text)
        raise NotRunning(f"{known.name}: the message was not taken, because {decision.because.text}", decision.remedy)
    return record, sight


def _message(record: SessionRecord, text: str, actor: str, called: str, raw: bool, now: datetime) -> NewMessage:
    message_id = new_message_id()
    via, _, who = actor.partition(":")
    return NewMessage(
        id=message_id,
        key=f"{via}:{message_id}",
        uid=record.uid,
        name=record.name,
        generation=record.generation,
        kind=Kind.SAY,
        actor=actor,
        who=called or who or via,
        via=via,
        marker=new_marker(),
        text=text,
        raw=raw,
        order_us=int(now.timestamp() * 1_000_000),
        created_at=now,
    )


def _commit(system: System, record: SessionRecord, message: NewMessage) -> None:
    """Store the message, for `_sync` to follow, and tell of it. Raises Refused, StoreBroken."""
    limit = system.settings.limits.queued_per_session
    with system.database.transaction_to_sync():
        if message.via == AGENT_WAY:
            admit(system, message)
        waiting = system.inbox.waiting(record.uid)
        if waiting >= limit:
            raise Refused(
                f"{record.name}: {waiting} messages wait already, and limits.queuedPerSession is {limit}",
                "wait until some of them are delivered, or raise the limit",
            )
        system.inbox.add([message])
    system.events.emit(
        "standing.said",
        name=record.name,
        actor=message.actor,
        generation=record.generation,
        message=message.id,
        text=message.text,
    )
    system.notify()


def _sync(system: System, message: NewMessage) -> None:
    """Return once the message is on the disk. Raises StoreBroken.

    That may be after its text went into the terminal: a power cut ends the terminal, too.
    """
    try:
        system.database.sync()
    except StoreBroken as error:
        raise StoreBroken(
            f"{message.name}: message {message.id} was taken, and a power cut may take it away: {error.message}",
            f"do not send it again before you have looked: `the-loop standing queue {message.name}`; {error.remedy}",
        ) from error


def is_served(paths: StatePaths) -> bool:
    """Return whether a service runs, which delivers. Raises StoreBroken."""
    return running_service(paths.service_lock) is not None


def _watched(system: System, deliverer: Deliverer, message: NewMessage, wait: float) -> tuple[InboxRow | None, bool]:
    """Wait for the row, delivering it here where no service does; tell whether one did at the end."""
    if wait <= 0:
        return system.inbox.get(message.id), is_served(system.paths)
    deadline = Deadline(system.clock, wait)
    row = system.inbox.get(message.id)
    while is_served(system.paths):
        row = system.inbox.get(message.id)
        if row is None or is_over(row, system.clock.now()) or waits_long(row) or deadline.passed():
            return row, True
        system.clock.pause(min(_POLL_SECONDS, deadline.remaining()))
    until = system.clock.now() + timedelta(seconds=deadline.remaining())
    return deliverer.run(message.uid, message.id, until), False


def _said(
    system: System, message: NewMessage, row: InboxRow | None, dropped: tuple[str, ...], served: bool, *, waited: bool
) -> Said:
    if row is None:
        return Said(message.name, message.id, MessageState.FAILED, ("the message is gone from the database",))
    state, why = _answer(row, waited)
    if row.state is MessageState.PENDING and waited and served and why is None:
        why = Because(Reason.NOT_LOOKED_AT, {"log": str(system.paths.service_log)})
    words = text_of(why)
    if state is MessageState.QUEUED and not served:
        words = f"{words}; {NO_SERVICE}" if words else NO_SERVICE
    named = why is not None and why.reason is Reason.CANCELLED_BY  # its text begins with the state
    said = words if named else f"{state.value}: {words}" if words else state.value
    told = exact_for(system.settings, system.environ, f"{message.name}: {said}")
    return Said(message.name, message.id, state, (told, *dropped), code_of(why))


def _answer(row: InboxRow, waited: bool) -> tuple[MessageState, Because | None]:
    """Return the state and the reason that the sender is told.

    What is under way is still ours, what was entered is not proven. That only a sender is told who has waited for the
    proof: to whoever did not, it is under way as well.
    """
    if row.state not in IN_FLIGHT | {MessageState.PENDING} or row.final:
        return row.state, row.because
    if waited and row.state is MessageState.SUBMITTED:
        return MessageState.UNKNOWN, Because(Reason.NOT_SHOWN_YET)
    return MessageState.QUEUED, row.because or (Because(Reason.UNDER_WAY) if row.attempt else None)


@dataclass(frozen=True)
class Queued:
    """One message of a queue, at the moment `now` (UTC). Its text is told as its length unless it is asked for."""

    row: InboxRow
    now: datetime
    detail: str  #: what it waits for, or where it stands, as it is now; its commands can be typed

    def to_json(self, *, text: bool = False) -> dict[str, Any]:
        """Return the fixed keys; `length` is in characters, `ageSeconds` since it was committed."""
        message = self.row.message
        return {
            "id": message.id,
            "kind": message.kind.value,
            "actor": message.actor,
            "createdAt": iso(message.created_at),
            "ageSeconds": max(0, int((self.now - message.created_at).total_seconds())),
            "state": self.row.state.value,
            "detail": self.detail,
            "reason": code_of(self.row.because),
            "length": len(message.text),
            **({"text": message.text} if text else {}),
        }


@dataclass(frozen=True)
class Queue:
    """A session's messages that no turn is known to have taken, and how many may wait (limits.queuedPerSession)."""

    name: str
    limit: int
    messages: tuple[Queued, ...]

    def to_json(self, *, text: bool = False) -> dict[str, Any]:
        """Return the fixed keys."""
        return {
            "name": self.name,
            "limit": self.limit,
            "messages": [message.to_json(text=text) for message in self.messages],
        }


def queue_of(system: System, name: str) -> Queue:
    """Return the session's queue: first what its harness has and no turn took yet, then what is in flight, then what
    waits. Raises UnknownSession, InvalidValue, RecordUnreadable."""
    known = definition_of(system.settings, system.records, name)
    if known.unreadable is not None:
        raise known.unreadable
    now = system.clock.now()
    rows = system.inbox.unsettled(known.record.uid) if known.record else ()
    limit = system.settings.limits.queued_per_session
    waiting = (Queued(row, now, _told(system.settings, system.environ, row, ahead)) for ahead, row in enumerate(rows))
    had = _had_by_harness(system.inbox, known.record) if known.record else ()
    of_harness = (Queued(row, now, _told(system.settings, system.environ, row, 0)) for row in had)
    return Queue(name, limit, (*of_harness, *waiting))


def _had_by_harness(inbox: Inbox, record: SessionRecord) -> tuple[InboxRow, ...]:
    """Return what the live instance has and no turn is known to have taken, oldest first."""
    rows = inbox.with_states(record.uid, {MessageState.ACCEPTED})
    return tuple(row for row in reversed(rows) if row.instance == record.instance_id)


def _told(settings: Settings, environ: Mapping[str, str], row: InboxRow, ahead: int) -> str:
    """Return its reason in words, as it is now: how many are ahead was counted when it came."""
    if row.because is None:
        return text(Reason.HARNESS_HAS_IT) if row.state is MessageState.ACCEPTED else ""
    counted = row.because.args.get("ahead") if row.reason is Reason.PAUSED else None
    why = Because(Reason.PAUSED, {"ahead": ahead}) if counted else row.because
    return exact_for(settings, environ, why.text)


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
    system.notify()
    return confirmed


STOPPED = "its session was stopped"


def cancel_queue(system: System, record: SessionRecord) -> int:
    """Cancel all that waits for a session that was stopped by name, and return how much that was.

    Each thread in which senders of cancelled messages are told gets one note, which says how many. Done again it finds
    nothing. Raises StoreBroken.
    """
    with failpoint(Failpoint.STOP_CANCEL), system.database.transaction(durable=True):
        cancelled = system.inbox.cancel_waiting(record.uid, Because(Reason.QUEUE_CANCELLED, {"name": record.name}))
        hold_with_session(system, record, STOPPED)
        notes = _notes(system.settings, system.bindings, record, cancelled)
        if notes:
            system.outbox.add(notes)
    if notes:
        system.notify()
    return len(cancelled)


def hold_loops(system: System, record: SessionRecord) -> None:
    """Hold the loops of a session that was stopped without its name: what waits is kept. Raises StoreBroken."""
    with failpoint(Failpoint.STOP_CANCEL), system.database.transaction(durable=True):
        hold_with_session(system, record, STOPPED)


def _notes(settings: Settings, bindings: Bindings, record: SessionRecord, rows: Sequence[InboxRow]) -> list[NewPost]:
    addresses = (told_in(settings, bindings, row) for row in rows)
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
            f"To do: start it: `the-loop standing start {record.name}`, then send again what you still want"
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
        with failpoint(Failpoint.QUEUE_CANCEL), system.database.transaction(durable=True):
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
    system.notify()
    return cancelled


def _check_waits(row: InboxRow) -> None:
    message = row.message
    if message.kind is Kind.BOOT:
        raise Refused(
            f"{message.id} is the boot prompt of {message.name}, which every new conversation needs",
            f"stop the session instead: `the-loop standing stop {message.name}`",
        )
    if row.state is MessageState.ACCEPTED:
        raise Refused(
            f"message {message.id} cannot be cancelled: {text(Reason.HARNESS_HAS_IT)}",
            f"take it back by `the-loop standing pause {message.name}`, then cancel it",
        )
    if row.state not in WAITING:
        raise Refused(
            f"message {message.id} cannot be cancelled: it is {row.state.value}",
            f"only waiting messages can be cancelled: `the-loop standing queue {message.name}` lists them",
        )
