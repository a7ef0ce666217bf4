"""stop: the mark first, then the end. It is the verb of last resort: it works with what still works."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from core.domain.pane import Survey
from core.domain.plaintext import reason_of
from core.domain.rows import Answer
from core.domain.session import (
    Hold,
    HoldKind,
    Live,
    Outcome,
    Phase,
    SessionEvent,
    SessionRecord,
    Status,
)
from core.effects import Effect, effect
from core.errors import CoreError, RecordUnreadable, StoreBroken, TmuxMissing, TmuxSilent
from core.names import new_uid, target_for
from core.session.apart import apart
from core.session.launching import set_hold_file
from core.session.sessions import Known, definition_of, every_session
from core.standing.cancelling import cancel_queue, hold_loops
from core.standing.common import Told, foreign, lock, told_of, write_record
from core.standing.ending import Ended, end_instance, end_recorded
from core.standing.listing import rows_told
from core.standing.recovering import finish_stop
from core.system import System


@dataclass(frozen=True)
class StopOrder:
    """How a stop was asked for. `by_name`: it sets the hold and cancels the queue.

    `unless` is asked under the lock, before anything is changed, and names what keeps the session, "" if nothing does.
    """

    actor: str
    reason: str
    by_name: bool
    unless: Callable[[SessionRecord, Survey | None], str] | None = None


@dataclass
class _Notes:
    """What could not be done on the way."""

    said: list[str] = field(default_factory=list)

    def attempt(self, doing: str, step: Callable[[], object]) -> bool:
        """Do the step; a store that is broken is noted, and the stop goes on."""
        try:
            step()
        except (StoreBroken, RecordUnreadable) as error:
            self.said.append(f"{doing}: {error}")
            return False
        return True


def stop_standing(system: System, name: str | None, actor: str, reason: str = "") -> Answer:
    """End one session and keep it silent, or end every recorded one, each graceful. Record and conversation are kept.

    Raises UnknownSession, InvalidValue.
    """
    order = StopOrder(actor, reason_of(reason), by_name=name is not None)
    if name is not None:
        definition_of(system.settings, system.records, name)
        names = [name]
    else:
        names = [
            known.name
            for known in every_session(system.settings, system.records)
            if known.record is not None or known.unreadable is not None
        ]
    return Answer(rows_told(system, {each: stop_one(system, each, order) for each in names}))


def stop_one(system: System, name: str, order: StopOrder) -> Told:
    """End one session. A second stop waits for the first, and finds its work done."""
    notes = _Notes()
    try:
        with apart(system.events, name), _lock_if_possible(system, name, notes):
            known = definition_of(system.settings, system.records, name)
            if known.unreadable is not None:
                return _stop_unreadable(system, known, known.unreadable)
            if known.record is None:
                return _stop_unrecorded(system, known, order, notes)
            return _stop_recorded(system, known.record, order, notes)
    except CoreError as error:
        system.events.emit("standing.stop_failed", level="error", name=name, actor=order.actor, reason=str(error))
        return told_of(error)


@contextmanager
def _lock_if_possible(system: System, name: str, notes: _Notes) -> Iterator[None]:
    """Hold the lock; where the disk allows no lock at all, a stop goes on without one and says so."""
    with ExitStack() as stack:
        notes.attempt("no lock could be taken", lambda: stack.enter_context(lock(system, name, "stop")))
        yield


# ---------------------------------------------------------------- without a usable record


def _stop_unreadable(system: System, known: Known, error: RecordUnreadable) -> Told:
    """End what carries a tag of ours under the target; the file is left as it is."""
    said = []
    for pane in system.runner.survey().of_target(target_for(known.name)):
        if pane.tag:
            ended = end_instance(system, None, pane.tag)
            said.append(f"instance {pane.tag} was ended" if ended.complete else ended.trouble())
    return Told(Outcome.UNREADABLE, "; ".join([*said, str(error)]))


def _stop_unrecorded(system: System, known: Known, order: StopOrder, notes: _Notes) -> Told:
    """Mark a declared session that never ran, so that no boot starts it."""
    silent = ""
    try:
        survey = system.runner.survey()
        if survey.live(target_for(known.name), None) is Live.FOREIGN:
            raise foreign(system, survey, known.name)
    except (TmuxSilent, TmuxMissing) as error:
        silent = str(error)
    now = system.clock.now()
    fresh = SessionRecord(known.name, new_uid(), known.definition, now, declared=known.declared)
    record = replace(fresh, hold=_hold(system, order), generation=fresh.generation + 1)
    notes.attempt("the mark could not be recorded", lambda: _write_mark(system, record))
    return _told(Ended(silent=silent), notes, marked=not notes.said)


# ---------------------------------------------------------------- with its record


def _stop_recorded(system: System, record: SessionRecord, order: StopOrder, notes: _Notes) -> Told:
    survey, live = _look(system, record)
    if order.unless is not None and (kept := order.unless(record, survey)):
        return Told(Outcome.ALREADY_RUNNING, kept)
    if _silent_already(record, live, order):
        return Told(Outcome.NOT_RUNNING, "; ".join(notes.said))
    if record.phase is Phase.DELETING:
        return Told(Outcome.FAILED, f"it is being deleted; `the-loop standing delete {record.name}` finishes that")
    marked = _marked(system, record, order)
    notes.attempt("turns born in the harness could not be blocked", lambda: _block(system, record))
    notes.attempt("the mark could not be recorded", lambda: _write_mark(system, marked))
    if order.by_name:
        _say_held(system, marked, order)
        notes.attempt("its queue could not be cancelled", lambda: cancel_queue(system, marked))
    else:
        notes.attempt("its loops could not be held", lambda: hold_loops(system, marked))
    ended = end_recorded(system, record)
    settled = ended.complete and notes.attempt(
        "the record could not be settled", lambda: finish_stop(system, marked, ended)
    )
    _say_stopped(system, marked, order, ended)
    if live is Live.FOREIGN and survey is not None:
        return Told(Outcome.FAILED, str(foreign(system, survey, record.name)))
    return _told(ended, notes, marked=settled or not ended.complete)


def _look(system: System, record: SessionRecord) -> tuple[Survey | None, Live]:
    try:
        survey = system.runner.survey()
    except (TmuxSilent, TmuxMissing):
        return None, Live.UNKNOWN  # ending it asks again, and says so
    return survey, survey.live(target_for(record.name), record.instance_id)


def _silent_already(record: SessionRecord, live: Live, order: StopOrder) -> bool:
    """Tell whether there is nothing to mark and nothing to end. A mark that stands is not made anew."""
    if record.phase is not Phase.SETTLED or live is not Live.ABSENT or record.status is Status.RUNNING:
        return False
    return not order.by_name or (record.hold is not None and record.hold.kind is HoldKind.STOPPED)


def _marked(system: System, record: SessionRecord, order: StopOrder) -> SessionRecord:
    """Return the record with its mark: by name a hold and a new generation, unless that very stop was cut short."""
    stopping = replace(record.moved(SessionEvent.STOP), status=Status.STOPPED)
    held = record.hold is not None and record.hold.kind is HoldKind.STOPPED
    if not order.by_name or held:
        return stopping
    return replace(stopping, hold=_hold(system, order), generation=record.generation + 1)


def _hold(system: System, order: StopOrder) -> Hold:
    return Hold(HoldKind.STOPPED, order.actor, order.reason, system.clock.now())


def _block(system: System, record: SessionRecord) -> None:
    with effect(Effect.STOP_HOLD):
        set_hold_file(system.paths, record.uid)


def _write_mark(system: System, record: SessionRecord) -> None:
    with effect(Effect.STOP_MARK):
        write_record(system, record)


def _told(ended: Ended, notes: _Notes, *, marked: bool) -> Told:
    detail = "; ".join(text for text in (ended.trouble(), *notes.said) if text)
    if ended.survivors:
        return Told(Outcome.FAILED, detail)
    if ended.silent:
        return Told(Outcome.UNCONFIRMED, detail)
    if not marked:
        return Told(
            Outcome.FAILED, f"{'it was ended, but ' if ended.was_live else ''}{detail}; stop it again afterwards"
        )
    return Told(Outcome.STOPPED if ended.was_live else Outcome.NOT_RUNNING, detail)


def _say_held(system: System, record: SessionRecord, order: StopOrder) -> None:
    system.events.emit(
        "standing.held", name=record.name, actor=order.actor, reason=order.reason or None, generation=record.generation
    )


def _say_stopped(system: System, record: SessionRecord, order: StopOrder, ended: Ended) -> None:
    system.events.emit(
        "standing.stopped" if ended.complete else "standing.stop_failed",
        level="info" if ended.complete else "error",
        name=record.name,
        actor=order.actor,
        reason=order.reason or None,
        detail=ended.trouble() or None,
        instance=record.instance_id,
        generation=record.generation,
    )
