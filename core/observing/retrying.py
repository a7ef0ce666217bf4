"""Requests that fail and that a session's program tries again by itself, for minutes, without a word of its hooks.

Its screen alone tells. The thread is told once a turn, after a while, and that note is edited when it is over.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from re import compile as pattern

from core.domain.activity import Activity, ActivityState
from core.domain.binding import CHANNEL
from core.domain.failing import Failure
from core.domain.harness import Retry, TurnFailed
from core.domain.pane import Survey
from core.domain.session import SessionRecord
from core.errors import TmuxSilent
from core.observing.failures import words_of
from core.ports import NewPost, NoteStand, OutboundKind
from core.session.sessions import resolve_record
from core.session.threads import has_thread
from core.system import System
from core.values import replace

AFTER = timedelta(seconds=20)  #: without a word of its hooks; what passes sooner is not told
_SCREEN_LINES = 60
_STATUS = pattern(r"([45]\d\d)\b\s*(.*)")
_LOGIN = frozenset({"401", "403"})


class Retries:
    """Looks at the screens of sessions whose turn is quiet. Belongs to one thread."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._unsure: set[str] = set()  #: instances whose latest look showed no retry any more: one look may see half

    def look(self, records: Sequence[SessionRecord], survey: Survey) -> None:
        """Look at each that is quiet, or was retrying. Raises StoreBroken."""
        now, activities = self._system.clock.now(), self._system.activities.all()
        looked: list[tuple[SessionRecord, Activity]] = []
        for record in records:
            activity, pane = activities.get(record.uid), survey.of_instance(record.instance_id or "")
            if activity is None or pane is None or pane.dead or activity.instance != record.instance_id:
                continue
            if activity.retrying or _quiet(activity, now):
                looked.append((record, activity))
        if not looked:
            return
        try:
            shown = self._system.runner.screens([activity.instance for _, activity in looked], _SCREEN_LINES)
        except TmuxSilent:
            return
        for record, activity in looked:
            if activity.instance in shown:
                self._follow(record, activity, shown[activity.instance])

    def _follow(self, record: SessionRecord, activity: Activity, screen: str) -> None:
        harness = self._system.harnesses.get(resolve_record(record, self._system.settings).harness)
        retry = harness.retry_shown(screen) if activity.in_turn else None
        if retry is not None:
            self._unsure.discard(activity.instance)
            _retries(self._system, record, activity, retry)
        elif activity.retrying and activity.in_turn and activity.instance not in self._unsure:
            self._unsure.add(activity.instance)
        elif activity.retrying:
            self._unsure.discard(activity.instance)
            _over(self._system, record, activity)


def _quiet(activity: Activity, now: datetime) -> bool:
    """Return whether a turn runs of which nothing was told for a while."""
    if activity.state is not ActivityState.BUSY or not activity.in_turn:
        return False
    told = [activity.since, activity.last_report_at, activity.turn_started_at]
    return now - max(at for at in told if at is not None) >= AFTER


def what_fails(retry: Retry) -> str:
    """Return what the program meets, in words."""
    found = _STATUS.match(retry.reason)
    if found is not None:
        said = f" ({found[2]})" if found[2] else ""
        return f"the model's server answers {found[1]}{said}"
    return (
        f"the model's server cannot be asked ({retry.reason})"
        if retry.reason
        else "the model's server answers with an error"
    )


def _retries(system: System, record: SessionRecord, activity: Activity, retry: Retry) -> None:
    what = f"{what_fails(retry)}; its program tries again by itself, attempt {retry.attempt} of {retry.most}"
    if activity.retrying == what:
        return
    first = not activity.retrying
    with system.database.transaction(durable=False):
        if system.activities.get(record.uid) != activity:
            return  # it told something meanwhile
        system.activities.put(replace(activity, retrying=what))
        if first and has_thread(system, record):
            system.outbox.add([_note(record, activity, _told(system, record, retry, what))])
    if first:
        system.events.emit(
            "standing.retrying", level="warning", name=record.name, instance=record.instance_id, reason=what
        )
        system.poke()


def _told(system: System, record: SessionRecord, retry: Retry, what: str) -> str:
    """Return what the thread is told; with what a person can do, where waiting helps nobody."""
    text = f"A turn of `{record.name}` waits: {what}; nothing is lost."
    found = _STATUS.match(retry.reason)
    if found is None or found[1] not in _LOGIN:
        return text
    _, remedy = words_of(system, record, TurnFailed("", "", Failure.LOGIN))
    return f"{text} To do: {remedy}"


def _over(system: System, record: SessionRecord, activity: Activity) -> None:
    """Note that nothing is tried again any more, and how that ended."""
    failed = bool(activity.failed) and not activity.in_turn
    how = "it has given up" if failed else "it goes on" if activity.in_turn else "that is over"
    now = system.clock.now()
    with system.database.transaction(durable=False):
        latest = system.activities.get(record.uid)
        if latest is None or latest.instance != activity.instance:
            return
        system.activities.put(replace(latest, retrying=""))
        told = system.outbox.latest_note(_group(activity)) if has_thread(system, record) else None
        if told is not None and told.note is not None and not told.note.edits:
            text = f"A turn of `{record.name}` waited: {activity.retrying}. Since {now:%H:%M:%S} UTC {how}."
            post_id, key, over = f"{told.id}-over", f"{told.key}:over", replace(told.note, edits=1)
            system.outbox.add([replace(told, id=post_id, key=key, text=text, edits=told.id, note=over)])
    system.poke()


def _group(activity: Activity) -> str:
    return f"retry {activity.instance}"


def _note(record: SessionRecord, activity: Activity, text: str) -> NewPost:
    """Return the note about the running turn: there is one a turn."""
    began = activity.turn_started_at or activity.since
    moment = int(began.timestamp() * 1_000_000)
    return NewPost(
        id=f"p-retry-{record.instance_id}-{moment}",
        key=f"retry:{record.instance_id}:{moment}",
        kind=OutboundKind.NOTE,
        uid=record.uid,
        name=record.name,
        channel_kind=CHANNEL,
        text=text,
        note=NoteStand(_group(activity), moment, 0, 0),
    )
