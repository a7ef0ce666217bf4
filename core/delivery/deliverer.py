"""Takes a session's messages into its pane, one step at a time. The only code that pastes.

A step is done under the session's lock, which is not held while anything is waited for: `advance` does one and says
when the next is due. Every change outside this process is an effect, and any process may go on where another died.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from core.delivery.evidence import Transcripts
from core.delivery.situations import Authorized, Looker, Sight, timing_of, traits_of
from core.domain import delivering
from core.domain.delivering import (
    Attempt,
    BackToPending,
    Clear,
    MarkPasted,
    MarkSubmitted,
    Queue,
    Settle,
    Situation,
    Stash,
    Submit,
    Wait,
    resting_until,
    step,
    submit_token,
)
from core.domain.framing import SUBMIT, compose, provable
from core.domain.gate import Action, HoldState, Observed, hold_state, wake_of
from core.domain.message import IN_FLIGHT, WAITING, InboxRow, MessageState
from core.domain.pane import Receipt, Written
from core.domain.session import Phase, SessionRecord
from core.effects import Effect, effect
from core.errors import InvalidValue, LockBusy, Refused, TmuxMissing, TmuxSilent
from core.launching import clear_hold_file, has_hold_file
from core.notes import note_of
from core.observer import ingest_record
from core.readiness import notice_reading
from core.steering import chat_of
from core.store.files import write_private
from core.system import System

_LOOK = timedelta(seconds=5)  #: how long a change that nobody told of may go unseen
_EVIDENCE_POLL = timedelta(milliseconds=50)
_HELD_POLL = timedelta(milliseconds=500)  #: whoever ends the wait wakes us, but for its limit
_LOCK_SECONDS = 0.05  #: whoever holds it works on the session; the others are not held up by waiting here
_LOCK_RETRY = timedelta(milliseconds=200)
_CLOSED = "its pane's input is switched off"
Answering = Callable[[Sequence[InboxRow]], InboxRow | None]
_EVENTS = {
    MessageState.CONFIRMED: "standing.confirmed",
    MessageState.REFUSED: "standing.refused",
    MessageState.EXPIRED: "standing.refused",
    MessageState.CANCELLED: "standing.refused",
    MessageState.FAILED: "standing.refused",
    MessageState.UNKNOWN: "standing.unconfirmed",
    MessageState.SUBMITTED: "standing.unconfirmed",
}


def without_chat(system: System) -> Callable[[InboxRow], bool | None]:
    """Return what authorizes all that came by no chat; a chat's allow-list cannot be asked without its channel."""
    return lambda row: True if chat_of(system.settings, row) is None else None


class Deliverer:
    """Moves rows on. Belongs to one thread; several processes may work on one session, each under its lock."""

    def __init__(
        self,
        system: System,
        authorized: Authorized | None = None,
        answering: Answering = lambda _: None,
        held: Callable[[InboxRow], bool] = lambda _: False,
    ) -> None:
        """`answering` settles the row that answers an open question, if one of those that wait does, and returns it.

        `held` tells whether a row waits for older ones that may still come in.
        """
        self._system = system
        self._answering = answering
        self._held = held
        self._looker = Looker(system, authorized or without_chat(system))
        self._transcripts = Transcripts(system)
        self.followed: set[str] = set()  #: sessions whose conversation may still tell of a message
        self._not_before: dict[str, datetime] = {}  #: by row: a CR whose line may still run in a silent server

    def advance(self, uid: str) -> datetime | None:
        """Do one step for the session and return when the next is due, None if it has nothing to deliver.

        Raises StoreBroken, and RecordUnreadable for a record that cannot be understood.
        """
        rows = self._rows(uid)
        if not rows:
            return self._read_on(uid)
        self.followed.add(uid)
        record = self._record(rows)
        if record is None:
            return self._void(rows)
        if self._held(rows[0]):
            return self._now() + _HELD_POLL
        if (early := self._resting(rows[0], record)) is not None:
            return early
        try:
            with self._system.locks.hold(record.name, "deliver a message", _LOCK_SECONDS):
                return self._step(uid)
        except LockBusy:
            return self._now() + _LOCK_RETRY
        except (TmuxSilent, TmuxMissing):
            self._looker.was_silent()
            return self._now() + delivering.SILENCE_RETRY
        except Refused:
            return self._now()  # another process has moved the row on

    def follow(self, uids: Iterable[str]) -> None:
        """Take on the sessions whose harness had messages in its own queue when an earlier service ended."""
        self.followed.update(uids)

    def begin(self, record: SessionRecord, message_id: str, sight: Sight) -> None:
        """Do the first step for a message that the caller has just committed, by what it saw under the session's lock.

        Nothing is done where others are before it: `advance` takes them first, as it takes on where tmux is silent.
        """
        rows = self._rows(record.uid)
        if [row.message.id for row in rows] != [message_id]:
            return
        try:
            self._act(rows, record, sight)
        except (TmuxSilent, TmuxMissing):
            self._looker.was_silent()
        except Refused:
            return  # another process has moved the row on

    # ------------------------------------------------------------ looking

    def _now(self) -> datetime:
        return self._system.clock.now()

    def _rows(self, uid: str) -> tuple[InboxRow, ...]:
        """Return what is in flight and what may go in, in order: what a person must confirm first is left out."""
        return tuple(row for row in self._system.inbox.unsettled(uid) if not delivering.awaits_confirmation(row))

    def _record(self, rows: Sequence[InboxRow]) -> SessionRecord | None:
        """Return the record that the rows are meant for, None if it is gone. Raises RecordUnreadable."""
        message = rows[0].message
        record = self._system.records.read(message.name)
        return record if record is not None and record.uid == message.uid else None

    def _read_on(self, uid: str) -> datetime | None:
        """Read the conversation while the harness's own queue holds a message of ours.

        One that it slips into a running turn fires no hook (Claude Code 2.1.197): only the conversation tells of it.
        """
        accepted = self._system.inbox.with_states(uid, {MessageState.ACCEPTED}, 1)
        record = self._record(accepted) if accepted else None
        if record is not None and accepted[0].instance == record.instance_id and self._transcripts.read(record):
            return self._now() + _LOOK
        self._transcripts.forget(uid)
        self.followed.discard(uid)
        return None

    def _resting(self, row: InboxRow, record: SessionRecord) -> datetime | None:
        """Read what may prove the row, without a lock; return when to look again if only that can move it now."""
        ingest_record(self._system, record)
        if row.instance is not None and row.instance != record.instance_id:
            ingest_record(self._system, replace(record, instance_id=row.instance))  # its last words prove, too
        if row.state not in IN_FLIGHT:
            return None
        self._transcripts.read(record)
        now = self._now()
        if self._not_before.get(row.message.id, now) > now:
            return self._not_before[row.message.id]
        traits = traits_of(self._system, record)
        until = resting_until(row, provable(row.message, traits), traits, timing_of(self._system))
        if until is None or now >= until:
            return None
        current = self._system.inbox.get(row.message.id)
        if current is None or current.state is not row.state:
            return now
        return min(until, now + _EVIDENCE_POLL)

    def _step(self, uid: str) -> datetime | None:
        """Look again, now that nobody else can move anything, and do what the situation asks for."""
        rows = self._rows(uid)
        record = self._record(rows) if rows else None
        if record is None:
            return self._now()
        sight = self._look(record)
        if hold_state(record) is HoldState.NONE and self._looker.has_question(record, sight):
            answered = self._answering(rows)
            if answered is not None:
                self._system.activities.touch_message(uid, self._now())
                self._tell(answered, MessageState.CONFIRMED, answered.detail)
                return self._now()
        return self._act(rows, record, sight)

    def _look(self, record: SessionRecord) -> Sight:
        sight = self._looker.see(record.name, record)
        if sight.observed is Observed.STARTING and notice_reading(self._system, record):
            return self._looker.see(record.name, record)
        return sight

    def _act(self, rows: Sequence[InboxRow], record: SessionRecord, sight: Sight) -> datetime | None:
        row = rows[0]
        durable = row.state in IN_FLIGHT and self._durable(record, row)
        now = self._now()
        situation = self._looker.situation(row, record, sight, durable=durable)
        chosen = step(situation, now)
        match chosen:
            case Attempt():
                return self._attempt(situation, record, chosen)
            case Stash() | Clear():
                return self._prepare(situation, record, chosen)
            case Submit(number=number):
                return self._submit(situation, record, sight, number)
            case MarkPasted():
                return self._mark_pasted(row)
            case MarkSubmitted(number=number):
                return self._mark_submitted(situation, number)
            case Settle():
                return self._settle(row, chosen)
            case Queue():
                return self._queue(rows, record, sight, chosen)
            case BackToPending(detail=detail):
                self._move(row, MessageState.PENDING, detail)
                return now
            case Wait(until=until):
                return min(until, now + _LOOK) if until else now + _LOOK

    def _durable(self, record: SessionRecord, row: InboxRow) -> bool:
        return self._transcripts.read(record) and self._transcripts.knows_all_since(record, row)

    def _void(self, rows: Sequence[InboxRow]) -> datetime | None:
        """Cancel what was meant for a session that is gone; what was in flight cannot be told."""
        for row in rows:
            state = MessageState.CANCELLED if row.state in WAITING else MessageState.UNKNOWN
            self._settle(row, Settle(state, "the session was deleted"))
        return None

    # ------------------------------------------------------------ writing

    def _attempt(self, situation: Situation, record: SessionRecord, attempt: Attempt) -> datetime:
        system, row, traits = self._system, situation.row, situation.traits
        self._drop_stale_hold(record)
        try:
            composed = compose(row.message, traits, system.paths.session(record.uid))
        except InvalidValue as error:
            return self._settle(row, Settle(MessageState.FAILED, error.message, error.remedy, note=True))
        if composed.file is not None:
            write_private(composed.file, composed.content.encode())
        self._transcripts.open(record)
        instance = record.instance_id or ""
        with effect(Effect.DELIVERY_CLAIM):
            claimed = system.inbox.advance(
                row,
                MessageState.CLAIMED,
                instance=instance,
                attempt=row.attempt + 1,
                attempt_deadline=attempt.deadline,
                pasted_at=None,
                submitted_at=None,
                submits=0,
            )
        with effect(Effect.DELIVERY_PASTE):
            written = system.runner.write(instance, composed.data, Receipt.PASTED, claimed.token, attempt.deadline)
        if written is Written.DONE:
            return self._mark_pasted(claimed)
        if written is Written.CLOSED:
            self._move(claimed, MessageState.QUEUED, _CLOSED)
            return self._now() + _LOOK
        self._move(claimed, MessageState.PENDING, delivering.SILENT if written is Written.LATE else "")
        return self._now()

    def _prepare(self, situation: Situation, record: SessionRecord, step: Stash | Clear) -> datetime:
        """Write the keys that make the input line ready, in a write of their own and a moment before the paste."""
        row, instance, traits = situation.row, record.instance_id or "", situation.traits
        stashing = isinstance(step, Stash)
        with effect(Effect.DELIVERY_STASH if stashing else Effect.DELIVERY_CLEAR):
            marked = self._system.inbox.advance(
                row,
                MessageState.QUEUED,
                delivering.STASHING if stashing else delivering.CLEARING,
                instance=instance,
                attempt=row.attempt + 1,
                attempt_deadline=step.deadline,
                stashed=row.stashed or stashing,
            )
            keys = traits.stash if stashing else traits.clear
            receipt = Receipt.STASHED if stashing else Receipt.CLEARED
            self._system.runner.write(instance, keys or b"", receipt, marked.token, step.deadline)
        return self._now() + timedelta(seconds=traits.settle)

    def _submit(self, situation: Situation, record: SessionRecord, sight: Sight, number: int) -> datetime:
        row, now = situation.row, self._now()
        tool_at = self._looker.tool_at(record.uid)  # both are read last: an Enter would answer a dialog
        if self._looker.asking(record, sight.survey) or (
            tool_at is not None and now < tool_at + delivering.TOOL_MARGIN
        ):
            return now + delivering.TOOL_MARGIN
        deadline = now + situation.timing.command
        try:
            with effect(Effect.DELIVERY_SUBMIT):
                written = self._system.runner.write(
                    record.instance_id or "", SUBMIT, Receipt.SUBMITTED, submit_token(row, number), deadline
                )
        except TmuxSilent:
            self._not_before[row.message.id] = deadline
            raise
        if written is Written.DONE:
            return self._mark_submitted(situation, number)
        return now + (_LOOK if written is Written.CLOSED else delivering.TOOL_MARGIN)

    def _drop_stale_hold(self, record: SessionRecord) -> None:
        """Remove the file that blocks turns where a verb died before its mark: no turn would take the message."""
        unheld = record.hold is None and record.phase is Phase.SETTLED
        if unheld and has_hold_file(self._system.paths, record.uid):
            with effect(Effect.RESUME_UNBLOCK):
                clear_hold_file(self._system.paths, record.uid)

    # ------------------------------------------------------------ recording

    def _mark_pasted(self, row: InboxRow) -> datetime:
        with effect(Effect.DELIVERY_PASTED):
            self._system.inbox.advance(row, MessageState.PASTED, row.detail, pasted_at=self._now())
        return self._now()

    def _mark_submitted(self, situation: Situation, number: int) -> datetime:
        row, final = situation.row, not situation.provable
        with effect(Effect.DELIVERY_SUBMITTED):
            moved = self._system.inbox.advance(
                row, MessageState.SUBMITTED, submitted_at=self._now(), submits=number, final=final
            )
        self._not_before.pop(row.message.id, None)
        if final:
            self._system.activities.touch_message(row.message.uid, self._now())
            self._tell(moved, MessageState.SUBMITTED, "this harness cannot prove more")
        return self._now()

    def _settle(self, row: InboxRow, settle: Settle) -> datetime:
        changes = {"final": True} if settle.state is MessageState.SUBMITTED else {}
        with effect(Effect.DELIVERY_SETTLE), self._system.database.transaction(durable=False):
            moved = self._system.inbox.advance(row, settle.state, settle.detail, **changes)
            if settle.note:
                self._note(moved, settle.state, settle.detail, settle.remedy)
        self._not_before.pop(row.message.id, None)
        self._tell(moved, settle.state, settle.detail)
        return self._now()

    def _queue(self, rows: Sequence[InboxRow], record: SessionRecord, sight: Sight, queue: Queue) -> datetime:
        self._make_wait(rows[0], queue.detail, queue.remedy, note=queue.note)
        for ahead, row in enumerate(rows[1:], start=1):
            decision = self._looker.gate(wake_of(row.message.kind), sight, record.name, record, ahead)
            if row.state is MessageState.PENDING and decision.action is Action.QUEUE:
                self._make_wait(row, decision.reason, decision.remedy, note=decision.note)
        return queue.until or self._now() + _LOOK

    def _make_wait(self, row: InboxRow, detail: str, remedy: str, *, note: bool) -> None:
        if row.state is MessageState.QUEUED and row.detail == detail:
            return
        with effect(Effect.DELIVERY_SETTLE), self._system.database.transaction(durable=False):
            moved = self._system.inbox.advance(row, MessageState.QUEUED, detail)
            if note:
                self._note(moved, MessageState.QUEUED, detail, remedy)
        self._emit("standing.queued", moved, detail)

    def _move(self, row: InboxRow, state: MessageState, detail: str) -> None:
        with effect(Effect.DELIVERY_SETTLE):
            self._system.inbox.advance(row, state, detail)

    def _note(self, row: InboxRow, state: MessageState, reason: str, remedy: str) -> None:
        post = note_of(row, state, reason, remedy)
        if post is not None:
            self._system.outbox.add([post])
            self._system.poke()

    def _tell(self, row: InboxRow, state: MessageState, detail: str) -> None:
        self._emit(_EVENTS[state], row, detail)

    def _emit(self, event: str, row: InboxRow, reason: str) -> None:
        self._system.events.emit(
            event,
            name=row.message.name,
            actor=row.message.actor,
            reason=reason,
            detail=row.state.value,
            instance=row.instance,
            generation=row.message.generation,
            message=row.message.id,
        )

    # ------------------------------------------------------------ without a service

    def run(self, uid: str, until_row: str, deadline: datetime) -> InboxRow | None:
        """Deliver the session's rows up to that one, and return it once it is over, waits for long, or time is up."""
        while True:
            following = self.advance(uid)
            row = self._system.inbox.get(until_row)
            now = self._now()
            if row is None or is_over(row) or waits_long(row) or self._only_served(uid) or now >= deadline:
                return row
            if following is not None and following > now:
                pause = min(following, deadline, now + _EVIDENCE_POLL) - now
                self._system.clock.pause(max(0.0, pause.total_seconds()))

    def _only_served(self, uid: str) -> bool:
        """Tell whether what goes in first needs a service, and all behind it with it."""
        rows = self._rows(uid)
        return bool(rows) and rows[0].detail == delivering.NEEDS_SERVICE


def is_over(row: InboxRow) -> bool:
    """Tell whether nothing more is done for the row."""
    return row.final or row.state not in WAITING | IN_FLIGHT


def waits_long(row: InboxRow) -> bool:
    """Tell whether the row waits for something that its sender need not wait for."""
    return row.state is MessageState.QUEUED and row.detail not in delivering.PASSING
