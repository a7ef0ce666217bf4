"""What a session's turns mean for its loops: which tick began one, and what its end settles.

Called with what the harness reports, in the transaction that takes the report in. Level-triggered besides: what was
ended without a report (Escape, a killed program) is found by a look at the runs that a turn has taken.
"""

import logging
from datetime import datetime

from core.domain import fates
from core.domain.activity import ActivityState
from core.domain.framing import takes
from core.domain.harness import TurnFailed
from core.domain.loop import Held, LoopRun, LoopStatus, Mode, RunState
from core.domain.session import SessionRecord
from core.effects import Effect, effect
from core.errors import CoreError
from core.loops.applying import apply, close_run
from core.loops.settling import name_of, take
from core.session.apart import apart
from core.system import System

_LOG = logging.getLogger(__name__)


def turn_began(system: System, record: SessionRecord, prompt: str, at: datetime) -> None:
    """Count each tick that this turn has taken, and note when it began. Part of the open transaction."""
    runs = system.loops.open_runs(record.uid)
    for run in runs:
        row = system.inbox.get(run.message_id) if run.message_id else None
        loop = system.loops.get(run.loop_id)
        if loop is None or row is None or not takes(prompt, row.message):
            continue
        if run.state is RunState.SENT:
            take(system, loop, run, at, record.instance_id or "", fates.DELIVERED)
        elif run.state is RunState.TAKEN:
            system.loops.move_run(run, taken_at=at, instance=record.instance_id or "", outcome=fates.DELIVERED)


def turn_ended(system: System, record: SessionRecord, failure: TurnFailed | None, at: datetime) -> None:
    """Settle what the turn that ends with this report was to settle. Part of the open transaction.

    A report that was written before a tick's turn began is a late word of an earlier turn, and ends nothing.
    """
    limit = failure is not None and fates.is_limit(failure.error, failure.message)
    for run in system.loops.open_runs(record.uid):
        if run.state is RunState.TAKEN and run.instance == record.instance_id and _not_before(run, at):
            _settle_taken(system, run, failure, limited=limit)
    if failure is None:
        _limit_is_over(system, record)
    elif limit:
        _limit(system, record, failure)


def _not_before(run: LoopRun, at: datetime) -> bool:
    return run.taken_at is not None and at >= run.taken_at


def _settle_taken(system: System, run: LoopRun, failure: TurnFailed | None, *, limited: bool) -> None:
    """Let a loop without a cadence go on if its turn has named the next run, else end it; a failed turn comes again."""
    loop, now = system.loops.get(run.loop_id), system.clock.now()
    close_run(system, run, fates.FAILED if failure else run.outcome, failure.error if failure else "")
    if loop is None or loop.status is not LoopStatus.ACTIVE or loop.next_run_at is not None:
        return
    if failure is None:
        apply(system, loop, fates.stopped(loop, fates.NO_NEXT_RUN, now))
    elif not limited:
        apply(system, loop, fates.failed(loop, run, _words(failure), now, system.settings.loops.max_age))


def _limit(system: System, record: SessionRecord, failure: TurnFailed) -> None:
    """Hold the session's loops: their harness may ask its model nothing for a while."""
    now = system.clock.now()
    reset = fates.reset_told(failure.message, now)
    activity = system.activities.get(record.uid)
    began = activity.turn_started_at if activity is not None else None
    for loop in system.loops.of_session(record.uid):
        if loop.status is LoopStatus.ACTIVE and loop.held in (None, Held.USAGE_LIMIT):
            own = began is not None and loop.last_run_at == began
            apply(system, loop, fates.limited(loop, _words(failure), now, reset, again=own))


def _limit_is_over(system: System, record: SessionRecord) -> None:
    """Let the session's loops go on: a turn went well."""
    for loop in system.loops.of_session(record.uid):
        if loop.status is LoopStatus.ACTIVE and loop.held is Held.USAGE_LIMIT:
            apply(system, loop, fates.unlimited(loop, system.clock.now()))
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
            with apart(system.events, name_of(system, run)):
                _look(system, run)
        except CoreError as error:
            _LOG.warning("run cannot be settled", extra={"run_id": run.id, "reason": str(error)})


def _look(system: System, seen: LoopRun) -> None:
    with effect(Effect.LOOP_SETTLE), system.database.transaction(durable=True):
        run = system.loops.run(seen.id)
        loop = system.loops.get(seen.loop_id)
        if run != seen or loop is None or loop.mode is not Mode.DYNAMIC:
            return
        record, now = system.records.read(loop.name), system.clock.now()
        if loop.status is not LoopStatus.ACTIVE or (loop.next_run_at is not None and loop.next_run_at <= now):
            close_run(system, seen, seen.outcome)
        elif record is None or record.uid != seen.uid or record.instance_id != seen.instance:
            close_run(system, seen, seen.outcome, fates.RESTARTED)
            if loop.next_run_at is None:
                apply(system, loop, fates.stopped(loop, fates.RESTARTED, now))
        elif _became_idle(system, record, seen):
            _settle_taken(system, seen, None, limited=False)


def _became_idle(system: System, record: SessionRecord, run: LoopRun) -> bool:
    """Tell whether the session has become idle since the turn began: Escape ends a turn, and fires no hook."""
    activity = system.activities.get(record.uid)
    if activity is None or activity.instance != run.instance or activity.state is not ActivityState.IDLE:
        return False
    taken = run.taken_at  # one that lies ahead is by a clock that was set back since
    return taken is not None and (activity.since > taken or taken > system.clock.now())
