"""What became of a tick counts for its loop: once, whoever finds it, and whoever was killed on the way.

A run is settled by its inbox row, which delivery moves; of a loop without a cadence also by the end of the turn that
the tick began. Everything is read and written in one transaction.
"""

import logging
from datetime import datetime, timedelta

from core.domain import fates
from core.domain.activity import ActivityState
from core.domain.fates import Fate
from core.domain.gate import HoldState, hold_state
from core.domain.loop import OPEN, Held, Loop, LoopRun, LoopStatus, Mode, RunState
from core.domain.message import InboxRow, MessageState
from core.domain.schedule import following_slot
from core.domain.session import SessionRecord, Status
from core.effects import Effect, effect
from core.errors import CoreError
from core.loops.applying import apply, close_run
from core.loops.sending import DELETED
from core.session.apart import apart
from core.system import System

_LOG = logging.getLogger(__name__)
_HOOK_TIME = timedelta(seconds=5)  #: from what proves a turn to the hook that tells when it began
_TAKEN = {
    MessageState.CONFIRMED: fates.DELIVERED,
    MessageState.ACCEPTED: fates.DELIVERED,
    MessageState.SUBMITTED: fates.DELIVERED,
    MessageState.UNKNOWN: fates.UNKNOWN,
}
_HELD = frozenset({HoldState.STOPPED, HoldState.FAILED})
_UNOBSERVED = (None, ActivityState.UNKNOWN)


def settle_runs(system: System) -> None:
    """Settle every run whose tick neither waits nor is in flight any more. Raises StoreBroken."""
    for run in system.loops.settled_runs():
        try:
            with apart(system.events, name_of(system, run)):
                settle_run(system, run.id)
        except CoreError as error:
            _LOG.warning("run cannot be settled", extra={"run_id": run.id, "reason": str(error)})


def name_of(system: System, run: LoopRun) -> str:
    """Return the session that the run is for, the loop's id where that is gone. Raises StoreBroken."""
    loop = system.loops.get(run.loop_id)
    return run.loop_id if loop is None else loop.name


def settle_run(system: System, run_id: str) -> None:
    """Settle one run by its inbox row. Raises StoreBroken, RecordUnreadable, Refused."""
    with effect(Effect.LOOP_SETTLE), system.database.transaction(durable=True):
        run = system.loops.run(run_id)
        if run is None or run.state is not RunState.SENT:
            return
        loop, row = system.loops.get(run.loop_id), system.inbox.get(run.message_id)
        if loop is None or row is None:
            close_run(system, run, "cancelled", "it is gone")
        elif row.state in _TAKEN:
            if not _hook_may_come(system, loop, row):
                take(system, loop, run, row.submitted_at or row.updated_at, row.instance or "", _TAKEN[row.state])
        elif row.state is MessageState.CANCELLED:
            _cancelled(system, loop, run, row)
        else:
            _failed(system, loop, run, row)


def take(system: System, loop: Loop, run: LoopRun, at: datetime, instance: str, result: str) -> None:
    """Count a tick that a turn of that instance took at `at`. Part of the open transaction."""
    if loop.status not in OPEN:
        close_run(system, run, result, "its loop has ended meanwhile")
        system.loops.change(loop, run_count=loop.run_count + 1, last_run_at=at, last_result=result)
        return
    changed = apply(
        system, loop, fates.delivered(loop, run, at, result, system.settings.loops.max_age), message=run.message_id
    )
    if loop.mode is Mode.DYNAMIC and changed.status in OPEN:
        system.loops.move_run(run, state=RunState.TAKEN, taken_at=at, instance=instance, outcome=result)
    else:
        close_run(system, run, result)


def _hook_may_come(system: System, loop: Loop, row: InboxRow) -> bool:
    """Tell whether it is too early to say when the tick's turn began, of a loop that its turn's end settles.

    A conversation's file may prove the turn before the hook that tells of its beginning is read.
    """
    if loop.mode is not Mode.DYNAMIC or row.state not in (MessageState.CONFIRMED, MessageState.ACCEPTED):
        return False
    return row.state is MessageState.ACCEPTED or timedelta() <= system.clock.now() - row.updated_at < _HOOK_TIME


def _cancelled(system: System, loop: Loop, run: LoopRun, row: InboxRow) -> None:
    """See to a tick that somebody cancelled: with the session's queue, or by itself."""
    record, now = system.records.read(loop.name), system.clock.now()
    close_run(system, run, "cancelled", row.detail)
    if loop.status is not LoopStatus.ACTIVE or loop.held is not None:
        return
    if record is None or record.uid != loop.uid or hold_state(record) is HoldState.DELETING:
        apply(system, loop, fates.stopped(loop, DELETED, now))
    elif _is_down(record):
        apply(system, loop, fates.held(Held.STOPPED, row.detail, now))
    elif loop.mode is Mode.DYNAMIC:
        apply(system, loop, fates.stopped(loop, f"its run was not delivered: {row.detail}", now))
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
    close_run(system, run, fates.FAILED, reason)
    if loop.status is not LoopStatus.ACTIVE:
        return
    if unobserved and not loop.keep_alive:
        apply(system, loop, fates.retried(loop, run, reason, now), message=row.message.id)
    else:
        apply(system, loop, fates.failed(loop, run, reason, now, system.settings.loops.max_age), message=row.message.id)


def _is_down(record: SessionRecord) -> bool:
    return hold_state(record) in _HELD or record.status is Status.STOPPED


def _ahead(loop: Loop, now: datetime) -> datetime | None:
    """Return the planned slot, or the one that follows it where it has passed."""
    planned = loop.next_run_at
    return planned if planned is None or planned > now else following_slot(loop, planned, now)
