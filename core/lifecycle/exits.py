"""An end that no verb asked for: keep its output and exit, tell it once, and commit what follows from it.

Any process may find such an end, and may be killed while it works. Everything before the last transaction may be
repeated; that transaction happens once. Its events are written before it commits, so none is lost, and one may appear
twice. A lost tmux server is told once, not once for each of its sessions.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from core.base.clock import Deadline
from core.base.errors import LockBusy, StoreBroken
from core.base.failpoints import Failpoint, failpoint
from core.base.names import target_for
from core.base.paths import StatePaths
from core.base.text import moment_text
from core.base.values import replace
from core.config.settings import Settings
from core.delivery.hook_ingest import ingest_record
from core.lifecycle.announce import edit_root
from core.lifecycle.common import write_record
from core.lifecycle.ending import keep_output
from core.model.asking import Press, session_buttons
from core.model.observing import WITH_ITS_SESSION, ended
from core.model.pane import Survey
from core.model.posts import OWN_CHAT, NewPost, OutboundKind, ended_text, given_up_text
from core.model.restarting import (
    WINDOW,
    BringBack,
    GiveUp,
    Plan,
    ended_unasked,
    exit_text,
    is_crash,
    plan_restart,
)
from core.model.session import Hold, HoldKind, LastExit, Live, SessionRecord
from core.session.folder import set_hold_file
from core.session.sessions import comes_back, each_apart, may_come_back
from core.session.system import System
from core.store.eventlog import EventLog
from core.store.outbox import Outbox
from core.store.sessions import Activities, Bindings, ExitLedger

_LOG = logging.getLogger(__name__)
SUPERVISOR = "supervisor"
_LOCK_SECONDS = 0.2  #: whoever holds it is at work on the session: the end is told at the next look, if it is one
_NAMES_SHOWN = 20


def tell_end(system: System, name: str, instance: str, *, patient: bool, witnessed: bool = True) -> bool:
    """Report the instance's end, once; return False if it is too early for that. Raises TmuxSilent, StoreBroken.

    `patient`: tmux may still learn how it ended, and it is worth another look. `witnessed` False: nobody saw it live,
    so that a pane which is gone says nothing about how.
    """
    try:
        with system.locks.hold(name, "tell of its end", _LOCK_SECONDS):
            record = system.records.read(name)
            if record is None or record.instance_id != instance:
                return True
            return tell_under_lock(system, record, system.runner.survey(), patient=patient, witnessed=witnessed)
    except LockBusy:
        return False


def tell_under_lock(
    system: System,
    record: SessionRecord,
    survey: Survey,
    *,
    patient: bool = False,
    witnessed: bool = True,
    starting: bool = False,
) -> bool:
    """See `tell_end`. `starting`: it is about to be started, so that nothing need follow and nobody be called."""
    live = survey.live(target_for(record.name), record.instance_id)
    if record.instance_id is None or live not in (Live.DEAD, Live.ABSENT) or not ended_unasked(record):
        return True
    pane = survey.of_instance(record.instance_id)
    end = pane.exit if pane else None
    if pane is not None and end is None and patient:
        return False
    try:
        known = system.exit_ledger.end(record.instance_id)
        if known is not None and known.told_at is not None:
            return True
        by_person = known is not None and known.by_person
        crash = is_crash(end, by_person=by_person) and (witnessed or pane is not None)
        then = None if starting or not crash else _what_follows(system, record)
    except StoreBroken as error:
        _emit(system.events, record, end, None, f"what follows cannot be decided: {error}")
        return True
    if pane is not None and (unsaved := keep_output(system.paths, system.runner, record.uid, pane)):
        _LOG.warning("last output not kept", extra={"session": record.name, "reason": unsaved})
    if not starting:
        record = _record_end(system, record, end, then)
    reason = "a person left it" if by_person else "it crashed" if crash else "it ended"
    _tell(system, record, end, then, reason, note=not starting)
    return True


def _what_follows(system: System, record: SessionRecord) -> Plan | None:
    if record.hold is not None and record.hold.kind is HoldKind.FAILED:
        return GiveUp(record.hold.reason)  # whoever began to tell was killed
    return (
        _plan(system.settings, system.exit_ledger, record, system.clock.now())
        if comes_back(system.settings, system.loops, record)
        else None
    )


def _plan(settings: Settings, exit_ledger: ExitLedger, record: SessionRecord, now: datetime) -> Plan:
    restarts = exit_ledger.restarts(record.uid, now - WINDOW)
    return plan_restart(restarts, now, settings.limits.restarts_per_hour)


def plan_for_keep_alive(system: System, record: SessionRecord) -> bool:
    """Have a crashed session brought back whose end was told when nothing asked for that, and tell whether it will be.

    Counted like every restart after a crash; with the hour's budget spent it is held as failed. Needs the session's
    lock. Raises StoreBroken.
    """
    if not may_come_back(system.settings, record):
        return False
    plan = _plan(system.settings, system.exit_ledger, record, system.clock.now())
    if isinstance(plan, BringBack):
        with failpoint(Failpoint.WATCH_PUT_OFF):
            system.exit_ledger.plan(record.instance_id or "", plan.at)
        system.notify()
        return True
    held = hold_failed(system.paths, record, plan.reason, system.clock.now())
    with failpoint(Failpoint.WATCH_RECORD):
        write_record(system.records, system.bindings, system.activities, held)
    with failpoint(Failpoint.WATCH_TELL), system.database.transaction(durable=True):
        add_note(
            system.outbox,
            system.bindings,
            record,
            f"down-{record.instance_id}",
            given_up_text(record.name, plan.reason),
            Press.BRING_UP,
            Press.ANEW,
        )
        edit_root(system.outbox, system.bindings, held)
        emit_held(system.events, held, plan.reason)
    system.notify()
    return False


def _record_end(system: System, record: SessionRecord, end: LastExit | None, then: Plan | None) -> SessionRecord:
    changed = replace(record, last_exit=end)
    if isinstance(then, GiveUp) and record.hold is None:
        changed = hold_failed(system.paths, changed, then.reason, system.clock.now())
    if changed == record:
        return record
    with failpoint(Failpoint.WATCH_RECORD):
        return write_record(system.records, system.bindings, system.activities, changed)


def hold_failed(paths: StatePaths, record: SessionRecord, reason: str, now: datetime) -> SessionRecord:
    """Block turns born in the harness and return the record with the mark, which the caller writes."""
    with failpoint(Failpoint.WATCH_HOLD):
        set_hold_file(paths, record.uid)
    return replace(record, hold=Hold(HoldKind.FAILED, SUPERVISOR, reason, now))


def _tell(
    system: System, record: SessionRecord, end: LastExit | None, then: Plan | None, reason: str, *, note: bool
) -> None:
    instance = record.instance_id or ""
    due_at = then.at if isinstance(then, BringBack) else None
    with failpoint(Failpoint.WATCH_TELL), system.database.transaction(durable=True):
        now = system.clock.now()
        if not system.exit_ledger.tell(instance, record.uid, now, due_at, counted=due_at is not None):
            return
        if note:
            per_hour, kept = system.settings.limits.restarts_per_hour, record.fresh.returns_to if record.fresh else None
            text = ended_text(record.name, end, then, per_hour, kept)
            add_note(system.outbox, system.bindings, record, f"ended-{instance}", text, Press.BRING_UP, Press.ANEW)
            if due_at is None:
                edit_root(system.outbox, system.bindings, record)
        jobs = _end_jobs(system.activities, record)
        _emit(system.events, record, end, then, reason)
        for job in jobs:
            system.events.emit("job.finished", name=record.name, instance=instance, detail=job, reason=WITH_ITS_SESSION)
    system.notify()


def _end_jobs(activities: Activities, record: SessionRecord) -> tuple[str, ...]:
    """Forget the background tasks, which end with their session, and return them."""
    activity = activities.get(record.uid)
    if activity is None or activity.instance != record.instance_id or not activity.pending_tasks:
        return ()
    activities.put(ended(activity))
    return activity.pending_tasks


def _emit(events: EventLog, record: SessionRecord, end: LastExit | None, then: Plan | None, reason: str) -> None:
    following = f"; brought back at {moment_text(then.at)}" if isinstance(then, BringBack) else ""
    events.emit(
        "standing.exited",
        level="warning",
        name=record.name,
        instance=record.instance_id,
        generation=record.generation,
        reason=reason,
        detail=exit_text(end) + following,
    )
    if isinstance(then, GiveUp):
        emit_held(events, record, then.reason)


def emit_held(events: EventLog, record: SessionRecord, reason: str) -> None:
    """Report that the session is held as failed."""
    events.emit(
        "standing.held",
        level="error",
        name=record.name,
        actor=SUPERVISOR,
        instance=record.instance_id,
        generation=record.generation,
        reason=reason,
    )


def add_note(outbox: Outbox, bindings: Bindings, record: SessionRecord, key: str, text: str, *presses: Press) -> None:
    """Commit a note to the session's thread, if it has one; a second one of its key is a no-op.

    `presses`: what its buttons do to the session.
    """
    if bindings.of_session(record.uid) is None:
        return
    post = NewPost(f"p-{key}", f"note:{key}", OutboundKind.NOTE, record.uid, record.name, OWN_CHAT, text)
    outbox.add([replace(post, buttons=session_buttons(record.uid, *presses))])


def tell_server_lost(system: System, lost: Sequence[SessionRecord], reason: str, *, bring_back: bool) -> bool:
    """Report the end of a tmux server with all that lived in it: one event, no crash of a session, no note.

    `bring_back`: each that should run is resumed once. False, and no event, if all of it was told before.
    Raises StoreBroken.
    """
    with failpoint(Failpoint.WATCH_TELL), system.database.transaction(durable=True):
        now = system.clock.now()
        names = []
        for record in lost:
            due = now if bring_back and may_come_back(system.settings, record) else None
            if record.instance_id and system.exit_ledger.tell(record.instance_id, record.uid, now, due):
                names.append(record.name)
        if not names:
            return False
        shown = ", ".join(names[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
        detail = f"{len(names)} of the sessions lived in it: {shown}"
        system.events.emit("standing.tmux_lost", level="error", reason=reason, detail=detail)
    return True


def tell_on_purpose(
    exit_ledger: ExitLedger, record: SessionRecord, bring_back_in: timedelta | None, now: datetime
) -> None:
    """Note that a verb ended the instance, so that nobody takes it for a crash. A broken database is passed over.

    `bring_back_in`: the verb is a restart, which the supervisor finishes if it was not done by then.
    """
    if record.instance_id is None:
        return
    due_at = None if bring_back_in is None else now + bring_back_in
    try:
        if not exit_ledger.tell(record.instance_id, record.uid, now, due_at) and due_at is not None:
            exit_ledger.put_off(record.instance_id, due_at)
    except StoreBroken as error:
        _LOG.warning("end not noted", extra={"session": record.name, "reason": str(error)})


_PATIENCE_SECONDS = 1.0  #: tmux 3.3a learns of a child's exit status later than of its death, at times
_SERVER_LOST = "the tmux server has ended, and all that lived in it"


class Ends:
    """Belongs to the observer's thread. `settled` tells whether the boot's sweep is over.

    Until then only what this service has seen alive can end: the sweep sees to the rest, and tells of it.
    """

    def __init__(self, system: System, settled: Callable[[], bool], ended: Callable[[str], None]) -> None:
        self._system = system
        self._settled = settled
        self._ended = ended
        self._witnessed: set[str] = set()
        self._told: set[str] = set()
        self._patience: dict[str, Deadline] = {}
        self._server: int | None = None
        self._lost = False

    def lives(self, instance: str) -> None:
        """Take note that the instance was seen alive."""
        self._witnessed.add(instance)

    def was_seen(self, instance: str) -> bool:
        """Return whether the instance was seen alive, and its end was not told since."""
        return instance in self._witnessed

    def look(self, gone: Sequence[SessionRecord], survey: Survey) -> bool:
        """Report these sessions' ends, and return whether another look soon is worth while.

        `gone`: settled, should run, and their panes are dead or not there. Raises TmuxSilent, StoreBroken.
        """
        gone = [record for record in gone if record.instance_id not in self._told]
        self._follow_server(gone, survey)
        early: list[str] = []

        def tell(record: SessionRecord) -> None:
            if record.instance_id not in self._told and not self._tell(record):
                early.append(record.name)

        each_apart(self._system.events, gone, tell)
        return bool(early)

    def _follow_server(self, gone: Sequence[SessionRecord], survey: Survey) -> None:
        before, self._server = self._server, survey.server
        absent = [
            r for r in gone if r.instance_id in self._witnessed and survey.of_instance(r.instance_id or "") is None
        ]
        if before is not None and before != survey.server and absent:
            self._lost = tell_server_lost(self._system, absent, _SERVER_LOST, bring_back=True) or self._lost
            for record in absent:
                self._close(record)
        if self._lost and survey.server is not None:
            self._lost = False
            self._system.events.emit("standing.tmux_back", detail=f"a new server runs as process {survey.server}")

    def _tell(self, record: SessionRecord) -> bool:
        """Report one end; return False if it is too early, or if it is not ours to report yet."""
        instance = record.instance_id or ""
        witnessed = instance in self._witnessed
        if not witnessed and not self._settled():
            return True
        ingest_record(self._system, record)  # among its last words may be that a person left
        patience = self._patience.setdefault(instance, Deadline(self._system.clock, _PATIENCE_SECONDS))
        done = tell_end(self._system, record.name, instance, patient=not patience.passed(), witnessed=witnessed)
        if done:
            self._close(record)
        return done

    def _close(self, record: SessionRecord) -> None:
        instance = record.instance_id or ""
        self._told.add(instance)
        self._witnessed.discard(instance)
        self._patience.pop(instance, None)
        self._ended(record.uid)
