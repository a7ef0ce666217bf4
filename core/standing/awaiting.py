"""Watches a new pane until its harness reads, has ended, or had its time. No lock is held meanwhile."""

from enum import Enum

from core.domain.activity import ActivityState
from core.errors import CoreError, NotRunning, TmuxSilent
from core.standing.spawning import Opened
from core.system import System

_SCREEN_LINES = 60


class Seen(Enum):
    """What became of a new pane."""

    READY = "ready"
    DEAD = "dead"
    LATE = "late"  #: it lives, and has not said that it reads


def look(system: System, opened: Opened) -> Seen | None:
    """Return what is to be seen of the pane now, None if nothing is decided yet."""
    if not system.processes.alive(opened.pane.pid):
        return Seen.DEAD
    if _reads(system, opened):
        return Seen.READY
    return Seen.LATE if opened.deadline.passed() else None


def _reads(system: System, opened: Opened) -> bool:
    if opened.harness.traits.boot_signal:
        return _said_so(system, opened)
    try:
        sign = opened.harness.screen_ready(system.runner.screen(opened.context.instance, _SCREEN_LINES))
    except (NotRunning, TmuxSilent):
        return False  # asked again until the deadline; the process is watched besides
    return opened.probe.passed() if sign is None else sign


def _said_so(system: System, opened: Opened) -> bool:
    try:
        system.ingest(opened.record.uid)
        activity = system.activities.get(opened.record.uid)
    except CoreError:
        return False  # asked again until the deadline; the process is watched besides
    return (
        activity is not None
        and activity.instance == opened.context.instance
        and activity.state is not ActivityState.STARTING
    )
