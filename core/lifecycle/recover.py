"""Reconcile: make records and tmux agree again after verbs were cut short, and finish or undo what those had begun.

It works session by session, under the sessions' locks, and may run at any time. It also removes what is left of a
session whose processes and pane are gone: one that was deleted, or never completely created.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from core.base.errors import (
    CoreError,
    ForeignPane,
    LockBusy,
    RecordUnreadable,
    SpawnFailed,
    StoreBroken,
    TmuxMissing,
    TmuxSilent,
    TrustFailed,
)
from core.base.failpoints import Failpoint, failpoint
from core.base.names import target_for
from core.base.paths import StatePaths
from core.base.values import dataclass, replace
from core.config.settings import Settings
from core.delivery.hearing import notice_reading, state_at_start
from core.delivery.saying import cancel_queue
from core.harness.catalogue import Harnesses
from core.lifecycle.announce import announce_start, announce_stop
from core.lifecycle.common import Tmux, refuse_held_name, spawn_time, start_takes, take_reports, together, write_record
from core.lifecycle.ending import Doomed, Ended, end_all
from core.lifecycle.exits import tell_on_purpose
from core.lifecycle.history import what_was
from core.loops.transitions import end_with_session
from core.model.activity import Activity, ActivityState, unfinished_text
from core.model.message import IN_FLIGHT, MESSAGES, MessageState
from core.model.pane import Survey
from core.model.posts import NewPost, OutboundKind, closing_text
from core.model.reasons import Because, Reason
from core.model.session import (
    Binding,
    HoldKind,
    Live,
    Phase,
    SessionEvent,
    SessionRecord,
    Status,
    begun_instead,
)
from core.session.conversations import came_up, settled_conversation
from core.session.folder import clear_hold_file, has_hold_file, has_starter, set_hold_file
from core.session.launching import drop_token, remove_files
from core.session.sessions import apart, resolve_record, starts_unasked
from core.session.system import System
from core.store.eventlog import EventLog
from core.store.inbox import Inbox
from core.store.sessions import Activities, Bindings


def remove_session(system: System, record: SessionRecord, actor: str) -> None:
    """Cancel its queue, close its thread, forget it, remove its files and last its record: then the name is free.

    Each step may be done again. Raises StoreBroken; the record then stays.
    """
    with failpoint(Failpoint.DELETE_CANCEL), system.database.transaction(durable=True):
        end_with_session(system, record, actor)
        system.inbox.cancel_waiting(record.uid, Because(Reason.DELETED))
    _unbind(system, record, actor)
    with failpoint(Failpoint.DELETE_FORGET), system.database.transaction(durable=False):
        system.activities.forget(record.uid)
        system.workings.forget(record.uid)
        system.bindings.forget(record.uid)
        system.exit_ledger.forget(record.uid)
        system.requests.forget(record.uid)
        system.loops.forget(record.uid)
        system.progress.forget(record.uid)
        system.lives.forget(record.uid)
        if record.instance_id:
            system.database.forget_reports(record.instance_id)
    with failpoint(Failpoint.DELETE_FILES):
        remove_files(system.paths, record.uid, record.instance_id)
    with failpoint(Failpoint.DELETE_RECORD):
        system.records.remove(record.name)


def _unbind(system: System, record: SessionRecord, actor: str) -> None:
    with failpoint(Failpoint.DELETE_UNBIND), system.database.transaction(durable=True):
        system.outbox.drop(record.uid, Because(Reason.DELETED))
        binding = _unbound(system.bindings, record.uid)
        if binding is not None:
            system.outbox.add([_closing(system.inbox, record, binding, actor)])
    if binding is None:
        return
    system.events.emit(
        "channel.unbound",
        name=record.name,
        actor=actor,
        channel=binding.channel,
        thread=binding.thread,
        reason="deleted",
    )
    system.notify()


def _unbound(bindings: Bindings, uid: str) -> Binding | None:
    bound = bindings.of_session(uid)
    return bindings.unbind(uid, bound.channel_kind) if bound else None


def _lost(inbox: Inbox, record: SessionRecord) -> int:
    """Return how many messages were cancelled by the deletion, or stood somewhere on their way to a turn."""
    rows = inbox.with_states(record.uid, IN_FLIGHT | {MessageState.ACCEPTED, MessageState.CANCELLED})
    messages = [row for row in rows if row.message.kind in MESSAGES and not row.final]
    return sum(row.state is not MessageState.CANCELLED or row.reason is Reason.DELETED for row in messages)


def _closing(inbox: Inbox, record: SessionRecord, binding: Binding, actor: str) -> NewPost:
    return NewPost(
        id=f"p-closing-{record.uid}",
        key=f"closing:{record.uid}",
        kind=OutboundKind.CLOSING,
        uid=record.uid,
        name=record.name,
        channel_kind=binding.channel_kind,
        text=closing_text(record.name, actor, _lost(inbox, record)),
        channel=binding.channel,
        thread=binding.thread,
    )


_POLL_SECONDS = 0.1
_RESTART_TAKES = timedelta(minutes=1)  #: the second half of a restart; whoever has not begun it by then was killed
_SILENT_HOLDS = (HoldKind.STOPPED, HoldKind.FAILED)
_COMING_UP = (Phase.STARTING, Phase.CREATING)


def recover_all(
    system: System, records: Sequence[SessionRecord], survey: Survey, actor: str, tmux: Tmux
) -> Mapping[str, SessionRecord | CoreError | None]:
    """Finish what each record's phase says was begun, all together.

    Return each record by name as it is then, None where the session is gone, or why it stays as it is. Needs their
    locks. creating: adopt a live pane, else remove the record. starting: adopt by tag, else clear; both but for a live
    pane whose starter lives. stopping, deleting:
    finish. settled: the file `hold` follows the mark, and nothing runs under a stopped one. Idempotent. Raises
    TmuxSilent while it waits for late panes.
    """
    survey = _when_none_comes(system, records, survey, tmux)
    after: dict[str, SessionRecord | CoreError | None] = {}

    def each(some: Iterable[SessionRecord], step: Callable[[SessionRecord], SessionRecord | None]) -> None:
        for record in some:
            try:
                with apart(system.events, record.name):
                    after[record.name] = step(record)
            except CoreError as error:
                after[record.name] = error

    to_end = [record for record in records if _is_to_end(record, survey)]
    each(to_end, lambda record: _before_the_end(system, record))
    doomed = [Doomed(record.instance_id, record) for record in to_end if record.instance_id is not None]
    ended = end_all(system, doomed, tmux, survey)
    going_on = [record for record in records if not isinstance(after.get(record.name), CoreError)]
    each(going_on, lambda record: _recovered(system, record, survey, ended.get(record.instance_id or ""), actor))
    return after


def _is_to_end(record: SessionRecord, survey: Survey) -> bool:
    if record.phase is Phase.SETTLED:
        silent = record.hold is not None and record.hold.kind in _SILENT_HOLDS
        return silent and survey.of_instance(record.instance_id or "") is not None
    if record.phase in _COMING_UP:
        return survey.live(target_for(record.name), record.instance_id) is not Live.LIVE
    return True


def _before_the_end(system: System, record: SessionRecord) -> SessionRecord:
    if record.phase is Phase.STOPPING and record.hold is not None and record.hold.kind is HoldKind.STOPPED:
        cancel_queue(system, record)
    return record


def _recovered(
    system: System, record: SessionRecord, survey: Survey, ended: Ended | None, actor: str
) -> SessionRecord | None:
    """Record what the end came to, where there was one.

    Raises TmuxSilent, StoreBroken, SpawnFailed, and ForeignPane where a deletion waits for its name.
    """
    if ended is not None and not ended.complete:
        raise _unfinished(record, ended)
    ended_or_none = ended or Ended()
    if record.phase is Phase.SETTLED:
        return _settled(system, record, ended)
    if record.phase is Phase.STOPPING:
        return finish_stop(system, record, ended_or_none, cut_short=True)
    if record.phase is Phase.DELETING:
        refuse_held_name(system.runner, record.name)
        remove_session(system, record, actor)
        system.events.emit(
            "standing.deleted",
            name=record.name,
            actor=actor,
            reason="finished by reconcile",
            **what_was(system.settings, record),
        )
        return None
    if survey.live(target_for(record.name), record.instance_id) is Live.LIVE:
        if is_being_started(system, record):
            return record
        return adopt(system, record, "it lives: its start was cut short")
    return _cleared(system, record, ended_or_none, actor)


def is_being_started(system: System, record: SessionRecord) -> bool:
    """Return whether somebody waits for the session to come up, who lets its lock go meanwhile, and settles the start.

    That is so while that process lives, for as long as a start takes.
    """
    begun = record.started_at or record.created_at
    late = system.clock.now() - begun > start_takes(system.settings)
    return record.phase in _COMING_UP and not late and has_starter(system.paths, record.uid)


def adopt(system: System, record: SessionRecord, why: str) -> SessionRecord:
    """Take over a live pane whose start was cut short: announce it if that was not done, settle the record."""
    instead = begun_instead(record)
    how = f"found alive and taken over{f', with a new conversation: {instead}' if instead else ''} ({why})"
    activity = system.activities.get(record.uid)
    unfinished = unfinished_text(activity.earlier_tasks) if activity else ""
    announce_start(system, record, record.definition, "; ".join(text for text in (how, unfinished) if text))
    with failpoint(Failpoint.START_SETTLE):
        settled = write_record(
            system.records,
            system.bindings,
            system.activities,
            came_up(system.settings, system.harnesses, record).moved(SessionEvent.READY),
        )
    with failpoint(Failpoint.START_READY):
        _see_whether_it_reads(system, settled)
    system.events.emit(
        "standing.adopted", name=record.name, instance=record.instance_id, reason=why, detail=unfinished or None
    )
    return settled


def _see_whether_it_reads(system: System, record: SessionRecord) -> None:
    """Look once; a harness that does not read yet, or cannot be asked, is looked at again with its first message."""
    try:
        notice_reading(system, record)
    except TmuxSilent:
        return


def mark_lives(system: System, record: SessionRecord) -> None:
    """Say what a harness does that cannot tell by itself that it reads: unknown, but for its second source's word.

    Raises StoreBroken.
    """
    harness = system.harnesses.get(resolve_record(record, system.settings).harness)
    if harness.traits.boot_signal or record.instance_id is None:
        return
    activity, now = system.activities.get(record.uid), system.clock.now()
    if activity is None or activity.instance != record.instance_id:
        activity = Activity(record.uid, record.instance_id, ActivityState.STARTING, now)
    if activity.state is not ActivityState.STARTING:
        return
    try:
        state = state_at_start(system, record)
    except TmuxSilent:
        state = ActivityState.UNKNOWN
    system.activities.put(replace(activity, state=state, since=now))


def finish_stop(system: System, record: SessionRecord, ended: Ended, *, cut_short: bool = False) -> SessionRecord:
    """Take in its last reports, as those of a session that is ending, and settle the record. Raises StoreBroken.

    `cut_short`: whoever began it is gone. If that was a restart, the supervisor brings the session back.
    """
    take_reports(system.paths, system.ingest, record)
    back_in = _bring_back_in(system.settings, record, cut_short=cut_short)
    if back_in is None:
        announce_stop(system, record)
    with failpoint(Failpoint.STOP_SETTLE):
        tell_on_purpose(system.exit_ledger, record, back_in, system.clock.now())
        drop_token(system.paths, record.uid)
        stopped = replace(record.moved(SessionEvent.STOPPED), last_exit=ended.exit or record.last_exit)
        settled = write_record(
            system.records,
            system.bindings,
            system.activities,
            _with_its_turn(system.settings, system.paths, system.harnesses, stopped),
        )
    if settled.hold is None:
        _unblock(system.paths, settled)
    return settled


def _with_its_turn(settings: Settings, paths: StatePaths, harnesses: Harnesses, record: SessionRecord) -> SessionRecord:
    """Return the record with its latest conversation as the session's if that has had a turn.

    A stop goes on where that cannot be told; the next start asks again, and says what is wrong.
    """
    try:
        return settled_conversation(settings, paths, harnesses, record)
    except TrustFailed:
        return record


def _bring_back_in(settings: Settings, record: SessionRecord, *, cut_short: bool) -> timedelta | None:
    """Return when a session is to be up again that was ended in order to be restarted, None for every other."""
    if record.status is not Status.RUNNING or not starts_unasked(settings, record.name):
        return None
    return timedelta() if cut_short else _RESTART_TAKES


def _unblock(paths: StatePaths, record: SessionRecord) -> None:
    with failpoint(Failpoint.STOP_UNBLOCK):
        clear_hold_file(paths, record.uid)


def _unfinished(record: SessionRecord, ended: Ended) -> CoreError:
    if ended.silent:
        return TmuxSilent(f"{record.name}: {ended.trouble()}", "it is finished once tmux answers")
    return SpawnFailed(f"{record.name}: {ended.trouble()}")


def _settled(system: System, record: SessionRecord, ended: Ended | None) -> SessionRecord:
    held = record.hold is not None
    if held and not has_hold_file(system.paths, record.uid):
        with failpoint(Failpoint.STOP_HOLD):
            set_hold_file(system.paths, record.uid)
    if not held and has_hold_file(system.paths, record.uid):
        _unblock(system.paths, record)
    if ended is None:
        return record
    with failpoint(Failpoint.STOP_SETTLE):
        return write_record(
            system.records,
            system.bindings,
            system.activities,
            replace(record, last_exit=ended.exit or record.last_exit),
        )


def _when_none_comes(system: System, records: Sequence[SessionRecord], survey: Survey, tmux: Tmux) -> Survey:
    """Return what lives, once no spawn that a slow tmux has yet to come to can make a pane any more.

    Whoever asked for one is dead, or we would not hold the lock; its line refuses itself after its deadline.
    """
    until = {
        record.name: _spawned_by(system.settings, system.activities, record)
        for record in records
        if record.phase in _COMING_UP
    }
    while any(_may_come(record, survey, until, system.clock.now()) for record in records):
        system.clock.pause(_POLL_SECONDS)
        survey = tmux.survey()
    return survey


def _may_come(record: SessionRecord, survey: Survey, until: Mapping[str, datetime], now: datetime) -> bool:
    if record.name not in until or now >= until[record.name]:
        return False
    return survey.live(target_for(record.name), record.instance_id) is Live.ABSENT


def _spawned_by(settings: Settings, activities: Activities, record: SessionRecord) -> datetime:
    """Return until when the record's start can still make a pane: never, where it did not come as far as asking."""
    try:
        activity = activities.get(record.uid)
    except StoreBroken:
        return (record.started_at or record.created_at) + 2 * spawn_time(settings)
    asked = activity is not None and activity.instance == record.instance_id
    return activity.since + spawn_time(settings) if activity is not None and asked else record.created_at


def _cleared(system: System, record: SessionRecord, ended: Ended, actor: str) -> SessionRecord | None:
    if record.phase is Phase.CREATING:
        remove_session(system, record, actor)
        system.events.emit(
            "standing.create_failed", level="error", name=record.name, actor=actor, reason="its start was cut short"
        )
        return None
    with failpoint(Failpoint.START_SETTLE):
        return write_record(
            system.records,
            system.bindings,
            system.activities,
            replace(record.moved(SessionEvent.READY), last_exit=ended.exit),
        )


_LOCK_SECONDS = 2.0


@dataclass(frozen=True)
class Reconciled:
    """What was done for one session: its phase before and after. `after` None: the session is gone."""

    name: str
    before: Phase | None
    after: Phase | None
    trouble: str = ""  #: why it was left as it is
    passing: bool = False  #: somebody was at work on it or tmux was silent: nothing was found that stands in the way


def reconcile(system: System, actor: str, tmux: Tmux | None = None) -> tuple[Reconciled, ...]:
    """Compare each record with tmux and act by its phase. A tmux that does not answer leaves everything as it is."""
    return reconcile_some(system, system.records.all(), actor, tmux or Tmux(system.runner))


def reconcile_some(
    system: System, entries: Sequence[SessionRecord | RecordUnreadable], actor: str, tmux: Tmux
) -> tuple[Reconciled, ...]:
    """Do that for some records, all together. Whoever holds a session's lock is at work on it: it is left to them."""
    records = {entry.name: entry for entry in entries if isinstance(entry, SessionRecord)}
    try:
        tmux.survey()
    except (TmuxSilent, TmuxMissing) as error:
        return tuple(_left(entry, str(error), passing=True) for entry in entries)

    def act(held: Mapping[str, str]) -> Mapping[str, Reconciled]:
        return _act(system, {name: records[name] for name in held}, actor, tmux)

    def failed(name: str, error: CoreError) -> Reconciled:
        return _failed(system.events, records[name], error, actor)

    done = together(system, records, "reconcile", act, failed, seconds=_LOCK_SECONDS)
    return tuple(done[entry.name] if entry.name in done else _left(entry, str(entry)) for entry in entries)


def _left(entry: SessionRecord | RecordUnreadable, trouble: str, *, passing: bool = False) -> Reconciled:
    phase = None if isinstance(entry, RecordUnreadable) else entry.phase
    return Reconciled(entry.name, phase, phase, trouble, passing)


def _failed(events: EventLog, entry: SessionRecord, error: CoreError, actor: str) -> Reconciled:
    if isinstance(
        error, (LockBusy, TmuxSilent, ForeignPane)
    ):  # a deletion waits for its name: nothing has failed since
        return _left(entry, str(error), passing=True)
    events.emit("standing.stop_failed", level="error", name=entry.name, actor=actor, reason=str(error))
    return _left(entry, str(error))


def _began_since(entry: SessionRecord, record: SessionRecord) -> bool:
    """Return whether a start has begun since `entry` was read: it lets its lock go while the harness comes up."""
    before = (entry.phase, entry.instance_id)
    return record.phase in _COMING_UP and (record.phase, record.instance_id) != before


def _act(system: System, entries: Mapping[str, SessionRecord], actor: str, tmux: Tmux) -> Mapping[str, Reconciled]:
    """Act by the phases of these sessions' records, whose locks are held."""
    done: dict[str, Reconciled] = {}
    current: list[SessionRecord] = []
    for name, entry in entries.items():
        try:
            with apart(system.events, name):
                record = system.records.read(name)
        except CoreError as error:
            done[name] = _failed(system.events, entry, error, actor)
            continue
        if record is None:
            done[name] = Reconciled(name, entry.phase, None)
        elif _began_since(entry, record):
            done[name] = _left(entry, "it is being started", passing=True)
        else:
            current.append(record)
    try:
        after = recover_all(system, current, tmux.survey(), actor, tmux)
    except (TmuxSilent, TmuxMissing) as error:
        after = {record.name: error for record in current}
    for record in current:
        found = after[record.name]
        if isinstance(found, CoreError):
            done[record.name] = _failed(system.events, record, found, actor)
        elif found is record and record.phase in _COMING_UP:
            done[record.name] = _left(record, "it is being started", passing=True)
        else:
            done[record.name] = Reconciled(record.name, record.phase, found.phase if found else None)
    return done
