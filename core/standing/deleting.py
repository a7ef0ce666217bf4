"""delete: ends a created session and forgets it. Its name is free only when all of it is gone."""

from core.domain.rows import Answer
from core.domain.session import Outcome, Phase, SessionEvent, SessionRecord, Status
from core.effects import Effect, effect
from core.errors import CoreError, DeclaredSession, ForeignPane, UnknownSession
from core.names import check_name
from core.session.place import set_hold_file
from core.session.sessions import Known
from core.standing.common import Told, lock, refuse_held_name, told_of, write_record
from core.standing.ending import end_recorded
from core.standing.listing import rows_told
from core.standing.removing import remove_session
from core.standing.together import Tmux
from core.system import System
from core.values import replace


def delete_standing(system: System, name: str, actor: str) -> Answer:
    """Delete the session. Raises DeclaredSession, UnknownSession, RecordUnreadable, InvalidValue.

    What fails on the way is a row: the session keeps its phase, and deleting it again goes on from there. So it does
    where somebody else's program runs in its place: the name is free once that has ended.
    """
    check_name(name)
    _refuse_declared(system, name)
    if system.records.read(name) is None:
        raise UnknownSession(name)
    tmux = Tmux(system)
    return Answer(rows_told(system, {name: _delete(system, name, actor, tmux)}, tmux.survey))


def _refuse_declared(system: System, name: str) -> None:
    if system.settings.standing.get(name) is not None:
        raise DeclaredSession(
            f"{name!r} is declared in standingSessions.sessions, and the next start would bring it back",
            f"take it out of the configuration; until then `the-loop standing stop {name}` keeps it down",
        )


def _delete(system: System, name: str, actor: str, tmux: Tmux) -> Told:
    try:
        with lock(system, name, "delete"):
            record = system.records.read(name)
            if record is None:
                return Told(Outcome.DELETED, "somebody else deleted it")
            return _delete_locked(system, record, actor, tmux)
    except CoreError as error:
        system.events.emit("standing.stop_failed", level="error", name=name, actor=actor, reason=str(error))
        waits = "it is being deleted; its name stays taken: " if isinstance(error, ForeignPane) else ""
        told = told_of(error)
        return replace(told, detail=waits + told.detail)


def _delete_locked(system: System, record: SessionRecord, actor: str, tmux: Tmux) -> Told:
    with effect(Effect.DELETE_HOLD):
        set_hold_file(system.paths, record.uid)
    marked = replace(
        record.moved(SessionEvent.DELETE),
        status=Status.STOPPED,
        generation=record.generation if record.phase is Phase.DELETING else record.generation + 1,
    )
    with effect(Effect.DELETE_MARK):
        marked = write_record(system, marked)
    ended = end_recorded(system, record, tmux)
    if not ended.complete:
        system.events.emit("standing.stop_failed", level="error", name=record.name, actor=actor, reason=ended.trouble())
        outcome = Outcome.FAILED if ended.survivors else Outcome.UNCONFIRMED
        return Told(outcome, f"it is being deleted; {ended.trouble()}")
    refuse_held_name(system, record.name)
    remove_session(system, marked, actor)
    system.events.emit(
        "standing.deleted", name=record.name, actor=actor, instance=record.instance_id, generation=marked.generation
    )
    return Told(Outcome.DELETED, known=Known(record.definition, False, None))
