"""Apply the gate to loops' ticks that wait: one goes in now, later, or not at all.

Callers hold the session's lock and are about to paste.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from core.base.errors import Refused
from core.base.failpoints import Failpoint, failpoint
from core.delivery.snapshot import Looker, Sight
from core.loops.transitions import apply, close_run
from core.model import loop_transitions
from core.model.activity import Activity
from core.model.gate import Action, HoldState, Observed, hold_state, wake_of
from core.model.loop import Held, Loop, LoopRun, LoopStatus, RunState
from core.model.loop_transitions import Fate
from core.model.message import TICKS, WAITING, InboxRow, MessageState
from core.model.reasons import Because, Reason
from core.model.restarting import is_crash
from core.model.session import LastExit, Phase, SessionRecord, Status
from core.session.sessions import restart_due
from core.session.system import System


class Gatekeeper:
    """Sees to the ticks among a session's rows. A person's message never waits for one."""

    def __init__(self, system: System, looker: Looker) -> None:
        self._system = system
        self._looker = looker

    @staticmethod
    def waits(row: InboxRow) -> bool:
        """Return whether the row is a tick that waits; behind it are ticks alone."""
        return row.message.kind in TICKS and row.state in WAITING

    def admit(self, rows: Sequence[InboxRow], record: SessionRecord, sight: Sight) -> tuple[InboxRow, ...]:
        """Return the rows without the ticks that may not go in now, each of which was seen to.

        Raises Refused if another process has moved one of them meanwhile.
        """
        return tuple(row for row in rows if not self.waits(row) or self._goes(row, record, sight))

    def _goes(self, row: InboxRow, record: SessionRecord, sight: Sight) -> bool:
        run = self._system.loops.run(row.message.run)
        loop = self._system.loops.get(run.loop_id) if run is not None else None
        void = _why_void(row, record, run, loop)
        if void is not None or run is None or loop is None:
            why = void or Because(Reason.RUN_OVER)
            self._drop(row, run, why, again=loop is not None and loop.held is not None)
            return False
        decision = self._looker.gate(wake_of(row.message.kind), sight, record.name, record)
        match decision.action:
            case Action.DELIVER:
                return self._has_an_edge(loop, run, record)
            case Action.DELIVER_PACED:
                return self._is_paced(loop, run)
            case Action.DEFER:
                self._defer(row, run, decision.because, counted=True)
            case Action.HOLD if _comes_up(record):
                self._defer(row, run, decision.because, counted=False)
            case Action.HOLD:
                paused = hold_state(record) is HoldState.PAUSED and sight.observed is not Observed.FOREIGN
                self._hold(row, run, Held.PAUSED if paused else Held.STOPPED, decision.because)
            case Action.FAIL | Action.REARM:
                keeps = decision.action is Action.REARM
                self._not_there(row, run, record, _exit(record, sight), decision.because, keeps=keeps)
            case Action.DROP:
                self._drop(row, run, decision.because)
            case other:
                raise ValueError(f"the gate has no {other} for a tick")
        return False

    # ------------------------------------------------------------ one after the other

    def _has_an_edge(self, loop: Loop, run: LoopRun, record: SessionRecord) -> bool:
        """Return whether the session became idle after the latest tick was delivered to it: one goes in each time.

        A tick that no turn has taken brings no such edge; then the next waits for its own pace.
        """
        latest = self._latest(run)
        activity = self._system.activities.get(record.uid)
        if latest is None or activity is None or _idle_since(activity, record) > latest:
            return True
        return self._system.clock.now() >= latest + self._pace(loop)

    def _is_paced(self, loop: Loop, run: LoopRun) -> bool:
        """Return whether a tick may go into a session of which nobody can tell what it does."""
        now, latest = self._system.clock.now(), self._latest(run)
        own = _past(loop.last_run_at, now)
        if latest is not None and now < latest + self._system.settings.loops.min_interval:
            return False
        return own is None or now >= own + self._pace(loop)

    def _pace(self, loop: Loop) -> timedelta:
        """Return how far apart two runs of the loop are where nobody can tell if the first one's turn is over."""
        return loop.interval if loop.interval is not None else self._system.settings.loops.min_interval

    def _latest(self, run: LoopRun) -> datetime | None:
        """Return when a tick was last delivered to the session, settled or not."""
        loops, now = self._system.loops, self._system.clock.now()
        moments = [loop.last_run_at for loop in loops.of_session(run.uid)]
        for other in loops.open_runs(run.uid):
            row = self._system.inbox.get(other.message_id) if other.id != run.id and other.message_id else None
            moments.append(row.submitted_at if row is not None else None)
        return max((moment for moment in (_past(each, now) for each in moments) if moment is not None), default=None)

    # ------------------------------------------------------------ what does not go in

    def _defer(self, row: InboxRow, run: LoopRun, because: Because, *, counted: bool) -> None:
        """Let the tick wait for the session; that is counted once a run, and nobody is bothered."""
        if row.state is MessageState.QUEUED and row.because == because:
            return
        with failpoint(Failpoint.LOOP_GATE), self._system.database.transaction(durable=False):
            self._system.inbox.advance(row, MessageState.QUEUED, because)
            loop = self._system.loops.get(run.loop_id)
            if not counted or run.deferred or loop is None:
                return
            self._system.loops.move_run(run, deferred=True)
            apply(self._system, loop, loop_transitions.deferred(loop, because.text), message=row.message.id)

    def _hold(self, row: InboxRow, run: LoopRun, kind: Held, because: Because) -> None:
        fate = loop_transitions.held(kind, because.text, self._system.clock.now())
        self._end(row, run, MessageState.CANCELLED, "held", because, fate)

    def _not_there(
        self,
        row: InboxRow,
        run: LoopRun,
        record: SessionRecord,
        exited: LastExit | None,
        because: Because,
        *,
        keeps: bool,
    ) -> None:
        """See to a tick whose session's program has ended: by a person, or else once it was looked into."""
        end = self._system.exit_ledger.end(record.instance_id or "")
        by_person = end is not None and end.by_person
        if not by_person and (end is None or end.told_at is None):
            self._defer(row, run, because, counted=False)
        elif not is_crash(exited, by_person=by_person):
            self._hold(row, run, Held.STOPPED, Because(Reason.LEFT_BY_PERSON))
        elif keeps and (
            restart_due(self._system.settings, self._system.exit_ledger, self._system.loops, record)
            or self._system.bring_back(record)
        ):
            self._defer(row, run, because, counted=False)
        else:
            self._fail(row, run, because)

    def _fail(self, row: InboxRow, run: LoopRun, because: Because) -> None:
        loop = self._system.loops.get(run.loop_id)
        if loop is not None:
            now, most_age = self._system.clock.now(), self._system.settings.loops.max_age
            fate = loop_transitions.failed(loop, run, because.text, now, most_age)
            self._end(row, run, MessageState.FAILED, loop_transitions.FAILED, because, fate)

    def _drop(self, row: InboxRow, run: LoopRun | None, because: Because, *, again: bool = False) -> None:
        """End a tick that counts for nothing; `again`: its loop is held, and makes up for it when that is over."""
        fate = Fate({"next_run_at": run.slot}) if again and run is not None else None
        self._end(row, run, MessageState.CANCELLED, "cancelled", because, fate)

    def _end(
        self, row: InboxRow, run: LoopRun | None, state: MessageState, outcome: str, because: Because, fate: Fate | None
    ) -> None:
        """End the tick, its run and what follows for the loop, all or nothing."""
        system = self._system
        with failpoint(Failpoint.LOOP_GATE), system.database.transaction(durable=True):
            system.inbox.advance(row, state, because)
            if run is None or run.state is RunState.OVER:
                return
            if not close_run(system.loops, run, outcome, because.text):
                raise Refused(f"run {run.id} has moved on", "look at it again: `the-loop loop list`")
            loop = system.loops.get(run.loop_id)
            if fate is not None and loop is not None:
                apply(system, loop, fate, message=row.message.id)


def _past(moment: datetime | None, now: datetime) -> datetime | None:
    """Return a moment that has been; one that lies ahead is by a clock that was set back since, and paces nothing."""
    return moment if moment is not None and moment <= now else None


def _exit(record: SessionRecord, sight: Sight) -> LastExit | None:
    """Return how the record's instance ended, by its own dead pane: the record may still tell of an earlier one."""
    pane = sight.survey.of_instance(record.instance_id or "") if sight.survey is not None else None
    return pane.exit if pane is not None else None


def _comes_up(record: SessionRecord) -> bool:
    """Return whether the session is being restarted: it is down between the two halves, and holds nothing."""
    return record.phase is Phase.STOPPING and record.status is Status.RUNNING and record.hold is None


def _why_void(row: InboxRow, record: SessionRecord, run: LoopRun | None, loop: Loop | None) -> Because | None:
    """Return why the tick counts for nothing any more, None where it counts."""
    if run is None or loop is None or run.message_id != row.message.id or run.state is not RunState.SENT:
        return Because(Reason.RUN_OVER)
    if row.message.generation < record.generation:
        return Because(Reason.OVERTAKEN)
    if loop.status is not LoopStatus.ACTIVE:
        return Because(Reason.LOOP_IS, {"status": loop.status.value})
    return Because(Reason.LOOP_HELD, {"held": loop.held.value}) if loop.held is not None else None


def _idle_since(activity: Activity, record: SessionRecord) -> datetime:
    """Return since when the record's instance is idle; one that was just started is since then."""
    started = record.started_at or record.created_at
    return activity.since if activity.instance == record.instance_id else started
