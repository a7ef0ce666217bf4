"""What of a harness's reports a chat is shown besides answers. Part of the observer's open transaction."""

from datetime import datetime, timedelta

from core.domain.harness import ToolStarted
from core.domain.posting import step_line
from core.domain.session import SessionRecord
from core.session.sessions import activity_of
from core.system import System

_BEFORE = timedelta(seconds=5)  #: between a hook's time stamp and what we note of its turn


def turn_over(system: System, record: SessionRecord, until: datetime, *, failed: bool) -> tuple[str, ...]:
    """Note that the messages which the turn took are done that ended then, and return their ids.

    Called before the activity follows.
    """
    activity = activity_of(system, record)
    if activity is None or activity.turn_started_at is None:
        return ()
    since = activity.turn_started_at - _BEFORE
    return system.marks.over(record.uid, activity.instance, since, until, failed=failed)


def note_step(system: System, record: SessionRecord, event: ToolStarted) -> None:
    """Add the tool to the steps of the running turn."""
    activity = system.activities.get(record.uid)
    if activity is not None and activity.turn_started_at is not None:
        turn = f"{record.instance_id}-{int(activity.turn_started_at.timestamp() * 1_000_000)}"
        system.progress.note(record.uid, turn, step_line(event.tool, event.detail))
