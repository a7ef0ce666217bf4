"""Notices turns that have shown no sign of life for long. They are shown and told, and nothing is done to them."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from core.domain.activity import Activity, ActivityState
from core.domain.pane import Survey
from core.domain.reasons import Reason, because
from core.domain.session import SessionRecord
from core.errors import CoreError
from core.ports import Transcript
from core.session.apart import each_apart
from core.session.place import context_of
from core.session.sessions import resolve_record
from core.system import System
from core.values import replace

STALLED = timedelta(minutes=10)
_SCREEN_LINES = 200


@dataclass
class _Look:
    """What a silent turn last showed."""

    screen: str
    since: datetime
    transcript: Transcript | None


class Stalls:
    """Belongs to the supervisor's thread. A stall: busy, no report, the same screen, no new line of the transcript."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._looks: dict[str, _Look] = {}  #: by instance

    def turn(self, records: Sequence[SessionRecord], survey: Survey) -> None:
        """Look at the sessions whose turns are silent. Raises TmuxSilent, StoreBroken."""
        now, activities = self._system.clock.now(), self._system.activities.all()
        silent = {}
        for record in records:
            activity, pane = activities.get(record.uid), survey.of_instance(record.instance_id or "")
            if activity and pane and not pane.dead and _is_silent(record, activity, now):
                silent[pane.tag] = (record, activity)
        self._looks = {instance: look for instance, look in self._looks.items() if instance in silent}
        activity_of = {record.uid: activity for record, activity in silent.values()}
        records = [record for record, _ in silent.values()]
        each_apart(self._system.events, records, lambda record: self._look(record, activity_of[record.uid], now))

    def _look(self, record: SessionRecord, activity: Activity, now: datetime) -> None:
        instance = activity.instance
        try:
            shown = self._system.runner.screen(instance, _SCREEN_LINES)
        except CoreError:
            return  # it has just gone, or tmux is silent: no word about its life
        screen = hashlib.sha256(shown.encode("utf-8", "replace")).hexdigest()
        look = self._looks.get(instance)
        if look is None:
            self._looks[instance] = _Look(screen, _last_sign(activity), self._transcript(record, instance))
            return
        if look.screen != screen or (look.transcript is not None and look.transcript.new_events()):
            look.screen, look.since = screen, now
        elif now - look.since >= STALLED and activity.reason is not Reason.STALLED:
            self._tell(record, activity, look.since)

    def _transcript(self, record: SessionRecord, instance: str) -> Transcript | None:
        resolved = resolve_record(record, self._system.settings)
        context = context_of(self._system.paths, record, resolved, instance)
        return self._system.harnesses.get(resolved.harness).transcript(context, from_start=False)

    def _tell(self, record: SessionRecord, activity: Activity, since: datetime) -> None:
        why = because(Reason.STALLED, since=f"{since:%Y-%m-%d %H:%M:%S}")
        with self._system.database.transaction(durable=False):
            if self._system.activities.get(record.uid) != activity:
                return
            self._system.activities.put(replace(activity, because=why, remarks=()))
            self._system.events.emit(
                "standing.stalled", level="warning", name=record.name, instance=record.instance_id, detail=why.text
            )


def _is_silent(record: SessionRecord, activity: Activity, now: datetime) -> bool:
    """Tell whether a turn of the record's instance has told nothing for so long that its screen is looked at."""
    busy = activity.instance == record.instance_id and activity.state is ActivityState.BUSY
    return busy and not activity.between_turns and now - _last_sign(activity) >= STALLED / 2


def _last_sign(activity: Activity) -> datetime:
    return max(moment for moment in (activity.since, activity.last_report_at) if moment is not None)
