"""Store what became of a loop and tell of it. Event, note and change commit together or not at all.

- The end of a loop, whatever caused it: its state, what waits of it, an event and a note.
- Holds: a stopped session keeps its loops from firing. A hold ends when its cause is found to be gone, so whoever
  removes the cause need not know of loops, and may be killed.
- What is told: an event in the log, and one note in the session's thread for what a person must know.
- A claimed run becomes an inbox row, and the gate decides there. Row, run and next slot move in one transaction.
"""

from datetime import datetime
from typing import Any

from core.base.errors import CoreError, RecordUnreadable, Refused
from core.base.failpoints import Failpoint, failpoint
from core.base.loggers import logger
from core.base.names import new_marker, new_message_id
from core.model import loop_transitions
from core.model.gate import HoldState, hold_state
from core.model.loop import (
    OPEN,
    Held,
    Loop,
    LoopRun,
    LoopStatus,
    Means,
    Mode,
    RunState,
    commands,
    compose_tick,
    expires_at,
    following_slot,
    replanned_slot,
    run_key,
    tools,
)
from core.model.loop_transitions import Fate, stopped
from core.model.message import WAITING, Kind, MessageState, NewMessage
from core.model.reasons import Because, Reason
from core.model.session import Phase, SessionRecord, Status
from core.session.commands import exact_for
from core.session.sessions import apart, has_thread, has_tools
from core.session.system import System
from core.store.eventlog import EventLog
from core.store.inbox import Inbox
from core.store.loops import Loops

_SHOWN = 80  #: characters of an instruction in a note


def tell(
    events: EventLog,
    event: str,
    loop: Loop,
    *,
    actor: str | None = None,
    reason: str = "",
    level: str = "info",
    message: str | None = None,
    detail: str = "",
) -> None:
    """Write an event about a loop; `detail` begins with its id."""
    events.emit(
        event,
        level=level,
        name=loop.name,
        actor=actor,
        reason=reason or None,
        detail=f"{loop.id}: {detail}" if detail else loop.id,
        message=message,
    )


def note(system: System, loop: Loop, what: str, text: str) -> None:
    """Commit a note about the loop to its session's thread, if that has one. Part of the open transaction.

    `what` makes its key, so that each thing is told once: `stopped`, `held-<time>`. `text` follows the loop's name and
    is a sentence without its end: `was stopped by cli:ann: enough`.
    """
    try:
        record = system.records.read(loop.name)
    except RecordUnreadable:
        return
    if record is None or record.uid != loop.uid or not has_thread(system.settings, system.bindings, record):
        return
    from core.model.posts import OWN_CHAT, NewPost, OutboundKind

    key = f"loop-{loop.id}-{what}"
    post = NewPost(
        id=f"p-{key}",
        key=key,
        kind=OutboundKind.NOTE,
        uid=loop.uid,
        name=loop.name,
        channel_kind=OWN_CHAT,
        text=f"Loop `{loop.id}` ({summary(loop)}) {text}.",
    )
    system.outbox.add([post])


def summary(loop: Loop) -> str:
    """Return the beginning of the loop's instruction in one line, quoted."""
    line = " ".join(loop.instruction.split())
    return f'"{line}"' if len(line) <= _SHOWN else f'"{line[: _SHOWN - 1]}…"'


def runs_text(count: int) -> str:
    """Return how often a loop has run, as a sentence without its end."""
    return f"it has run {'once' if count == 1 else f'{count} times'}" if count else "it has never run"


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
        cancel_runs(system.inbox, system.loops, ended, Because(_REASONS[event]))
        if noted:
            told = f"{_WORDS[event]} by {actor}: {reason}; {runs_text(ended.run_count)}"
            note(system, ended, event.removeprefix("loop."), told)
    tell(system.events, event, ended, actor=actor, reason=reason)
    system.notify()
    return ended


def cancel_runs(inbox: Inbox, loops: Loops, loop: Loop, because: Because) -> None:
    """Cancel what waits of the loop. Part of the open transaction.

    A run whose tick is on its way is left to be settled by its row: it goes in, or not, and counts.
    """
    for run in loops.open_runs(loop.uid):
        if run.loop_id == loop.id:
            _cancel(inbox, loops, run, because)


def _cancel(inbox: Inbox, loops: Loops, run: LoopRun, because: Because) -> None:
    if run.state is RunState.TAKEN:
        loops.move_run(run, state=RunState.OVER, outcome=run.outcome)
        return
    if run.state is RunState.SENT:
        row = inbox.get(run.message_id)
        if row is not None and row.state not in WAITING:
            return
        if row is not None:
            inbox.advance(row, MessageState.CANCELLED, because)
    loops.move_run(run, state=RunState.OVER, outcome="cancelled", detail=because.text)


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
        cancel_runs(system.inbox, system.loops, changed, Because(Reason.LOOP_ENDED, {"why": fate.reason}))
    if fate.note:
        what = changed.status.value if over else f"held-{changed.revision}"
        count = runs_text(changed.run_count) if over else ""
        note(system, changed, what, fate.note if count in fate.note else f"{fate.note}; {count}")
        system.notify()
    if fate.event is not None:
        level = "warning" if fate.event.value in _WARNINGS else "info"
        tell(system.events, fate.event.value, changed, actor=actor, reason=fate.reason, level=level, message=message)
    return changed


def close_run(loops: Loops, run: LoopRun, outcome: str, detail: str = "") -> bool:
    """Note that the run is over; False if somebody else has moved it. Part of the open transaction."""
    return loops.move_run(run, state=RunState.OVER, outcome=outcome, detail=detail) is not None


DELETED = "its session was deleted"
WHO = "the-loop"


def send(system: System, claimed: Loop, run: LoopRun) -> bool:
    """Commit the tick of a run that this process has claimed, and tell whether it did.

    A claim that another took over since sends nothing here, and a loop that fires no more ends its run. Raises
    StoreBroken, RecordUnreadable: then the claim lapses, and whoever takes it sends the run under the same id.
    """
    record = system.records.read(claimed.name)
    with failpoint(Failpoint.LOOP_SEND), system.database.transaction(durable=True):
        loop, now = system.loops.get(claimed.id), system.clock.now()
        if loop is None or loop.status is not LoopStatus.ACTIVE or loop.held is not None:
            close_run(system.loops, run, "lapsed", "the loop fires no more")
            return False
        if record is None or record.uid != loop.uid or hold_state(record) is HoldState.DELETING:
            close_run(system.loops, run, "cancelled", DELETED)
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
    if has_tools(system.settings, system.paths, system.harnesses, record):
        return tools(loop.id)
    named = commands(loop.id)
    return Means(
        exact_for(system.settings, system.environ, named.stop),
        exact_for(system.settings, system.environ, named.schedule),
    )


_LOG = logger(__name__)


def hold_with_session(system: System, record: SessionRecord, reason: str) -> None:
    """Hold the loops of a session that is stopped by name, with its queue. Part of the open transaction.

    One that is held for its failures stays so: only a person lets it go on.
    """
    now = system.clock.now()
    for run in system.loops.open_runs(record.uid):
        if run.state is RunState.CLAIMED:
            close_run(system.loops, run, "held", reason)
    for loop in system.loops.of_session(record.uid):
        if loop.status is LoopStatus.ACTIVE and loop.held not in (Held.STOPPED, Held.FAILURES):
            apply(system, loop, loop_transitions.held(Held.STOPPED, reason, now))


def end_with_session(system: System, record: SessionRecord, actor: str) -> None:
    """End the loops of a session that is deleted. Part of the open transaction; done again it finds none."""
    for loop in system.loops.of_session(record.uid):
        if loop.status in OPEN:
            apply(system, loop, loop_transitions.stopped(loop, DELETED, system.clock.now()), actor=actor)


def release_loops(system: System) -> None:
    """Let go on whatever nothing keeps any more. Reads the records of held loops alone. Raises StoreBroken."""
    records: dict[str, SessionRecord | None] = {}
    for loop in system.loops.held():
        try:
            with apart(system.events, loop.name):
                if loop.name not in records:
                    records[loop.name] = system.records.read(loop.name)
                _look(system, loop, records[loop.name])
        except CoreError as error:
            _LOG.warning("held loop passed over", extra={"loop": loop.id, "reason": str(error)})


def _look(system: System, loop: Loop, record: SessionRecord | None) -> None:
    now = system.clock.now()
    if record is None or record.uid != loop.uid:
        _store(system, loop, loop_transitions.stopped(loop, DELETED, now))
    elif why := _why_over(loop, record, now):
        _store(system, loop, loop_transitions.resumed(loop, why, now))


def _why_over(loop: Loop, record: SessionRecord, now: datetime) -> str:
    """Return why the hold is over, "" while it is not."""
    mark = hold_state(record)
    if loop.held is Held.PAUSED and mark is not HoldState.PAUSED:
        return "its session is not paused any more"
    if loop.held is Held.USAGE_LIMIT and loop.held_until is not None and (loop.held_until <= now or _ahead(loop, now)):
        return "the usage limit may be over"
    return "its session was started" if loop.held is Held.STOPPED and _runs_again(loop, record, now) else ""


def _runs_again(loop: Loop, record: SessionRecord, now: datetime) -> bool:
    """Return whether the session was started since the hold began, and nothing keeps it from working."""
    up = record.status is Status.RUNNING and record.phase is Phase.SETTLED and record.hold is None
    started = record.started_at
    return up and started is not None and (loop.held_at is None or started > loop.held_at or _ahead(loop, now))


def _ahead(loop: Loop, now: datetime) -> bool:
    """Return whether the hold began by a clock that was set back since, so that no time of now says when it is over."""
    return loop.held_at is not None and loop.held_at > now


def look_at_ages(system: System) -> None:
    """End the ordinary loops that have grown too old while they do not fire: the others fire once more first.

    Those that fire are planned anew where the clock was set back since.
    """
    for loop in system.loops.all_open():
        try:
            with apart(system.events, loop.name):
                _look_at_age(system, loop)
        except CoreError as error:
            _LOG.warning("loop passed over", extra={"loop": loop.id, "reason": str(error)})


def _look_at_age(system: System, loop: Loop) -> None:
    age, now = system.settings.loops.max_age, system.clock.now()
    expires = expires_at(loop, age)
    fires = loop.status is LoopStatus.ACTIVE and loop.held is None
    if age is not None and expires is not None and now >= expires and not fires:
        _store(system, loop, loop_transitions.expired(loop, age, now), Failpoint.LOOP_EXPIRE)
    elif fires and (slot := replanned_slot(loop, now)) is not None and not _is_under_way(system.loops, loop):
        _store(system, loop, Fate({"next_run_at": slot}), Failpoint.LOOP_EXPIRE)


def _is_under_way(loops: Loops, loop: Loop) -> bool:
    """Return whether a run is on its way or in its turn: what becomes of it plans the next one."""
    return any(run.loop_id == loop.id for run in loops.open_runs(loop.uid))


def _store(system: System, seen: Loop, fate: Fate, name: Failpoint = Failpoint.LOOP_RELEASE) -> None:
    """Store it unless the loop has changed since it was looked at: the next look sees what it is then."""
    with failpoint(name), system.database.transaction(durable=True):
        loop = system.loops.get(seen.id)
        if loop is not None and loop.revision == seen.revision:
            apply(system, loop, fate)
