"""Makes a claimed run a row of the inbox: there the gate decides. Row, run and next slot move in one transaction."""

from core.commands import exact_for
from core.domain.fates import stopped
from core.domain.gate import HoldState, hold_state
from core.domain.loop import Loop, LoopRun, LoopStatus, Mode, RunState, run_key
from core.domain.message import Kind, NewMessage
from core.domain.schedule import expires_at, following_slot
from core.domain.session import SessionRecord
from core.domain.tick import Means, commands, compose_tick, tools
from core.effects import Effect, effect
from core.loops.applying import apply, close_run
from core.names import new_marker, new_message_id
from core.sight.situations import has_tools
from core.system import System

DELETED = "its session was deleted"
WHO = "the-loop"


def send(system: System, claimed: Loop, run: LoopRun) -> bool:
    """Commit the tick of a run that this process has claimed, and tell whether it did.

    A claim that another took over since sends nothing here, and a loop that fires no more ends its run. Raises
    StoreBroken, RecordUnreadable: then the claim lapses, and whoever takes it sends the run under the same id.
    """
    record = system.records.read(claimed.name)
    with effect(Effect.LOOP_SEND), system.database.transaction(durable=True):
        loop, now = system.loops.get(claimed.id), system.clock.now()
        if loop is None or loop.status is not LoopStatus.ACTIVE or loop.held is not None:
            close_run(system, run, "lapsed", "the loop fires no more")
            return False
        if record is None or record.uid != loop.uid or hold_state(record) is HoldState.DELETING:
            close_run(system, run, "cancelled", DELETED)
            apply(system, loop, stopped(loop, DELETED, now))
            return False
        expires = expires_at(loop, system.settings.loops.max_age)
        last = expires is not None and now >= expires
        message = _message(system, loop, run, record, last=last)
        if system.loops.move_run(run, state=RunState.SENT, message_id=message.id, last=last) is None:
            return False
        system.inbox.add([message])
        if loop.mode is not Mode.DYNAMIC:
            system.loops.change(loop, next_run_at=following_slot(loop, run.slot, now))
        return True


def _message(system: System, loop: Loop, run: LoopRun, record: SessionRecord, *, last: bool) -> NewMessage:
    """Return the tick. Ticks of a session are taken in turns: the loop that was delivered least recently first."""
    turn = loop.last_run_at.timestamp() if loop.last_run_at is not None else 0.0
    return NewMessage(
        id=new_message_id(),
        key=run_key(run.id),
        uid=loop.uid,
        name=record.name,
        generation=record.generation,
        kind=Kind.KEEP_ALIVE_TICK if loop.keep_alive else Kind.TICK,
        actor=f"loop:{loop.id}",
        who=WHO,
        via="",
        marker=new_marker(),
        text=compose_tick(loop, loop.run_count + 1, _means(system, record, loop), last=last),
        raw=False,
        order_us=int(turn * 1_000_000),
        created_at=system.clock.now(),
        run=run.id,
    )


def _means(system: System, record: SessionRecord, loop: Loop) -> Means:
    """Return the tools where the session's agent was given them at its start, else commands."""
    if has_tools(system, record):
        return tools(loop.id)
    named = commands(loop.id)
    return Means(exact_for(system, named.stop), exact_for(system, named.schedule))
