"""pause, resume and restart.

A pause is a durable mark. Under it nothing of ours starts a turn: what comes in waits, and background jobs go on.
Messages that the harness holds in a queue of its own would start a turn after the running one, so they are taken back.
resume clears the mark, and what waited goes in, in order. restart ends the harness gracefully and starts it with the
same conversation; the queue, the generation and a pause are kept.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from core.base.clock import Clock, Deadline
from core.base.errors import CoreError, InvalidValue, NotRunning, Refused, StoreBroken, TmuxMissing, TmuxSilent
from core.base.failpoints import Failpoint, failpoint
from core.base.names import new_marker, new_message_id, target_for
from core.base.text import reason_of
from core.base.values import dataclass, replace
from core.delivery.deliverer import Deliverer, is_soon
from core.delivery.evidence import give_back
from core.delivery.harness_queue import Left, held_by_harness, read_on, take_back, take_back_behind
from core.lifecycle.announce import announce_hold
from core.lifecycle.common import (
    Tmux,
    VerbResult,
    foreign,
    lock,
    running_record,
    take_reports,
    tell_thread,
    told_of,
    write_record,
)
from core.lifecycle.ending import end_recorded
from core.lifecycle.interrupt import NoTurn, Pressed, interruptible, press, settle, take_down, take_last_reports
from core.lifecycle.look import rows_told
from core.lifecycle.recover import finish_stop
from core.lifecycle.spawn import StartOrder
from core.lifecycle.start import refuse_foreign, start_each
from core.model.asking import Press
from core.model.delivering import PASSING, awaits_confirmation
from core.model.framing import takes
from core.model.gate import HoldState, hold_state
from core.model.harness import TurnSeen
from core.model.message import IN_FLIGHT, MESSAGES, InboxRow, MessageState, sent_again
from core.model.reasons import Because, Reason, Remedy
from core.model.rows import Answer, Row
from core.model.session import Hold, HoldKind, Live, Outcome, Phase, SessionEvent, SessionRecord
from core.model.texts import text
from core.process.presence import running_service
from core.session.commands import exact_for
from core.session.conversations import check_conversation
from core.session.folder import clear_hold_file, set_hold_file
from core.session.notes import note_for
from core.session.sessions import Known, activity_of, definition_of, resolve
from core.session.system import System
from core.store.inbox import Inbox
from core.tmux.runner import Runner

SOFT, HARD = "soft", "hard"
_BEGINS_WITHIN = timedelta(seconds=10)  #: from the Enter of a message to its turn: 0.1 s, on a busy machine more
_ARRIVES_SECONDS = 3.0  #: for a turn that such a message may begin
_POLL_SECONDS = 0.05
_NEXT_SECONDS = 2.0  #: from the end of a turn to the one that its own queue begins: 0.1 s, on a busy machine more
_LOOK_BACK = 50  #: messages whose fate is not known
_DOUBTFUL = IN_FLIGHT | {MessageState.ACCEPTED, MessageState.UNKNOWN}


def pause_standing(system: System, name: str, actor: str, reason: str = "", *, hard: bool = False) -> Answer:
    """Pause the session: its turn ends by itself (soft) or is interrupted (hard), and no other begins until it is
    resumed.

    A second pause changes nothing, but that a hard one follows a soft one; a mark is never weakened. Raises
    UnknownSession, InvalidValue, RecordUnreadable, NotRunning with the start command, and Refused for a hard pause of a
    harness without a key that ends a turn.
    """
    try:
        running_record(system.settings, system.records, name, "paused")
        take_last_reports(system.paths, system.records, system.ingest, name)
        with lock(system.settings, system.locks, name, "pause"):
            record = running_record(system.settings, system.records, name, "paused")
            if hard:
                interruptible(system.settings, system.harnesses, record)
            _mark(system, record, actor, reason_of(reason), HARD if hard else SOFT)
            if _in_doubt(system, record):
                read_on(system, record)  # its own queue may hold what nobody knows the fate of
            left = _take_back(system, record)
            doubtful = _in_doubt(system, record)
            pressed = _press(system, record, actor) if hard else None
            if isinstance(pressed, Pressed) and pressed.dialog and left.count:
                left = take_back_behind(system, record, pressed.pane)
        told = _told(system, record, pressed, left, doubtful, actor)
    except (Refused, LookupError, InvalidValue):
        raise
    except CoreError as error:
        told = told_of(error)
    return Answer(rows_told(system, {name: told}))


def pause_named(system: System, names: Sequence[str], actor: str) -> Answer:
    """Pause these sessions, each as `pause_standing` does; what is refused of one is its row's word."""
    rows: list[Row] = []
    for name in names:
        try:
            rows += pause_standing(system, name, actor).sessions
        except CoreError as error:
            rows.append(Row(name).told(Outcome.FAILED, exact_for(system.settings, system.environ, str(error))))
    return Answer(tuple(rows))


def _mark(system: System, record: SessionRecord, actor: str, reason: str, policy: str) -> None:
    """Block turns that nobody types, then commit the mark: the file is there for as long as the mark is."""
    before = record.hold
    if hold_state(record) is HoldState.PAUSED and before is not None and (policy == SOFT or before.policy == HARD):
        return
    with failpoint(Failpoint.PAUSE_HOLD):
        set_hold_file(system.paths, record.uid)
    hold = Hold(HoldKind.PAUSED, actor, reason, system.clock.now(), policy)
    with failpoint(Failpoint.PAUSE_MARK):
        held = write_record(system.records, system.bindings, system.activities, replace(record, hold=hold))
        tell_thread(system, record, "paused", hold, Press.RESUME)
        announce_hold(system, held)
    system.events.emit(
        "standing.paused",
        name=record.name,
        actor=actor,
        reason=reason or None,
        detail=policy,
        instance=record.instance_id,
        generation=record.generation,
    )
    system.notify()


def _take_back(system: System, record: SessionRecord) -> Left:
    """Take back what the harness's own queue holds. The mark stands: what cannot be taken back is only said, and the
    service tries it again."""
    if not held_by_harness(system.inbox, record):
        return Left(0)
    try:
        return take_back(system, record, system.runner.survey())
    except (TmuxSilent, TmuxMissing) as error:
        return Left(len(held_by_harness(system.inbox, record)), error.message)


def _press(system: System, record: SessionRecord, actor: str) -> Pressed | VerbResult:
    """Interrupt the turn; the mark stands, so that what cannot be interrupted is only said.

    One that a message on its way is about to begin is waited for: where no hook holds it up it begins all the same.
    """
    deadline = Deadline(system.clock, _ARRIVES_SECONDS)
    while True:
        try:
            return press(system, record, actor)
        except NotRunning as error:
            return VerbResult(Outcome.PAUSED, error.message)
        except NoTurn:
            if not _is_on_its_way(system.inbox, record, system.clock.now()):
                return VerbResult(Outcome.PAUSED, "no turn was running")
        if deadline.passed():
            return VerbResult(
                Outcome.UNCONFIRMED, "a message was on its way to its program, and may still begin a turn"
            )
        system.clock.pause(_POLL_SECONDS)
        take_reports(system.paths, system.ingest, record)


def _in_doubt(system: System, record: SessionRecord) -> tuple[InboxRow, ...]:
    """Return what the live instance may have in its own queue: no turn is known to have taken it.

    Such a queue is empty as a turn begins, so that what is unknown since before that is not in it.
    """
    rows, activity = system.inbox.with_states(record.uid, _DOUBTFUL, _LOOK_BACK), activity_of(system.activities, record)
    began = activity.turn_started_at if activity is not None else None
    found = (row for row in rows if row.instance == record.instance_id and row.attempt > 0 and not row.final)
    return tuple(
        row for row in found if row.state is not MessageState.UNKNOWN or began is None or row.updated_at >= began
    )


def _is_on_its_way(inbox: Inbox, record: SessionRecord, now: datetime) -> bool:
    """Return whether the Enter of a message was written a moment ago, and nothing tells yet what became of it."""
    return any(
        row.instance == record.instance_id
        and not row.final
        and row.submitted_at is not None
        and row.submitted_at <= now < row.submitted_at + _BEGINS_WITHIN
        for row in inbox.with_states(record.uid, frozenset({MessageState.SUBMITTED}))
    )


def _told(
    system: System,
    record: SessionRecord,
    pressed: Pressed | VerbResult | None,
    left: Left,
    doubtful: Sequence[InboxRow],
    actor: str,
) -> VerbResult:
    """Return what is answered. `doubtful`: what the harness's own queue may have held as the key was pressed."""
    told = settle(system, pressed, actor) if isinstance(pressed, Pressed) else pressed or VerbResult(Outcome.PAUSED, "")
    fate = _CutOff()
    if isinstance(pressed, Pressed) and doubtful and told.outcome is Outcome.INTERRUPTED:
        ended = _end_next(system, record, actor)
        told = ended or told
        fate = _see_to_cut_off(system, record, pressed, doubtful) if ended is not None else fate
    if told.outcome not in (Outcome.INTERRUPTED, Outcome.PAUSED):
        return VerbResult(Outcome.UNCONFIRMED, f"it is paused, but {told.detail}")
    if fate.told:
        return VerbResult(
            Outcome.UNCONFIRMED,
            f"it is paused, but {_messages(fate.told)} from its program's own queue had already begun a turn, and "
            "this turn was cut off; the thread tells the senders",
        )
    left = left if not left.count else Left(len(held_by_harness(system.inbox, record)), left.why)
    if left.count:
        return VerbResult(
            Outcome.UNCONFIRMED,
            f"it is paused, but {_messages(left.count)} could not be taken back from its harness's own queue, and will "
            f"begin another turn once this one is over: {left.why}",
        )
    if fate.kept:
        again = f"{_messages(fate.kept)} of its program's own queue had begun another one, which was cut off before it "
        return VerbResult(Outcome.PAUSED, f"{told.detail}; {again}answered: it waits again, and goes in at the resume")
    return VerbResult(Outcome.PAUSED, told.detail)


def _messages(count: int) -> str:
    return "1 message" if count == 1 else f"{count} messages"


@dataclass(frozen=True)
class _CutOff:
    """What was done for the messages of a turn that was cut off: how many wait again, and of how many that is told."""

    kept: int = 0
    told: int = 0


def _end_next(system: System, record: SessionRecord, actor: str) -> VerbResult | None:
    """End what the harness's own queue begins as the turn is ended; None where nothing began.

    No hook tells of it: its record is read on, and its second source asked, for as long as such a turn takes to begin.
    """
    told, deadline = None, Deadline(system.clock, _NEXT_SECONDS)
    while True:
        read_on(system, record)
        try:
            with lock(system.settings, system.locks, record.name, "pause"):
                pressed = press(system, running_record(system.settings, system.records, record.name, "paused"), actor)
            told = settle(system, pressed, actor)
            read_on(system, record)
            take_down(system, pressed)
        except NotRunning:
            return told
        except NoTurn:
            if deadline.passed() or not _in_doubt(system, record):
                return told
            system.clock.pause(_POLL_SECONDS)
        if deadline.passed():
            return told


def _see_to_cut_off(system: System, record: SessionRecord, pressed: Pressed, doubtful: Sequence[InboxRow]) -> _CutOff:
    """Let what a turn took which was cut off before it answered wait again; of what had been answered in part, or of
    which that cannot be known, the senders are told.

    `pressed`: the key that ended the turn before it. What that turn had taken was meant by it.
    """
    system.clock.pause(pressed.harness.traits.flush)  # what it wrote last is read, too
    deadline = Deadline(system.clock, _NEXT_SECONDS)
    while _in_doubt(system, record) and not deadline.passed():
        read_on(system, record)
        system.clock.pause(_POLL_SECONDS)
    taken = [row for row in _latest(system.inbox, doubtful) if row.state is MessageState.CONFIRMED]
    if not taken:
        return _CutOff()
    turns = _turns_since(pressed)
    unanswered = [turn for turn in turns or () if not turn.answered]
    kept, told = 0, 0
    why, remedy = Because(Reason.CUT_OFF_BY, {"what": "the pause"}), text(Remedy.SEND_AGAIN)
    with system.database.transaction(durable=True):
        for row in taken:
            if _is_of(unanswered, row) and row.message.kind in MESSAGES and row.message.text:
                now = system.clock.now()
                again = sent_again(row.message, record.generation, new_marker(), new_message_id(), now)
                first = replace(again, order_us=row.message.order_us)  # before what was sent after it
                kept += sum(system.inbox.add([first]))
            elif row.queued_at is not None or _is_of(turns or (), row):
                told += 1
                note = note_for(system, row, MessageState.CONFIRMED, why, remedy)
                if note is not None:  # the next one joins it
                    system.outbox.add([note])
    system.notify()
    return _CutOff(kept, told)


def _latest(inbox: Inbox, rows: Iterable[InboxRow]) -> Iterator[InboxRow]:
    return (latest for row in rows if (latest := inbox.get(row.message.id)) is not None)


def _turns_since(pressed: Pressed) -> Sequence[TurnSeen] | None:
    """Return the turns that have begun since the key, by the conversation's record; None where nobody can tell."""
    try:
        record = pressed.harness.turns(pressed.context, pressed.at)
        return record.new_turns() if record is not None else None
    except StoreBroken:
        return None


def _is_of(turns: Iterable[TurnSeen], row: InboxRow) -> bool:
    return any(takes(prompt, row.message) for turn in turns for prompt in turn.prompts)


_DRAIN_SECONDS = 30.0


def resume_standing(system: System, name: str, actor: str, *, note: bool = True) -> Answer:
    """Clear the pause; the service, or without one this process, takes in what waited, oldest first.

    `note`: the thread is told.

    A session whose program has ended keeps its pause and its queue: it is started first. Raises UnknownSession,
    InvalidValue, RecordUnreadable, NotRunning with the start command, ForeignPane.
    """
    try:
        running_record(system.settings, system.records, name, "resumed")
        take_last_reports(system.paths, system.records, system.ingest, name)
        with lock(system.settings, system.locks, name, "resume"):
            record = running_record(system.settings, system.records, name, "resumed")
            if hold_state(record) is not HoldState.PAUSED:
                return Answer(rows_told(system, {name: VerbResult(Outcome.NOT_PAUSED)}))
            _check_lives(system.runner, record)
            with failpoint(Failpoint.DELIVERY_SETTLE):
                give_back(system, record, record.instance_id)  # what an ended harness had queued came first
            _clear(system, record, actor, note=note)
        told = VerbResult(Outcome.UNPAUSED, _drained(system, record))
    except (Refused, LookupError, InvalidValue):
        raise
    except CoreError as error:
        told = told_of(error)
    return Answer(rows_told(system, {name: told}))


def _check_lives(runner: Runner, record: SessionRecord) -> None:
    """Refuse where nothing lives that could take what waits: without the pause it would be refused, and lost.

    Raises TmuxSilent where that cannot be told; the mark then stays.
    """
    survey = runner.survey()
    live = survey.live(target_for(record.name), record.instance_id)
    if live is Live.FOREIGN:
        raise foreign(runner, survey, record.name)
    starting = record.phase is Phase.STARTING
    if live is not Live.LIVE and not (starting and live is Live.ABSENT):
        raise NotRunning(
            f"{record.name} stays paused, and its messages still wait, because its program has ended",
            f"start it: `the-loop standing start {record.name}`, then resume it",
        )


def _clear(system: System, record: SessionRecord, actor: str, *, note: bool) -> None:
    with failpoint(Failpoint.RESUME_MARK):
        cleared = write_record(system.records, system.bindings, system.activities, replace(record, hold=None))
        if note:
            tell_thread(system, record, "resumed", Hold(HoldKind.PAUSED, actor, "", system.clock.now()))
        announce_hold(system, cleared)
    if cleared.phase is not Phase.STOPPING:  # a restart that was cut short goes on to hold back the dying one's turns
        with failpoint(Failpoint.RESUME_UNBLOCK):
            clear_hold_file(system.paths, record.uid)
    system.events.emit(
        "standing.unpaused",
        name=record.name,
        actor=actor,
        instance=record.instance_id,
        generation=record.generation,
    )
    system.notify()


def _drained(system: System, record: SessionRecord) -> str:
    """See to what waited, and return how much there is of it."""
    waiting = len(system.inbox.unsettled(record.uid))
    if not waiting:
        return ""
    words = f"{waiting} {'message' if waiting == 1 else 'messages'} waited"
    if running_service(system.paths.service_lock) is not None:
        return f"{words}; the service delivers them"
    left = _drain(system, record.uid)
    still = f"{left} still {'waits' if left == 1 else 'wait'}"
    return f"{words}; no service is running, and {still}" if left else f"{words} and went in"


def _drain(system: System, uid: str) -> int:
    """Deliver what can be delivered now, in order, and return how many are left.

    What only a turn's end, a person or the service lets in is left: the latest step says so, not the row, which may
    have waited for the same before.
    """
    until = system.clock.now() + timedelta(seconds=_DRAIN_SECONDS)
    deliverer = Deliverer(system)
    while True:
        following = deliverer.advance(uid)
        rows, now = system.inbox.unsettled(uid), system.clock.now()
        if now >= until or not (is_soon(following, now) or _under_way(rows)):
            return len(rows)
        _pause(system.clock, following, now)


def _under_way(rows: Sequence[InboxRow]) -> bool:
    """Return whether what comes first is on its way, or waits for what is over in a moment."""
    first = next((row for row in rows if not awaits_confirmation(row)), None)
    return first is not None and (first.state in IN_FLIGHT or first.reason in PASSING)


def _pause(clock: Clock, following: datetime | None, now: datetime) -> None:
    if following is not None and following > now:
        clock.pause(min((following - now).total_seconds(), _POLL_SECONDS))


def restart_standing(system: System, name: str, actor: str) -> Answer:
    """End the session and resume its conversation. Raises UnknownSession, InvalidValue, and Refused for a held one."""
    _refuse_held(definition_of(system.settings, system.records, name))
    tmux = Tmux(system.runner)
    told = _end(system, name, actor, tmux)
    if told is not None:
        return Answer(rows_told(system, {name: told}, tmux.survey))
    answer = start_each(system, [name], StartOrder(actor, f"restarted by {actor}"))
    if answer.ok:
        system.events.emit("standing.restarted", name=name, actor=actor)
    return answer


def change_conversation(system: System, name: str, actor: str, conversation: str) -> Answer:
    """End the session if it runs, and start it in the conversation of that id; "": in a new one.

    A stopped or failed mark is cleared, as by a start. What cannot be taken up is refused before anything is ended.
    Raises UnknownSession, InvalidValue, Refused.
    """
    known = definition_of(system.settings, system.records, name)
    resolved = resolve(known.definition, system.settings)
    if conversation:
        harness = system.harnesses.get(resolved.harness)
        check_conversation(system.paths, known.record, resolved, harness, conversation)
    tmux = Tmux(system.runner)
    hold = known.record.hold if known.record else None
    if hold is None or hold.kind is HoldKind.PAUSED:
        told = _end(system, name, actor, tmux)
        if told is not None:
            return Answer(rows_told(system, {name: told}, tmux.survey))
    why = f"{actor} took up the conversation {conversation}" if conversation else f"a new conversation, by {actor}"
    return start_each(system, [name], StartOrder(actor, why, clear_holds=True, conversation=conversation))


def _refuse_held(known: Known) -> None:
    hold = known.record.hold if known.record else None
    if hold is not None and hold.kind is not HoldKind.PAUSED:
        raise Refused(
            f"{known.name} is held: {hold.kind.value} by {hold.by}", f"use `the-loop standing start {known.name}`"
        )


def _end(system: System, name: str, actor: str, tmux: Tmux) -> VerbResult | None:
    """End the instance if there is one; return what stands against the start that follows, None if nothing does."""
    try:
        with lock(system.settings, system.locks, name, "restart"):
            known = definition_of(system.settings, system.records, name)
            if known.unreadable is not None:
                raise known.unreadable
            _refuse_held(known)
            record = known.record
            if record is None or record.instance_id is None or record.phase is Phase.DELETING:
                return None
            survey = tmux.survey()
            refuse_foreign(system.runner, name, survey, survey.live(target_for(name), record.instance_id))
            return _end_recorded(system, record, actor, tmux)
    except CoreError as error:
        system.events.emit("standing.stop_failed", level="error", name=name, actor=actor, reason=str(error))
        return told_of(error)


def _end_recorded(system: System, record: SessionRecord, actor: str, tmux: Tmux) -> VerbResult | None:
    with failpoint(Failpoint.STOP_HOLD):
        set_hold_file(system.paths, record.uid)
    with failpoint(Failpoint.STOP_MARK):
        marked = write_record(system.records, system.bindings, system.activities, record.moved(SessionEvent.STOP))
    ended = end_recorded(system, record, tmux)
    if ended.silent:
        raise TmuxSilent(f"{record.name}: {ended.trouble()}", "restart it again once tmux answers")
    if ended.survivors:
        return VerbResult(Outcome.FAILED, ended.trouble())
    finish_stop(system, marked, ended)
    system.events.emit("standing.stopped", name=record.name, actor=actor, reason="restart", instance=record.instance_id)
    return None
