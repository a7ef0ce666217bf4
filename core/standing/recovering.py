"""Brings records and tmux together again after verbs were cut short. Needs the sessions' locks."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from core.domain.activity import Activity, ActivityState, unfinished_text
from core.domain.conversations import begun_instead
from core.domain.pane import Survey
from core.domain.session import HoldKind, Live, Phase, SessionEvent, SessionRecord, Status
from core.effects import Effect, effect
from core.errors import CoreError, SpawnFailed, StoreBroken, TmuxSilent, TrustFailed
from core.names import target_for
from core.observing.readiness import notice_reading
from core.session.apart import apart
from core.session.credentials import drop_token
from core.session.place import clear_hold_file, has_hold_file, set_hold_file
from core.session.sessions import resolve_record
from core.session.taking import came_up, settled_conversation
from core.standing.announcing import announce_start, announce_stop
from core.standing.cancelling import cancel_queue
from core.standing.common import refuse_held_name, spawn_time, take_reports, write_record
from core.standing.dying import tell_on_purpose
from core.standing.ending import Doomed, Ended, end_all
from core.standing.removing import remove_session
from core.standing.together import Tmux
from core.system import System
from core.values import replace

_POLL_SECONDS = 0.1
_RESTART_TAKES = timedelta(minutes=1)  #: the second half of a restart; whoever has not begun it by then was killed
_SILENT_HOLDS = (HoldKind.STOPPED, HoldKind.FAILED)
_COMING_UP = (Phase.STARTING, Phase.CREATING)


def recover_all(
    system: System, records: Sequence[SessionRecord], survey: Survey, actor: str, tmux: Tmux
) -> Mapping[str, SessionRecord | CoreError | None]:
    """Finish what each record's phase says was begun, all together.

    Return each record by name as it is then, None where the session is gone, or why it stays as it is. Needs their
    locks. creating: adopt a live pane, else remove the record. starting: adopt by tag, else clear. stopping, deleting:
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
        refuse_held_name(system, record.name)
        remove_session(system, record, actor)
        system.events.emit("standing.deleted", name=record.name, actor=actor, reason="finished by reconcile")
        return None
    if survey.live(target_for(record.name), record.instance_id) is Live.LIVE:
        return adopt(system, record, "it lives: its start was cut short")
    return _cleared(system, record, ended_or_none, actor)


def adopt(system: System, record: SessionRecord, why: str) -> SessionRecord:
    """Take over a live pane whose start was cut short: announce it if that was not done, settle the record."""
    instead = begun_instead(record)
    how = f"found alive and taken over{f', with a new conversation: {instead}' if instead else ''} ({why})"
    activity = system.activities.get(record.uid)
    unfinished = unfinished_text(activity.earlier_tasks) if activity else ""
    announce_start(system, record, record.definition, "; ".join(text for text in (how, unfinished) if text))
    with effect(Effect.START_SETTLE):
        settled = write_record(system, came_up(system, record).moved(SessionEvent.READY))
    with effect(Effect.START_READY):
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
    """Say that nobody knows what a harness does that cannot tell by itself that it reads. Raises StoreBroken."""
    harness = system.harnesses.get(resolve_record(record, system.settings).harness)
    if harness.traits.boot_signal or record.instance_id is None:
        return
    activity = system.activities.get(record.uid)
    if activity and activity.instance == record.instance_id and activity.state is not ActivityState.STARTING:
        return
    system.activities.put(Activity(record.uid, record.instance_id, ActivityState.UNKNOWN, system.clock.now()))


def finish_stop(system: System, record: SessionRecord, ended: Ended, *, cut_short: bool = False) -> SessionRecord:
    """Take in its last reports, as those of a session that is ending, and settle the record. Raises StoreBroken.

    `cut_short`: whoever began it is gone. If that was a restart, the supervisor brings the session back.
    """
    take_reports(system, record)
    back_in = _bring_back_in(record, cut_short=cut_short)
    if back_in is None:
        announce_stop(system, record)
    with effect(Effect.STOP_SETTLE):
        tell_on_purpose(system, record, back_in)
        drop_token(system.paths, record.uid)
        stopped = replace(record.moved(SessionEvent.STOPPED), last_exit=ended.exit or record.last_exit)
        settled = write_record(system, _with_its_turn(system, stopped))
    if settled.hold is None:
        _unblock(system, settled)
    return settled


def _with_its_turn(system: System, record: SessionRecord) -> SessionRecord:
    """Return the record with its latest conversation as the session's if that has had a turn.

    A stop goes on where that cannot be told; the next start asks again, and says what is wrong.
    """
    try:
        return settled_conversation(system, record)
    except TrustFailed:
        return record


def _bring_back_in(record: SessionRecord, *, cut_short: bool) -> timedelta | None:
    """Return when a session is to be up again that was ended in order to be restarted, None for every other."""
    if record.status is not Status.RUNNING:
        return None
    return timedelta() if cut_short else _RESTART_TAKES


def _unblock(system: System, record: SessionRecord) -> None:
    with effect(Effect.STOP_UNBLOCK):
        clear_hold_file(system.paths, record.uid)


def _unfinished(record: SessionRecord, ended: Ended) -> CoreError:
    if ended.silent:
        return TmuxSilent(f"{record.name}: {ended.trouble()}", "it is finished once tmux answers")
    return SpawnFailed(f"{record.name}: {ended.trouble()}")


def _settled(system: System, record: SessionRecord, ended: Ended | None) -> SessionRecord:
    held = record.hold is not None
    if held and not has_hold_file(system.paths, record.uid):
        with effect(Effect.STOP_HOLD):
            set_hold_file(system.paths, record.uid)
    if not held and has_hold_file(system.paths, record.uid):
        _unblock(system, record)
    if ended is None:
        return record
    with effect(Effect.STOP_SETTLE):
        return write_record(system, replace(record, last_exit=ended.exit or record.last_exit))


def _when_none_comes(system: System, records: Sequence[SessionRecord], survey: Survey, tmux: Tmux) -> Survey:
    """Return what lives, once no spawn that a slow tmux has yet to come to can make a pane any more.

    Whoever asked for one is dead, or we would not hold the lock; its line refuses itself after its deadline.
    """
    until = {record.name: _spawned_by(system, record) for record in records if record.phase in _COMING_UP}
    while any(_may_come(system, record, survey, until) for record in records):
        system.clock.pause(_POLL_SECONDS)
        survey = tmux.survey()
    return survey


def _may_come(system: System, record: SessionRecord, survey: Survey, until: Mapping[str, datetime]) -> bool:
    if record.name not in until or system.clock.now() >= until[record.name]:
        return False
    return survey.live(target_for(record.name), record.instance_id) is Live.ABSENT


def _spawned_by(system: System, record: SessionRecord) -> datetime:
    """Return until when the record's start can still make a pane: never, where it did not come as far as asking."""
    try:
        activity = system.activities.get(record.uid)
    except StoreBroken:
        return (record.started_at or record.created_at) + 2 * spawn_time(system)
    asked = activity is not None and activity.instance == record.instance_id
    return activity.since + spawn_time(system) if activity is not None and asked else record.created_at


def _cleared(system: System, record: SessionRecord, ended: Ended, actor: str) -> SessionRecord | None:
    if record.phase is Phase.CREATING:
        remove_session(system, record, actor)
        system.events.emit(
            "standing.create_failed", level="error", name=record.name, actor=actor, reason="its start was cut short"
        )
        return None
    with effect(Effect.START_SETTLE):
        return write_record(system, replace(record.moved(SessionEvent.READY), last_exit=ended.exit))
