"""stop: write the mark first, then end the session. It is the last resort, so it uses whatever still works."""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum

from core.base.errors import CoreError, RecordUnreadable, StoreBroken, TmuxMissing, TmuxSilent
from core.base.failpoints import Failpoint, failpoint
from core.base.names import new_uid, target_for
from core.base.paths import StatePaths
from core.base.text import reason_of
from core.delivery.saying import cancel_queue, hold_loops
from core.lifecycle.common import Tmux, VerbResult, foreign, tell_thread, together, told_of, write_record
from core.lifecycle.ending import Doomed, Ended, end_all
from core.lifecycle.look import rows_told
from core.lifecycle.recover import finish_stop
from core.model.asking import Press
from core.model.pane import Survey
from core.model.rows import Answer
from core.model.session import Hold, HoldKind, Live, Outcome, Phase, SessionEvent, SessionRecord, Status, deletion_text
from core.session.folder import set_hold_file
from core.session.sessions import Known, apart, definition_of, every_session
from core.session.system import System
from core.store.eventlog import EventLog
from core.store.records import Records
from core.store.sessions import Activities, Bindings


@dataclasses.dataclass(frozen=True)
class StopOrder:
    """How a stop was asked for. `by_name`: it sets the hold and cancels the queue.

    `unless` is asked under the lock, before anything is changed, and names what keeps the session, "" if nothing does.
    """

    actor: str
    reason: str
    by_name: bool
    unless: Callable[[SessionRecord, Survey | None], str] | None = None
    note: bool = True  #: the thread is told, if it is by name


class _Doing(Enum):
    """A step of a stop that a broken store may keep from being done: what is then told of it."""

    BLOCK = "turns that begin inside its harness could not be blocked"
    MARK = "the stop could not be recorded"
    CANCEL = "its queue could not be cancelled"
    HOLD = "its loops could not be blocked"
    SETTLE = "the end of the stop could not be recorded"


@dataclasses.dataclass
class _Stop:
    """One session's stop, as far as it has come."""

    name: str
    trouble: str = ""  #: what stood against it from the start
    undone: dict[_Doing, str] = dataclasses.field(default_factory=dict)  #: what could not be done on the way, and why
    known: Known | None = None
    marked: SessionRecord | None = None  #: its record with the mark; None: an earlier mark stands
    told: VerbResult | None = None  #: how it ended, once it is over

    @property
    def record(self) -> SessionRecord | None:
        """Return the record as it was found."""
        return self.known.record if self.known else None

    @property
    def said(self) -> tuple[str, ...]:
        """Return what could not be done, in words."""
        return tuple(filter(None, (self.trouble, *(f"{doing.value}: {why}" for doing, why in self.undone.items()))))

    def attempt(self, doing: _Doing, step: Callable[[], object]) -> bool:
        """Do the step; a store that is broken is noted, and the stop goes on."""
        try:
            step()
        except (StoreBroken, RecordUnreadable) as error:
            self.undone[doing] = str(error)
            return False
        return True


def stop_standing(system: System, name: str | None, actor: str, reason: str = "", *, note: bool = True) -> Answer:
    """End one session and keep it silent, or end every recorded one, each graceful. Record and conversation are kept.

    `note`: its thread is told. Raises UnknownSession, InvalidValue.
    """
    order = StopOrder(actor, reason_of(reason), by_name=name is not None, note=note)
    if name is not None:
        definition_of(system.settings, system.records, name)
        names = [name]
    else:
        names = [
            known.name
            for known in every_session(system.settings, system.records)
            if known.record is not None or known.unreadable is not None
        ]
    tmux = Tmux(system.runner)
    return Answer(rows_told(system, stop_each(system, names, order, tmux), tmux.survey))


def stop_named(system: System, names: Sequence[str], actor: str) -> Answer:
    """End these sessions together and keep them silent. Raises UnknownSession, InvalidValue."""
    for name in names:
        definition_of(system.settings, system.records, name)
    tmux = Tmux(system.runner)
    return Answer(rows_told(system, stop_each(system, names, StopOrder(actor, "", by_name=True), tmux), tmux.survey))


def stop_each(
    system: System, names: Iterable[str], order: StopOrder, tmux: Tmux | None = None
) -> dict[str, VerbResult]:
    """End these sessions together: all are marked, then all signalled, then waited for at once.

    A second stop waits for the first, and finds its work done.
    """
    once = tmux or Tmux(system.runner)
    return together(
        system,
        names,
        "stop",
        lambda held: _stop_held(system, held, order, once),
        lambda name, error: _failed(system.events, name, order, error),
        lockless=True,
    )


def _failed(events: EventLog, name: str, order: StopOrder, error: CoreError) -> VerbResult:
    events.emit("standing.stop_failed", level="error", name=name, actor=order.actor, reason=str(error))
    return told_of(error)


def _stop_held(system: System, held: Mapping[str, str], order: StopOrder, tmux: Tmux) -> Mapping[str, VerbResult]:
    """Stop the sessions whose locks are held, or cannot be had at all: `held` says by name what stands against one."""
    stops = [_Stop(name, trouble) for name, trouble in held.items()]

    def each(step: Callable[[_Stop], VerbResult | None]) -> None:
        for stop in stops:
            if stop.told is None:
                try:
                    with apart(system.events, stop.name):
                        stop.told = step(stop)
                except CoreError as error:
                    stop.told = _failed(system.events, stop.name, order, error)

    each(lambda stop: _mark(system, stop, order, tmux))
    seen = tmux.glimpse()
    each(lambda stop: _mark_by_sight(system, stop, order, seen))
    records = [stop.record for stop in stops if stop.told is None and stop.record is not None]
    doomed = [Doomed(record.instance_id, record) for record in records if record.instance_id is not None]
    ended = end_all(system, doomed, tmux, seen)
    seen = seen or _survey(tmux)
    each(lambda stop: _finish(system, stop, order, ended, seen, tmux))
    strays = _end_strays(system, [stop.name for stop in stops if stop.told is None], tmux)
    each(lambda stop: _finish_unreadable(stop, strays, tmux))
    return {stop.name: stop.told for stop in stops if stop.told is not None}


# ---------------------------------------------------------------- the mark


def _mark(system: System, stop: _Stop, order: StopOrder, tmux: Tmux) -> VerbResult | None:
    """Write the mark, before tmux is asked anything; what an order asks first, tmux included, is asked before."""
    stop.known = known = definition_of(system.settings, system.records, stop.name)
    record = known.record
    if record is None:  # it cannot be read, or it never ran: there is nothing to be quick about
        return None
    if order.unless is not None and (kept := order.unless(record, _survey(tmux))):
        return VerbResult(Outcome.ALREADY_RUNNING, kept)
    if record.phase is Phase.DELETING:
        return VerbResult(Outcome.FAILED, deletion_text(record.name))
    if not _stands(record, order):
        _write_marks(system, stop, record, order)
    return None


def _survey(tmux: Tmux) -> Survey | None:
    try:
        return tmux.survey()
    except (TmuxSilent, TmuxMissing):
        return None


def _stands(record: SessionRecord, order: StopOrder) -> bool:
    """Return whether the mark of an earlier stop stands. It is not made anew where nothing is left to end."""
    if record.phase is not Phase.SETTLED or record.status is Status.RUNNING:
        return False
    return not order.by_name or (record.hold is not None and record.hold.kind is HoldKind.STOPPED)


def _mark_by_sight(system: System, stop: _Stop, order: StopOrder, seen: Survey | None) -> VerbResult | None:
    """Mark what was not marked before tmux was asked, unless what it shows makes an end of that stop.

    A session whose mark stands is over with, unless something may be left of it.
    """
    known, record = stop.known, stop.record
    if known is None or known.unreadable is not None or stop.marked is not None:
        return None
    if record is None:
        if seen is not None and seen.live(target_for(known.name), None) is Live.FOREIGN:
            raise foreign(system.runner, seen, known.name)
        _mark_unrecorded(system, stop, known, order)
        return None
    if seen is not None and seen.live(target_for(record.name), record.instance_id) is Live.ABSENT:
        return VerbResult(Outcome.NOT_RUNNING, "; ".join(stop.said))
    _write_marks(system, stop, record, order)
    return None


def _mark_unrecorded(system: System, stop: _Stop, known: Known, order: StopOrder) -> None:
    """Mark a declared session that never ran, so that no boot starts it."""
    fresh = SessionRecord(known.name, new_uid(), known.definition, system.clock.now(), declared=known.declared)
    stop.marked = dataclasses.replace(fresh, hold=_hold(order, system.clock.now()), generation=fresh.generation + 1)
    _write_mark(system.records, system.bindings, system.activities, stop, stop.marked)


def _write_marks(system: System, stop: _Stop, record: SessionRecord, order: StopOrder) -> None:
    stop.marked = marked = _marked(record, order, system.clock.now())
    stop.attempt(_Doing.BLOCK, lambda: _block(system.paths, record))
    _write_mark(system.records, system.bindings, system.activities, stop, marked)
    if order.by_name:
        _say_held(system.events, marked, order)
        if order.note and marked.hold is not None and marked.hold != record.hold:
            with failpoint(Failpoint.STOP_ANNOUNCE):
                tell_thread(system, marked, "stopped", marked.hold, Press.BRING_UP)
        stop.attempt(_Doing.CANCEL, lambda: cancel_queue(system, marked))
    else:
        stop.attempt(_Doing.HOLD, lambda: hold_loops(system, marked))


def _marked(record: SessionRecord, order: StopOrder, now: datetime) -> SessionRecord:
    """Return the record with its mark: by name a hold and a new generation, unless that very stop was cut short."""
    stopping = dataclasses.replace(record.moved(SessionEvent.STOP), status=Status.STOPPED)
    held = record.hold is not None and record.hold.kind is HoldKind.STOPPED
    if not order.by_name or held:
        return stopping
    return dataclasses.replace(stopping, hold=_hold(order, now), generation=record.generation + 1)


def _hold(order: StopOrder, now: datetime) -> Hold:
    return Hold(HoldKind.STOPPED, order.actor, order.reason, now)


def _block(paths: StatePaths, record: SessionRecord) -> None:
    with failpoint(Failpoint.STOP_HOLD):
        set_hold_file(paths, record.uid)


def _write_mark(
    records: Records, bindings: Bindings, activities: Activities, stop: _Stop, record: SessionRecord
) -> None:
    def write() -> None:
        with failpoint(Failpoint.STOP_MARK):
            write_record(records, bindings, activities, record)

    stop.attempt(_Doing.MARK, write)


# ---------------------------------------------------------------- the end


def _finish(
    system: System, stop: _Stop, order: StopOrder, ended_all: Mapping[str, Ended], seen: Survey | None, tmux: Tmux
) -> VerbResult | None:
    """Settle a session that was marked, and say what its stop came to. `seen`: what tmux showed, before the end."""
    marked, record = stop.marked, stop.record
    if marked is None:
        return None
    if record is None:  # it never ran
        ended, settled = Ended(silent=str(tmux.silence or "")), not stop.said
    else:
        ended = ended_all.get(record.instance_id or "", Ended())
        settled = ended.complete and stop.attempt(_Doing.SETTLE, lambda: finish_stop(system, marked, ended))
        if settled:  # with the mark that could not be recorded before
            stop.undone.pop(_Doing.MARK, None)
        _say_stopped(system.events, marked, order, ended)
    if seen is not None and seen.live(target_for(stop.name), record.instance_id if record else None) is Live.FOREIGN:
        return VerbResult(Outcome.FAILED, str(foreign(system.runner, seen, stop.name)))
    return _told(ended, stop, marked=settled or not ended.complete)


def _told(ended: Ended, stop: _Stop, *, marked: bool) -> VerbResult:
    detail = "; ".join(text for text in (ended.trouble(), *stop.said) if text)
    if ended.survivors:
        return VerbResult(Outcome.FAILED, detail)
    if ended.silent:
        return VerbResult(Outcome.UNCONFIRMED, detail)
    if not marked:
        return VerbResult(
            Outcome.FAILED, f"{'it was ended, but ' if ended.was_live else ''}{detail}; stop it again afterwards"
        )
    return VerbResult(Outcome.STOPPED if ended.was_live else Outcome.NOT_RUNNING, detail)


# ---------------------------------------------------------------- without a usable record


def _end_strays(system: System, names: Sequence[str], tmux: Tmux) -> Mapping[str, Mapping[str, Ended]]:
    """End what carries a tag of ours under these targets, and return what that came to, by name and instance.

    Their records cannot be read; the files are left as they are.
    """
    survey = _survey(tmux) if names else None
    if survey is None:
        return {}
    tags = {name: [pane.tag for pane in survey.of_target(target_for(name)) if pane.tag] for name in names}
    ended = end_all(system, [Doomed(tag) for found in tags.values() for tag in found], tmux, survey)
    return {name: {tag: ended[tag] for tag in found} for name, found in tags.items()}


def _finish_unreadable(stop: _Stop, strays: Mapping[str, Mapping[str, Ended]], tmux: Tmux) -> VerbResult:
    if tmux.silence is not None:
        raise tmux.silence
    ends = strays.get(stop.name, {})
    said = [f"instance {tag} was ended" if ended.complete else ended.trouble() for tag, ended in ends.items()]
    why = stop.known.unreadable if stop.known else None
    return VerbResult(Outcome.UNREADABLE, "; ".join([*said, str(why)]))


def _say_held(events: EventLog, record: SessionRecord, order: StopOrder) -> None:
    events.emit(
        "standing.held", name=record.name, actor=order.actor, reason=order.reason or None, generation=record.generation
    )


def _say_stopped(events: EventLog, record: SessionRecord, order: StopOrder, ended: Ended) -> None:
    events.emit(
        "standing.stopped" if ended.complete else "standing.stop_failed",
        level="info" if ended.complete else "error",
        name=record.name,
        actor=order.actor,
        reason=order.reason or None,
        detail=ended.trouble() or None,
        instance=record.instance_id,
        generation=record.generation,
    )
