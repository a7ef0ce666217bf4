"""Finishes or clears what verbs that were cut short have begun, session by session. May be run at any time."""

from dataclasses import dataclass

from core.domain.session import Phase, SessionRecord
from core.errors import CoreError, ForeignPane, LockBusy, RecordUnreadable, TmuxMissing, TmuxSilent
from core.session.apart import apart
from core.standing.recovering import recover
from core.system import System

_LOCK_SECONDS = 2.0


@dataclass(frozen=True)
class Reconciled:
    """What was done for one session: its phase before and after. `after` None: the session is gone."""

    name: str
    before: Phase | None
    after: Phase | None
    trouble: str = ""  #: why it was left as it is
    passing: bool = False  #: somebody was at work on it or tmux was silent: nothing was found that stands in the way


def reconcile(system: System, actor: str) -> tuple[Reconciled, ...]:
    """Compare each record with tmux and act by its phase. A tmux that does not answer leaves everything as it is.

    Whoever holds a session's lock is at work on it: that session is left to them.
    """
    try:
        system.runner.survey()
    except (TmuxSilent, TmuxMissing) as error:
        return tuple(_left(entry, str(error), passing=True) for entry in system.records.all())
    return tuple(reconcile_one(system, entry, actor) for entry in system.records.all())


def _left(entry: SessionRecord | RecordUnreadable, trouble: str, *, passing: bool = False) -> Reconciled:
    phase = None if isinstance(entry, RecordUnreadable) else entry.phase
    return Reconciled(entry.name, phase, phase, trouble, passing)


def reconcile_one(system: System, entry: SessionRecord | RecordUnreadable, actor: str) -> Reconciled:
    """Act by the phase of one session's record, unless somebody else is at work on it."""
    if isinstance(entry, RecordUnreadable):
        return _left(entry, str(entry))
    try:
        with apart(system.events, entry.name), system.locks.hold(entry.name, "reconcile", _LOCK_SECONDS):
            record = system.records.read(entry.name)
            if record is None:
                return Reconciled(entry.name, entry.phase, None)
            after = recover(system, record, system.runner.survey(), actor)
            return Reconciled(record.name, record.phase, after.phase if after else None)
    except (LockBusy, TmuxSilent, ForeignPane) as error:  # a deletion waits for its name: nothing has failed since
        return _left(entry, str(error), passing=True)
    except CoreError as error:
        system.events.emit("standing.stop_failed", level="error", name=entry.name, actor=actor, reason=str(error))
        return _left(entry, str(error))
