"""restart: a graceful end, then the same conversation again. Queue, generation and a pause are kept."""

from core.domain.rows import Answer
from core.domain.session import HoldKind, Outcome, Phase, SessionEvent, SessionRecord
from core.effects import Effect, effect
from core.errors import CoreError, Refused, TmuxSilent
from core.names import target_for
from core.session.place import set_hold_file
from core.session.sessions import Known, definition_of
from core.standing.common import Told, lock, told_of, write_record
from core.standing.ending import end_recorded
from core.standing.listing import rows_told
from core.standing.recovering import finish_stop
from core.standing.spawning import StartOrder
from core.standing.starting import refuse_foreign, start_each
from core.standing.together import Tmux
from core.system import System


def restart_standing(system: System, name: str, actor: str) -> Answer:
    """End the session and resume its conversation. Raises UnknownSession, InvalidValue, and Refused for a held one."""
    _refuse_held(definition_of(system.settings, system.records, name))
    tmux = Tmux(system)
    told = _end(system, name, actor, tmux)
    if told is not None:
        return Answer(rows_told(system, {name: told}, tmux.survey))
    answer = start_each(system, [name], StartOrder(actor, f"restarted by {actor}"))
    if answer.ok:
        system.events.emit("standing.restarted", name=name, actor=actor)
    return answer


def _refuse_held(known: Known) -> None:
    hold = known.record.hold if known.record else None
    if hold is not None and hold.kind is not HoldKind.PAUSED:
        raise Refused(
            f"{known.name} is held: {hold.kind.value} by {hold.by}", f"use `the-loop standing start {known.name}`"
        )


def _end(system: System, name: str, actor: str, tmux: Tmux) -> Told | None:
    """End the instance if there is one; return what stands against the start that follows, None if nothing does."""
    try:
        with lock(system, name, "restart"):
            known = definition_of(system.settings, system.records, name)
            if known.unreadable is not None:
                raise known.unreadable
            _refuse_held(known)
            record = known.record
            if record is None or record.instance_id is None or record.phase is Phase.DELETING:
                return None
            survey = tmux.survey()
            refuse_foreign(system, name, survey, survey.live(target_for(name), record.instance_id))
            return _end_recorded(system, record, actor, tmux)
    except CoreError as error:
        system.events.emit("standing.stop_failed", level="error", name=name, actor=actor, reason=str(error))
        return told_of(error)


def _end_recorded(system: System, record: SessionRecord, actor: str, tmux: Tmux) -> Told | None:
    with effect(Effect.STOP_HOLD):
        set_hold_file(system.paths, record.uid)
    with effect(Effect.STOP_MARK):
        marked = write_record(system, record.moved(SessionEvent.STOP))
    ended = end_recorded(system, record, tmux)
    if ended.silent:
        raise TmuxSilent(f"{record.name}: {ended.trouble()}", "restart it again once tmux answers")
    if ended.survivors:
        return Told(Outcome.FAILED, ended.trouble())
    finish_stop(system, marked, ended)
    system.events.emit("standing.stopped", name=record.name, actor=actor, reason="restart", instance=record.instance_id)
    return None
