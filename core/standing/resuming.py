"""resume: clears the mark of a pause; what waited goes in, in order."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from core.delivery.deliverer import Deliverer, is_soon
from core.domain.delivering import PASSING, awaits_confirmation
from core.domain.gate import HoldState, hold_state
from core.domain.message import IN_FLIGHT, InboxRow
from core.domain.rows import Answer
from core.domain.session import Live, Outcome, Phase, SessionRecord
from core.effects import Effect, effect
from core.errors import CoreError, InvalidValue, NotRunning, Refused
from core.names import target_for
from core.process.presence import running_service
from core.session.place import clear_hold_file
from core.sight.evidence import give_back
from core.standing.admitting import running_record
from core.standing.common import Told, foreign, lock, told_of, write_record
from core.standing.interrupting import take_last_reports
from core.standing.listing import rows_told
from core.system import System
from core.values import replace

_DRAIN_SECONDS = 30.0
_POLL_SECONDS = 0.05


def resume_standing(system: System, name: str, actor: str) -> Answer:
    """Clear the pause; the service, or without one this process, takes in what waited, oldest first.

    A session whose program has ended keeps its pause and its queue: it is started first. Raises UnknownSession,
    InvalidValue, RecordUnreadable, NotRunning with the start command, ForeignPane.
    """
    try:
        running_record(system, name, "resumed")
        take_last_reports(system, name)
        with lock(system, name, "resume"):
            record = running_record(system, name, "resumed")
            if hold_state(record) is not HoldState.PAUSED:
                return Answer(rows_told(system, {name: Told(Outcome.NOT_PAUSED)}))
            _check_lives(system, record)
            with effect(Effect.DELIVERY_SETTLE):
                give_back(system, record, record.instance_id)  # what an ended harness had queued came first
            _clear(system, record, actor)
        told = Told(Outcome.UNPAUSED, _drained(system, record))
    except (Refused, LookupError, InvalidValue):
        raise
    except CoreError as error:
        told = told_of(error)
    return Answer(rows_told(system, {name: told}))


def _check_lives(system: System, record: SessionRecord) -> None:
    """Refuse where nothing lives that could take what waits: without the pause it would be refused, and lost.

    Raises TmuxSilent where that cannot be told; the mark then stays.
    """
    survey = system.runner.survey()
    live = survey.live(target_for(record.name), record.instance_id)
    if live is Live.FOREIGN:
        raise foreign(system, survey, record.name)
    starting = record.phase is Phase.STARTING
    if live is not Live.LIVE and not (starting and live is Live.ABSENT):
        raise NotRunning(
            f"{record.name} stays paused, with what waits for it: its program has ended",
            f"start it: `the-loop standing start {record.name}`, then resume it",
        )


def _clear(system: System, record: SessionRecord, actor: str) -> None:
    with effect(Effect.RESUME_MARK):
        cleared = write_record(system, replace(record, hold=None))
    if cleared.phase is not Phase.STOPPING:  # a restart that was cut short goes on to hold back the dying one's turns
        with effect(Effect.RESUME_UNBLOCK):
            clear_hold_file(system.paths, record.uid)
    system.events.emit(
        "standing.unpaused",
        name=record.name,
        actor=actor,
        instance=record.instance_id,
        generation=record.generation,
    )
    system.poke()


def _drained(system: System, record: SessionRecord) -> str:
    """See to what waited, and return how much there is of it."""
    waiting = len(system.inbox.unsettled(record.uid))
    if not waiting:
        return ""
    words = f"{waiting} {'message' if waiting == 1 else 'messages'} waited"
    if running_service(system.paths.service_lock) is not None:
        return f"{words}; the service takes them in"
    left = _drain(system, record.uid)
    return f"{words}; no service is running, and {left} wait still" if left else f"{words} and went in"


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
        _pause(system, following, now)


def _under_way(rows: Sequence[InboxRow]) -> bool:
    """Tell whether what comes first is on its way, or waits for what is over in a moment."""
    first = next((row for row in rows if not awaits_confirmation(row)), None)
    return first is not None and (first.state in IN_FLIGHT or first.reason in PASSING)


def _pause(system: System, following: datetime | None, now: datetime) -> None:
    if following is not None and following > now:
        system.clock.pause(min((following - now).total_seconds(), _POLL_SECONDS))
