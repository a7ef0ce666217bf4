"""Write down what became of messages: the row, the note to the sender, the event.

A harness may hold messages in a queue of its own, which would begin another turn after a pause. No hook reports this
(Claude Code 2.1.332). A key moves the whole queue into the input line, the harness's own record names each text that
came back, and then the line is emptied. The same record confirms what a turn has taken meanwhile.

`Gatekeeper` applies the gate to ticks that wait: one goes in now, waits, or ends and holds its loop. Callers hold the
session's lock and are about to paste.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from core.base.clock import Deadline
from core.base.errors import Refused
from core.base.failpoints import Failpoint, failpoint
from core.base.files import is_file
from core.base.values import dataclass
from core.delivery.evidence import take_in
from core.delivery.screens import AGAIN, Screens
from core.delivery.snapshot import Looker, Sight, probe_of
from core.loops.transitions import apply, close_run
from core.model import loop_transitions
from core.model.activity import ASKING_STATES, Activity
from core.model.delivering import TYPING_QUIET, Settle
from core.model.gate import Action, HoldState, Observed, hold_state, wake_of
from core.model.harness import Traits
from core.model.loop import Held, Loop, LoopRun, LoopStatus, RunState
from core.model.loop_transitions import Fate
from core.model.message import MESSAGES, TICKS, WAITING, InboxRow, MessageState
from core.model.pane import Pane, Receipt, Survey, Written, interrupt_token
from core.model.reasons import Because, Reason, text_of
from core.model.restarting import is_crash
from core.model.session import LastExit, Phase, SessionRecord, Status
from core.model.texts import text
from core.session.folder import ASKING, context_of
from core.session.notes import note_for
from core.session.sessions import resolve_record, restart_due, traits_of
from core.session.system import System

if TYPE_CHECKING:
    from core.model.harness import Transcript


_EVENTS = {
    MessageState.CONFIRMED: "standing.confirmed",
    MessageState.REFUSED: "standing.refused",
    MessageState.EXPIRED: "standing.refused",
    MessageState.CANCELLED: "standing.refused",
    MessageState.FAILED: "standing.refused",
    MessageState.UNKNOWN: "standing.unconfirmed",
    MessageState.SUBMITTED: "standing.unconfirmed",
}


class Recorder:
    """Moves rows on; raises Refused, and tells nothing, where another process has done so meanwhile.

    But for what is on the panes: evidence may be faster than its receipt, and then that is what stands.
    """

    def __init__(self, system: System) -> None:
        self._system = system

    def claim(self, row: InboxRow, instance: str, deadline: datetime) -> InboxRow:
        """An attempt begins, which the server refuses after `deadline`. Part of the open transaction."""
        return self._system.inbox.advance(
            row,
            MessageState.CLAIMED,
            instance=instance,
            attempt=row.attempt + 1,
            attempt_deadline=deadline,
            pasted_at=None,
            submitted_at=None,
            submits=0,
            queued_at=None,
        )

    def pasted(self, rows: Sequence[InboxRow]) -> None:
        """The receipts of their pastes are on the panes."""
        now = self._system.clock.now()
        with failpoint(Failpoint.DELIVERY_PASTED), self._system.database.transaction(durable=False):
            for row in rows:
                with suppress(Refused):  # the harness's records were faster
                    self._system.inbox.advance(row, MessageState.PASTED, row.because, pasted_at=now)

    def submitted(self, row: InboxRow, number: int, *, final: bool) -> None:
        """The receipt of its Enter is on the pane. `final`: nothing will ever prove more."""
        self.entered([(row, final)], number)

    def entered(self, rows: Sequence[tuple[InboxRow, bool]], number: int) -> None:
        """The receipts of their Enters are on the panes; with each row whether that is all that will be known."""
        moved: list[InboxRow] = []
        with failpoint(Failpoint.DELIVERY_SUBMITTED), self._system.database.transaction(durable=False):
            for row, final in rows:
                with suppress(Refused):  # the harness's records were faster
                    after = self._entered(row, number, final=final)
                    moved += [after] if final else []
        for row in moved:
            self.tell(row, MessageState.SUBMITTED, Because(Reason.UNPROVEN))

    def _entered(self, row: InboxRow, number: int, *, final: bool) -> InboxRow:
        now = self._system.clock.now()
        at = row.pasted_at or now
        after = self._system.inbox.advance(
            row, MessageState.SUBMITTED, pasted_at=at, submitted_at=now, submits=number, final=final
        )
        if final and row.message.kind in MESSAGES:
            self._system.activities.touch_message(row.message.uid, now)
        return after

    def settle(self, row: InboxRow, settle: Settle) -> None:
        """The row is over."""
        changes = {"final": True} if settle.state is MessageState.SUBMITTED else {}
        with failpoint(Failpoint.DELIVERY_SETTLE), self._system.database.transaction(durable=False):
            moved = self._system.inbox.advance(row, settle.state, settle.because, **changes)
            if settle.note:
                self._note(moved, settle.state, settle.because, settle.remedy)
        self.tell(moved, settle.state, settle.because)

    def wait(self, row: InboxRow, because: Because, remedy: str, *, note: bool) -> None:
        """The row waits for what the reason says; nothing is written where that is known."""
        if row.state is MessageState.QUEUED and row.because == because:
            return
        with failpoint(Failpoint.DELIVERY_SETTLE), self._system.database.transaction(durable=False):
            moved = self._system.inbox.advance(row, MessageState.QUEUED, because)
            if note:
                self._note(moved, MessageState.QUEUED, because, remedy)
        self._emit("standing.queued", moved, because)

    def move(self, row: InboxRow, state: MessageState, because: Because | None) -> None:
        """The row is in that state; nobody is told."""
        with failpoint(Failpoint.DELIVERY_SETTLE):
            self._system.inbox.advance(row, state, because)

    def tell(self, row: InboxRow, state: MessageState, because: Because | None) -> None:
        """Emit the event of a row that reached that state."""
        self._emit(_EVENTS[state], row, because)

    def _note(self, row: InboxRow, state: MessageState, because: Because, remedy: str) -> None:
        post = note_for(self._system, row, state, because, remedy)
        if post is not None:
            self._system.outbox.add([post])
            self._system.notify()

    def _emit(self, event: str, row: InboxRow, because: Because | None) -> None:
        self._system.events.emit(
            event,
            name=row.message.name,
            actor=row.message.actor,
            reason=text_of(because),
            detail=row.state,
            instance=row.instance,
            generation=row.message.generation,
            message=row.message.id,
        )


_TOLD_SECONDS = 2.0  #: its record names what came back 0.15 s after the key; a busy machine needs more
_POLL_SECONDS = 0.05
_BURST_SECONDS = 0.15  #: more than some sixty keys in one read are taken for a paste (Claude Code 2.1.197 to 2.1.332)
_MOST_BURSTS = 20


@dataclass(frozen=True)
class Left:
    """What is in the harness's own queue still, and why; nothing: `count` is 0."""

    count: int
    why: str = ""


def held_by_harness(system: System, record: SessionRecord) -> tuple[InboxRow, ...]:
    """Return the messages that the live instance's own queue is known to hold. Raises StoreBroken."""
    rows = system.inbox.with_states(record.uid, {MessageState.ACCEPTED})
    return tuple(row for row in rows if row.instance == record.instance_id and row.queued_at is not None)


def take_back(system: System, record: SessionRecord, survey: Survey) -> Left:
    """Move what the harness's own queue holds back into ours, and return what is left there. Needs the lock.

    Nothing is pressed while a dialog is open, which would act on the key, nor into half-typed text, which would join.
    Raises StoreBroken, TmuxSilent.
    """
    rows = held_by_harness(system, record)
    pane = survey.of_instance(record.instance_id or "")
    if not rows or pane is None or pane.dead:
        return Left(0)
    traits = traits_of(system, record)
    if traits.take_back is None or traits.clear is None:
        return Left(len(rows), text(Reason.NO_KEY))
    obstacle = _obstacle(system, record, pane, survey)
    if obstacle is not None:
        return Left(len(rows), text(obstacle))
    transcript = _transcript(system, record)
    at = system.clock.now()
    deadline = at + timedelta(seconds=system.settings.routing.tmux.command_timeout_seconds)
    left = _await(system, record, transcript, 0.0)  # a crash may have come between the key and this
    if left and _is_filled(system, record):
        return Left(left, text(Reason.HALF_TYPED))
    if left:
        with failpoint(Failpoint.TAKE_BACK_KEY):
            key, token = traits.take_back, interrupt_token(at)
            written = system.runner.write(pane.tag, key, Receipt.INTERRUPTED, token, deadline)
        if written is not Written.DONE:
            return Left(left, text(Reason.KEY_NOT_WRITTEN, written=written.value))
        left = _await(system, record, transcript, _TOLD_SECONDS)
    with failpoint(Failpoint.TAKE_BACK_CLEAR):  # the key's receipt lets the next delivery do so again
        clear_line(system, pane.tag, traits, rows, f"back-{rows[0].token}", deadline)
    return Left(left, text(Reason.UNTOLD) if left else "")


def _obstacle(system: System, record: SessionRecord, pane: Pane, survey: Survey) -> Reason | None:
    """Return why no key may be pressed now, None where one may."""
    opinion = probe_of(system, record, pane.pid)
    asks = opinion is not None and opinion.state in ASKING_STATES
    if asks or is_file(system.paths.session(record.uid) / ASKING):
        return Reason.DIALOG_OPEN
    screens = Screens(system)
    seen = screens.before_keys(record)
    if seen is not None and screens.is_obstacle(record, seen[0]):
        return Reason.NO_INPUT_LINE
    now, activity = system.clock.now(), system.activities.get(record.uid)
    began = activity.turn_started_at if activity is not None else None
    keys = [client.last_key_at for client in survey.typing.get(pane.tag, ())]
    if any(now < key + TYPING_QUIET or began is None or key > began for key in keys):
        return Reason.HALF_TYPED
    return None


def _is_filled(system: System, record: SessionRecord) -> bool:
    """Return whether text stands in the input line on two looks, whoever left it: one screen may be behind."""
    screens = Screens(system)
    for pause in (0.0, AGAIN.total_seconds()):
        system.clock.pause(pause)
        seen = screens.before_keys(record)
        if seen is None or seen[0].line is None or not seen[0].line.text:
            return False
    return True


def _transcript(system: System, record: SessionRecord) -> Transcript | None:
    resolved = resolve_record(record, system.settings)
    context = context_of(system.paths, record, resolved, record.instance_id or "")
    return system.harnesses.get(resolved.harness).transcript(context, from_start=True)


def _await(system: System, record: SessionRecord, transcript: Transcript | None, seconds: float) -> int:
    """Read for so long what its record says of each message, and return how many it says nothing of."""
    deadline = Deadline(system.clock, seconds)
    while True:
        events = transcript.new_events() if transcript is not None else ()
        with suppress(Refused):  # another process has read the same
            take_in(system, record, events)
        left = len(held_by_harness(system, record))
        if not left or deadline.passed():
            return left
        system.clock.pause(_POLL_SECONDS)


def clear_line(
    system: System, instance: str, traits: Traits, rows: Sequence[InboxRow], token: str, deadline: datetime
) -> None:
    """Press the keys that empty the input line, as often as these messages have lines. Raises TmuxSilent.

    Up to three seconds, for four hundred lines; the server refuses what comes after `deadline`.
    """
    for burst in range(bursts_for(traits, rows)):
        if burst:
            system.clock.pause(_BURST_SECONDS)
        if system.runner.write(instance, traits.clear or b"", Receipt.CLEARED, token, deadline) is not Written.DONE:
            return


def bursts_for(traits: Traits, rows: Sequence[InboxRow]) -> int:
    """Return how many times the keys are pressed that empty an input line with these messages in it."""
    lines = sum(row.message.text.count("\n") + 1 for row in rows)
    return max(1, min(_MOST_BURSTS, -(-lines // traits.clear_lines)))


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
        elif keeps and (restart_due(self._system, record) or self._system.bring_back(record)):
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
            if not close_run(system, run, outcome, because.text):
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
