"""The end of a loop, whoever brings it about: its state, what waits of it, an event and a note, together."""

from typing import Any

from core.domain.loop import Loop, LoopRun, LoopStatus, RunState
from core.domain.message import WAITING, MessageState
from core.domain.reasons import Because, Reason
from core.loops.telling import note, runs_text, tell
from core.system import System

_EVENTS = {LoopStatus.STOPPED: "loop.stopped", LoopStatus.COMPLETED: "loop.completed"}
_WORDS = {"loop.stopped": "was stopped", "loop.completed": "is complete", "loop.expired": "has expired"}
_REASONS = {
    "loop.stopped": Reason.LOOP_STOPPED,
    "loop.completed": Reason.LOOP_COMPLETED,
    "loop.expired": Reason.LOOP_EXPIRED,
}


def end_loop(
    system: System,
    loop: Loop,
    status: LoopStatus,
    reason: str,
    actor: str,
    *,
    event: str = "",
    noted: bool = True,
    **changes: Any,
) -> Loop | None:
    """End an open loop, cancel what waits of it, and tell; None, and no change, if it has changed since it was read.

    `reason` is a sentence without its end. `event` is another than its status has (`loop.expired`); `noted` False
    leaves the note out; `changes` are further fields of the loop. Raises StoreBroken.
    """
    event = event or _EVENTS[status]
    with system.database.transaction(durable=True):
        ending = {"status": status, "reason": reason, "ended_at": system.clock.now(), "next_run_at": None}
        ended = system.loops.change(loop, **{"held": None, "held_until": None, **ending, **changes})
        if ended is None:
            return None
        cancel_runs(system, ended, Because(_REASONS[event]))
        if noted:
            told = f"{_WORDS[event]} by {actor}: {reason}; {runs_text(ended.run_count)}"
            note(system, ended, event.removeprefix("loop."), told)
    tell(system, event, ended, actor=actor, reason=reason)
    system.poke()
    return ended


def cancel_runs(system: System, loop: Loop, because: Because) -> None:
    """Cancel what waits of the loop. Part of the open transaction.

    A run whose tick is on its way is left to be settled by its row: it goes in, or not, and counts.
    """
    for run in system.loops.open_runs(loop.uid):
        if run.loop_id == loop.id:
            _cancel(system, run, because)


def _cancel(system: System, run: LoopRun, because: Because) -> None:
    if run.state is RunState.TAKEN:
        system.loops.move_run(run, state=RunState.OVER, outcome="delivered")
        return
    if run.state is RunState.SENT:
        row = system.inbox.get(run.message_id)
        if row is not None and row.state not in WAITING:
            return
        if row is not None:
            system.inbox.advance(row, MessageState.CANCELLED, because)
    system.loops.move_run(run, state=RunState.OVER, outcome="cancelled", detail=because.text)
