"""What keeps a loop from firing now, in words for whoever made it or asked for a run: each with what ends it."""

from core.domain.gate import HoldState, hold_state
from core.domain.loop import Loop, LoopStatus
from core.domain.session import SessionRecord, Status
from core.errors import RecordUnreadable
from core.process.presence import running_service
from core.system import System


def unserved(system: System) -> str:
    """Return what is amiss where nothing fires loops, "" where a service runs. Raises StoreBroken."""
    if running_service(system.paths.service_lock) is not None:
        return ""
    return "; no service is running, which alone fires loops: `the-loop start`"


def in_the_way(system: System, loop: Loop, unserved: str) -> str:
    """Return the end of a sentence about an open loop, "" where nothing is in its way.

    `unserved`: as above, from before the loop was changed, so that what cannot be told changes nothing.
    """
    if loop.status is LoopStatus.PAUSED:
        return f", but it is paused{unserved}"
    held = f", but it is held ({loop.held.value}) until that is over" if loop.held else ""
    return f"{_of_session(loop, _record(system, loop)) or held}{unserved}"


def _record(system: System, loop: Loop) -> SessionRecord | None:
    try:
        return system.records.read(loop.name)
    except RecordUnreadable:
        return None


def _of_session(loop: Loop, record: SessionRecord | None) -> str:
    if record is None or record.uid != loop.uid:
        return ""
    start = f"it waits for `the-loop standing start {record.name}`"
    match hold_state(record):
        case HoldState.PAUSED:
            return f", but its session is paused: it waits for `the-loop standing resume {record.name}`"
        case HoldState.STOPPED:
            return f", but its session is stopped: {start}"
        case HoldState.FAILED:
            return f", but its session is held as failed: {start}"
        case _:
            return f", but its session is not running: {start}" if record.status is Status.STOPPED else ""
