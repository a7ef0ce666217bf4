"""Write down what became of messages: the row, the note to the sender, the event.

A harness may hold messages in a queue of its own, which would begin another turn after a pause. No hook reports this
(Claude Code 2.1.332). A key moves the whole queue into the input line, the harness's own record names each text that
came back, and then the line is emptied. The same record confirms what a turn has taken meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from core.base.clock import Deadline
from core.base.errors import Refused
from core.base.failpoints import Failpoint, failpoint
from core.base.files import is_file
from core.base.values import dataclass
from core.delivery.evidence import take_in
from core.delivery.screens import AGAIN, Screens
from core.delivery.snapshot import probe_of
from core.model.activity import ASKING_STATES
from core.model.delivering import TYPING_QUIET, Settle
from core.model.harness import Traits
from core.model.message import MESSAGES, InboxRow, MessageState
from core.model.pane import Pane, Receipt, Survey, Written, interrupt_token
from core.model.reasons import Because, Reason, text_of
from core.model.session import SessionRecord
from core.model.texts import text
from core.session.folder import ASKING, context_of
from core.session.notes import note_for
from core.session.sessions import resolve_record, traits_of
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
        if moved:
            event, why = _EVENTS[MessageState.SUBMITTED], Because(Reason.UNPROVEN)
            self._system.events.emit_all([(event, _told(row, why)) for row in moved])

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
        self._system.events.emit_all([(event, _told(row, because))])


def _told(row: InboxRow, because: Because | None) -> dict[str, Any]:
    """Return what an event tells of the row."""
    return {
        "name": row.message.name,
        "actor": row.message.actor,
        "reason": text_of(because),
        "detail": row.state,
        "instance": row.instance,
        "generation": row.message.generation,
        "message": row.message.id,
    }


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
    traits = traits_of(system.settings, system.harnesses, record)
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
        written = _press_up(system, pane, traits, at, deadline)
        if written is not Written.DONE:
            return Left(left, text(Reason.KEY_NOT_WRITTEN, written=written.value))
        left = _await(system, record, transcript, _TOLD_SECONDS)
    with failpoint(Failpoint.TAKE_BACK_CLEAR):  # the key's receipt lets the next delivery do so again
        clear_line(system, pane.tag, traits, rows, f"back-{rows[0].token}", deadline)
    return Left(left, text(Reason.UNTOLD) if left else "")


def take_back_behind(system: System, record: SessionRecord, pane: Pane) -> Left:
    """Take the harness's own queue back right behind the key that has rejected a dialog. Needs the lock.

    Claude Code 2.1.332 begins a turn with it some 0.2 s after that key, and gives it back before; older versions have
    begun by then. Raises StoreBroken, TmuxSilent.
    """
    rows, traits = held_by_harness(system, record), traits_of(system.settings, system.harnesses, record)
    if not rows or traits.take_back is None or traits.clear is None:
        return Left(len(rows), text(Reason.NO_KEY) if rows else "")
    at = system.clock.now()
    deadline = at + timedelta(seconds=system.settings.routing.tmux.command_timeout_seconds)
    written = _press_up(system, pane, traits, at, deadline)
    if written is not Written.DONE:
        return Left(len(rows), text(Reason.KEY_NOT_WRITTEN, written=written.value))
    left = _await(system, record, _transcript(system, record), _TOLD_SECONDS)
    with failpoint(Failpoint.TAKE_BACK_CLEAR):
        clear_line(system, pane.tag, traits, rows, f"back-{rows[0].token}", deadline)
    return Left(left, text(Reason.UNTOLD) if left else "")


def _press_up(system: System, pane: Pane, traits: Traits, at: datetime, deadline: datetime) -> Written:
    with failpoint(Failpoint.TAKE_BACK_KEY):
        token = interrupt_token(at)
        return system.runner.write(pane.tag, traits.take_back or b"", Receipt.INTERRUPTED, token, deadline)


def read_on(system: System, record: SessionRecord) -> None:
    """Take in what the conversation's record tells of what the harness's own queue held. Raises StoreBroken."""
    _await(system, record, _transcript(system, record), 0.0)


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
) -> bool:
    """Press the keys that empty the input line, as often as these messages have lines, and tell whether all were.

    Raises TmuxSilent. Up to three seconds, for four hundred lines; the server refuses what comes after `deadline`.
    """
    for burst in range(bursts_for(traits, rows)):
        if burst:
            system.clock.pause(_BURST_SECONDS)
        if system.runner.write(instance, traits.clear or b"", Receipt.CLEARED, token, deadline) is not Written.DONE:
            return False
    return True


def bursts_for(traits: Traits, rows: Sequence[InboxRow]) -> int:
    """Return how many times the keys are pressed that empty an input line with these messages in it."""
    lines = sum(row.message.text.count("\n") + 1 for row in rows)
    return max(1, min(_MOST_BURSTS, -(-lines // traits.clear_lines)))
