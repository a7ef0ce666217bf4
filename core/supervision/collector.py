"""Stops sessions that have nothing to do (`idle.stopAfter`): announced first, looked at again under the lock."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from core.domain.activity import Activity, ActivityState
from core.domain.collecting import Announce, Collect, Decision, Facts, Keep, decide_idle
from core.domain.ending import collected_text, idle_text
from core.domain.pane import Survey
from core.domain.reasons import Reason, because
from core.domain.restarting import may_be_brought_back
from core.domain.session import Live, Phase, SessionRecord, Status
from core.domain.watchbook import Announced, Stage
from core.effects import Effect, effect
from core.names import target_for
from core.session.apart import each_apart
from core.standing.dying import add_note
from core.standing.stopping import StopOrder, stop_each
from core.store.files import holds_files
from core.system import System
from core.values import replace

ACTOR = "collector"


class Collector:
    """Belongs to the supervisor's thread."""

    def __init__(self, system: System) -> None:
        self._system = system

    def turn(self, records: Sequence[SessionRecord], survey: Survey) -> timedelta | None:
        """Announce or stop what is idle for long, and return how long until time alone changes anything.

        Raises StoreBroken.
        """
        now = self._system.clock.now()
        waits: list[timedelta] = []
        idle: list[SessionRecord] = []

        def look(record: SessionRecord) -> None:
            self._say_over(record)
            decision = self.decide(record, survey)
            if isinstance(decision, Announce):
                self._announce(record, decision)
                waits.append(decision.stop_at - now)
            elif isinstance(decision, Collect):
                idle.append(record)
            elif decision.until is not None:
                waits.append(decision.until - now)

        bounded = [record for record in records if record.definition.idle.stop_after is not None]
        each_apart(self._system.events, bounded, look)
        self.collect(idle)
        return min(waits, default=None)

    def decide(self, record: SessionRecord, survey: Survey) -> Decision:
        """Return what is to be done with the session now. Raises StoreBroken."""
        facts = self._facts(record, survey)
        return Keep("it does not run") if facts is None else decide_idle(facts, self._system.clock.now())

    def _facts(self, record: SessionRecord, survey: Survey) -> Facts | None:
        """Return what is known of the session; None where there is nothing to know."""
        instance, activity = record.instance_id, self._system.activities.get(record.uid)
        if instance is None or activity is None or activity.instance != instance:
            return None
        since = self._idle_since(record, activity)
        announced = self._system.watchbook.announced(record.uid)
        same = announced is not None and announced.instance == instance and announced.idle_since == since
        spool = str(self._system.paths.spool_of(instance))
        return Facts(
            stop_after=record.definition.idle.stop_after,
            runs=may_be_brought_back(record) and survey.live(target_for(record.name), instance) is Live.LIVE,
            activity=activity.state
            if activity.silence is None
            else ActivityState.UNKNOWN,  # idle by no word of its own
            idle_since=since,
            pending_tasks=bool(activity.pending_tasks),
            attached=instance in survey.viewed,
            waiting=bool(self._system.inbox.unsettled(record.uid)) or holds_files(spool),
            held_open=self._system.loops.holds_open(record.uid),
            announced_at=announced.at if announced is not None and same else None,
        )

    def _idle_since(self, record: SessionRecord, activity: Activity) -> datetime:
        last: Mapping[str, datetime] = self._system.activities.last_messages()
        moments = (activity.since, activity.last_report_at, record.started_at, last.get(record.uid))
        return max(moment for moment in moments if moment is not None)

    def _announce(self, record: SessionRecord, announce: Announce) -> None:
        system, now = self._system, self._system.clock.now()
        activity, stop_after = system.activities.get(record.uid), record.definition.idle.stop_after
        if activity is None or record.instance_id is None or stop_after is None:
            return
        since = self._idle_since(record, activity)
        with effect(Effect.WATCH_ANNOUNCE), system.database.transaction(durable=True):
            if system.activities.get(record.uid) != activity:
                return  # a report has told more meanwhile
            system.watchbook.announce(Announced(record.uid, record.instance_id, since, now))
            stops = because(Reason.STOPS_IDLE, at=f"{announce.stop_at:%H:%M:%S}")
            system.activities.put(replace(activity, remarks=(*activity.remarks, stops)))
            key = f"idle-{record.instance_id}-{int(since.timestamp() * 1000)}"
            add_note(system, record, key, idle_text(record.name, stop_after, announce.stop_at))
        system.poke()

    def collect(self, records: Sequence[SessionRecord]) -> None:
        """End the sessions as a stop without a name does: no hold, conversation and queue kept."""
        order = StopOrder(ACTOR, "idle.stopAfter", by_name=False, unless=self._kept_by)
        stop_each(self._system, [record.name for record in records], order)

        def say_over(record: SessionRecord) -> None:
            after = self._system.records.read(record.name)
            if after is not None and after.uid == record.uid:
                self._say_over(after)

        each_apart(self._system.events, records, say_over)

    def _kept_by(self, record: SessionRecord, survey: Survey | None) -> str:
        """Look again, now that nobody else can move the session; note that it is taken where nothing keeps it."""
        if survey is None:
            return "tmux does not answer"
        decision = self.decide(record, survey)
        if not isinstance(decision, Collect):
            return "it is in use again"
        announced = self._system.watchbook.announced(record.uid)
        with effect(Effect.WATCH_TELL), self._system.database.transaction(durable=True):
            if announced is not None:
                taken = replace(announced, instance=record.instance_id or "", stage=Stage.TAKEN)
                self._system.watchbook.announce(taken)
            self._system.events.emit(
                "standing.collected",
                name=record.name,
                actor=ACTOR,
                instance=record.instance_id,
                generation=record.generation,
                reason=decision.reason,
            )
        return ""

    def _say_over(self, record: SessionRecord) -> None:
        """Tell the thread of a session that we have taken, once it is known to have ended, whoever finished that."""
        stop_after = record.definition.idle.stop_after
        if stop_after is None or record.status is not Status.STOPPED or record.phase is not Phase.SETTLED:
            return
        announced = self._system.watchbook.announced(record.uid)
        instance = record.instance_id or ""
        if announced is None or not announced.is_untold(instance):
            return
        with effect(Effect.WATCH_TELL), self._system.database.transaction(durable=True):
            self._system.watchbook.announce(replace(announced, stage=Stage.TOLD))
            text = collected_text(record.name, stop_after)
            add_note(self._system, record, f"idle-over-{instance}", text)
        self._system.poke()
