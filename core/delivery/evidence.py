"""Which messages a turn has taken, according to the harness's own records: hook reports and the transcript."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from core.base.errors import StoreBroken, TrustFailed
from core.base.values import dataclass, replace
from core.delivery.snapshot import believe_end
from core.model.delivering import by_argument
from core.model.framing import is_pasted, takes
from core.model.gate import HoldState, hold_state
from core.model.harness import (
    HarnessEvent,
    PromptReported,
    TextBlocked,
    TextQueued,
    TextReturned,
    TextTaken,
    TurnEnded,
    TurnFailed,
)
from core.model.message import IN_FLIGHT, MESSAGES, TRANSITIONS, WAITING, InboxRow, Kind, MessageState
from core.model.observing import follow, is_of_running_turn, shown_by, tells_of_paste, without_queue
from core.model.reasons import Because, Reason, Remedy
from core.model.session import SessionRecord
from core.model.texts import text
from core.session.folder import context_of
from core.session.notes import line_emptied, note_for
from core.session.sessions import activity_of, resolve_record
from core.session.system import System

if TYPE_CHECKING:
    from core.model.harness import Transcript
    from core.store.eventlog import EventLog
    from core.store.inbox import Inbox
    from core.store.sessions import Activities


_OPEN = IN_FLIGHT | {MessageState.ACCEPTED, MessageState.UNKNOWN, MessageState.PENDING, MessageState.QUEUED}
_HAD = IN_FLIGHT | {MessageState.ACCEPTED, MessageState.CONFIRMED, MessageState.UNKNOWN}
_ROUNDED = timedelta(milliseconds=10)  #: a harness tells the moment in whole milliseconds
_ENTERED = timedelta(seconds=15)  #: from a paste to the last Enter of it that its harness may queue
_LOOK_BACK = 50  #: attempted rows that a record may still prove, those settled as unknown and accepted among them


def settle_by(
    system: System, record: SessionRecord, events: Iterable[HarnessEvent], at: datetime | None = None
) -> tuple[InboxRow, ...]:
    """Move on every row of the session that one of the events concerns, and return those that moved.

    A row is confirmed by the conversation's own record of its text alone: of a turn that the harness's own queue began
    no hook tells, and a text that is reported in it seems to have begun it. A text that is only reported, or stands in
    the harness's own queue, makes its row accepted. One event may concern several, since harnesses join what was
    queued. `at`: when the events were reported, None for what the conversation holds. Part of the open transaction,
    before the activity follows.
    """
    moved: list[InboxRow] = []
    for event in events:
        match event:
            case PromptReported(internal=False, prompt=prompt, turn=turn, pasted=pasted):
                activity = activity_of(system.activities, record)
                queued = activity is not None and is_of_running_turn(activity, turn)
                moved += _accepted(system, record, prompt, at, at if queued else None, pasted)
            case TextQueued(prompt="", at=since):
                moved += _queued_unnamed(system.inbox, record, since) if since is not None else []
            case TextQueued(prompt=prompt, at=since, pasted=pasted):
                moved += _accepted(system, record, prompt, since, since or system.clock.now(), pasted)
            case TextTaken(internal=False, prompt=prompt, pasted=pasted):
                moved += _confirmed(
                    system.inbox,
                    system.activities,
                    _holding(system.inbox, record.uid, prompt),
                    system.clock.now(),
                    pasted,
                )
            case TurnEnded(turn=turn) | TurnFailed(turn=turn) if turn and awaiting_record(system, record, turn):
                moved += _settle_recorded(system, record)
            case TextBlocked(prompt=prompt, why=why, at=since):
                _blocked(system, record, prompt, why, since)
            case TextReturned(prompt="", at=since):  # all of it comes back at once
                moved += _come_back(system, record, _queued_in(system.inbox, record), since)
            case TextReturned(prompt=prompt, at=since):
                moved += _come_back(system, record, _holding(system.inbox, record.uid, prompt), since)
    return tuple(moved)


def _holding(inbox: Inbox, uid: str, prompt: str) -> Iterator[InboxRow]:
    return (row for row in candidates(inbox, uid) if takes(prompt, row.message))


def _accepted(
    system: System,
    record: SessionRecord,
    prompt: str,
    at: datetime | None,
    queued_at: datetime | None,
    pasted: tuple[str, ...] = (),
) -> list[InboxRow]:
    """Note that the harness has the text; `queued_at`: since when its own queue is known to hold it."""
    moved: list[InboxRow] = []
    for row in _holding(system.inbox, record.uid, prompt):
        if before_attempt(at, row) or MessageState.ACCEPTED not in TRANSITIONS[row.state]:
            continue
        if row.state is MessageState.ACCEPTED and (row.queued_at is not None or queued_at is None):
            continue  # that much is known
        again = at if row.queued_at is not None else None  # it came back once: what is told of that is past by now
        why = _told_as(row, pasted)
        after = system.inbox.advance(row, MessageState.ACCEPTED, why, queued_at=queued_at or again)
        moved += [after] if queued_at is not None else []  # a receipt alone is not told of: more is known in a moment
        _touch(system.activities, row, system.clock.now())
    return moved


def _told_as(row: InboxRow, pasted: tuple[str, ...]) -> Because | None:
    """Return what is to be said of a text that its model gets, or gets soon, as pasted; None for all others."""
    pasted_now = row.reason is Reason.AS_PASTED or is_pasted(pasted, row.message)
    return Because(Reason.AS_PASTED) if pasted_now else None


def _confirmed(
    inbox: Inbox, activities: Activities, rows: Iterable[InboxRow], now: datetime, pasted: tuple[str, ...] = ()
) -> list[InboxRow]:
    moved: list[InboxRow] = []
    for row in rows:
        if MessageState.CONFIRMED in TRANSITIONS[row.state]:
            moved.append(inbox.advance(row, MessageState.CONFIRMED, _told_as(row, pasted)))
            _touch(activities, row, now)
    return moved


def _touch(activities: Activities, row: InboxRow, now: datetime) -> None:
    if row.message.kind in MESSAGES:
        activities.touch_message(row.message.uid, now)


def awaiting_record(system: System, record: SessionRecord, turn: str) -> tuple[InboxRow, ...]:
    """Return what was reported as the running turn began, which has that id, and no record told of yet."""
    activity = activity_of(system.activities, record)
    if activity is None or activity.turn != turn or activity.turn_started_at is None:
        return ()
    began = activity.turn_started_at - _ROUNDED
    return tuple(
        row
        for row in system.inbox.with_states(record.uid, {MessageState.ACCEPTED})
        if row.queued_at is None and row.instance == record.instance_id and row.updated_at >= began
    )


def _settle_recorded(system: System, record: SessionRecord) -> tuple[InboxRow, ...]:
    """Settle what the conversation's record holds by now: a turn that was over in a moment ends before it is read.

    What follows from a turn's end concerns the messages that are known to be in it. A record that cannot be read
    proves nothing, and keeps no end from being taken in.
    """
    try:
        transcript = _opened(system, record, from_start=True)
        taken = () if transcript is None else transcript.new_events()
    except StoreBroken:
        return ()
    return settle_by(system, record, (event for event in taken if isinstance(event, TextTaken)))


def _blocked(system: System, record: SessionRecord, prompt: str, why: str, at: datetime | None) -> None:
    """Tell of what a hook that is not ours has blocked: no turn has it, and it would be blocked again."""
    for row in _holding(system.inbox, record.uid, prompt):
        taken_in = row.state in IN_FLIGHT or row.state is MessageState.ACCEPTED
        if taken_in and not before_attempt(at, row):
            _give_up(system, row, Because(Reason.BLOCKED, {"why": why}), text(Remedy.WRITE_OTHERWISE))


def _queued_unnamed(inbox: Inbox, record: SessionRecord, at: datetime) -> list[InboxRow]:
    """Note that the harness's own queue holds what was entered a moment ago: nothing else is on its way then."""
    rows = inbox.with_states(record.uid, {MessageState.PASTED, MessageState.SUBMITTED})
    mine = [row for row in rows if row.instance == record.instance_id and row.pasted_at is not None]
    if (
        len(mine) != 1
        or mine[0].pasted_at is None
        or not mine[0].pasted_at - _ROUNDED <= at <= mine[0].pasted_at + _ENTERED
    ):
        return []
    return [inbox.advance(mine[0], MessageState.ACCEPTED, queued_at=at)]


def _queued_in(inbox: Inbox, record: SessionRecord) -> Iterator[InboxRow]:
    """Yield what the live instance's own queue is known to hold."""
    for row in inbox.with_states(record.uid, {MessageState.ACCEPTED}):
        if row.instance == record.instance_id and row.queued_at is not None:
            yield row


def _come_back(system: System, record: SessionRecord, rows: Iterable[InboxRow], at: datetime | None) -> list[InboxRow]:
    """See to what the harness's own queue gave back: under a pause it waits in ours, else a person has it."""
    paused = hold_state(system.records.read(record.name)) is HoldState.PAUSED
    moved: list[InboxRow] = []
    for row in rows:
        if row.state is not MessageState.ACCEPTED or before_attempt(at, row):
            continue
        if paused:
            _let_wait(system.inbox, row, Because(Reason.TAKEN_BACK))
        else:
            _give_up(system, row, Because(Reason.AT_TERMINAL), text(Remedy.SENT_THERE))
    return moved


def was_pasted(system: System, record: SessionRecord, event: HarnessEvent) -> bool:
    """Return whether the event tells of a text that we have pasted into the live instance, and that shows how pastes
    reach its model. A boot prompt that was the program's argument, and what a person typed, shows nothing of that."""
    if not isinstance(event, PromptReported | TextTaken) or not tells_of_paste(event.prompt, event.pasted):
        return False
    rows = system.inbox.with_states(record.uid, _HAD, _LOOK_BACK)
    ours = (row.message for row in rows if row.instance == record.instance_id and not by_argument(row))
    return any(takes(event.prompt, message) for message in ours)


def before_attempt(at: datetime | None, row: InboxRow) -> bool:
    """Return whether what was told at that moment is about an earlier stay in the harness: the text came back since.

    A record may be read again from its start, and then tells once more what is long past.
    """
    if row.state in WAITING or (row.state is MessageState.UNKNOWN and row.queued_at is not None):
        began = row.updated_at
    else:
        began = row.queued_at or row.pasted_at or row.updated_at
    return at is not None and at < began - _ROUNDED


def candidates(inbox: Inbox, uid: str) -> tuple[InboxRow, ...]:
    """Return the rows that evidence may still move: attempted ones that no turn is known to have taken.

    However many wait behind them.
    """
    return inbox.attempted(uid, _OPEN, _LOOK_BACK)


def tell(events: EventLog, rows: Iterable[InboxRow]) -> None:
    """Emit an event for each row that evidence has moved."""
    for row in rows:
        events.emit(
            "standing.confirmed",
            name=row.message.name,
            actor=row.message.actor,
            instance=row.instance,
            generation=row.message.generation,
            message=row.message.id,
            reason=row.detail or None,
            detail=row.state,
        )


def take_in(system: System, record: SessionRecord, events: Sequence[HarnessEvent]) -> None:
    """Settle what the conversation shows, and with it what the session does: no hook tells of a turn that the harness's
    own queue began. Raises StoreBroken."""
    with system.database.transaction(durable=False):
        _end_before(system, record, events)
        moved = settle_by(system, record, events)
        told = _tell_failed(system, record, events, moved)
        _follow(system, record, events)
    tell(system.events, moved)
    if told:
        system.notify()


def _end_before(system: System, record: SessionRecord, events: Sequence[HarnessEvent]) -> None:
    """Believe that the turn is over of which hooks told, where another one has begun: before that one's messages count
    as taken, with which it has nothing to do."""
    known = activity_of(system.activities, record)
    begun = [event.turn for event in events if isinstance(event, TextTaken) and event.begins]
    if known is not None and known.ending and begun and begun[-1] not in ("", known.turn):
        believe_end(system, record, known)


def _tell_failed(
    system: System, record: SessionRecord, events: Sequence[HarnessEvent], moved: Sequence[InboxRow]
) -> bool:
    """Tell of the messages that a turn took which failed at once: its hook told so before the record had the text.

    Return whether there is something to post.
    """
    known = activity_of(system.activities, record)
    told = next((each.args for each in known.remarks if each.reason is Reason.TURN_FAILED), None) if known else None
    if known is None or told is None or not known.ended_turn:
        return False
    prompts = [event.prompt for event in events if isinstance(event, TextTaken) and event.turn == known.ended_turn]
    confirmed = [row.message for row in moved if row.state is MessageState.CONFIRMED]
    failed = [each.id for each in confirmed if any(takes(prompt, each) for prompt in prompts)]
    if not failed:
        return False
    from core.delivery.hearing import note_failure
    from core.delivery.hook_ingest import why_silenced

    system.marks.end(dict.fromkeys(failed, True))
    if why_silenced(record, system.records.read(record.name)) is not None:
        return False
    return note_failure(system, str(told["why"]), str(told["remedy"]), failed) > 0


def _follow(system: System, record: SessionRecord, events: Sequence[HarnessEvent]) -> None:
    before = activity_of(system.activities, record)
    if before is None:
        return
    now, after = system.clock.now(), before
    begun = [event for event in events if isinstance(event, TextTaken) and event.begins]
    if begun:  # the latest alone: of those before it the turns are over
        after = follow(after, begun[-1], now)
    for event in events:
        shown = shown_by(after, event, "", now, was_pasted=was_pasted(system, record, event))
        after = replace(after, shown=shown)
    blocked = next((event for event in reversed(events) if isinstance(event, TextBlocked)), None)
    began = before.turn_started_at
    if blocked is not None and not begun and blocked.at and began and began - _ROUNDED <= blocked.at:
        after = follow(after, blocked, now)
    if not any(row.queued_at for row in system.inbox.with_states(record.uid, {MessageState.ACCEPTED})):
        after = without_queue(after, now)
    if after != before:
        system.activities.put(after)


@dataclass(frozen=True)
class _Read:
    """A conversation that is being read."""

    instance: str | None
    conversation: str | None
    transcript: Transcript | None


class Transcripts:
    """The conversations of the sessions with a message in flight, read forward.

    Each is opened before the paste, so that a look costs what was added since. After a crash of ours it is read from
    its start once. Belongs to one thread.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._open: dict[str, _Read] = {}  #: by uid

    def open(self, record: SessionRecord) -> None:
        """Begin to read the record's conversation where it ends now. Raises StoreBroken."""
        self._turn_to(record, from_start=False)
        self.read(record)

    def read(self, record: SessionRecord) -> bool:
        """Settle what was added since; False where the harness keeps no record. Raises StoreBroken."""
        transcript = self._turn_to(record, from_start=True)
        self._take(record, transcript)
        return transcript is not None

    def _take(self, record: SessionRecord, transcript: Transcript | None) -> None:
        events = () if transcript is None else transcript.new_events()
        if events:
            take_in(self._system, record, events)

    def forget(self, uid: str) -> None:
        """Close the session's conversation: it has nothing in flight."""
        self._open.pop(uid, None)

    def _turn_to(self, record: SessionRecord, *, from_start: bool) -> Transcript | None:
        """Return the conversation that the record is in, opened where it was not.

        Where a person has begun another one in the same program (`/clear`), what the earlier one still tells is taken
        in, and the new one is read from its start: it may have taken what is known to be queued.
        """
        before = self._open.get(record.uid)
        if before is not None and before.instance == record.instance_id:
            if before.conversation == record.conversation:
                return before.transcript
            self._take(record, before.transcript)
            from_start = True
        transcript = _opened(self._system, record, from_start=from_start)
        self._open[record.uid] = _Read(record.instance_id, record.conversation, transcript)
        return transcript

    def knows_all_since(self, record: SessionRecord, row: InboxRow) -> bool:
        """Return whether the record's conversation is the one that the row was meant for.

        A fresh start since the attempt began another conversation, which says nothing about the row.
        """
        boots = (
            other
            for other in self._system.inbox.with_states(record.uid, frozenset(MessageState))
            if other.message.kind is Kind.BOOT
        )
        return all(other.message.created_at <= row.updated_at for other in boots if other.message.id != row.message.id)


def _opened(system: System, record: SessionRecord, *, from_start: bool) -> Transcript | None:
    resolved = resolve_record(record, system.settings)
    context = context_of(system.paths, record, resolved, record.instance_id or "")
    return system.harnesses.get(resolved.harness).transcript(context, from_start=from_start)


def give_back(system: System, record: SessionRecord, instance: str | None) -> bool:
    """Settle what an ended harness had in its own queue, and tell whether there was anything.

    `instance` is the one that lives, if any; rows of another are looked up in the conversation. What it does not know
    is tried again, and what nobody can tell is unknown, and said: where no record is found nothing tells what a turn
    took. Raises StoreBroken.
    """
    if instance is None:
        line_emptied(system, record.uid)
    lost = [row for row in system.inbox.with_states(record.uid, {MessageState.ACCEPTED}) if row.instance != instance]
    if not lost:
        return False
    transcripts, unread = Transcripts(system), None
    try:
        kept = transcripts.read(record) and _is_recorded(system, record)
    except (StoreBroken, TrustFailed) as error:  # if that is our own database, whoever asks it next is told
        kept, unread = False, Because(Reason.RECORD_UNREAD, {"error": error.message})
    for earlier in lost:
        row = system.inbox.get(earlier.message.id)
        if row is None or row.state is not MessageState.ACCEPTED:
            continue  # the conversation has it
        if kept and not by_argument(row) and transcripts.knows_all_since(record, row):
            _let_wait(system.inbox, row, Because(Reason.HARNESS_ENDED))
        else:
            _give_up(system, row, unread or Because(Reason.HARNESS_ENDED), text(Remedy.LOOK_FIRST))
    return True


def _let_wait(inbox: Inbox, row: InboxRow, because: Because) -> InboxRow:
    """Let a message that the program gave back wait again; one that its author has deleted meanwhile is cancelled."""
    waiting = inbox.advance(row, MessageState.PENDING, because)
    if row.reason is Reason.AUTHOR_DELETED:
        return inbox.advance(waiting, MessageState.CANCELLED, Because(Reason.AUTHOR_DELETED))
    return waiting


def _is_recorded(system: System, record: SessionRecord) -> bool:
    """Return whether the conversation's record is found, in the form that is read. Raises TrustFailed."""
    resolved = resolve_record(record, system.settings)
    context = context_of(system.paths, record, resolved, record.instance_id or "")
    return system.harnesses.get(resolved.harness).resumable(context)


def _give_up(system: System, row: InboxRow, because: Because, remedy: str) -> None:
    """Nobody can tell what becomes of the row, which is said where it came from."""
    with system.database.transaction(durable=False):
        moved = system.inbox.advance(row, MessageState.UNKNOWN, because)
        note = note_for(system, moved, MessageState.UNKNOWN, because, remedy)
        if note is not None:
            system.outbox.add([note])
    system.events.emit("standing.unconfirmed", name=row.message.name, reason=because.text, message=row.message.id)
