"""Holds of loops: what a stopped session keeps from firing, and what lets it go on again.

A hold ends when what it stands for is over, found by a look: whoever ends it need not know of loops, and may be killed.
"""

import logging
from datetime import datetime

from core.domain import fates
from core.domain.fates import Fate
from core.domain.gate import HoldState, hold_state
from core.domain.loop import OPEN, Held, Loop, LoopStatus, RunState
from core.domain.schedule import expires_at, replanned_slot
from core.domain.session import Phase, SessionRecord, Status
from core.effects import Effect, effect
from core.errors import CoreError
from core.loops.applying import apply, close_run
from core.loops.sending import DELETED
from core.session.apart import apart
from core.system import System

_LOG = logging.getLogger(__name__)


def hold_with_session(system: System, record: SessionRecord, reason: str) -> None:
    """Hold the loops of a session that is stopped by name, with its queue. Part of the open transaction.

    One that is held for its failures stays so: only a person lets it go on.
    """
    now = system.clock.now()
    for run in system.loops.open_runs(record.uid):
        if run.state is RunState.CLAIMED:
            close_run(system, run, "held", reason)
    for loop in system.loops.of_session(record.uid):
        if loop.status is LoopStatus.ACTIVE and loop.held not in (Held.STOPPED, Held.FAILURES):
            apply(system, loop, fates.held(Held.STOPPED, reason, now))


def end_with_session(system: System, record: SessionRecord, actor: str) -> None:
    """End the loops of a session that is deleted. Part of the open transaction; done again it finds none."""
    for loop in system.loops.of_session(record.uid):
        if loop.status in OPEN:
            apply(system, loop, fates.stopped(loop, DELETED, system.clock.now()), actor=actor)


def release_loops(system: System) -> None:
    """Let go on whatever nothing keeps any more. Reads the records of held loops alone. Raises StoreBroken."""
    records: dict[str, SessionRecord | None] = {}
    for loop in system.loops.held():
        try:
            with apart(system.events, loop.name):
                if loop.name not in records:
                    records[loop.name] = system.records.read(loop.name)
                _look(system, loop, records[loop.name])
        except CoreError as error:
            _LOG.warning("held loop passed over", extra={"loop": loop.id, "reason": str(error)})


def _look(system: System, loop: Loop, record: SessionRecord | None) -> None:
    now = system.clock.now()
    if record is None or record.uid != loop.uid:
        _store(system, loop, fates.stopped(loop, DELETED, now))
    elif why := _why_over(loop, record, now):
        _store(system, loop, fates.resumed(loop, why, now))


def _why_over(loop: Loop, record: SessionRecord, now: datetime) -> str:
    """Return why the hold is over, "" while it is not."""
    mark = hold_state(record)
    if loop.held is Held.PAUSED and mark is not HoldState.PAUSED:
        return "its session is not paused any more"
    if loop.held is Held.USAGE_LIMIT and loop.held_until is not None and (loop.held_until <= now or _ahead(loop, now)):
        return "the usage limit may be over"
    return "its session was started" if loop.held is Held.STOPPED and _runs_again(loop, record, now) else ""


def _runs_again(loop: Loop, record: SessionRecord, now: datetime) -> bool:
    """Tell whether the session was started since the hold began, and nothing keeps it from working."""
    up = record.status is Status.RUNNING and record.phase is Phase.SETTLED and record.hold is None
    started = record.started_at
    return up and started is not None and (loop.held_at is None or started > loop.held_at or _ahead(loop, now))


def _ahead(loop: Loop, now: datetime) -> bool:
    """Tell whether the hold began by a clock that was set back since, so that no time of now says when it is over."""
    return loop.held_at is not None and loop.held_at > now


def look_at_ages(system: System) -> None:
    """End the ordinary loops that have grown too old while they do not fire: the others fire once more first.

    Those that fire are planned anew where the clock was set back since.
    """
    for loop in system.loops.all_open():
        try:
            with apart(system.events, loop.name):
                _look_at_age(system, loop)
        except CoreError as error:
            _LOG.warning("loop passed over", extra={"loop": loop.id, "reason": str(error)})


def _look_at_age(system: System, loop: Loop) -> None:
    age, now = system.settings.loops.max_age, system.clock.now()
    expires = expires_at(loop, age)
    fires = loop.status is LoopStatus.ACTIVE and loop.held is None
    if age is not None and expires is not None and now >= expires and not fires:
        _store(system, loop, fates.expired(loop, age, now), Effect.LOOP_EXPIRE)
    elif fires and (slot := replanned_slot(loop, now)) is not None and not _is_under_way(system, loop):
        _store(system, loop, Fate({"next_run_at": slot}), Effect.LOOP_EXPIRE)


def _is_under_way(system: System, loop: Loop) -> bool:
    """Tell whether a run is on its way or in its turn: what becomes of it plans the next one."""
    return any(run.loop_id == loop.id for run in system.loops.open_runs(loop.uid))


def _store(system: System, seen: Loop, fate: Fate, name: Effect = Effect.LOOP_RELEASE) -> None:
    """Store it unless the loop has changed since it was looked at: the next look sees what it is then."""
    with effect(name), system.database.transaction(durable=True):
        loop = system.loops.get(seen.id)
        if loop is not None and loop.revision == seen.revision:
            apply(system, loop, fate)
