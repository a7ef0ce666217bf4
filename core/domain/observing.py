"""What is true of a session, folded from its record, tmux's word and its harness's word. No I/O."""

from dataclasses import replace
from datetime import datetime

from core.domain.activity import ASKING_STATES, BETWEEN_TURNS, CUT_OFF, Activity, ActivityState
from core.domain.gate import Observed
from core.domain.harness import (
    Asked,
    Ended,
    HarnessEvent,
    Opinion,
    Ready,
    TextQueued,
    ToolEnded,
    ToolStarted,
    TurnBlocked,
    TurnEnded,
    TurnFailed,
    TurnStarted,
)
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


def follow(activity: Activity, event: HarnessEvent, at: datetime, *, boot_coming: bool) -> Activity:
    """Return what the session does after an event of its harness.

    Idle only if the harness said so with no task pending. `boot_coming`: a prompt travelled as the program's argument
    and no turn took it yet, so that a harness which begins to read is about to be busy.
    """
    told = replace(activity, last_report_at=at)
    match event:
        case Ready(source="compact"):
            return told  # in the middle of a turn, and no end of it
        case Ready():
            return _moved(told, ActivityState.BUSY if boot_coming else ActivityState.IDLE, at, tasks=())
        case TurnStarted(task=task):
            left = tuple(each for each in told.pending_tasks if each != task)
            return replace(_moved(told, ActivityState.BUSY, at, tasks=left), turn_started_at=at)
        case ToolStarted():
            return _moved(told, ActivityState.BUSY, at)
        case ToolEnded(task=task):
            tasks = told.pending_tasks if task is None or task in told.pending_tasks else (*told.pending_tasks, task)
            return _moved(told, ActivityState.BUSY, at, tasks=tasks)
        case Asked(question=question, summary=summary):
            return _moved(told, ActivityState.QUESTION if question else ActivityState.PERMISSION, at, detail=summary)
        case TurnEnded(pending_tasks=tasks):
            return _between_turns(told, tasks, at)
        case TurnFailed(error=error, message=message):
            return _failed(told, ": ".join(text for text in (error, message) if text), at)
        case Ended(reason=reason):
            return _moved(told, ActivityState.UNKNOWN, at, detail=f"it is going away: {reason}", tasks=())
        case TurnBlocked(task=task):
            left = tuple(each for each in told.pending_tasks if each != task)
            return _between_turns(told, left, at) if told.between_turns else replace(told, pending_tasks=left)
        case TextQueued():
            return told


def _between_turns(activity: Activity, tasks: tuple[str, ...], at: datetime) -> Activity:
    if tasks:
        return _moved(activity, ActivityState.BUSY, at, detail=BETWEEN_TURNS, tasks=tasks)
    return _moved(activity, ActivityState.IDLE, at, tasks=())


def _failed(activity: Activity, error: str, at: datetime) -> Activity:
    """Return what follows a turn that ended in an error of the model's side: the same as after any other, and why."""
    over = _between_turns(activity, activity.pending_tasks, at)
    return replace(over, detail="; ".join(text for text in (over.detail, error) if text))


def second_guess(activity: Activity, opinion: Opinion | None, now: datetime) -> Activity:
    """Return what a session does whose harness was silent for long: the opinion, or unknown; never idle by guess."""
    if opinion is None:
        return _moved(activity, ActivityState.UNKNOWN, now, detail="its harness was silent for long")
    if opinion.state in ASKING_STATES and activity.state in ASKING_STATES:
        return _moved(activity, activity.state, now, detail=opinion.detail or activity.detail)
    cut_off = opinion.state is ActivityState.IDLE and activity.state in _IN_A_TURN and not activity.between_turns
    tasks = () if opinion.state is ActivityState.IDLE else None  # with a task it would call itself busy
    detail = CUT_OFF if cut_off else opinion.detail or activity.detail
    return _moved(activity, opinion.state, now, detail=detail, tasks=tasks)


_IN_A_TURN = ASKING_STATES | {ActivityState.BUSY}


def _moved(
    activity: Activity, state: ActivityState, at: datetime, *, detail: str = "", tasks: tuple[str, ...] | None = None
) -> Activity:
    since = activity.since if activity.state is state else at
    return replace(
        activity,
        state=state,
        since=since,
        detail=detail,
        pending_tasks=activity.pending_tasks if tasks is None else tasks,
    )
