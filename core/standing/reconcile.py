"""Finishes or clears what verbs that were cut short have begun, session by session. May be run at any time."""

from collections.abc import Mapping, Sequence

from core.domain.session import Phase, SessionRecord
from core.errors import CoreError, ForeignPane, LockBusy, RecordUnreadable, TmuxMissing, TmuxSilent
from core.session.apart import apart
from core.standing.recovering import recover_all
from core.standing.together import Tmux, together
from core.system import System
from core.values import dataclass

_LOCK_SECONDS = 2.0


@dataclass(frozen=True)
class Reconciled:
    """What was done for one session: its phase before and after. `after` None: the session is gone."""

    name: str
    before: Phase | None
    after: Phase | None
    trouble: str = ""  #: why it was left as it is
    passing: bool = False  #: somebody was at work on it or tmux was silent: nothing was found that stands in the way


def reconcile(system: System, actor: str, tmux: Tmux | None = None) -> tuple[Reconciled, ...]:
    """Compare each record with tmux and act by its phase. A tmux that does not answer leaves everything as it is."""
    return reconcile_some(system, system.records.all(), actor, tmux or Tmux(system))


def reconcile_some(
    system: System, entries: Sequence[SessionRecord | RecordUnreadable], actor: str, tmux: Tmux
) -> tuple[Reconciled, ...]:
    """Do that for some records, all together. Whoever holds a session's lock is at work on it: it is left to them."""
    records = {entry.name: entry for entry in entries if isinstance(entry, SessionRecord)}
    try:
        tmux.survey()
    except (TmuxSilent, TmuxMissing) as error:
        return tuple(_left(entry, str(error), passing=True) for entry in entries)

    def act(held: Mapping[str, str]) -> Mapping[str, Reconciled]:
        return _act(system, {name: records[name] for name in held}, actor, tmux)

    def failed(name: str, error: CoreError) -> Reconciled:
        return _failed(system, records[name], error, actor)

    done = together(system, records, "reconcile", act, failed, seconds=_LOCK_SECONDS)
    return tuple(done[entry.name] if entry.name in done else _left(entry, str(entry)) for entry in entries)


def _left(entry: SessionRecord | RecordUnreadable, trouble: str, *, passing: bool = False) -> Reconciled:
    phase = None if isinstance(entry, RecordUnreadable) else entry.phase
    return Reconciled(entry.name, phase, phase, trouble, passing)


def _failed(system: System, entry: SessionRecord, error: CoreError, actor: str) -> Reconciled:
    if isinstance(
        error, (LockBusy, TmuxSilent, ForeignPane)
    ):  # a deletion waits for its name: nothing has failed since
        return _left(entry, str(error), passing=True)
    system.events.emit("standing.stop_failed", level="error", name=entry.name, actor=actor, reason=str(error))
    return _left(entry, str(error))


def _act(system: System, entries: Mapping[str, SessionRecord], actor: str, tmux: Tmux) -> Mapping[str, Reconciled]:
    """Act by the phases of these sessions' records, whose locks are held."""
    done: dict[str, Reconciled] = {}
    current: list[SessionRecord] = []
    for name, entry in entries.items():
        try:
            with apart(system.events, name):
                record = system.records.read(name)
        except CoreError as error:
            done[name] = _failed(system, entry, error, actor)
            continue
        if record is None:
            done[name] = Reconciled(name, entry.phase, None)
        else:
            current.append(record)
    try:
        after = recover_all(system, current, tmux.survey(), actor, tmux)
    except (TmuxSilent, TmuxMissing) as error:
        after = {record.name: error for record in current}
    for record in current:
        found = after[record.name]
        if isinstance(found, CoreError):
            done[record.name] = _failed(system, record, found, actor)
        else:
            done[record.name] = Reconciled(record.name, record.phase, found.phase if found else None)
    return done
