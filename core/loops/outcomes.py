"""Settle runs: count for a loop what became of its tick, once, whoever finds it and whoever was killed meanwhile.

A run is settled by its inbox row, which delivery moves. A run of a loop without a cadence is settled also by the end of
the turn that the tick began. Reports of turns are handled in the transaction that takes the report in. A turn that
ended without a report (Escape, a killed program) is found by looking at the runs that a turn has taken.
"""

import logging
from datetime import datetime, timedelta

from core.base.errors import CoreError
from core.base.failpoints import Failpoint, failpoint
from core.loops.transitions import DELETED, apply, close_run
from core.model import loop_transitions
from core.model.activity import ActivityState
from core.model.framing import takes
from core.model.gate import HoldState, hold_state
from core.model.harness import TurnFailed
from core.model.loop import OPEN, Held, Loop, LoopRun, LoopStatus, Mode, RunState, following_slot
from core.model.loop_transitions import Fate
from core.model.message import InboxRow, MessageState
from core.model.session import SessionRecord, Status
from core.session.sessions import apart
from core.session.system import System
from core.store.loops import Loops
from core.store.sessions import Activities

_LOG = logging.getLogger(__name__)
_HOOK_TIME = timedelta(seconds=5)  #: from what proves a turn to the hook that tells when it began
_TAKEN = {
    MessageState.CONFIRMED: loop_transitions.DELIVERED,
    MessageState.SUBMITTED: loop_transitions.SUBMITTED,
    MessageState.UNKNOWN: loop_transitions.UNKNOWN,
}
_HELD = frozenset({HoldState.STOPPED, HoldState.FAILED})
_UNOBSERVED = (None, ActivityState.UNKNOWN)


def settle_runs(system: System) -> None:
    """Settle every run whose tick neither waits nor is in flight any more. Raises StoreBroken."""
    for run in system.loops.settled_runs():
        try:
            with apart(system.events, name_of(system.loops, run)):
                settle_run(system, run.id)
        except CoreError as error:
            _LOG.warning("run cannot be settled", extra={"run_id": run.id, "reason": str(error)})


def name_of(loops: Loops, run: LoopRun) -> str:
    """Return the session that the run is for, the loop's id where that is gone. Raises StoreBroken."""
    loop = loops.get(run.loop_id)
    return run.loop_id if loop is None else loop.name


def settle_run(system: System, run_id: str) -> None:
    """Settle one run by its inbox row; one that its harness has waits until it is known whether a turn took it.

    Raises StoreBroken, RecordUnreadable, Refused.
    """
    with failpoint(Failpoint.LOOP_SETTLE), system.database.transaction(durable=True):
        run = system.loops.run(run_id)
        if run is None or run.state is not RunState.SENT:
            return
        loop, row = system.loops.get(run.loop_id), system.inbox.get(run.message_id)
        if loop is None or row is None:
            close_run(system.loops, run, "cancelled", "it is gone")
        elif row.state is MessageState.ACCEPTED:
            return
        elif row.state in _TAKEN:
            if run.taken_at is not None or not _hook_may_come(loop, row, system.clock.now()):
                take(system, loop, run, row)
        elif row.state is MessageState.CANCELLED:
            _cancelled(system, loop, run, row)
        else:
            _failed(system, loop, run, row)


def take(system: System, loop: Loop, run: LoopRun, row: InboxRow) -> LoopRun | None:
    """Count a tick of which it is known, or never will be, that a turn took it; return the run if its turn is to end.

    Part of the open transaction.
    """
    noted = run.taken_at if run.instance == row.instance else None
    at, result = noted or row.submitted_at or row.updated_at, _TAKEN[row.state]
    if loop.status not in OPEN:
        close_run(system.loops, run, result, "its loop has ended meanwhile")
        system.loops.change(loop, run_count=loop.run_count + 1, last_run_at=at, last_result=result)
        return None
    changed = apply(
        system,
        loop,
        loop_transitions.delivered(loop, run, at, result, system.settings.loops.max_age),
        message=run.message_id,
    )
    if loop.mode is Mode.DYNAMIC and changed.status in OPEN:
        instance = run.instance or row.instance or ""
        return system.loops.move_run(run, state=RunState.TAKEN, taken_at=at, instance=instance, outcome=result)
    close_run(system.loops, run, result)
    return None


def _hook_may_come(loop: Loop, row: InboxRow, now: datetime) -> bool:
    """Return whether it is too early to say when the tick's turn began, of a loop that its turn's end settles.

    A conversation's file may prove the turn before the hook that tells of its beginning is read.
    """
    if loop.mode is not Mode.DYNAMIC or row.state is not MessageState.CONFIRMED:
        return False
    return timedelta() <= now - row.updated_at < _HOOK_TIME


def _cancelled(system: System, loop: Loop, run: LoopRun, row: InboxRow) -> None:
    """See to a tick that somebody cancelled: with the session's queue, or by itself."""
    record, now = system.records.read(loop.name), system.clock.now()
    close_run(system.loops, run, "cancelled", row.detail)
    if loop.status is not LoopStatus.ACTIVE or loop.held is not None:
        return
    if record is None or record.uid != loop.uid or hold_state(record) is HoldState.DELETING:
        apply(system, loop, loop_transitions.stopped(loop, DELETED, now))
    elif _is_down(record):
        apply(system, loop, loop_transitions.held(Held.STOPPED, row.detail, now))
    elif loop.mode is Mode.DYNAMIC:
        apply(system, loop, loop_transitions.stopped(loop, f"its run was not delivered: {row.detail}", now))
    else:
        apply(system, loop, Fate({"next_run_at": _ahead(loop, now)}))


def _failed(system: System, loop: Loop, run: LoopRun, row: InboxRow) -> None:
    """See to a tick that delivery gave up: a failure, but of an ordinary loop only where the session is observed.

    Nobody knows of one that never told anything whether it could have been reached: its slot is tried again.
    """
    now = system.clock.now()
    activity = system.activities.get(loop.uid)
    unobserved = (activity.state if activity is not None else None) in _UNOBSERVED
    reason = row.detail or row.state.value
    close_run(system.loops, run, loop_transitions.FAILED, reason)
    if loop.status is not LoopStatus.ACTIVE:
        return
    if unobserved and not loop.keep_alive:
        apply(system, loop, loop_transitions.retried(loop, run, reason, now), message=row.message.id)
    else:
        apply(
            system,
            loop,
            loop_transitions.failed(loop, run, reason, now, system.settings.loops.max_age),
            message=row.message.id,
        )


def _is_down(record: SessionRecord) -> bool:
    return hold_state(record) in _HELD or record.status is Status.STOPPED


def _ahead(loop: Loop, now: datetime) -> datetime | None:
    """Return the planned slot, or the one that follows it where it has passed."""
    planned = loop.next_run_at
    return planned if planned is None or planned > now else following_slot(loop, planned, now)


def turn_began(system: System, record: SessionRecord, prompt: str, at: datetime) -> None:
    """Note when the turn began of whose beginning with a tick a hook tells. Part of the open transaction.

    That the turn took it is counted once the tick's row says so.
    """
    for run in system.loops.open_runs(record.uid):
        row = system.inbox.get(run.message_id) if run.message_id else None
        if row is not None and run.state in (RunState.SENT, RunState.TAKEN) and takes(prompt, row.message):
            system.loops.move_run(run, taken_at=at, instance=record.instance_id or "")


def turn_ended(system: System, record: SessionRecord, failure: TurnFailed | None, at: datetime) -> None:
    """Settle what the turn that ends with this report was to settle. Part of the open transaction.

    A report that was written before a tick's turn began is a late word of an earlier turn, and ends nothing.
    """
    limit = failure is not None and loop_transitions.is_limit(failure.error, failure.message)
    for run in system.loops.open_runs(record.uid):
        taken = _counted(system, run) if run.instance == record.instance_id and _not_before(run, at) else None
        if taken is not None:
            _settle_taken(system, taken, failure, limited=limit)
    if failure is None:
        _limit_is_over(system, record)
    elif limit:
        _limit(system, record, failure)


def _counted(system: System, run: LoopRun) -> LoopRun | None:
    """Return the run once its tick counts as taken; None where that is not known yet, or the tick was all of it."""
    loop, row = system.loops.get(run.loop_id), system.inbox.get(run.message_id) if run.message_id else None
    if run.state is not RunState.SENT:
        return run if run.state is RunState.TAKEN else None
    if loop is None or row is None or row.state is not MessageState.CONFIRMED:
        return None
    return take(system, loop, run, row)


def _not_before(run: LoopRun, at: datetime) -> bool:
    return run.taken_at is not None and at >= run.taken_at


def _settle_taken(system: System, run: LoopRun, failure: TurnFailed | None, *, limited: bool) -> None:
    """Let a loop without a cadence go on if its turn has named the next run, else end it; a failed turn comes again."""
    loop, now = system.loops.get(run.loop_id), system.clock.now()
    close_run(system.loops, run, loop_transitions.FAILED if failure else run.outcome, failure.error if failure else "")
    if loop is None or loop.status is not LoopStatus.ACTIVE or loop.next_run_at is not None:
        return
    if failure is None:
        apply(system, loop, loop_transitions.stopped(loop, loop_transitions.NO_NEXT_RUN, now))
    elif not limited:
        apply(system, loop, loop_transitions.failed(loop, run, _words(failure), now, system.settings.loops.max_age))


def _limit(system: System, record: SessionRecord, failure: TurnFailed) -> None:
    """Hold the session's loops: their harness may ask its model nothing for a while."""
    now = system.clock.now()
    reset = loop_transitions.reset_told(failure.message, now)
    activity = system.activities.get(record.uid)
    began = activity.turn_started_at if activity is not None else None
    for loop in system.loops.of_session(record.uid):
        if loop.status is LoopStatus.ACTIVE and loop.held in (None, Held.USAGE_LIMIT):
            own = began is not None and loop.last_run_at == began
            apply(system, loop, loop_transitions.limited(loop, _words(failure), now, reset, again=own))


def _limit_is_over(system: System, record: SessionRecord) -> None:
    """Let the session's loops go on: a turn went well."""
    for loop in system.loops.of_session(record.uid):
        if loop.status is LoopStatus.ACTIVE and loop.held is Held.USAGE_LIMIT:
            apply(system, loop, loop_transitions.unlimited(loop, system.clock.now()))
        elif loop.held is None and loop.held_until is not None:
            system.loops.change(loop, held_at=None, held_until=None)


def _words(failure: TurnFailed) -> str:
    return ": ".join(text for text in (failure.error, failure.message) if text)[:300]


# ---------------------------------------------------------------- without a report


def settle_taken_runs(system: System) -> None:
    """Look at the runs that turns have taken: what has ended without a report, or goes on by itself, is settled."""
    for run in system.loops.open_runs():
        if run.state is not RunState.TAKEN:
            continue
        try:
            with apart(system.events, name_of(system.loops, run)):
                _look(system, run)
        except CoreError as error:
            _LOG.warning("run cannot be settled", extra={"run_id": run.id, "reason": str(error)})


def _look(system: System, seen: LoopRun) -> None:
    with failpoint(Failpoint.LOOP_SETTLE), system.database.transaction(durable=True):
        run = system.loops.run(seen.id)
        loop = system.loops.get(seen.loop_id)
        if run != seen or loop is None or loop.mode is not Mode.DYNAMIC:
            return
        record, now = system.records.read(loop.name), system.clock.now()
        if loop.status is not LoopStatus.ACTIVE or (loop.next_run_at is not None and loop.next_run_at <= now):
            close_run(system.loops, seen, seen.outcome)
        elif record is None or record.uid != seen.uid or record.instance_id != seen.instance:
            close_run(system.loops, seen, seen.outcome, loop_transitions.RESTARTED)
            if loop.next_run_at is None:
                apply(system, loop, loop_transitions.stopped(loop, loop_transitions.RESTARTED, now))
        elif _became_idle(system.activities, record, seen, system.clock.now()):
            _settle_taken(system, seen, None, limited=False)


def _became_idle(activities: Activities, record: SessionRecord, run: LoopRun, now: datetime) -> bool:
    """Return whether the session has become idle since the turn began: Escape ends a turn, and fires no hook."""
    activity = activities.get(record.uid)
    if activity is None or activity.instance != run.instance or activity.state is not ActivityState.IDLE:
        return False
    taken = run.taken_at  # one that lies ahead is by a clock that was set back since
    return taken is not None and (activity.since > taken or taken > now)
