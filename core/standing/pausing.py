"""pause: a durable mark under which nothing of ours starts a turn. What comes in waits; background jobs go on."""

from core.domain.gate import HoldState, hold_state
from core.domain.plaintext import reason_of
from core.domain.rows import Answer
from core.domain.session import Hold, HoldKind, Outcome, SessionRecord
from core.effects import Effect, effect
from core.errors import CoreError, InvalidValue, NotRunning, Refused
from core.session.launching import set_hold_file
from core.standing.admitting import running_record
from core.standing.common import Told, lock, told_of, write_record
from core.standing.interrupting import NoTurn, Pressed, interruptible, press, settle, take_last_reports
from core.standing.listing import rows_told
from core.system import System
from core.values import replace

SOFT, HARD = "soft", "hard"


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
            pressed = _press(system, record) if hard else None
        told = _told(system, pressed, actor)
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


def _press(system: System, record: SessionRecord) -> Pressed | str:
    """Interrupt the turn; the mark stands, so that what cannot be interrupted is only said."""
    try:
        return press(system, record)
    except NoTurn:
        return "no turn was running"
    except NotRunning as error:
        return error.message


def _told(system: System, pressed: Pressed | str | None, actor: str) -> Told:
    if not isinstance(pressed, Pressed):
        return Told(Outcome.PAUSED, pressed or "")
    told = settle(system, pressed, actor)
    if told.outcome is Outcome.INTERRUPTED:
        return Told(Outcome.PAUSED, told.detail)
    return Told(Outcome.UNCONFIRMED, f"it is paused, but {told.detail}")
