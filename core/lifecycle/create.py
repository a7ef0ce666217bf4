"""create: make a session that the configuration does not declare. A creation that fails leaves nothing behind.

delete: end a created session and forget it. Its name is free only when all of it is gone.
"""

from core.base.errors import (
    CoreError,
    DeclaredSession,
    ForeignPane,
    InvalidValue,
    NameTaken,
    SpawnFailed,
    TmuxSilent,
    UnknownSession,
)
from core.base.failpoints import Failpoint, failpoint
from core.base.names import check_name, new_uid, target_for
from core.base.paths import expanded
from core.base.values import replace
from core.config.settings import Settings
from core.lifecycle.common import Tmux, VerbResult, lock, refuse_held_name, told_of, write_record
from core.lifecycle.ending import end_recorded
from core.lifecycle.history import what_was
from core.lifecycle.look import get_standing, rows_told
from core.lifecycle.recover import remove_session
from core.lifecycle.spawn import Opened, StartOrder, open_pane
from core.lifecycle.start import finish_all, refuse_foreign, spawn_failed, with_what_waits
from core.model.rows import Answer
from core.model.session import Definition, Outcome, Phase, SessionEvent, SessionRecord, Status
from core.session.folder import set_hold_file
from core.session.sessions import Known, names_of
from core.session.system import System


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
        if value and not expanded(value).is_absolute():
            raise InvalidValue(f"{name}: {key} {value!r} is not absolute", "give the whole path")
        if not _is_text(value):
            raise InvalidValue(f"{name}: {key} {value!r} is not UTF-8 and cannot be kept", "rename that folder or file")
    words = {"prompt": definition.prompt, "description": definition.description, "harness": definition.harness}
    arguments = {f"harnessArgs[{index}]": word for index, word in enumerate(definition.harness_args or ())}
    for key, text in {**words, **arguments}.items():
        if text and not _is_text(text):
            raise InvalidValue(f"{name}: {key} is not UTF-8 and cannot be kept", "write it anew as UTF-8")


def _is_text(value: str) -> bool:
    """Return whether it can be written as UTF-8: what the system's encoding could not read came as lone surrogates."""
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
    start = "if it has stopped by then, start it" if runs else "start it"
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


def _begin(system: System, definition: Definition, order: StartOrder, *, start: bool) -> VerbResult | Opened:
    with lock(system.settings, system.locks, definition.name, "create"):
        _refuse_taken(system, definition.name)
        if not start:
            record = _write_creating(system, definition, order.actor, start=False)
            return VerbResult(Outcome.NOT_RUNNING, "recorded, not started", Known(definition, False, record))
        known = Known(definition, declared=False, record=None)
        try:
            survey = system.runner.survey()
            refuse_foreign(system.runner, known.name, survey, survey.live(target_for(known.name), None))
            known = replace(known, record=_write_creating(system, definition, order.actor, start=True))
            return open_pane(system, known, survey, order)
        except CoreError as error:
            return replace(spawn_failed(system.events, known.name, error, order), known=known)


def _write_creating(system: System, definition: Definition, actor: str, *, start: bool) -> SessionRecord:
    record = SessionRecord(
        name=definition.name,
        uid=new_uid(),
        definition=definition,
        created_at=system.clock.now(),
        status=Status.RUNNING if start else Status.STOPPED,
        phase=Phase.CREATING if start else Phase.SETTLED,
    )
    with failpoint(Failpoint.CREATE_MARK):
        written = write_record(system.records, system.bindings, system.activities, record)
    system.events.emit("standing.created", name=record.name, actor=actor)
    return written


def _undo(system: System, name: str, told: VerbResult, actor: str) -> VerbResult:
    """Remove what the failed creation left. What cannot be removed now stays in its phase, and reconcile removes it."""
    try:
        with lock(system.settings, system.locks, name, "create"):
            record = system.records.read(name)
            if record is not None and record.phase is not Phase.CREATING:
                return told
            if record is not None:
                _remove(system, record, actor)
    except CoreError as error:
        return replace(told_of(error), detail=f"{told.detail}; it could not be removed yet: {error}", known=told.known)
    system.events.emit("standing.create_failed", level="error", name=name, actor=actor, reason=told.detail)
    said = f"{told.detail}; nothing of it was kept: solve that problem, then create it again"
    return replace(told, detail=said, known=replace(told.known, record=None) if told.known else None)


def _remove(system: System, record: SessionRecord, actor: str) -> None:
    ended = end_recorded(system, record)
    if ended.silent:
        raise TmuxSilent(ended.trouble(), "reconcile removes it once tmux answers")
    if ended.survivors:
        raise SpawnFailed(ended.trouble())
    remove_session(system, record, actor)


def delete_standing(system: System, name: str, actor: str) -> Answer:
    """Delete the session. Raises DeclaredSession, UnknownSession, RecordUnreadable, InvalidValue.

    What fails on the way is a row: the session keeps its phase, and deleting it again goes on from there. So it does
    where somebody else's program runs in its place: the name is free once that has ended.
    """
    check_name(name)
    _refuse_declared(system.settings, name)
    if system.records.read(name) is None:
        raise UnknownSession(name, names_of(system.settings, system.records))
    tmux = Tmux(system.runner)
    return Answer(rows_told(system, {name: _delete(system, name, actor, tmux)}, tmux.survey))


def _refuse_declared(settings: Settings, name: str) -> None:
    if settings.standing.get(name) is not None:
        raise DeclaredSession(
            f"{name!r} is declared in standingSessions.sessions, and the next start would bring it back",
            f"take it out of the configuration; until then `the-loop standing stop {name}` keeps it down",
        )


def _delete(system: System, name: str, actor: str, tmux: Tmux) -> VerbResult:
    try:
        with lock(system.settings, system.locks, name, "delete"):
            record = system.records.read(name)
            if record is None:
                return VerbResult(Outcome.DELETED, "somebody else deleted it")
            return _delete_locked(system, record, actor, tmux)
    except CoreError as error:
        system.events.emit("standing.stop_failed", level="error", name=name, actor=actor, reason=str(error))
        waits = "it is being deleted; its name stays taken: " if isinstance(error, ForeignPane) else ""
        told = told_of(error)
        return replace(told, detail=waits + told.detail)


def _delete_locked(system: System, record: SessionRecord, actor: str, tmux: Tmux) -> VerbResult:
    with failpoint(Failpoint.DELETE_HOLD):
        set_hold_file(system.paths, record.uid)
    marked = replace(
        record.moved(SessionEvent.DELETE),
        status=Status.STOPPED,
        generation=record.generation if record.phase is Phase.DELETING else record.generation + 1,
    )
    with failpoint(Failpoint.DELETE_MARK):
        marked = write_record(system.records, system.bindings, system.activities, marked)
    ended = end_recorded(system, record, tmux)
    if not ended.complete:
        system.events.emit("standing.stop_failed", level="error", name=record.name, actor=actor, reason=ended.trouble())
        outcome = Outcome.FAILED if ended.survivors else Outcome.UNCONFIRMED
        return VerbResult(outcome, f"it is being deleted; {ended.trouble()}")
    refuse_held_name(system.runner, record.name)
    remove_session(system, marked, actor)
    system.events.emit(
        "standing.deleted",
        name=record.name,
        actor=actor,
        instance=record.instance_id,
        generation=marked.generation,
        **what_was(system.settings, record),
    )
    return VerbResult(Outcome.DELETED, known=Known(record.definition, False, None))
