"""Write down what became of messages: the row, the note to the sender, the event."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from core.base.errors import Refused
from core.base.failpoints import Failpoint, failpoint
from core.model.delivering import Settle
from core.model.message import MESSAGES, InboxRow, MessageState
from core.model.reasons import Because, Reason, text_of
from core.session.notes import note_for
from core.session.system import System

if TYPE_CHECKING:
    from core.store.eventlog import Fields


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


def _told(row: InboxRow, because: Because | None) -> Fields:
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
