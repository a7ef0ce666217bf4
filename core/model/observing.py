"""What is true of a session, computed from its record, from tmux and from its harness's reports. No I/O.

It also derives from the harness's events which capabilities the harness has shown.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

from core.base.values import replace
from core.model.activity import (
    ASKING_STATES,
    LONG_LINES,
    LONG_TEXT,
    OUR_TOOL,
    Activity,
    ActivityState,
    Capability,
    Shown,
    Silence,
    in_short,
)
from core.model.gate import Observed
from core.model.harness import (
    DialogReported,
    Ended,
    HarnessEvent,
    PromptReported,
    Ready,
    StatusProbe,
    TextBlocked,
    TextQueued,
    TextReturned,
    TextTaken,
    ToolEnded,
    ToolStarted,
    TurnBlocked,
    TurnEnded,
    TurnFailed,
)
from core.model.reasons import Because, Reason, because, said
from core.model.session import Live, Phase, SessionRecord, Status

WITH_ITS_SESSION = "its session ended"  #: why a background task is over that had not finished
_LATE = timedelta(seconds=2)  #: from what a hook reports to the time stamp of its report

_BY_ACTIVITY = {
    ActivityState.STARTING: Observed.STARTING,
    ActivityState.IDLE: Observed.IDLE,
    ActivityState.BUSY: Observed.BUSY,
    ActivityState.PERMISSION: Observed.PERMISSION,
    ActivityState.QUESTION: Observed.QUESTION,
    ActivityState.DIALOG: Observed.DIALOG,
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
        return Observed.DIALOG if activity.waits_at_start else _BY_ACTIVITY[activity.state]
    return _gone(record, live, starting)


def _gone(record: SessionRecord, live: Live, starting: bool) -> Observed:
    if starting and live is Live.ABSENT:
        return Observed.STARTING
    if record.instance_id is None:
        return Observed.NEVER_RUN
    if record.status is Status.STOPPED:
        return Observed.DOWN
    return Observed.DEAD if live is Live.DEAD else Observed.LOST


def follow(
    activity: Activity,
    event: HarnessEvent,
    at: datetime,
    *,
    boot_coming: bool = False,
    queue_left: bool = False,
    doubted: bool = False,
) -> Activity:
    """Return what the session does after an event of its harness.

    Idle only if the harness said so with no task pending. `boot_coming`: a prompt travelled as the program's argument
    and no turn took it yet, so that a harness which begins to read is about to be busy. `queue_left`: its own queue
    holds messages, with which a turn begins as soon as this one is over, and no hook tells of that. `doubted`: another
    source does not say that the turn is over whose end is reported.
    """
    told = replace(activity, last_report_at=at)
    if activity.ending and isinstance(event, ToolStarted | ToolEnded | DialogReported):
        told = replace(told, turn_ended_at=None, ended_turn="")  # it goes on: that was not its end
    match event:
        case Ready(source="compact"):
            return told  # in the middle of a turn, and no end of it
        case Ready():
            return _moved(told, ActivityState.BUSY if boot_coming else ActivityState.IDLE, at, tasks=())
        case PromptReported(internal=internal, task=task, turn=turn):
            told = told if internal else replace(told, earlier_tasks=())
            left = tuple(each for each in told.pending_tasks if each != task)
            if is_of_running_turn(told, turn):
                return replace(told, pending_tasks=left)
            return replace(_moved(told, ActivityState.BUSY, at, tasks=left), turn_started_at=at, turn=turn)
        case TextTaken(begins=begins, at=moment, turn=turn):
            return _taken(activity, moment or at, turn) if begins else activity
        case ToolStarted():
            return _moved(told, ActivityState.BUSY, at)
        case ToolEnded(task=None) if told.state is ActivityState.IDLE:
            return told  # an interruption has ended the turn before its tool: that begins no work
        case ToolEnded(task=task, task_name=name):
            tasks = told.pending_tasks if task is None or task in told.pending_tasks else (*told.pending_tasks, task)
            return _named(_moved(told, ActivityState.BUSY, at, tasks=tasks), {task: name} if task and name else {})
        case DialogReported(question=question, summary=summary):
            asking = ActivityState.QUESTION if question else ActivityState.PERMISSION
            return _moved(told, asking, at, because=said(summary) if summary else None)
        case TurnEnded(pending_tasks=tasks, turn=turn, task_names=names) if (
            turn and turn == told.ended_turn and turn != told.turn and told.in_turn
        ):
            return _named(replace(told, pending_tasks=tasks), names)  # the next one has begun
        case TurnEnded(pending_tasks=tasks, turn=turn, task_names=names) if doubted:
            turn = turn or told.turn
            ending = replace(told, turn=turn, turn_ended_at=at, ended_turn=turn)
            return _named(_moved(ending, ActivityState.BUSY, at, because=Because(Reason.ENDING), tasks=tasks), names)
        case TurnEnded(pending_tasks=tasks, turn=turn, task_names=names):
            after = _between_turns(_succeeded(told), tasks, at)
            return _over(_named(after, names), at, turn, queue_left=queue_left)
        case TurnFailed(error=error, message=message, failure=failure, turn=turn):
            after = _failed(told, ": ".join(text for text in (error, in_short(message)) if text), at)
            return _over(replace(after, failed=failure.value), at, turn, queue_left=queue_left)
        case Ended(reason=reason):
            return _moved(
                ended(told), ActivityState.UNKNOWN, at, because=because(Reason.GOING_AWAY, why=reason), tasks=()
            )
        case TurnBlocked(task=task):
            left = tuple(each for each in told.pending_tasks if each != task)
            told = told if task is not None else replace(told, composer_at=at)  # it may stand in the input line
            return _between_turns(told, left, at) if told.between_turns else replace(told, pending_tasks=left)
        case TextBlocked():  # a hook told that it began a turn, and it did not
            return replace(_between_turns(told, told.pending_tasks, at), composer_at=at) if told.in_turn else told
        case TextQueued() | TextReturned():
            return told


def hears(before: Activity, event: HarnessEvent) -> bool:
    """Return whether a hook's event shows that hooks report again, of which the session's were silent."""
    if before.silence is None:
        return False
    if isinstance(event, TurnEnded | TurnFailed | Ready):
        return True
    return before.silence is not Silence.TURNS and isinstance(event, PromptReported | ToolStarted)


def is_of_running_turn(activity: Activity, turn: str) -> bool:
    """Return whether the id is that of the turn that runs: a text reported with it waits in the harness's own queue."""
    return bool(turn) and turn == activity.turn and activity.in_turn


def _taken(activity: Activity, at: datetime, turn: str) -> Activity:
    """Return what follows a text in the conversation's record with which a turn began.

    A record is read when there is time: the turn may be known already, and it may be over. Its id tells; where there is
    none, and of what is long past, the times do. (A report bears the time at which its hook ran, some moments late.)
    """
    if activity.in_turn:
        known = turn in ("", activity.turn) or not activity.turn
        known = known or (activity.turn_started_at is not None and at < activity.turn_started_at)
    elif activity.turn_ended_at is not None:
        known = at <= activity.turn_ended_at - (_LATE if turn else timedelta()) or (
            bool(turn) and turn == activity.ended_turn
        )
    else:
        known = at <= activity.since
    if known:
        return activity
    began = replace(activity, turn_started_at=at, turn=turn)
    if activity.in_turn:  # that one is over, and its report may still be on its way
        began = replace(began, turn_ended_at=at, ended_turn=activity.turn)
        if at < activity.since:
            return began  # what it does since then it does in the new turn: a dialog stays open
    return _moved(began, ActivityState.BUSY, at)


def _over(after: Activity, at: datetime, turn: str, *, queue_left: bool) -> Activity:
    over = replace(after, turn_ended_at=at, ended_turn=turn or after.turn)
    return _moved(over, ActivityState.BUSY, at, because=Because(Reason.QUEUE_LEFT)) if queue_left else over


def believed(activity: Activity, now: datetime, *, queue_left: bool = False) -> Activity:
    """Return what a session does of which another source says, too, that its turn is over."""
    over = _between_turns(_succeeded(activity), activity.pending_tasks, now)
    over = replace(over, shown={**over.shown, Capability.TURN_EDGES: True})
    return _moved(over, ActivityState.BUSY, now, because=Because(Reason.QUEUE_LEFT)) if queue_left else over


def by_other_word(activity: Activity, opinion: StatusProbe, now: datetime) -> Activity:
    """Return what a session does that is idle by its hooks' word, or busy by another source's, after that source's."""
    if not opinion.turn_over and opinion.state is ActivityState.BUSY:
        return _moved(activity, ActivityState.BUSY, now, because=Because(Reason.AT_WORK))
    if not opinion.turn_over or activity.state is ActivityState.IDLE:
        return activity
    if activity.lingers:
        return second_guess(activity, opinion, now)
    return _between_turns(activity, activity.pending_tasks, now)


def ended(activity: Activity) -> Activity:
    """Return what is known of a session whose program has ended: its background tasks ended with it."""
    return replace(activity, pending_tasks=(), cut_off_tasks=activity.open_tasks, task_names={})


def unfinished_tasks(activity: Activity | None) -> tuple[str, ...]:
    """Return in words the background tasks that ended unfinished with an instance which is over.

    Those of the instance before it are among them where it ended before it had said a word: nobody was told of them.
    """
    if activity is None:
        return ()
    inherited = activity.earlier_tasks if activity.last_report_at is None else ()
    return (*inherited, *(activity.cut_off_tasks or activity.open_tasks))


def _named(activity: Activity, names: Mapping[str, str]) -> Activity:
    """Return the activity with what its background tasks run; what is over is forgotten."""
    known = {**activity.task_names, **names}
    return replace(activity, task_names={task: known[task] for task in activity.pending_tasks if task in known})


def without_queue(activity: Activity, at: datetime) -> Activity:
    """Return what a session does whose own queue turned out to be empty since its last turn ended."""
    if not activity.queue_left:
        return activity
    return replace(_between_turns(activity, activity.pending_tasks, at), remarks=activity.remarks)


def _between_turns(activity: Activity, tasks: tuple[str, ...], at: datetime) -> Activity:
    if tasks:
        return _moved(activity, ActivityState.BUSY, at, because=Because(Reason.BETWEEN_TURNS), tasks=tasks)
    return _moved(activity, ActivityState.IDLE, at, tasks=())


def _succeeded(activity: Activity) -> Activity:
    """Return the activity without what is told of a turn that failed before."""
    return replace(activity, failed="", remarks=())


def what_failed_still(activity: Activity) -> tuple[Because, ...]:
    """Return why the latest turn failed, which is told until one succeeds."""
    return tuple(each for each in activity.remarks if activity.failed and each.reason is not Reason.STOPS_IDLE)


def _failed(activity: Activity, error: str, at: datetime) -> Activity:
    """Return what follows a turn that ended in an error of the model's side: the same as after any other, and why."""
    over = _between_turns(activity, activity.pending_tasks, at)
    return replace(over, remarks=(said(error),) if error else ())


def second_guess(activity: Activity, opinion: StatusProbe | None, now: datetime) -> Activity:
    """Return what a session does whose harness was silent for long: the opinion, or unknown; never idle by guess."""
    if opinion is None:
        return _moved(activity, ActivityState.UNKNOWN, now, because=Because(Reason.HARNESS_SILENT))
    if opinion.state in ASKING_STATES and activity.state in ASKING_STATES:
        return _explained(_moved(activity, activity.state, now), opinion, activity)
    cut_off = (opinion.turn_over or opinion.state is ActivityState.IDLE) and activity.in_turn
    tasks = () if opinion.state is ActivityState.IDLE else None  # with a task it would call itself busy
    after = _moved(activity, opinion.state, now, because=Because(Reason.CUT_OFF), tasks=tasks)
    if cut_off:
        after = replace(after, turn_ended_at=now, ended_turn=activity.turn)
    if after.state is ActivityState.IDLE and (cut_off or activity.lingers):
        return after
    return _explained(after, opinion, activity)


def _explained(after: Activity, opinion: StatusProbe, before: Activity) -> Activity:
    """Return the activity with why it is so by the opinion, which may have nothing to say of that."""
    if opinion.between_turns:
        return replace(after, because=Because(Reason.BETWEEN_TURNS))
    if opinion.asks:
        return replace(after, because=said(opinion.asks))
    kept = before.because if after.state is before.state else None
    return replace(after, because=kept, remarks=before.remarks)


def _moved(
    activity: Activity,
    state: ActivityState,
    at: datetime,
    *,
    because: Because | None = None,
    tasks: tuple[str, ...] | None = None,
) -> Activity:
    since = activity.since if activity.state is state else at
    return replace(
        activity,
        state=state,
        since=since,
        because=because,
        remarks=what_failed_still(activity),
        pending_tasks=activity.pending_tasks if tasks is None else tasks,
    )


def shown_by(
    activity: Activity, event: HarnessEvent, mode: str, at: datetime, *, agreed: bool = True, was_pasted: bool = False
) -> Shown:
    """Return what the instance has shown with this event, and before it. `activity`: before the event; `mode`: the
    permission mode that its report names, "" where it names none; `at`: when it was reported; `agreed`: another source
    says the same of a turn's end; `was_pasted`: the event's text is one that we have pasted, see `tells_of_paste`."""
    shown = {**activity.shown, **({Capability.MODE: True} if mode else {})}
    match event:
        case Ready(source=source):
            shown[Capability.BOOT_HOOK] = True
            if source == "resume":
                shown[Capability.RESUME] = True
        case PromptReported(internal=False, prompt=prompt, turn=turn, pasted=pasted):
            if is_of_running_turn(activity, turn) and _is_under_way(activity, at):
                shown[Capability.QUEUE_EVIDENCE] = True
            if was_pasted and tells_of_paste(prompt, pasted):
                shown[Capability.PLAIN_PASTES] = not pasted
        case TurnEnded(pending_tasks=tasks) if activity.in_turn:
            if agreed:
                shown[Capability.TURN_EDGES] = True
            if tasks:
                shown[Capability.BACKGROUND_TASKS] = True
        case DialogReported():
            shown[Capability.PERMISSION_HOOK] = True
        case ToolEnded(tool=tool, task=task):
            if task is not None:
                shown[Capability.BACKGROUND_TASKS] = True
            if tool.startswith(OUR_TOOL):
                shown[Capability.MCP_APPROVAL] = True
        case TurnBlocked():
            shown[Capability.TURN_EDGES] = True
        case TextTaken(prompt=prompt, begins=begins, pasted=pasted):
            shown[Capability.TRANSCRIPT] = True
            if was_pasted and tells_of_paste(prompt, pasted):
                shown[Capability.PLAIN_PASTES] = not pasted
            if not begins:
                shown[Capability.QUEUE_EVIDENCE] = True
        case TextQueued() | TextReturned():
            shown[Capability.TRANSCRIPT] = shown[Capability.QUEUE_EVIDENCE] = True
        case _:
            pass
    return shown


def _is_under_way(activity: Activity, at: datetime) -> bool:
    """Return whether the turn ran by then: a text reported sooner may be the one that began it, told late."""
    return activity.turn_started_at is not None and at - activity.turn_started_at >= _LATE


def tells_of_paste(prompt: str, pasted: tuple[str, ...]) -> bool:
    """Return whether a pasted text shows how pastes reach the model: a short one never counts as pasted."""
    return bool(pasted) or prompt.count("\n") > LONG_LINES or len(prompt) > LONG_TEXT
