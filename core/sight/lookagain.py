"""Asks another source what a session does where its harness's own reports may be behind: no hook tells of some keys."""

from datetime import datetime, timedelta

from core.domain.activity import ASKING_STATES, Activity, ActivityState
from core.domain.asking import MAIN
from core.domain.capability import Capability
from core.domain.delivering import RECORD_WINDOW
from core.domain.observing import second_guess
from core.domain.pane import Pane
from core.domain.session import SessionRecord
from core.session.dialogs import SETTLED, SILENT_TURN, drop_marker, is_over, says_none_is_open, waiting_agents
from core.session.place import ASKING, context_of
from core.session.sessions import activity_of, resolve_record
from core.sight.showing import turn_over
from core.sight.situations import modified, opinion_of
from core.system import System
from core.values import replace

_AT_WORK = ASKING_STATES | {ActivityState.BUSY}
_ROUNDED = timedelta(milliseconds=1)  #: a file's time is finer than ours


def ask_again(system: System, record: SessionRecord, pane: Pane | None) -> bool:
    """Ask about a dialog that is open and a turn that was silent for long, and tell whether anything changed by it.

    Raises StoreBroken, UnsupportedHarness.
    """
    if pane is None or pane.dead:
        return False
    known, now = activity_of(system, record), system.clock.now()
    heard = known is not None and known.silence is None  # else another source is asked all the time
    silent = known is not None and heard and known.state in _AT_WORK and _silent_for(known, now) >= _patience(known)
    told = known is not None and heard and known.state in ASKING_STATES
    if known is not None and known.state is ActivityState.DIALOG:
        return False  # its screen tells when it is over
    marker = system.paths.session(record.uid) / ASKING
    marked_at = modified(marker, now)
    if not silent and marked_at is None and not told:
        return False
    opinion = opinion_of(system, record, pane.pid)
    if marked_at is None:  # what told of a dialog came late: the marker, which comes first, has gone since
        over = told and known is not None and says_none_is_open(opinion) and _silent_for(known, now) >= SETTLED
    else:
        over = not _background_asks(system, record) and is_over(opinion, marked_at, waiting_agents(marker), now)
    if over and marked_at is not None:
        drop_marker(marker, marked_at + _ROUNDED)
    if known is not None and (silent or (over and told)):
        return replace_activity(system, record, known, second_guess(known, opinion, now)) or over
    return over


def look_at_record(system: System, record: SessionRecord) -> None:
    """Note whether the conversation's record is where it is looked for, in the form that is read, once a turn is over.

    Raises StoreBroken, UnsupportedHarness, TrustFailed.
    """
    activity, now = activity_of(system, record), system.clock.now()
    if activity is None or Capability.TRANSCRIPT in activity.shown:
        return
    if activity.turn_ended_at is None or now < activity.turn_ended_at + RECORD_WINDOW:
        return
    resolved = resolve_record(record, system.settings)
    harness = system.harnesses.get(resolved.harness)
    if harness.traits.evidence:
        context = context_of(system.paths, record, resolved, record.instance_id or "")
        shown = {**activity.shown, Capability.TRANSCRIPT: harness.resumable(context)}
        replace_activity(system, record, activity, replace(activity, shown=shown))


def _patience(activity: Activity) -> timedelta:
    """Return for how long a harness at work may tell nothing: no hook tells of a turn that its own queue began."""
    return SETTLED if activity.queue_left else SILENT_TURN


def _silent_for(activity: Activity, now: datetime) -> timedelta:
    """Return for how long the harness has told nothing."""
    return now - max(activity.since, activity.last_report_at or activity.since)


def _background_asks(system: System, record: SessionRecord) -> bool:
    """Tell whether a background agent's hook waits for an answer: its dialog shows once that has given up."""
    opened = system.requests.open(record.uid)
    return any(request.instance == record.instance_id and request.agent != MAIN for request in opened)


def replace_activity(system: System, record: SessionRecord, before: Activity, after: Activity) -> bool:
    """Store the activity, unless nothing changes or a report has told more meanwhile.

    With it that a turn which was cut off is over, before another one can begin.
    """
    if after == before:
        return False
    with system.database.transaction(durable=False):
        if system.activities.get(before.uid) != before:
            return False
        if after.cut_off_at is not None:
            turn_over(system, record, after.cut_off_at, failed=True)
        system.activities.put(after)
    return True
