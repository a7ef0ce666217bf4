"""pause: a durable mark under which nothing of ours starts a turn. What comes in waits; background jobs go on.

What the harness holds in a queue of its own would start a turn as soon as the running one is over: it is taken back.
"""

from datetime import timedelta

from core.clock import Deadline
from core.delivery.takeback import Left, held_by_harness, take_back
from core.domain.gate import HoldState, hold_state
from core.domain.message import MessageState
from core.domain.plaintext import reason_of
from core.domain.rows import Answer
from core.domain.session import Hold, HoldKind, Outcome, SessionRecord
from core.effects import Effect, effect
from core.errors import CoreError, InvalidValue, NotRunning, Refused, TmuxMissing, TmuxSilent
from core.session.place import set_hold_file
from core.standing.admitting import running_record
from core.standing.common import Told, lock, take_reports, told_of, write_record
from core.standing.interrupting import NoTurn, Pressed, interruptible, press, settle, take_last_reports
from core.standing.listing import rows_told
from core.system import System
from core.values import replace

SOFT, HARD = "soft", "hard"
_BEGINS_WITHIN = timedelta(seconds=10)  #: from the Enter of a message to its turn: 0.1 s, on a busy machine more
_ARRIVES_SECONDS = 3.0  #: for a turn that such a message may begin
_POLL_SECONDS = 0.05


def pause_standing(system: System, name: str, actor: str, reason: str = "", *, hard: bool = False) -> Answer:
    """Pause the session: its turn ends by itself (soft) or is interrupted (hard), and no other begins until it is
    resumed.

    A second pause changes nothing, but that a hard one follows a soft one; a mark is never weakened. Raises
    UnknownSession, InvalidValue, RecordUnreadable, NotRunning with the start command, and Refused for a hard pause of a
    harness without a key that ends a turn.
    """
    try:
        running_record(system, name, "paused")
        take_last_reports(system, name)
        with lock(system, name, "pause"):
            record = running_record(system, name, "paused")
            if hard:
                interruptible(system, record)
            _mark(system, record, actor, reason_of(reason), HARD if hard else SOFT)
            left = _take_back(system, record)
            pressed = _press(system, record) if hard else None
        told = _told(system, record, pressed, left, actor)
    except (Refused, LookupError, InvalidValue):
        raise
    except CoreError as error:
        told = told_of(error)
    return Answer(rows_told(system, {name: told}))


def _mark(system: System, record: SessionRecord, actor: str, reason: str, policy: str) -> None:
    """Block turns that nobody types, then commit the mark: the file is there for as long as the mark is."""
    before = record.hold
    if hold_state(record) is HoldState.PAUSED and before is not None and (policy == SOFT or before.policy == HARD):
        return
    with effect(Effect.PAUSE_HOLD):
        set_hold_file(system.paths, record.uid)
    hold = Hold(HoldKind.PAUSED, actor, reason, system.clock.now(), policy)
    with effect(Effect.PAUSE_MARK):
        write_record(system, replace(record, hold=hold))
    system.events.emit(
        "standing.paused",
        name=record.name,
        actor=actor,
        reason=reason or None,
        detail=policy,
        instance=record.instance_id,
        generation=record.generation,
    )
    system.poke()


def _take_back(system: System, record: SessionRecord) -> Left:
    """Take back what the harness's own queue holds. The mark stands: what cannot be taken back is only said, and the
    service tries it again."""
    if not held_by_harness(system, record):
        return Left(0)
    try:
        return take_back(system, record, system.runner.survey())
    except (TmuxSilent, TmuxMissing) as error:
        return Left(len(held_by_harness(system, record)), error.message)


def _press(system: System, record: SessionRecord) -> Pressed | Told:
    """Interrupt the turn; the mark stands, so that what cannot be interrupted is only said.

    One that a message on its way is about to begin is waited for: where no hook holds it up it begins all the same.
    """
    deadline = Deadline(system.clock, _ARRIVES_SECONDS)
    while True:
        try:
            return press(system, record)
        except NotRunning as error:
            return Told(Outcome.PAUSED, error.message)
        except NoTurn:
            if not _is_on_its_way(system, record):
                return Told(Outcome.PAUSED, "no turn was running")
        if deadline.passed():
            return Told(Outcome.UNCONFIRMED, "a message was on its way to its program, and may begin a turn yet")
        system.clock.pause(_POLL_SECONDS)
        take_reports(system, record)


def _is_on_its_way(system: System, record: SessionRecord) -> bool:
    """Return whether the Enter of a message was written a moment ago, and nothing tells yet what became of it."""
    now = system.clock.now()
    return any(
        row.instance == record.instance_id
        and not row.final
        and row.submitted_at is not None
        and row.submitted_at <= now < row.submitted_at + _BEGINS_WITHIN
        for row in system.inbox.with_states(record.uid, frozenset({MessageState.SUBMITTED}))
    )


def _told(system: System, record: SessionRecord, pressed: Pressed | Told | None, left: Left, actor: str) -> Told:
    told = settle(system, pressed, actor) if isinstance(pressed, Pressed) else pressed or Told(Outcome.PAUSED, "")
    if isinstance(pressed, Pressed) and left.count:
        told = _end_next(system, record, actor) or told
    if told.outcome not in (Outcome.INTERRUPTED, Outcome.PAUSED):
        return Told(Outcome.UNCONFIRMED, f"it is paused, but {told.detail}")
    left = left if not left.count else Left(len(held_by_harness(system, record)), left.why)
    if left.count:
        messages = "1 message" if left.count == 1 else f"{left.count} messages"
        return Told(
            Outcome.UNCONFIRMED,
            f"it is paused, but its harness has {messages} in a queue of its own, which begins another turn once this "
            f"one is over, and which could not be taken back: {left.why}",
        )
    return Told(Outcome.PAUSED, told.detail)


def _end_next(system: System, record: SessionRecord, actor: str) -> Told | None:
    """End the turn that the harness's own queue began as ours was ended; None where none did."""
    try:
        with lock(system, record.name, "pause"):
            return settle(system, press(system, running_record(system, record.name, "paused")), actor)
    except (NoTurn, NotRunning):
        return None
