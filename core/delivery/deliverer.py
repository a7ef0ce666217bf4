"""Bring sessions' messages into their panes, one step at a time.

A step is done under the session's lock. The lock is not held while anything is waited for: `advance` does one step and
returns when the next is due. Every change outside this process is an effect (core.base.failpoints), and any process may
continue where another died. Messages of several sessions are pasted together, under the locks of all of them; each lock
is taken without waiting, so no process waits for two. The service has one delivery thread, and no session waits for
another.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime, timedelta

from core.base.clock import Clock
from core.base.errors import CoreError, LockBusy, Refused, StoreBroken, TmuxMissing, TmuxSilent, UnsupportedHarness
from core.base.loggers import logger
from core.base.values import replace
from core.config.settings import Settings
from core.delivery.dialogs import DialogWatch, hold
from core.delivery.evidence import Transcripts
from core.delivery.harness_queue import held_by_harness, take_back
from core.delivery.hook_ingest import ingest_record
from core.delivery.recording import Recorder
from core.delivery.screens import AGAIN, Form, Screens, Shown
from core.delivery.snapshot import Authorized, Looker, Sight, timing_of
from core.delivery.ticks import Gatekeeper
from core.delivery.writing import LOOK, Plan, Writer
from core.model import delivering
from core.model.delivering import (
    Attempt,
    BackToPending,
    Clear,
    MarkPasted,
    MarkSubmitted,
    Queue,
    Settle,
    Situation,
    Stash,
    Step,
    Submit,
    Wait,
    by_argument,
    resting_until,
    step,
)
from core.model.framing import provable
from core.model.gate import Action, HoldState, Observed, hold_state, wake_of
from core.model.message import IN_FLIGHT, TICKS, WAITING, InboxRow, MessageState
from core.model.reasons import Because, Reason, Remedy
from core.model.session import SessionRecord
from core.model.texts import text
from core.session.sessions import Unforeseen, apart, chat_of, pass_over, take_up, traits_of
from core.session.system import System
from core.store.inbox import Inbox

_EVIDENCE_POLL = timedelta(milliseconds=50)
_HELD_POLL = timedelta(milliseconds=500)  #: whoever ends the wait wakes us, but for its limit
_LOCK_SECONDS = 0.05  #: whoever holds it works on the session; the others are not held up by waiting here
_DRAWN = timedelta(seconds=10)  #: in which a program has drawn its screen, on a busy machine
_REDRAWN = timedelta(seconds=0.5)  #: tmux tells a program of a new size after a quarter of a second
_LOCK_RETRY = timedelta(milliseconds=200)
_TAKE_BACK_RETRY = timedelta(seconds=1)
_UNKNOWN_POLL = timedelta(seconds=1)
_STILL_LOOKED_FOR = timedelta(minutes=1)  #: what became unknown; later evidence is found where it is read anyway
_LOOK_BACK = 10  #: of a session's unknown messages
_NOT_TAKEN = timedelta(seconds=3)  #: of a harness that is idle: it writes its record before it answers
Answering = Callable[[Sequence[InboxRow]], InboxRow | None]
Outcome = datetime | CoreError | None  #: when the next step is due, None: nothing is to be delivered; or what failed


def without_chat(settings: Settings) -> Callable[[InboxRow], bool | None]:
    """Return what authorizes all that came by no chat; a chat's allow-list cannot be asked without its channel."""
    return lambda row: True if chat_of(settings, row) is None else None


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
        self._began = system.clock.now()
        self._answering = answering
        self._held = held
        self._looker = Looker(system, authorized or without_chat(system.settings))
        self._ticks = Gatekeeper(system, self._looker)
        self._transcripts = Transcripts(system)
        self._recorder = Recorder(system)
        self._writer = Writer(system, self._looker, self._transcripts, self._recorder)
        self._alone: set[str] = set()  #: sessions whose messages are pasted with nobody else's
        self._screens = Screens(system)
        self._dialogs = DialogWatch(system, shows=False)
        self._followed_at: dict[str, datetime] = {}  #: by session: when what its harness has was looked at last
        self.followed: set[str] = set()  #: sessions whose conversation may still tell of a message

    def advance(self, uid: str) -> datetime | None:
        """Do one step for the session and return when the next is due, None if it has nothing to deliver.

        Raises StoreBroken, and RecordUnreadable for a record that cannot be understood.
        """
        outcome = self.advance_all([uid])[uid]
        if isinstance(outcome, CoreError):
            raise outcome
        return outcome

    def advance_all(self, uids: Sequence[str]) -> Mapping[str, Outcome]:
        """Do one step for each of the sessions. Raises StoreBroken where that is the trouble of all of them."""
        outcomes: dict[str, Outcome] = {}
        plans: list[Plan] = []
        with self._system.database.checked(), ExitStack() as locks:
            for uid in uids:
                row: InboxRow | None = None
                try:
                    row = self._first(uid)
                    with apart(self._system.events, row.message.name if row else uid):
                        following = self._approached(uid, row, locks, 0.0 if plans else _LOCK_SECONDS)
                except CoreError as error:
                    outcomes[uid] = error
                    if row is not None:
                        pass_over(self._system.events, row.message.name, error)
                    continue
                if row is not None:
                    take_up(self._system.events, row.message.name)
                if isinstance(following, Plan):
                    plans.append(following)
                else:
                    outcomes[uid] = following
            alone = [plan for plan in plans if plan.record.uid in self._alone]
            together = [plan for plan in plans if plan.record.uid not in self._alone]
            for group in (together, *([plan] for plan in alone)):
                outcomes |= self._attempted(group)
        return outcomes

    def _approached(self, uid: str, row: InboxRow | None, locks: ExitStack, seconds: float) -> Plan | datetime | None:
        """Approach the session; a message for a program that our configuration does not know waits, and says why."""
        try:
            return self._approach(uid, row, locks, seconds)
        except UnsupportedHarness as error:
            if row is None or row.state not in WAITING:
                raise
            since = {"since": f"{self._began:%Y-%m-%d %H:%M}", "error": error.message}
            self._recorder.wait(row, Because(Reason.OLD_CONFIGURATION, since), "", note=True)
            return self._now() + LOOK

    def _attempted(self, plans: Sequence[Plan]) -> Mapping[str, Outcome]:
        """Paste these together. Where that fails in a way that nobody foresaw, each is attempted alone from now on.

        What became of them is settled by their receipts, as after a crash. Raises StoreBroken.
        """
        uids = [plan.record.uid for plan in plans]
        try:
            with apart(self._system.events, ", ".join(plan.record.name for plan in plans)):
                due = self._writer.attempt(plans) if plans else ()
        except Unforeseen as error:
            self._alone.update(uids)
            return dict.fromkeys(uids, error)
        self._alone.difference_update(uids)
        return dict(zip(uids, due, strict=True))

    def follow(self, uids: Iterable[str]) -> None:
        """Take on the sessions whose harness may have messages that no turn is known to have taken."""
        self.followed.update(uids)

    def begin(self, record: SessionRecord, message_id: str, sight: Sight) -> None:
        """Do the first step for a message that the caller has just committed, by what it saw under the session's lock.

        Nothing is done where others are before it: `advance` takes them first, as it takes on where tmux is silent.
        Ticks that wait are behind it.
        """
        rows = [row for row in self._rows(record.uid) if not self._ticks.waits(row)]
        if [row.message.id for row in rows] != [message_id]:
            return
        try:
            following = self._act(rows[0], record, sight, *self._next(rows[0], record, sight))
            if isinstance(following, Plan):
                self._writer.attempt([following])
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

    def _first(self, uid: str) -> InboxRow | None:
        """Return the first of those rows, None if there is none; the others are not read."""
        first = self._system.inbox.unsettled(uid, 1)
        plain = first and not delivering.awaits_confirmation(first[0])  # none: or one that nobody understands
        rows = first if plain else self._rows(uid)
        return rows[0] if rows else None

    def _record(self, row: InboxRow) -> SessionRecord | None:
        """Return the record that the row is meant for, None if it is gone. Raises RecordUnreadable."""
        record = self._system.records.read(row.message.name)
        return record if record is not None and record.uid == row.message.uid else None

    def _approach(
        self, uid: str, row: InboxRow | None, locks: ExitStack, lock_seconds: float
    ) -> Plan | datetime | None:
        """Do one step, or plan it where it pastes a message: then `locks` holds the session's, until it is pasted."""
        if row is None:
            return self._read_on(uid)
        self.followed.add(uid)
        self._read_on_beside(row)
        record = self._record(row)
        if record is None:
            return self._void(uid)
        if self._held(row):
            return self._now() + _HELD_POLL
        if (early := self._resting(row, record)) is not None:
            return early
        try:
            with ExitStack() as lock:
                lock.enter_context(self._system.locks.hold(record.name, "deliver a message", lock_seconds))
                following = self._step(uid)
                if isinstance(following, Plan):
                    locks.push(lock.pop_all())
                return following
        except LockBusy:
            return self._now() + _LOCK_RETRY
        except (TmuxSilent, TmuxMissing):
            self._looker.was_silent()
            return self._now() + delivering.SILENCE_RETRY
        except Refused:
            return self._now()  # another process has moved the row on

    def _read_on(self, uid: str) -> datetime | None:
        """Read the conversation while the harness has a message of ours that no turn is known to have taken.

        One that it slips into a running turn fires no hook (Claude Code 2.1.197): only the conversation tells of it.
        """
        self._followed_at[uid] = self._now()
        rows, fresh = self._accepted(uid), self._lately_unknown(uid)
        record = self._record((*rows, *fresh)[0]) if rows or fresh else None
        if record is not None:
            unread = self._unread(record)
            rows = [row for row in self._accepted(uid) if row.instance == record.instance_id]
            if rows:
                return self._followed_on(record, rows, unread)
            if unread is None and any(row.instance == record.instance_id for row in self._lately_unknown(uid)):
                return self._now() + _UNKNOWN_POLL
        self._transcripts.forget(uid)
        self.followed.discard(uid)
        return None

    def _read_on_beside(self, row: InboxRow) -> None:
        """Do that once in a while, too, while another message of the session waits."""
        uid, now = row.message.uid, self._now()
        looked_at = self._followed_at.get(uid)
        if row.state in WAITING and (looked_at is None or not looked_at <= now < looked_at + LOOK):
            self._read_on(uid)
            self.followed.add(uid)

    def _unread(self, record: SessionRecord) -> Because | None:
        """Read what the conversation's record tells, and return why it tells nothing; None where it was read."""
        try:
            return None if self._transcripts.read(record) else Because(Reason.NO_RECORD)
        except StoreBroken as error:  # if that is our own database, whoever asks it next is told
            return Because(Reason.RECORD_UNREAD, {"error": error.message})

    def _accepted(self, uid: str) -> list[InboxRow]:
        return list(self._system.inbox.with_states(uid, {MessageState.ACCEPTED}))

    def _lately_unknown(self, uid: str) -> list[InboxRow]:
        """Return what nobody could tell of a moment ago: a slow program's record may tell a moment later."""
        now, rows = self._now(), self._system.inbox.with_states(uid, {MessageState.UNKNOWN}, _LOOK_BACK)
        return [row for row in rows if row.attempt > 0 and row.updated_at <= now < row.updated_at + _STILL_LOOKED_FOR]

    def _followed_on(self, record: SessionRecord, rows: list[InboxRow], unread: Because | None) -> datetime:
        """See to what the live harness has and no turn has taken, and return when to look again.

        Under a pause its own queue would begin a turn, and is taken back. Where it is idle by its own word, and its
        record knows of no turn that took a text, nobody can tell what became of it. `unread`: why its record tells
        nothing; what nothing has told of for as long as texts are kept is not followed for ever.
        """
        now = self._now()
        if any(not is_over(row, now) for row in rows):
            return now + _EVIDENCE_POLL
        sight = self._looker.see(record.name, record)
        if (
            hold_state(record) is HoldState.PAUSED
            and sight.survey is not None
            and held_by_harness(self._system.inbox, record)
        ):
            try:
                with self._system.locks.hold(record.name, "take messages back", _LOCK_SECONDS):
                    take_back(self._system, record, sight.survey)
            except (LockBusy, TmuxSilent):
                pass  # looked at again
            if unread is None:
                return self._now() + _TAKE_BACK_RETRY
        rested = sight.activity.since if sight.activity is not None else now
        idle = sight.observed is Observed.IDLE and (sight.opinion is None or sight.opinion.turn_over)
        days = self._system.settings.limits.retain_text_days
        for row in self._accepted(record.uid):
            known = row.queued_at is not None and unread is None  # its record still has it in the queue
            if row.instance != record.instance_id:
                continue
            if idle and now - max(rested, row.updated_at) >= _NOT_TAKEN:
                self._not_known(row, unread or Because(Reason.NOT_TAKEN))
            elif not known and now - row.updated_at >= timedelta(days=days):
                self._not_known(row, unread or Because(Reason.NEVER_TOLD, {"days": days}))
        return now + (_NOT_TAKEN if idle else LOOK)

    def _not_known(self, row: InboxRow, because: Because) -> None:
        with suppress(Refused):  # another process has moved it on
            self._recorder.settle(row, Settle(MessageState.UNKNOWN, because, text(Remedy.LOOK_FIRST), note=True))

    def _resting(self, row: InboxRow, record: SessionRecord) -> datetime | None:
        """Read what may prove the row, without a lock; return when to look again if only that can move it now."""
        ingest_record(self._system, record)
        if row.instance is not None and row.instance != record.instance_id:
            ingest_record(self._system, replace(record, instance_id=row.instance))  # its last words prove, too
        if row.state not in IN_FLIGHT:
            return None
        self._transcripts.read(record)
        now = self._now()
        written = self._writer.not_before(row)
        if written is not None and written > now:
            return written
        traits = traits_of(self._system.settings, self._system.harnesses, record)
        until = resting_until(row, provable(row.message, traits), traits, timing_of(self._system.settings))
        if until is None or now >= until:
            return None
        activity = self._system.activities.get(record.uid)
        if by_argument(row) and activity is not None and activity.waits_at_start:
            return None  # a person comes first: those behind it are told what they wait for
        current = self._system.inbox.get(row.message.id)
        if current is None or current.state is not row.state:
            return now
        return min(until, now + _EVIDENCE_POLL)

    def _step(self, uid: str) -> Plan | datetime | None:
        """Look again, now that nobody else can move anything, and do what the situation asks for."""
        row = self._first(uid)
        record = self._record(row) if row else None
        if row is None or record is None:
            return self._now()
        if self._held(row):  # it came in since
            return self._now() + _HELD_POLL
        sight, situation, chosen = self._decided(row, record)
        if hold_state(record) is HoldState.NONE and self._looker.has_question(record, sight):
            answered = self._answering(self._rows(uid))
            if answered is not None:
                self._system.activities.touch_message(uid, self._now())
                self._recorder.tell(answered, MessageState.CONFIRMED, answered.because)
                return self._now()
        if not self._ticks.waits(row):
            return self._act(row, record, sight, situation, chosen)
        ticks = [each for each in self._rows(uid) if self._ticks.waits(each)]
        admitted = self._ticks.admit(ticks, record, sight)
        if not admitted:
            return self._now() + LOOK
        return self._act(admitted[0], record, sight, *self._next(admitted[0], record, sight))

    def _decided(self, row: InboxRow, record: SessionRecord) -> tuple[Sight, Situation, Step]:
        """Look and decide. By a look that another has made a moment ago nothing but a paste is decided."""
        if not delivering.looks_anew(row) and not self._ticks.waits(row):
            sight = self._looker.see(record.name, record, remembering=True)
            situation, chosen = self._next(row, record, sight)
            if not sight.remembered or isinstance(chosen, Attempt):
                return sight, situation, chosen
        sight = self._looker.see(record.name, record)
        if sight.observed is Observed.STARTING:
            from core.delivery.hearing import notice_reading

            if notice_reading(self._system, record):
                sight = self._looker.see(record.name, record)
        if sight.observed is Observed.DIALOG and self._dialog_over(record, sight):
            sight = self._looker.see(record.name, record)
        return sight, *self._next(row, record, sight)

    def _next(self, row: InboxRow, record: SessionRecord, sight: Sight) -> tuple[Situation, Step]:
        durable = row.state in IN_FLIGHT and self._durable(record, row)
        situation = self._looker.situation(row, record, sight, durable=durable)
        return situation, step(situation, self._now())

    def _durable(self, record: SessionRecord, row: InboxRow) -> bool:
        return self._transcripts.read(record) and self._transcripts.knows_all_since(record, row)

    # ------------------------------------------------------------ acting

    def _act(
        self, row: InboxRow, record: SessionRecord, sight: Sight, situation: Situation, chosen: Step
    ) -> Plan | datetime | None:
        now = self._now()
        seen = self._screens.before_keys(record) if isinstance(chosen, Attempt | Stash | Clear | Submit) else None
        if seen is not None:
            shown, steady = seen
            if self._screens.is_obstacle(record, shown) and not self._is_filled(chosen, situation, record, shown):
                return self._held_by(row, record, sight, shown, steady)
            if isinstance(chosen, Attempt) and shown.line is not None and shown.line.text:
                if not steady:
                    return now + AGAIN  # a screen that is behind may show the message before it
                if situation.typed_at is None and self._writer.holds_ours(row, situation.traits, shown.line.text):
                    chosen = Clear(now + situation.timing.command)
                else:
                    situation = replace(situation, left=True)
                    chosen = step(situation, now)
        match chosen:
            case Attempt():
                return self._writer.plan(situation, record, sight, chosen) or now
            case Stash() | Clear():
                return self._writer.prepare(situation, record, chosen)
            case Submit(number=number):
                line = seen[0].line if seen is not None else None
                return self._writer.submit(situation, record, sight, number, line.text if line is not None else "")
            case MarkPasted():
                self._recorder.pasted([row])
            case MarkSubmitted(number=number):
                self._recorder.submitted(row, number, final=not situation.provable)
                self._writer.over(row)
            case Settle():
                self._settle(row, chosen)
            case Queue():
                return self._queue(row, record, sight, chosen)
            case BackToPending(because=why):
                self._recorder.move(row, MessageState.PENDING, why)
            case Wait(until=until):
                if sight.observed is Observed.DIALOG:  # which stands before the turn of a message in flight
                    self._let_wait(row, record, sight)
                return min(until, now + LOOK) if until else now + LOOK
        return self._now()

    def _is_filled(self, chosen: Step, situation: Situation, record: SessionRecord, shown: Shown) -> bool:
        """Return whether our own text fills the screen, so that only the end of the input line is visible."""
        if not isinstance(chosen, Submit) or shown.form is not Form.OTHER:
            return False
        return self._writer.shows(situation, record, "\n".join(shown.view.rows))

    def _held_by(
        self, row: InboxRow, record: SessionRecord, sight: Sight, shown: Shown, steady: bool
    ) -> datetime | None:
        """Write nothing into a screen without an input line, and say so once it was seen twice and drawn anew."""
        if not steady:
            return self._now() + AGAIN
        if shown.dialog is not None and hold(self._system, record, shown.dialog):
            return self._now()  # looked at anew, and decided by that
        if shown.form is Form.OTHER and self._screens.redraw(record):
            return self._now() + _REDRAWN
        why, remedy = Because(Reason.NO_INPUT_LINE), text(Remedy.BACK_TO_INPUT, name=record.name)
        if shown.line is not None and shown.line.mode:
            why = Because(Reason.IN_MODE, {"mode": shown.line.mode})
            remedy = text(Remedy.LEAVE_MODE, name=record.name)
        for each in self._rows(record.uid):
            first = each.message.id == row.message.id and each.state in WAITING
            if (first or each.state is MessageState.PENDING) and each.message.kind not in TICKS:
                self._recorder.wait(each, why, remedy, note=True)
        return self._now() + LOOK

    def _dialog_over(self, record: SessionRecord, sight: Sight) -> bool:
        """Return whether the dialog that was open is so no more: without a service nobody else looks."""
        pane = sight.survey.of_instance(record.instance_id or "") if sight.survey else None
        return self._dialogs.follow(record, pane, sight.survey)

    def _void(self, uid: str) -> datetime | None:
        """Cancel what was meant for a session that is gone; what was in flight cannot be told."""
        for row in self._rows(uid):
            state = MessageState.CANCELLED if row.state in WAITING else MessageState.UNKNOWN
            self._settle(row, Settle(state, Because(Reason.DELETED)))
        return None

    def _settle(self, row: InboxRow, settle: Settle) -> None:
        self._recorder.settle(row, settle)
        self._writer.over(row)

    def _queue(self, first: InboxRow, record: SessionRecord, sight: Sight, queue: Queue) -> datetime:
        """Let the first row wait, and those behind it that the gate would let wait."""
        self._recorder.wait(first, queue.because, queue.remedy, note=queue.note)
        self._let_wait(first, record, sight)
        return queue.until or self._now() + LOOK

    def _let_wait(self, first: InboxRow, record: SessionRecord, sight: Sight) -> None:
        """Let those behind the first row wait that the gate would let wait."""
        behind = [row for row in self._rows(record.uid) if row.message.id != first.message.id]
        for ahead, row in enumerate(self._ticks.admit(behind, record, sight), start=1):
            kept = row.reason is Reason.STARTING  # a start that is over
            if row.state is MessageState.PENDING or kept:
                decision = self._looker.gate(wake_of(row.message.kind), sight, record.name, record, ahead, kept=kept)
                if decision.action is Action.QUEUE:
                    self._recorder.wait(row, decision.because, decision.remedy, note=decision.note)

    # ------------------------------------------------------------ without a service

    def run(self, uid: str, until_row: str, deadline: datetime) -> InboxRow | None:
        """Deliver the session's rows up to that one, and return it once it is over, waits for long, or time is up.

        Nobody delivers it afterwards, so that a screen without an input line is given its time: one that is drawn anew,
        at a resume or after `/clear`, shows none for a moment.
        """
        drawn = self._now() + _DRAWN
        while True:
            following = self.advance(uid)
            row = self._system.inbox.get(until_row)
            now = self._now()
            long = row is not None and waits_long(row) and not is_soon(following, now)
            draws = row is not None and row.reason is Reason.NO_INPUT_LINE and now < drawn
            long = long and not draws
            if row is None or is_over(row, now) or long or self._only_served(uid) or now >= deadline:
                return row
            if following is not None and following > now:
                pause = min(following, deadline, now + (_HELD_POLL if draws else _EVIDENCE_POLL)) - now
                self._system.clock.pause(max(0.0, pause.total_seconds()))

    def _only_served(self, uid: str) -> bool:
        """Return whether what goes in first needs a service, and all behind it with it."""
        rows = self._rows(uid)
        return bool(rows) and rows[0].reason is Reason.NEEDS_SERVICE


def is_over(row: InboxRow, now: datetime) -> bool:
    """Return whether nothing more will be known of the row in a moment.

    What the harness has said to have received is in a turn within a moment, by its record, or waits in its own queue.
    """
    if row.state is MessageState.ACCEPTED:
        fresh = row.updated_at <= now < row.updated_at + delivering.RECORD_WINDOW  # else it is old, or by another clock
        return row.queued_at is not None or not fresh
    return row.final or row.state not in WAITING | IN_FLIGHT


def is_soon(following: datetime | None, now: datetime) -> bool:
    """Return whether the next step is due so soon that it may be waited for, whatever its row is said to wait for."""
    return following is not None and following <= now + delivering.TOOL_MARGIN


def waits_long(row: InboxRow) -> bool:
    """Return whether the row waits for something that its sender need not wait for."""
    return row.state is MessageState.QUEUED and row.reason not in delivering.PASSING


_LOG = logger(__name__)
_LOOK = timedelta(seconds=5)
_TOGETHER = 64  #: sessions whose messages are pasted together: their verbs wait for their locks meanwhile
_IDLE_SECONDS = 0.5  #: the longest rest: a row that nobody told of is seen within it


class DeliveryWorker:
    """Drives a Deliverer by timers and wakes. Nothing here sleeps for one session."""

    def __init__(self, clock: Clock, inbox: Inbox, deliverer: Deliverer) -> None:
        self._clock = clock
        self._inbox = inbox
        self._deliverer = deliverer
        self._due: dict[str, datetime] = {}
        self._lock = threading.Lock()
        self._stepping = threading.Lock()  #: the deliverer belongs to one thread at a time
        self._woken: set[str] = set()
        self._all = False
        self._follows = False
        self._wake = threading.Event()

    def wake(self, uid: str | None = None) -> None:
        """Something changed for the session, or, without one, for any. Callable from every thread."""
        with self._lock:
            if uid is None:
                self._all = True
            else:
                self._woken.add(uid)
        self._wake.set()

    def at_once(self, uids: Collection[str]) -> None:
        """Take the sessions' next step in the caller's thread, which has just given them something to do.

        Saves a message the way to another thread. Where a step is being taken that one is followed by theirs.
        """
        if not uids:
            return
        if self._stepping.acquire(blocking=False):
            try:
                self._step(list(uids))
            except CoreError as error:
                _LOG.warning("cannot tell what is to be delivered", extra={"reason": str(error)})
            finally:
                self._stepping.release()
            self._wake.set()  # for the step after that
        else:
            for uid in uids:
                self.wake(uid)

    def run(self, stopping: threading.Event) -> None:
        """Deliver until told to stop; a step that began is finished."""
        while not stopping.is_set():
            self._wake.wait(self._turned())
            self._wake.clear()

    def _turned(self) -> float:
        """Take a turn; a database that cannot be asked is told of and asked again, and ends no worker."""
        try:
            if not self._follows:
                self._deliverer.follow(self._inbox.accepted_uids())
                self._follows = True
            return self.turn()
        except CoreError as error:
            _LOG.warning("cannot tell what is to be delivered", extra={"reason": str(error)})
            return _LOOK.total_seconds()

    def turn(self) -> float:
        """Give each session whose time has come one step, and return the seconds until the next is due.

        Raises StoreBroken.
        """
        with self._stepping:
            self._take_wakes()
            uids = set(self._inbox.busy_uids()) | self._deliverer.followed
            now = self._clock.now()
            self._due = {uid: due for uid, due in self._due.items() if uid in uids}
            due = [uid for uid in uids if self._is_due(self._due.get(uid, now), now)]
            for begin in range(0, len(due), _TOGETHER):
                self._step(due[begin : begin + _TOGETHER])
            now = self._clock.now()
            rest = min((due - now for due in self._due.values()), default=timedelta(seconds=_IDLE_SECONDS))
        return min(max(0.0, rest.total_seconds()), _IDLE_SECONDS)

    @staticmethod
    def _is_due(due: datetime, now: datetime) -> bool:
        return due <= now or due > now + 2 * _LOOK  # the latter: the clock was set back

    def _step(self, uids: list[str]) -> None:
        for uid, outcome in self._deliverer.advance_all(uids).items():
            if isinstance(outcome, CoreError):
                _LOG.warning("message cannot be moved on", extra={"session": uid, "reason": str(outcome)})
            self._due[uid] = outcome if isinstance(outcome, datetime) else self._clock.now() + _LOOK

    def _take_wakes(self) -> None:
        with self._lock:
            if self._all:
                self._due.clear()
            for uid in self._woken:
                self._due.pop(uid, None)
            self._deliverer.follow(self._woken)  # what its harness reported to have may be in a turn by now
            self._woken.clear()
            self._all = False
