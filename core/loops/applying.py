"""Stores what became of a loop, and tells of it: event and note commit with the change, or none of them does."""

from core.domain.fates import Fate
from core.domain.loop import OPEN, Loop, LoopRun, RunState
from core.domain.reasons import Because, Reason
from core.errors import Refused
from core.loops.ending import cancel_runs
from core.loops.telling import note, runs_text, tell
from core.system import System

_WARNINGS = frozenset({"loop.failed", "loop.held"})


def apply(system: System, loop: Loop, fate: Fate, *, message: str | None = None, actor: str | None = None) -> Loop:
    """Change the loop and tell of it; what waits of one that ends is cancelled. Part of the open transaction.

    The loop was read in it. The event is written before the transaction commits, so that none is lost. Raises Refused
    if another has changed the loop since it was read, StoreBroken.
    """
    changed = system.loops.change(loop, **fate.changes) if fate.changes else loop
    if changed is None:
        raise Refused(f"loop {loop.id} has changed meanwhile", "look at it again: `the-loop loop list`")
    over = changed.status not in OPEN
    if over:
        cancel_runs(system, changed, Because(Reason.LOOP_ENDED, {"why": fate.reason}))
    if fate.note:
        what = changed.status.value if over else f"held-{changed.revision}"
        count = runs_text(changed.run_count) if over else ""
        note(system, changed, what, fate.note if count in fate.note else f"{fate.note}; {count}")
        system.poke()
    if fate.event is not None:
        level = "warning" if fate.event.value in _WARNINGS else "info"
        tell(system, fate.event.value, changed, actor=actor, reason=fate.reason, level=level, message=message)
    return changed


def close_run(system: System, run: LoopRun, outcome: str, detail: str = "") -> bool:
    """Note that the run is over; False if somebody else has moved it. Part of the open transaction."""
    return system.loops.move_run(run, state=RunState.OVER, outcome=outcome, detail=detail) is not None
