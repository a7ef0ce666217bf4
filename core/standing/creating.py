"""create: makes a session that the configuration does not declare. A creation that fails leaves nothing behind."""

from pathlib import Path

from core.domain.rows import Answer
from core.domain.session import Definition, Outcome, Phase, SessionRecord, Status
from core.effects import Effect, effect
from core.errors import CoreError, InvalidValue, NameTaken, SpawnFailed, TmuxSilent
from core.names import check_name, new_uid, target_for
from core.session.sessions import Known
from core.standing.common import Told, lock, told_of, write_record
from core.standing.ending import end_recorded
from core.standing.listing import get_standing, rows_told
from core.standing.removing import remove_session
from core.standing.spawning import Opened, StartOrder, open_pane
from core.standing.starting import finish_all, refuse_foreign, spawn_failed
from core.standing.unserved import with_what_waits
from core.system import System
from core.values import replace


def create_standing(system: System, definition: Definition, actor: str, *, start: bool = True) -> Answer:
    """Record the session and start it; `start=False` only records it.

    Raises InvalidValue for a bad definition, NameTaken for a name that is declared or recorded. A start that fails is
    a row, and the record is gone again.
    """
    _check(definition)
    _refuse_taken(system, definition.name)
    order = StartOrder(actor, f"created by {actor}")
    step = _begin(system, definition, order, start=start)
    told = finish_all(system, {definition.name: step})[definition.name]
    if told.outcome is Outcome.FAILED:
        told = _undo(system, definition.name, told, actor)
    return Answer(rows_told(system, with_what_waits(system, {definition.name: told})))


def _check(definition: Definition) -> None:
    name = check_name(definition.name)
    if definition.prompt is not None and definition.prompt_file is not None:
        raise InvalidValue(f"{name}: prompt and promptFile are both given", "give one of them")
    for key, value in (("cwd", definition.cwd), ("promptFile", definition.prompt_file or "")):
        if value and not Path(value).expanduser().is_absolute():
            raise InvalidValue(f"{name}: {key} {value!r} is not absolute", "give the whole path")
        if not _is_text(value):
            raise InvalidValue(f"{name}: {key} {value!r} is not UTF-8 and cannot be kept", "rename that folder or file")
    words = {"prompt": definition.prompt, "description": definition.description, "harness": definition.harness}
    arguments = {f"harnessArgs[{index}]": word for index, word in enumerate(definition.harness_args or ())}
    for key, text in {**words, **arguments}.items():
        if text and not _is_text(text):
            raise InvalidValue(f"{name}: {key} is not UTF-8 and cannot be kept", "write it anew as UTF-8")


def _is_text(value: str) -> bool:
    """Tell whether it can be written as UTF-8: what the system's encoding could not read came as lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_taken(system: System, name: str) -> None:
    declared = system.settings.standing.get(name) is not None
    if not declared and system.records.read(name) is None:
        return
    row = get_standing(system, name)
    runs = bool(row.running)
    also = ", and it runs" if runs else ""
    start = "where it has stopped, start it" if runs else "start it"
    speak = f"speak to it: `the-loop standing say {name} --text TEXT`; " if runs else ""
    if declared:
        raise NameTaken(
            f"{name!r} is declared in the configuration's standingSessions.sessions{also}",
            f"{speak}{start}: `the-loop standing start {name}`; or choose another name",
        )
    if row.phase is Phase.DELETING:
        raise NameTaken(
            f"a session {name!r} is being deleted, and its name is not free yet",
            f"`the-loop standing delete {name}` finishes that, or says what it waits for; or choose another name",
        )
    raise NameTaken(
        f"a session {name!r} is recorded already{also}",
        f"{speak}{start}: `the-loop standing start {name}`; or remove it: `the-loop standing delete {name}`",
    )


def _begin(system: System, definition: Definition, order: StartOrder, *, start: bool) -> Told | Opened:
    with lock(system, definition.name, "create"):
        _refuse_taken(system, definition.name)
        if not start:
            record = _write_creating(system, definition, order.actor, start=False)
            return Told(Outcome.NOT_RUNNING, "recorded, not started", Known(definition, False, record))
        known = Known(definition, declared=False, record=None)
        try:
            survey = system.runner.survey()
            refuse_foreign(system, known.name, survey, survey.live(target_for(known.name), None))
            known = replace(known, record=_write_creating(system, definition, order.actor, start=True))
            return open_pane(system, known, survey, order)
        except CoreError as error:
            return replace(spawn_failed(system, known.name, error, order), known=known)


def _write_creating(system: System, definition: Definition, actor: str, *, start: bool) -> SessionRecord:
    record = SessionRecord(
        name=definition.name,
        uid=new_uid(),
        definition=definition,
        created_at=system.clock.now(),
        status=Status.RUNNING if start else Status.STOPPED,
        phase=Phase.CREATING if start else Phase.SETTLED,
    )
    with effect(Effect.CREATE_MARK):
        written = write_record(system, record)
    system.events.emit("standing.created", name=record.name, actor=actor)
    return written


def _undo(system: System, name: str, told: Told, actor: str) -> Told:
    """Remove what the failed creation left. What cannot be removed now stays in its phase, and reconcile removes it."""
    try:
        with lock(system, name, "create"):
            record = system.records.read(name)
            if record is not None and record.phase is not Phase.CREATING:
                return told
            if record is not None:
                _remove(system, record, actor)
    except CoreError as error:
        return replace(told_of(error), detail=f"{told.detail}; it could not be removed yet: {error}", known=told.known)
    system.events.emit("standing.create_failed", level="error", name=name, actor=actor, reason=told.detail)
    said = f"{told.detail}; nothing of it was kept: mend that, then create it again"
    return replace(told, detail=said, known=replace(told.known, record=None) if told.known else None)


def _remove(system: System, record: SessionRecord, actor: str) -> None:
    ended = end_recorded(system, record)
    if ended.silent:
        raise TmuxSilent(ended.trouble(), "reconcile removes it once tmux answers")
    if ended.survivors:
        raise SpawnFailed(ended.trouble())
    remove_session(system, record, actor)
