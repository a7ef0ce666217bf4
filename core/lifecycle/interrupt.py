"""interrupt: the harness's own key ends the running turn, and the harness's own records show whether it did.

Escape fires no hook (Claude Code 2.1.197), so the status file and the conversation are read. The conversation says
nothing if no token had come yet. The prompt then stands in the input line again, and the receipt of the key tells
delivery to empty that line before the next paste.
"""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from core.base.clock import Clock, Deadline
from core.base.errors import CoreError, InvalidValue, LockBusy, NotRunning, Refused, StoreBroken, TmuxSilent
from core.base.failpoints import Failpoint, failpoint
from core.base.names import target_for
from core.base.paths import StatePaths
from core.base.values import dataclass, replace
from core.config.settings import Settings
from core.delivery.snapshot import turn_over
from core.harness.catalogue import Harnesses
from core.lifecycle.common import VerbResult, foreign, lock, running_record, take_reports, told_of
from core.lifecycle.look import rows_told
from core.model.activity import Activity, ActivityState
from core.model.harness import Harness, SessionContext, StatusProbe, Transcript, TurnEnded
from core.model.observing import second_guess
from core.model.pane import Pane, Receipt, Written, interrupt_token
from core.model.rows import Answer
from core.model.session import Live, Outcome, SessionRecord
from core.session.dialogs import drop_marker
from core.session.folder import ASKING, context_of
from core.session.sessions import activity_of, resolve_record
from core.session.system import System
from core.store.outbox import Marks
from core.store.records import Records
from core.store.sessions import Activities
from core.tmux.runner import Runner

_SETTLE_SECONDS = 3.0  #: Claude Code 2.1.197 tells of an Escape within 0.7 s; a busy machine needs more
_STATUS_SECONDS = 1.0  #: its status file follows its conversation; with a next turn at once it never calls it over
_POLL_SECONDS = 0.05
_RECORD_SECONDS = 2.0
_DIALOGS = frozenset({ActivityState.PERMISSION, ActivityState.QUESTION})


class NoTurn(Refused):
    """There is nothing to interrupt."""

    code = "no_turn"


@dataclass(frozen=True)
class Pressed:
    """The key was written into the pane; nobody knows yet what it did."""

    record: SessionRecord
    pane: Pane
    harness: Harness
    context: SessionContext
    transcript: Transcript | None
    at: datetime
    began: datetime | None  #: the turn, as far as its hook told
    dialog: bool  #: it rejected an open dialog, which ends the turn as well


def interrupt_standing(system: System, name: str, actor: str) -> Answer:
    """End the session's turn, or reject its open dialog. Only what its harness confirms is called interrupted.

    Raises UnknownSession, InvalidValue, NotRunning, RecordUnreadable, and Refused where no turn runs or the harness has
    no such key.
    """
    try:
        running_record(system.settings, system.records, name, "interrupted")
        take_last_reports(system.paths, system.records, system.ingest, name)
        with lock(system.settings, system.locks, name, "interrupt"):
            pressed = press(system, running_record(system.settings, system.records, name, "interrupted"), actor)
        told = settle(system, pressed, actor)
    except (Refused, LookupError, InvalidValue):
        raise
    except CoreError as error:
        told = told_of(error)
    return Answer(rows_told(system, {name: told}))


def take_last_reports(paths: StatePaths, records: Records, ingest: Callable[[str], None], name: str) -> None:
    """Take in what the harness has told so far: not under the lock, which following its conversation's id needs."""
    record = records.read(name)
    if record is not None:
        take_reports(paths, ingest, record)


def interruptible(settings: Settings, harnesses: Harnesses, record: SessionRecord) -> Harness:
    """Return the record's harness. Raises Refused if it has no key that ends a turn."""
    harness = harnesses.get(resolve_record(record, settings).harness)
    if harness.traits.interrupt is None:
        raise Refused(
            f"{record.name}: no key is known that ends a turn of {harness.name}",
            f"do it in its terminal: `the-loop standing attach {record.name} --write`",
        )
    return harness


def press(system: System, record: SessionRecord, actor: str) -> Pressed:
    """Write the key into the pane, guarded like any text, in the name of `actor`. Needs the lock.

    Raises NoTurn, NotRunning, Refused, ForeignPane; TmuxSilent where it is not known whether the key was written.
    """
    harness = interruptible(system.settings, system.harnesses, record)
    pane = _live_pane(system.runner, record)
    context = context_of(system.paths, record, resolve_record(record, system.settings), pane.tag)
    activity = _activity(system.activities, record)
    opinion = harness.probe_status(context, pane.pid)
    if not _in_turn(activity, opinion):
        raise NoTurn(
            f"{record.name}: no turn is running that could be interrupted",
            f"look at it: `the-loop standing screen {record.name}`",
        )
    if opinion is not None and opinion.session_id:
        context = replace(context, session_id=opinion.session_id)  # a parked turn may go on in one of its own
    transcript = None
    with suppress(StoreBroken):  # a record that cannot be read keeps no key from being pressed
        transcript = harness.transcript(context, from_start=False)
    at = system.clock.now()
    deadline = at + timedelta(seconds=system.settings.routing.tmux.command_timeout_seconds)
    _mark_rejected(system, record, actor)
    try:
        with failpoint(Failpoint.INTERRUPT_KEY):
            written = system.runner.write(
                pane.tag, harness.traits.interrupt or b"", Receipt.INTERRUPTED, interrupt_token(at), deadline
            )
        _check_written(record.name, written)
    except CoreError:
        _mark_rejected(system, record, "")
        raise
    dialog = activity is not None and activity.state in _DIALOGS
    began = activity.turn_started_at if activity is not None else None
    return Pressed(record, pane, harness, context, transcript, at, began, dialog)


def settle(system: System, pressed: Pressed, actor: str) -> VerbResult:
    """Wait for the harness's own word that the turn is over, and take it down. No lock is held while it waits."""
    known = _wait(system.clock, pressed, _turn_over, _SETTLE_SECONDS)
    _tell_rejected(system, pressed.record, known=known)
    if known:
        _mark_cut_off(system.marks, system.activities, pressed)
        _wait(system.clock, pressed, _status_agrees, _STATUS_SECONDS)
        take_down(system, pressed)
    what = "its dialog was rejected, and the turn ended" if pressed.dialog else "its turn ended"
    detail = what if known else "the key was written, but nothing shows yet that the turn has ended"
    system.events.emit(
        "standing.interrupted",
        level="info" if known else "warning",
        name=pressed.record.name,
        actor=actor,
        instance=pressed.record.instance_id,
        detail=detail,
    )
    system.notify()
    return VerbResult(Outcome.INTERRUPTED if known else Outcome.UNCONFIRMED, detail)


# ---------------------------------------------------------------- before the key


def _live_pane(runner: Runner, record: SessionRecord) -> Pane:
    survey = runner.survey()
    live = survey.live(target_for(record.name), record.instance_id)
    if live is Live.FOREIGN:
        raise foreign(runner, survey, record.name)
    pane = survey.of_instance(record.instance_id or "")
    if pane is None or pane.dead:
        raise _ended(record.name)
    return pane


def _ended(name: str) -> NotRunning:
    return NotRunning(f"{name}: its program has ended", f"start it: `the-loop standing start {name}`")


def _activity(activities: Activities, record: SessionRecord) -> Activity | None:
    try:
        return activity_of(activities, record)
    except StoreBroken:
        return None  # the other source is asked as well


def _in_turn(activity: Activity | None, opinion: StatusProbe | None) -> bool:
    """Return whether a turn runs or a dialog is open: by the harness's status, else by its reports."""
    began = activity.turn_started_at if activity is not None else None
    if opinion is not None and not _said_before(opinion, began):
        return not opinion.turn_over
    if activity is None or activity.between_turns:
        return False
    return activity.state is ActivityState.BUSY or activity.state in _DIALOGS


def _said_before(opinion: StatusProbe, began: datetime | None) -> bool:
    """Return whether a status is older than the turn: the status file may be written after the hook has reported."""
    return began is not None and opinion.written_at is not None and opinion.written_at < began


def _check_written(name: str, written: Written) -> None:
    if written in (Written.DEAD, Written.ABSENT):
        raise _ended(name)
    if written is Written.CLOSED:
        raise Refused(f"{name}: its pane's input is switched off", "switch it on in tmux: `select-pane -e`")
    if written is Written.LATE:
        raise TmuxSilent(
            f"{name}: tmux handled the request after its deadline, so no key was written", "interrupt it again"
        )


# ---------------------------------------------------------------- after it


def _mark_rejected(system: System, record: SessionRecord, actor: str) -> None:
    """Note who rejects the dialog that is open, if one is; a broken database keeps no key from being pressed."""
    with suppress(StoreBroken):
        if system.requests.open(record.uid):
            from core.delivery.permission_requests import mark_rejected

            mark_rejected(system, record, actor)


def _tell_rejected(system: System, record: SessionRecord, *, known: bool) -> None:
    """Say in the thread who has rejected its dialog, or forget that somebody was about to."""
    with suppress(StoreBroken):
        if system.requests.open(record.uid):
            from core.delivery.permission_requests import end_rejected, mark_rejected

            if known:
                end_rejected(system, record)
            else:
                mark_rejected(system, record, "")


def _wait(clock: Clock, pressed: Pressed, condition: Callable[[Pressed], bool], seconds: float) -> bool:
    deadline = Deadline(clock, seconds)
    while not condition(pressed):
        if deadline.passed():
            return False
        clock.pause(_POLL_SECONDS)
    return True


def _turn_over(pressed: Pressed) -> bool:
    opinion = pressed.harness.probe_status(pressed.context, pressed.pane.pid)
    if opinion is not None and opinion.turn_over and not _said_before(opinion, pressed.began):
        return True
    try:
        events = pressed.transcript.new_events() if pressed.transcript else ()
    except StoreBroken:
        return False  # the status file is asked again
    return any(isinstance(event, TurnEnded) for event in events)


def _status_agrees(pressed: Pressed) -> bool:
    """Return whether its second source calls it idle: a shell that its turn ran may outlive that by a moment."""
    opinion = pressed.harness.probe_status(pressed.context, pressed.pane.pid)
    return opinion is None or (opinion.turn_over and not opinion.between_turns)


def _mark_cut_off(marks: Marks, activities: Activities, pressed: Pressed) -> None:
    """Note that the turn did not end by itself, before anybody takes its messages for done."""
    activity = _activity(activities, pressed.record)
    if activity is None or activity.turn_started_at is None:
        return
    try:
        turn_over(marks, activities, pressed.record, pressed.at, failed=True)
    except StoreBroken:
        return  # only a reaction depends on it


def take_down(system: System, pressed: Pressed) -> None:
    """Store what the harness does now, and remove the marker of the dialog that it has left. If that cannot be done
    now, the observer does it after a silence."""
    record = pressed.record
    take_reports(system.paths, system.ingest, record)
    try:
        with system.locks.hold(record.name, "interrupt", _RECORD_SECONDS), failpoint(Failpoint.INTERRUPT_SETTLE):
            opinion = pressed.harness.probe_status(pressed.context, pressed.pane.pid)
            if opinion is not None and opinion.turn_over:
                drop_marker(system.paths.session(record.uid) / ASKING, pressed.at)
            before = _activity(system.activities, record)
            if before is not None:
                with system.database.transaction(durable=False):
                    if system.activities.get(record.uid) == before:
                        system.activities.put(second_guess(before, opinion, system.clock.now()))
    except (LockBusy, StoreBroken):
        return
