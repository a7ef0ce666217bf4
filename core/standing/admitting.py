"""Which sessions can be paused, resumed and interrupted: those that people want to run."""

from core.domain.gate import HoldState, held_reason, hold_state
from core.domain.reasons import Reason, Remedy
from core.domain.session import Phase, SessionRecord, Status
from core.domain.texts import text
from core.errors import BeingDeleted, NotRunning, Refused
from core.session.sessions import definition_of
from core.system import System

_HELD = frozenset({HoldState.STOPPED, HoldState.FAILED})


def running_record(system: System, name: str, done: str) -> SessionRecord:
    """Return the record of a session that is meant to run, whatever its pane does; `done`: "paused", for the words.

    Raises UnknownSession, InvalidValue, RecordUnreadable, NotRunning with the start command, Refused while it is
    created or deleted.
    """
    known = definition_of(system.settings, system.records, name)
    if known.unreadable is not None:
        raise known.unreadable
    record = known.record
    if record is not None and record.phase is Phase.CREATING:
        raise Refused(f"{name} cannot be {done}: it is being created", "look at `the-loop standing list`")
    if record is not None and record.phase is Phase.DELETING:
        raise BeingDeleted(f"{name} cannot be {done}: it is being deleted", name)
    reason = _why_down(record)
    if record is None or reason is not None:
        raise NotRunning(f"{name} cannot be {done}: {text(reason or Reason.NEVER_RUN)}", text(Remedy.START, name=name))
    return record


def _why_down(record: SessionRecord | None) -> Reason | None:
    if record is None or record.instance_id is None:
        return Reason.NEVER_RUN
    hold = hold_state(record)
    if hold in _HELD:
        return held_reason(hold)
    return Reason.DOWN if record.status is Status.STOPPED else None
