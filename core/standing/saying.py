"""`say`: a message as an inbox row, and what became of it. A message never starts a session."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from typing import Any

from core.clock import Deadline
from core.commands import exact_for
from core.delivery.deliverer import Deliverer, is_over, waits_long
from core.domain.activity import ASKING_STATES
from core.domain.framing import AGENT_WAY, clean
from core.domain.gate import Action, Wake
from core.domain.message import DELIVERED, EXIT_ZERO, IN_FLIGHT, MOST_TEXT, InboxRow, Kind, MessageState, NewMessage
from core.domain.reasons import Because, Reason, code_of, text_of
from core.domain.session import SessionRecord
from core.errors import InvalidValue, LockBusy, NotPermitted, NotRunning, Refused, TmuxMissing, TmuxSilent
from core.names import new_marker, new_message_id
from core.observing.observer import ingest_record
from core.process.presence import running_service
from core.session.place import ASKING
from core.session.sessions import Known, definition_of
from core.session.telling import admit
from core.sight.lookagain import ask_again
from core.sight.situations import Looker, Sight
from core.store.files import is_there
from core.system import System
from core.values import dataclass

NO_SERVICE = "no service is running"
_POLL_SECONDS = 0.02
_MOST_SECONDS = 86400  #: a day: who waits longer does not watch


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
        """Tell whether the text is in the agent's terminal, as far as its harness can prove."""
        return self.state in DELIVERED

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

    `actor`: `cli:ann`, `agent:builder`, `slack:U1`; `who`: what the frame calls them, "" for as `actor` does.
    With a service the row is committed and watched; without one it is delivered here, behind those before it.
    Raises InvalidValue (bad name, empty text, a wait that is none), UnknownSession, NotRunning and Refused (by state,
    or too many messages wait), RecordUnreadable, StoreBroken.
    """
    if not 0 <= wait <= _MOST_SECONDS:  # which no NaN is
        raise InvalidValue(f"cannot wait {wait} seconds", f"give 0 to {_MOST_SECONDS}")
    known = definition_of(system.settings, system.records, name)
    if raw and actor.partition(":")[0] == AGENT_WAY:
        raise NotPermitted(f"{actor} may not leave out the frame", "agents speak in their own name: leave --raw out")
    cleaned = clean(text)
    if len(cleaned.text) > MOST_TEXT:
        raise InvalidValue(
            f"the message has {len(cleaned.text):,} characters, and {MOST_TEXT:,} are taken",
            "put it where the agent can read it, and say where",
        )
    if known.unreadable is not None:
        raise known.unreadable
    deliverer = Deliverer(system)
    with _lock_if_needed(system, known, needed=wait > 0 and not _served(system)) as locked:
        known = definition_of(system.settings, system.records, name) if locked else known
        record, sight = _accepting(system, known)
        message = _message(system, record, cleaned.text, actor, who, raw)
        _commit(system, record, message)
        if locked:
            deliverer.begin(record, message.id, sight)
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
        raise NotRunning(f"{known.name}: the message was not taken, for {decision.because.text}", decision.remedy)
    return record, sight


def _message(system: System, record: SessionRecord, text: str, actor: str, called: str, raw: bool) -> NewMessage:
    now, message_id = system.clock.now(), new_message_id()
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
    limit = system.settings.limits.queued_per_session
    with system.database.transaction(durable=True):
        if message.via == AGENT_WAY:
            admit(system, message)
        waiting = system.inbox.waiting(record.uid)
        if waiting >= limit:
            raise Refused(
                f"{record.name}: {waiting} messages wait already, and limits.queuedPerSession is {limit}",
                "let it work them off, or raise the limit",
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
    system.poke()


def _served(system: System) -> bool:
    return running_service(system.paths.service_lock) is not None


def _watched(system: System, deliverer: Deliverer, message: NewMessage, wait: float) -> tuple[InboxRow | None, bool]:
    """Wait for the row, delivering it here where no service does; tell whether one did at the end."""
    if wait <= 0:
        return system.inbox.get(message.id), _served(system)
    deadline = Deadline(system.clock, wait)
    row = system.inbox.get(message.id)
    while _served(system):
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
    told = exact_for(system, f"{message.name}: {said}")
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
