"""What is true of a session, folded from its record, tmux's word and its harness's word. No I/O."""

from core.domain.activity import Activity, ActivityState
from core.domain.gate import Observed
from core.domain.session import Live, Phase, SessionRecord, Status

_BY_ACTIVITY = {
    ActivityState.STARTING: Observed.STARTING,
    ActivityState.IDLE: Observed.IDLE,
    ActivityState.BUSY: Observed.BUSY,
    ActivityState.PERMISSION: Observed.PERMISSION,
    ActivityState.QUESTION: Observed.QUESTION,
    ActivityState.UNKNOWN: Observed.UNKNOWN,
}


def observe(record: SessionRecord | None, live: Live, activity: Activity | None) -> Observed:
    """Return what the gate is told of a session.

    tmux's silence and a foreign session outrank the record. A session that is being ended counts as down: its pane may
    still live, and nothing may start a turn in it. Activity counts only if it is the current instance's: what an
    earlier pane did says nothing about this one.
    """
    if live is Live.UNKNOWN:
        return Observed.SILENT
    if live is Live.FOREIGN:
        return Observed.FOREIGN
    if record is None:
        return Observed.NEVER_RUN
    if record.phase in (Phase.STOPPING, Phase.DELETING):
        return Observed.DOWN
    starting = record.phase in (Phase.CREATING, Phase.STARTING)
    if live is Live.LIVE:
        if activity is None or activity.instance != record.instance_id:
            return Observed.STARTING if starting else Observed.UNKNOWN
        return _BY_ACTIVITY[activity.state]
    return _gone(record, live, starting)


def _gone(record: SessionRecord, live: Live, starting: bool) -> Observed:
    if starting and live is Live.ABSENT:
        return Observed.STARTING
    if record.instance_id is None:
        return Observed.NEVER_RUN
    if record.status is Status.STOPPED:
        return Observed.DOWN
    return Observed.DEAD if live is Live.DEAD else Observed.LOST
