"""The supervisor thread: bring back due sessions, stop idle ones, report stalled turns and changed settings.

- A session is brought back after a crash (within its budget of restarts), after a lost tmux server, and after a restart
  that was cut short.
- A session that has nothing to do (`idle.stopAfter`) is stopped. This is announced first, and checked again under the
  lock.
- A turn without a sign of life for long is shown and told. Nothing is done to it.
- If the configuration differs from what a session was started with, this is told once for each change. Declared loops
  are not part of this: they are changed while the session runs.
"""

import hashlib
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from core.base.clock import Deadline
from core.base.errors import CoreError, TmuxMissing, TmuxSilent
from core.base.failpoints import Failpoint, failpoint
from core.base.files import holds_files
from core.base.names import target_for
from core.base.values import replace
from core.config.settings import Settings
from core.lifecycle.announce import edit_root
from core.lifecycle.common import VerbResult, lock, write_record
from core.lifecycle.exits import SUPERVISOR, add_note, emit_held, hold_failed
from core.lifecycle.spawn import Opened, StartOrder
from core.lifecycle.start import FirstDialogs, Looks, begin_each, conclude
from core.lifecycle.stop import StopOrder, stop_each
from core.loops.verbs import carry_out
from core.model.activity import Activity, ActivityState
from core.model.asking import Press
from core.model.harness import Transcript
from core.model.observing import what_failed_still
from core.model.pane import Survey
from core.model.posts import collected_text, given_up_text, idle_text
from core.model.reasons import Reason, because
from core.model.restarting import (
    WINDOW,
    Announce,
    Announced,
    BringBack,
    Collect,
    Decision,
    End,
    Facts,
    Keep,
    Stage,
    decide_idle,
    exit_text,
    may_be_brought_back,
    plan_restart,
)
from core.model.rows import drift
from core.model.session import Live, Outcome, Phase, SessionRecord, Status
from core.session.folder import context_of
from core.session.sessions import (
    Known,
    Unforeseen,
    apart,
    comes_back,
    each_apart,
    every_session,
    lacks_harness,
    left_default,
    may_come_back,
    moved,
    resolve_record,
)
from core.session.system import System

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
        announced = self._system.exit_ledger.announced(record.uid)
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
        with failpoint(Failpoint.WATCH_ANNOUNCE), system.database.transaction(durable=True):
            if system.activities.get(record.uid) != activity:
                return  # a report has told more meanwhile
            system.exit_ledger.announce(Announced(record.uid, record.instance_id, since, now))
            stops = because(Reason.STOPS_IDLE, at=f"{announce.stop_at:%Y-%m-%d %H:%M:%S}")
            system.activities.put(replace(activity, remarks=(*activity.remarks, stops)))
            key = f"idle-{record.instance_id}-{int(since.timestamp() * 1000)}"
            add_note(system.outbox, system.bindings, record, key, idle_text(record.name, stop_after, announce.stop_at))
        system.notify()

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
        announced = self._system.exit_ledger.announced(record.uid)
        with failpoint(Failpoint.WATCH_TELL), self._system.database.transaction(durable=True):
            if announced is not None:
                taken = replace(announced, instance=record.instance_id or "", stage=Stage.TAKEN)
                self._system.exit_ledger.announce(taken)
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
        """Tell the thread that we stopped its idle session, once it is known to have ended, whoever finished that."""
        stop_after = record.definition.idle.stop_after
        if stop_after is None or record.status is not Status.STOPPED or record.phase is not Phase.SETTLED:
            return
        announced = self._system.exit_ledger.announced(record.uid)
        instance = record.instance_id or ""
        if announced is None or not announced.is_untold(instance):
            return
        with failpoint(Failpoint.WATCH_TELL), self._system.database.transaction(durable=True):
            self._system.exit_ledger.announce(replace(announced, stage=Stage.TOLD))
            text = collected_text(record.name, stop_after)
            add_note(self._system.outbox, self._system.bindings, record, f"idle-over-{instance}", text, Press.BRING_UP)
        self._system.notify()


Signature = tuple[int, int, int] | None


class Drift:
    """Belongs to the supervisor's thread. Reads the file again when it changed; what runs is left as it is."""

    def __init__(self, system: System, load: Callable[[], Settings]) -> None:
        self._system = system
        self._load = load
        self._settings = system.settings
        self._seen = self._signature()

    def turn(self) -> None:
        """Look at every session. Raises StoreBroken."""
        changed = self._follow_file()
        for known in every_session(self._settings, self._system.records):
            try:
                with apart(self._system.events, known.name):
                    self._see_to(known, changed=changed)
            except Unforeseen as error:
                _LOG.warning("session passed over", extra={"session": known.name, "reason": str(error)})

    def _see_to(self, known: Known, *, changed: bool) -> None:
        if known.record is not None and not changed:
            carry_out(self._system, self._settings, known.record)
        if known.record is not None and known.record.instance_id is not None:
            self._look(known, known.record.instance_id)

    def _follow_file(self) -> bool:
        """Read the file if it is another than at the last look, and tell whether it was.

        One that has just changed may be gone for a moment, or half written: what cannot be undone waits for the look at
        which it is still the same.
        """
        signature = self._signature()
        if signature == self._seen:
            return False
        self._seen = signature
        try:
            self._settings = self._load()
        except CoreError as error:
            _LOG.warning("the changed configuration is not valid", extra={"reason": str(error)})
        return True

    def _signature(self) -> Signature:
        source = self._system.settings.source
        if source is None:
            return None
        try:
            found = source.stat()
        except OSError:
            return None  # the file is gone, or being replaced
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _look(self, known: Known, instance: str) -> None:
        binding = self._system.bindings.of_session(known.record.uid) if known.record else None
        elsewhere = moved(self._settings, known.definition, binding)
        default = left_default(self._settings, known)
        changed, detail = changes(known, elsewhere, default)
        if not changed:
            return
        defaults = (self._settings.routing.default_harness,) if default else ()
        what = repr((known.definition if known.declared else None, *elsewhere, *defaults))
        digest = hashlib.sha256(what.encode()).hexdigest()[:16]
        with self._system.database.transaction(durable=False):
            if self._system.database.ingested(instance, f"drift:{digest}"):
                self._system.events.emit(
                    "standing.drift", name=known.name, instance=instance, reason=changed, detail=detail
                )


def changes(known: Known, elsewhere: tuple[str, ...] = (), default: tuple[str, ...] = ()) -> tuple[str, str]:
    """Return which keys differ, or that the entry is gone, and what to do about it; "" where nothing changed.

    `elsewhere`: the key that names another channel than that of the thread. `default`: that of a default which is
    another than what runs.
    """
    record = known.record
    if record is None:
        return "", ""
    if not known.declared and default:
        return ", ".join((*default, *elsewhere)), f"`the-loop standing restart {known.name}` applies the change"
    if not known.declared and elsewhere:
        return ", ".join(elsewhere), f"`the-loop standing announce {known.name}` makes a thread there"
    if not known.declared:
        removed = "its entry was removed from the configuration" if record.declared else ""
        return removed, f"`the-loop standing delete {known.name}` ends and deletes it"
    keys = drift(record.definition, known.definition)
    keys = (*keys, *default, *(key for key in elsewhere if key not in keys))
    return ", ".join(keys), f"`the-loop standing restart {known.name}` applies the change"


_AGAIN = timedelta(seconds=5)  #: after tmux was silent
_KILLED = timedelta(minutes=1)  #: when an attempt is made again whose outcome nobody recorded
_UP = frozenset({Outcome.STARTED, Outcome.RESUMED})


class Restarts:
    """Belongs to the supervisor's thread. A session that comes up slowly holds up no other."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._opened: dict[str, tuple[End, Opened]] = {}
        self._dialogs = FirstDialogs(system)

    @property
    def under_way(self) -> bool:
        """Return whether a session is coming up."""
        return bool(self._opened)

    def turn(self, records: Mapping[str, SessionRecord]) -> None:
        """Begin what is due and see to what was begun. `records` are by instance. Raises StoreBroken."""
        now = self._system.clock.now()
        ends = [end for end in self._system.exit_ledger.due() if end.due_at is not None and end.due_at <= now]
        self._begin([(end, records.get(end.instance)) for end in ends])
        looks = Looks(self._system, [opened for _, opened in self._opened.values()], self._dialogs)
        for name, (end, opened) in list(self._opened.items()):
            self._apart(name, partial(self._follow, name, end, opened, looks))

    def _apart(self, name: str, act: Callable[[], object]) -> None:
        try:
            with apart(self._system.events, name):
                act()
        except Unforeseen as error:
            _LOG.warning("session not brought back", extra={"session": name, "reason": str(error)})

    def _follow(self, name: str, end: End, opened: Opened, looks: Looks) -> None:
        seen = looks.at(opened)
        if seen is not None:
            del self._opened[name]
            self._go_on(name, end, conclude(self._system, opened, seen))

    def next_due(self) -> timedelta | None:
        """Return how long until the next restart is due, None if none is. Raises StoreBroken."""
        due = [end.due_at for end in self._system.exit_ledger.due() if end.due_at is not None]
        return max(timedelta(), due[0] - self._system.clock.now()) if due else None

    # ------------------------------------------------------------ one session

    def _begin(self, due: Sequence[tuple[End, SessionRecord | None]]) -> None:
        orders: dict[str, StartOrder] = {}
        ends: dict[str, End] = {}

        def order(end: End, record: SessionRecord | None) -> None:
            if record is None:
                self._put_off(end, None)
            elif self._may_begin(end, record):
                why = f"brought back after {exit_text(record.last_exit)}" if end.counted else "brought back"
                orders[record.name] = StartOrder(SUPERVISOR, why, skip_held=True, after=end.instance)
                ends[record.name] = end

        for end, record in due:
            self._apart(record.name if record else end.uid, partial(order, end, record))
        for name, step in begin_each(self._system, orders).items():
            self._apart(name, partial(self._go_on, name, ends[name], step))

    def _may_begin(self, end: End, record: SessionRecord) -> bool:
        """Return whether the session is to be started now, which counts; else see to what else is to be done."""
        if record.phase is not Phase.SETTLED:
            return False  # a verb is at work on it, and decides
        if not may_come_back(self._system.settings, record):
            self._put_off(end, None)
            return False
        lacking = lacks_harness(self._system.settings, self._system.harnesses, record)
        if lacking:
            self._put_off(end, _KILLED)
            self._failed(record.name, end, lacking, hopeless=True)
            return False
        with failpoint(Failpoint.WATCH_COUNT), self._system.database.transaction(durable=True):
            if end.counted:
                self._system.exit_ledger.count_restart(record.uid, self._system.clock.now())
            self._system.exit_ledger.put_off(end.instance, self._system.clock.now() + _KILLED)
        return True

    def _go_on(self, name: str, end: End, step: VerbResult | Opened) -> None:
        if isinstance(step, Opened):
            self._opened[name] = (end, step)
        elif step.outcome in _UP:
            self._put_off(end, None)
            self._system.events.emit("standing.restarted", name=name, actor=SUPERVISOR, detail=step.outcome.value)
        elif step.outcome is Outcome.UNCONFIRMED:
            self._put_off(end, _AGAIN)
        elif step.outcome is Outcome.FAILED:
            self._failed(name, end, step.detail)
        else:
            self._put_off(end, None)

    def _failed(self, name: str, end: End, detail: str, *, hopeless: bool = False) -> None:
        """See to a session that could not be started at all. One whose new program died is a new end, told as such.

        `hopeless`: no further attempt of this service can do better, so that it is held at once.
        """
        try:
            with lock(self._system.settings, self._system.locks, name, "bring back"):
                record = self._system.records.read(name)
                if record is None or record.instance_id != end.instance or not may_be_brought_back(record):
                    self._put_off(end, None)
                    return
                if hopeless:
                    self._hold(record, end, detail, detail)
                else:
                    self._plan_again(record, end, detail)
        except CoreError as error:
            _LOG.warning("restart not planned again", extra={"session": name, "reason": str(error)})

    def _plan_again(self, record: SessionRecord, end: End, detail: str) -> None:
        now, system = self._system.clock.now(), self._system
        if not (end.counted and comes_back(system.settings, system.loops, record)):
            self._give_up(record, end, detail)
            return
        restarts = system.exit_ledger.restarts(record.uid, now - WINDOW)
        plan = plan_restart(restarts, now, system.settings.limits.restarts_per_hour)
        if isinstance(plan, BringBack):
            self._put_off(end, plan.at - now)
            return
        self._hold(record, end, f"{plan.reason}; {detail}", plan.reason)

    def _hold(self, record: SessionRecord, end: End, reason: str, told: str) -> None:
        """Hold the session as failed; `told` is the event's reason."""
        held = hold_failed(self._system.paths, record, reason, self._system.clock.now())
        with failpoint(Failpoint.WATCH_RECORD):
            write_record(self._system.records, self._system.bindings, self._system.activities, held)
        self._give_up(held, end, reason)
        emit_held(self._system.events, held, told)

    def _give_up(self, record: SessionRecord, end: End, reason: str) -> None:
        with failpoint(Failpoint.WATCH_PUT_OFF), self._system.database.transaction(durable=True):
            self._system.exit_ledger.put_off(end.instance, None)
            add_note(
                self._system.outbox,
                self._system.bindings,
                record,
                f"down-{end.instance}",
                given_up_text(record.name, reason),
                Press.BRING_UP,
                Press.ANEW,
            )
            edit_root(self._system.outbox, self._system.bindings, record)
        self._system.notify()

    def _put_off(self, end: End, by: timedelta | None) -> None:
        with failpoint(Failpoint.WATCH_PUT_OFF):
            due_at = None if by is None else self._system.clock.now() + by
            self._system.exit_ledger.put_off(end.instance, due_at)


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
            self._system.activities.put(replace(activity, because=why, remarks=what_failed_still(activity)))
            self._system.events.emit(
                "standing.stalled", level="warning", name=record.name, instance=record.instance_id, detail=why.text
            )


def _is_silent(record: SessionRecord, activity: Activity, now: datetime) -> bool:
    """Return whether a turn of the record's instance has told nothing for so long that its screen is looked at."""
    busy = activity.instance == record.instance_id and activity.state is ActivityState.BUSY
    return busy and not activity.between_turns and now - _last_sign(activity) >= STALLED / 2


def _last_sign(activity: Activity) -> datetime:
    return max(moment for moment in (activity.since, activity.last_report_at) if moment is not None)


_LOG = logging.getLogger(__name__)
_REST_SECONDS = 1.0
_STARTING_SECONDS = 0.05  #: between two looks at a session that is coming up
_ROUND_SECONDS = 15.0  #: between two looks at what changes slowly


class Supervisor:
    """Everything that it does to a session it does by the verbs, under the session's lock. Silence of tmux stops it."""

    def __init__(self, system: System, load: Callable[[], Settings], swept: Callable[[], bool] = lambda: True) -> None:
        self._system = system
        self._swept = swept
        self._restarts = Restarts(system)
        self._collector = Collector(system)
        self._stalls = Stalls(system)
        self._drift = Drift(system, load)
        self._round = Deadline(system.clock, 0)
        self._wake = threading.Event()

    def wake(self) -> None:
        """Look now: the end of a session was told. Callable from every thread."""
        self._wake.set()

    def run(self, stopping: threading.Event) -> None:
        """Supervise until told to stop; trouble with the state on the disk is told and looked at again."""
        while not stopping.is_set():
            rest = _REST_SECONDS
            try:
                rest = self.turn()
            except CoreError as error:
                _LOG.warning("cannot supervise", extra={"reason": str(error)})
            self._wake.wait(rest)
            self._wake.clear()

    def turn(self) -> float:
        """Do what is due now, and return the seconds until the next look. Raises CoreError."""
        if not self._swept():
            return _REST_SECONDS  # the boot's sweep brings back what it may; what it leaves is ours
        due = self._restarts.next_due()
        if self._restarts.under_way or (due is not None and not due):
            self._restarts.turn({record.instance_id or "": record for record in self._records()})
        if self._round.passed():
            self._go_round()
        return self._rest()

    def _rest(self) -> float:
        if self._restarts.under_way:
            return _STARTING_SECONDS
        due = self._restarts.next_due()
        waits = [timedelta(seconds=_REST_SECONDS), *([due] if due is not None else [])]
        return min(waits).total_seconds()

    def _go_round(self) -> None:
        survey, seconds = self._survey(), _ROUND_SECONDS
        if survey is not None:
            records = self._records()
            wait = self._collector.turn(records, survey)
            self._stalls.turn(records, survey)
            if wait is not None:
                seconds = min(max(wait.total_seconds(), 0.0), seconds)
        self._drift.turn()
        self._round = Deadline(self._system.clock, seconds)

    def _survey(self) -> Survey | None:
        try:
            return self._system.runner.survey()
        except (TmuxSilent, TmuxMissing):
            return None

    def _records(self) -> list[SessionRecord]:
        return [entry for entry in self._system.records.all() if isinstance(entry, SessionRecord) and entry.instance_id]
