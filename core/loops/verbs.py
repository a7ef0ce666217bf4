"""What people and agents may do with loops. Every surface calls these verbs and prints what they answer.

An agent has the loops of its own session and sees no others; an operator has all of them. An answer says what keeps a
loop from firing now, with what ends that.

Loops that the configuration declares are identified by session and name. A new entry becomes a loop. A changed entry
replaces its loop, with runs counted from zero. A removed entry ends its loop. A loop that has ended stays ended until
its entry changes: the loop keeps the entry's digest.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from core.base.clock import iso
from core.base.errors import BeingDeleted, CoreError, InvalidValue, OtherSession, RecordUnreadable, Refused, UnknownLoop
from core.base.failpoints import Failpoint, failpoint
from core.base.names import new_loop_id
from core.base.paths import StatePaths
from core.base.text import interval_text, moment_text, parse_delay, reason_of
from core.base.values import dataclass, replace
from core.config.settings import DeclaredLoop, Settings
from core.loops.transitions import cancel_runs, end_loop, summary, tell
from core.model.asking import Button, Press
from core.model.gate import HoldState, hold_state
from core.model.loop import (
    OPEN,
    Bounds,
    Held,
    Loop,
    LoopRequest,
    LoopStatus,
    Mode,
    Spec,
    cadence,
    first_slot,
    rearmed_slot,
    understood,
)
from core.model.posts import OWN_CHAT, NewPost, OutboundKind
from core.model.reasons import Because, Reason
from core.model.session import Phase, SessionRecord, Status
from core.process.presence import running_service
from core.session.sessions import definition_of
from core.session.system import System
from core.store.loops import Loops
from core.store.records import Records


@dataclass(frozen=True)
class LoopAnswer:
    """The loop that was asked about (None: a list), those of its session, and what was done in a sentence."""

    loop: Loop | None
    loops: tuple[Loop, ...]
    said: str

    def to_json(self) -> dict[str, Any]:
        """Return `{"loop", "loops", "said"}`."""
        return {
            "loop": loop_json(self.loop) if self.loop else None,
            "loops": [loop_json(loop) for loop in self.loops],
            "said": self.said,
        }


def loop_json(loop: Loop) -> Mapping[str, Any]:
    """Return a loop with its fixed keys, times as ISO 8601 in UTC; null is what it has not."""
    return {
        "id": loop.id,
        "session": loop.name,
        "declared": loop.declared or None,
        "mode": loop.mode.value,
        "instruction": loop.instruction,
        "interval": interval_text(loop.interval) if loop.interval else None,
        "cron": loop.cron or None,
        "timeZone": (loop.time_zone or "UTC") if loop.mode is Mode.CRON else None,
        "keepAlive": loop.keep_alive,
        "maxRuns": loop.max_runs,
        "status": loop.status.value,
        "held": loop.held.value if loop.held else None,
        "runCount": loop.run_count,
        "lastRunAt": iso(loop.last_run_at) if loop.last_run_at else None,
        "lastResult": loop.last_result or None,
        "lastError": loop.last_error or None,
        "nextRunAt": iso(loop.next_run_at) if loop.next_run_at else None,
        "reason": loop.reason or None,
        "createdBy": loop.created_by,
        "createdAt": iso(loop.created_at),
    }


def line_of(loop: Loop, now: datetime) -> str:
    """Return a loop in one line for people: `loop_k3f9x2 every 5m, keep-alive: active, 3 runs, next 12:05:00 UTC`."""
    alive = ", keep-alive" if loop.keep_alive else ""
    runs = "1 run" if loop.run_count == 1 else f"{loop.run_count} runs"
    return f"{loop.id} {cadence(loop)}{alive}: {state_text(loop, now)}, {runs}"


def state_text(loop: Loop, now: datetime) -> str:
    """Return where a loop stands: when it runs next, since when it is due, what holds it, why it ended.

    One is due as long as its run before is not over: its session starts, or works.
    """
    if loop.status not in OPEN or loop.status is LoopStatus.PAUSED:
        return f"{loop.status.value} ({loop.reason})" if loop.reason else loop.status.value
    if loop.held is not None:
        return f"blocked ({loop.held.value})"
    if loop.next_run_at is None:
        return "active, no next run is planned"
    if loop.next_run_at <= now:
        return f"active, due since {when(loop.next_run_at, now)}"
    return f"active, next {when(loop.next_run_at, now)}"


def when(moment: datetime, now: datetime) -> str:
    """Return a time for people, with its day where that is another one."""
    return f"{moment:%H:%M:%S} UTC" if moment.date() == now.date() else f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def unserved(paths: StatePaths) -> str:
    """Return what is amiss where nothing fires loops, "" where a service runs. Raises StoreBroken."""
    if running_service(paths.service_lock) is not None:
        return ""
    return "; no service is running, and only a service fires loops: `the-loop start`"


def in_the_way(records: Records, loop: Loop, unserved: str) -> str:
    """Return the end of a sentence about an open loop, "" where nothing is in its way.

    `unserved`: as above, from before the loop was changed, so that what cannot be told changes nothing.
    """
    if loop.status is LoopStatus.PAUSED:
        return f", but it is paused{unserved}"
    held = f", but it is blocked ({loop.held.value}) until that is over" if loop.held else ""
    return f"{_of_session(loop, _record(records, loop)) or held}{unserved}"


def _record(records: Records, loop: Loop) -> SessionRecord | None:
    try:
        return records.read(loop.name)
    except RecordUnreadable:
        return None


def _of_session(loop: Loop, record: SessionRecord | None) -> str:
    if record is None or record.uid != loop.uid:
        return ""
    start = f"it waits for `the-loop standing start {record.name}`"
    match hold_state(record):
        case HoldState.PAUSED:
            return f", but its session is paused: it waits for `the-loop standing resume {record.name}`"
        case HoldState.STOPPED:
            return f", but its session is stopped: {start}"
        case HoldState.FAILED:
            return f", but its session is held as failed: {start}"
        case _:
            return f", but its session is not running: {start}" if record.status is Status.STOPPED else ""


LOOPS_AN_HOUR = 20  #: that an agent makes: each end of one is a note in its thread
_HOUR = timedelta(hours=1)
_TRIES = 5  #: of a change that somebody else overtakes
_ENDS_SHOWN = 10  #: loops that have ended, in an answer: an agent reads all of it


class TooManyLoops(Refused):
    """The session has as many open loops as it may have."""

    code = "too_many_loops"

    def __init__(self, name: str, most: int) -> None:
        super().__init__(
            f"{name} has {most} open loops, which is all that a session may have (loops.maxOpenPerSession)",
            "stop one that is no longer needed: `the-loop loop list` shows them",
        )


@dataclass(frozen=True)
class Asker:
    """Who asks. `uid` is the session of an agent, None for an operator, who may ask about any."""

    actor: str  #: `agent:builder`, `cli:ann`
    uid: str | None = None


def asker_of(records: Records, actor: str, instance: str | None) -> Asker:
    """Return who asks: the agent whose pane that instance is, an operator where there is none.

    Raises Refused for a process of a session that has ended or was started anew since.
    """
    if instance is None:
        return Asker(actor)
    for entry in records.all():
        if isinstance(entry, SessionRecord) and entry.instance_id == instance:
            return Asker(actor, entry.uid)
    raise Refused("this process belongs to no session that runs now", "only a running session has loops of its own")


def create_loop(system: System, asker: Asker, name: str, asked: LoopRequest) -> LoopAnswer:
    """Make a loop in a session; an agent leaves `name` "" or gives its own.

    Raises InvalidValue (what was asked), UnknownSession, OtherSession, TooManyLoops, Refused for a session that was
    never started or is being deleted and for an agent that makes too many, StoreBroken.
    """
    record, fires = _session(system.settings, system.records, asker, name), unserved(system.paths)
    now = system.clock.now()
    spec = understood(asked, bounds_of(system.settings), now)
    if record.phase is Phase.DELETING:
        raise BeingDeleted(f"{record.name} is being deleted: it takes no loop", record.name)
    loop = new_loop(record, spec, asker.actor, system.clock.now())
    if asker.uid is not None:
        loop = _within_bounds(system.settings, system.loops, asker, loop, now)
    most = system.settings.loops.max_open_per_session
    if not system.loops.add(loop, most):
        raise TooManyLoops(record.name, most)
    tell(system.events, "loop.created", loop, actor=asker.actor, detail=cadence(loop))
    if asker.uid is not None and system.bindings.of_session(record.uid) is not None:
        system.outbox.add([_made(loop)])
    system.notify()
    first = moment_text(loop.next_run_at) if loop.next_run_at else "not planned"
    said = f"{loop.id} runs {cadence(loop)}, first at {first}; {_until(system.settings, loop)}"
    return _answer(system.loops, loop, f"{said}{in_the_way(system.records, loop, fires)}")


def _made(loop: Loop) -> NewPost:
    """Return the note that an agent has made a loop of its own, with what ends that."""
    return NewPost(
        id=f"p-loop-{loop.id}",
        key=f"loop-made:{loop.id}",
        kind=OutboundKind.NOTE,
        uid=loop.uid,
        name=loop.name,
        channel_kind=OWN_CHAT,
        text=f"`{loop.name}` has made a loop, `{loop.id}`: {summary(loop)}, {cadence(loop)}.",
        buttons=(Button(Press.STOP_LOOP, loop.id, "Stop the loop", style="danger"),),
    )


def list_loops(settings: Settings, records: Records, loops: Loops, asker: Asker, name: str = "") -> LoopAnswer:
    """Return the loops of a session, the latest that have ended last; for an operator without `name` all open ones.

    Raises UnknownSession, OtherSession, StoreBroken.
    """
    if asker.uid is None and not name:
        found = loops.all_open()
        return LoopAnswer(None, found, _count(found, "open"))
    if asker.uid is not None:
        found = _shown(loops, _session(settings, records, asker, name).uid)
    else:
        known = definition_of(settings, records, name)
        found = _shown(loops, known.record.uid) if known.record else ()
    return LoopAnswer(None, found, _count(tuple(loop for loop in found if loop.status in OPEN), "open"))


def stop_loop(system: System, asker: Asker, loop_id: str, reason: str = "") -> LoopAnswer:
    """End a loop for good; one that has ended stays as it is. Raises UnknownLoop, StoreBroken."""
    why = reason_of(reason) or f"stopped by {asker.actor}"
    for _ in range(_TRIES):
        loop = _loop(system.loops, asker, loop_id)
        if loop.status not in OPEN:
            return _answer(system.loops, loop, f"{loop.id} had ended before: it is {_ended(loop)}")
        ended = end_loop(system, loop, LoopStatus.STOPPED, why, asker.actor)
        if ended is not None:
            return _answer(system.loops, ended, f"{ended.id} is stopped: {why}")
    raise _overtaken(loop_id)


def pause_loop(system: System, asker: Asker, loop_id: str, reason: str = "") -> LoopAnswer:
    """Let a loop fire no more until it is resumed; what waits of it is cancelled.

    Raises UnknownLoop, Refused for one that has ended, StoreBroken.
    """
    why = reason_of(reason) or f"paused by {asker.actor}"

    def pause(loop: Loop) -> Loop | None:
        if loop.status is LoopStatus.PAUSED:
            return None
        cancel_runs(system.inbox, system.loops, loop, Because(Reason.LOOP_PAUSED))
        return _changed(system.loops, loop, status=LoopStatus.PAUSED, reason=why, asked=False)

    loop, changed = _step(system, asker, loop_id, "paused", pause)
    if changed:
        tell(system.events, "loop.paused", loop, actor=asker.actor, reason=why)
    said = f"is paused; `the-loop loop resume {loop.id}` lets it go on" if changed else "was paused before"
    return _answer(system.loops, loop, f"{loop.id} {said}")


def resume_loop(system: System, asker: Asker, loop_id: str, reason: str = "") -> LoopAnswer:
    """Let a paused loop go on, or one that failures hold; nothing is caught up.

    Raises UnknownLoop, Refused for one that has ended, StoreBroken.
    """
    why, fires = reason_of(reason), unserved(system.paths)

    def resume(loop: Loop) -> Loop | None:
        if loop.status is not LoopStatus.PAUSED and loop.held is not Held.FAILURES:
            return None
        now = system.clock.now()
        following = rearmed_slot(loop, now) or _paced(system.settings, asker, now, loop)
        changes = {"next_run_at": following, "reason": why, **_unfailed(loop)}
        return _changed(system.loops, loop, status=LoopStatus.ACTIVE, **changes)

    loop, changed = _step(system, asker, loop_id, "resumed", resume)
    if changed:
        tell(system.events, "loop.resumed", loop, actor=asker.actor, reason=why)
    said = f"goes on, next at {_next(loop)}" if changed else "was not paused"
    return _answer(system.loops, loop, f"{loop.id} {said}{in_the_way(system.records, loop, fires)}")


def run_loop_now(system: System, asker: Asker, loop_id: str, reason: str = "") -> LoopAnswer:
    """Make a loop due at once; it goes in as soon as its session is idle, once, after whatever holds it until then.

    Failures hold it no more. For an agent it is due no sooner than loops.minInterval after the loop's last run.

    Raises UnknownLoop, Refused for one that is paused or has ended, StoreBroken.
    """
    why, fires = reason_of(reason), unserved(system.paths)

    def run(loop: Loop) -> Loop | None:
        if loop.status is LoopStatus.PAUSED:
            raise Refused(f"{loop.id} is paused", f"resume it first: `the-loop loop resume {loop.id}`")
        if any(run.loop_id == loop.id for run in system.loops.open_runs(loop.uid)):
            return None
        due = _paced(system.settings, asker, system.clock.now(), loop)
        return _changed(system.loops, loop, next_run_at=due, asked=True, reason=why, **_unfailed(loop))

    loop, changed = _step(system, asker, loop_id, "run", run)
    soon = _soon(system.settings, loop, system.clock.now())
    if changed:
        tell(system.events, "loop.scheduled", loop, actor=asker.actor, reason=why, detail=soon)
    due = f"is due {soon}, and goes in once its session is idle"
    said = due if changed else "has a run under way, so none was added"
    return _answer(system.loops, loop, f"{loop.id} {said}{in_the_way(system.records, loop, fires)}")


def schedule_next_run(system: System, asker: Asker, loop_id: str, delay: str | float, reason: str = "") -> LoopAnswer:
    """Plan the next run of a dynamic loop. `delay` is a span or seconds, brought within the bounds of intervals.

    Raises UnknownLoop, InvalidValue, Refused for a loop with a cadence and for one that has ended, StoreBroken.
    """
    bounds, why, fires = bounds_of(system.settings), reason_of(reason), unserved(system.paths)
    span, brought = parse_delay(delay, bounds.least, bounds.most)

    def schedule(loop: Loop) -> Loop | None:
        if loop.mode is not Mode.DYNAMIC:
            raise Refused(f"{loop.id} runs {cadence(loop)} by itself", "only a loop without a cadence is scheduled")
        return _changed(system.loops, loop, next_run_at=system.clock.now() + span, reason=why)

    loop, _ = _step(system, asker, loop_id, "scheduled", schedule)
    tell(system.events, "loop.scheduled", loop, actor=asker.actor, reason=why, detail=_next(loop))
    limits = f"{interval_text(bounds.least)} to {interval_text(bounds.most)}"
    said = f"{loop.id} runs again in {interval_text(span)}, at {_next(loop)}"
    asked = f" ({str(delay)[:40]} was asked for, and {limits} is allowed)" if brought else ""
    return _answer(system.loops, loop, f"{said}{asked}{in_the_way(system.records, loop, fires)}")


# ---------------------------------------------------------------- shared with declared loops


def bounds_of(settings: Settings) -> Bounds:
    """Return how close and how far apart runs may be."""
    return Bounds(settings.loops.min_interval, settings.loops.max_interval)


def new_loop(
    record: SessionRecord, spec: Spec, actor: str, now: datetime, declared: str = "", digest: str = ""
) -> Loop:
    """Return a new loop of the session, its first run planned; it is not stored."""
    loop = Loop(
        id=new_loop_id(),
        uid=record.uid,
        name=record.name,
        instruction=spec.instruction,
        mode=spec.mode,
        created_by=actor,
        created_at=now,
        interval=spec.interval,
        cron=spec.cron,
        time_zone=spec.time_zone,
        keep_alive=spec.keep_alive,
        max_runs=spec.max_runs,
        declared=declared,
        digest=digest,
    )
    return replace(loop, next_run_at=first_slot(loop, now))


# ---------------------------------------------------------------- steps


def _step(
    system: System, asker: Asker, loop_id: str, what: str, change: Callable[[Loop], Loop | None]
) -> tuple[Loop, bool]:
    """Change an open loop in one transaction; return it as it is now, and whether it was changed."""
    with system.database.transaction(durable=True):
        loop = _loop(system.loops, asker, loop_id)
        if loop.status not in OPEN:
            remedy = "change its entry in the configuration" if loop.declared else "make a new one"
            raise Refused(f"{loop.id} cannot be {what}: it is {_ended(loop)}", remedy)
        changed = change(loop)
    if changed is not None:
        system.notify()
    return changed or loop, changed is not None


def _changed(loops: Loops, loop: Loop, **changes: object) -> Loop:
    """Change a loop that was read in the same transaction, so that nobody else can have changed it since."""
    changed = loops.change(loop, **changes)
    if changed is None:
        raise _overtaken(loop.id)
    return changed


def _overtaken(loop_id: str) -> Refused:
    return Refused(f"{loop_id} was changed by somebody else at every attempt", "try again")


def _unfailed(loop: Loop) -> dict[str, object]:
    if loop.held is not Held.FAILURES:
        return {}
    return {"held": None, "held_until": None, "failures": 0}


def _loop(loops: Loops, asker: Asker, loop_id: str) -> Loop:
    """Return the loop, if it is one that the asker may know of. Raises UnknownLoop."""
    loop = loops.get(loop_id)
    if loop is None or (asker.uid is not None and loop.uid != asker.uid):
        raise UnknownLoop(loop_id)
    return loop


def _session(settings: Settings, records: Records, asker: Asker, name: str) -> SessionRecord:
    if asker.uid is not None:
        entries = records.all()
        record = next((entry for entry in entries if isinstance(entry, SessionRecord) and entry.uid == asker.uid), None)
        if record is None:
            raise Refused("this agent's session is gone", "make the loop in a session that runs")
        if name and name != record.name:
            raise OtherSession(name)
        return record
    if not name:
        raise InvalidValue("no session is named", "say whose loop it is: NAME")
    known = definition_of(settings, records, name)
    if known.unreadable is not None:
        raise known.unreadable
    if known.record is None:
        raise Refused(f"{name} was never started", f"start it: `the-loop standing start {name}`")
    return known.record


def _within_bounds(settings: Settings, loops: Loops, asker: Asker, loop: Loop, now: datetime) -> Loop:
    """Return an agent's new loop as it may be made. Raises Refused where it has made too many within the last hour."""
    found = loops.of_session(loop.uid)
    lately = [made for made in found if made.created_by == asker.actor and made.created_at > now - _HOUR]
    if len(lately) >= LOOPS_AN_HOUR:
        raise Refused(
            f"{loop.name} has made {LOOPS_AN_HOUR} loops within the last hour, and that is the limit",
            "go on with one that is open, or make one later",
        )
    return replace(loop, next_run_at=_paced(settings, asker, now, *found)) if loop.mode is Mode.DYNAMIC else loop


def _paced(settings: Settings, asker: Asker, now: datetime, *loops: Loop) -> datetime:
    """Return when a run is due that was asked for at once: an agent prompts itself no closer than loops.minInterval.

    `loops`: those whose latest run counts.
    """
    ran = [loop.last_run_at for loop in loops if loop.last_run_at is not None]
    if asker.uid is None or not ran:
        return now
    return max(now, min(now, max(ran)) + bounds_of(settings).least)


# ---------------------------------------------------------------- words


def _answer(loops: Loops, loop: Loop, said: str) -> LoopAnswer:
    return LoopAnswer(loop, _shown(loops, loop.uid), said)


def _shown(loops: Loops, uid: str) -> tuple[Loop, ...]:
    """Return the session's open loops, and behind them the latest that have ended."""
    found = loops.of_session(uid)
    ended = sorted(
        (loop for loop in found if loop.status not in OPEN), key=lambda loop: loop.ended_at or loop.created_at
    )
    return tuple(loop for loop in found if loop.status in OPEN) + tuple(ended[-_ENDS_SHOWN:])


def _until(settings: Settings, loop: Loop) -> str:
    """Return what ends the loop, besides whoever stops it."""
    ends = [] if loop.max_runs is None else ["after one run" if loop.max_runs == 1 else f"after {loop.max_runs} runs"]
    days = settings.loops.max_age_days
    if not loop.keep_alive and days:
        ends.append(f"after {interval_text(timedelta(days=days))}")
    if loop.mode is Mode.DYNAMIC:
        ends.append("when one of its turns schedules no next run")
    return f"it ends {' or '.join(ends)}, or when it is stopped" if ends else "it goes on until it is stopped"


def _ended(loop: Loop) -> str:
    return f"{loop.status.value} ({loop.reason})" if loop.reason else loop.status.value


def _next(loop: Loop) -> str:
    return moment_text(loop.next_run_at) if loop.next_run_at else "no time yet"


def _soon(settings: Settings, loop: Loop, now: datetime) -> str:
    """Return when a run is due that was asked for at once: `now`, or a time and why then."""
    if loop.next_run_at is None or loop.next_run_at <= now:
        return "now"
    least = interval_text(bounds_of(settings).least)
    return f"at {_next(loop)}, {least} after its last run, which is the minimum (loops.minInterval)"


def _count(loops: tuple[Loop, ...], what: str) -> str:
    return f"1 {what} loop" if len(loops) == 1 else f"{len(loops) or 'no'} {what} loops"


ACTOR = "config"
REMOVED = "its entry was removed from the configuration"
CHANGED = "its entry in the configuration was changed, and another loop takes its place"
_LOG = logging.getLogger(__name__)


def carry_out(system: System, settings: Settings, record: SessionRecord) -> None:
    """Make the session's declared loops those of `settings`, which may be newer than the system's own.

    Done again it changes nothing. A loop for which there is no room is told of once, and made when there is some.
    Raises StoreBroken.
    """
    if record.phase is Phase.DELETING:
        return
    declared = {entry.name: entry for entry in settings.standing.loops.get(record.name, ())}
    present = _carried_out(system.loops.of_session(record.uid))
    for name, loop in present.items():
        if name not in declared:
            _withdraw(system, loop, REMOVED)
    for name, entry in declared.items():
        digest, current = digest_of(entry), present.get(name)
        if current is not None and current.digest == digest:
            continue
        if current is not None:
            _withdraw(system, current, CHANGED)
        _make(system, settings, record, entry, digest)


def carry_out_first(system: System, record: SessionRecord) -> None:
    """Make the declared loops of a session that has come up for the first time; trouble is logged, and no start's.

    Later the service sees to them, with the configuration as it is then: one that starts a session may have read an
    older one.
    """
    if record.name not in system.settings.standing.loops:
        return
    try:
        if not _carried_out(system.loops.of_session(record.uid)):
            with failpoint(Failpoint.START_LOOPS):
                carry_out(system, system.settings, record)
    except CoreError as error:
        _LOG.warning("declared loops could not be made", extra={"session": record.name, "reason": str(error)})


def digest_of(entry: DeclaredLoop) -> str:
    """Return what changes when the entry does, its name apart; a key with its default counts as left out."""
    defaults = entry._field_defaults
    given = {key: value for key, value in entry._asdict().items() if key != "name" and value != defaults.get(key)}
    return hashlib.sha256(json.dumps(given, sort_keys=True).encode()).hexdigest()[:16]


def _carried_out(loops: Sequence[Loop]) -> Mapping[str, Loop]:
    """Return by name the loop of each entry that was carried out and not withdrawn since."""
    return {loop.declared: loop for loop in loops if loop.declared and loop.digest}


def _withdraw(system: System, loop: Loop, reason: str) -> None:
    """End the loop, if it has not ended before, and forget that its entry was carried out."""
    if loop.status in OPEN:
        end_loop(system, loop, LoopStatus.STOPPED, reason, ACTOR, digest="")
    else:
        system.loops.change(loop, digest="")


def _make(system: System, settings: Settings, record: SessionRecord, entry: DeclaredLoop, digest: str) -> None:
    bounds = Bounds(settings.loops.min_interval, settings.loops.max_interval)
    try:
        spec = understood(LoopRequest(*entry[1:]), bounds, system.clock.now())
    except InvalidValue as error:  # valid when the file was read: a time zone that has gone from the machine since
        _tell_unmade(system, record, entry, digest, error.message, error.remedy)
        return
    loop = new_loop(record, spec, ACTOR, system.clock.now(), entry.name, digest)
    if not system.loops.add(loop, settings.loops.max_open_per_session):
        remedy = f"stop one of them (`the-loop loop list {record.name}` lists them); then the declared loop is made"
        most = f"its session already has loops.maxOpenPerSession ({settings.loops.max_open_per_session}) open loops"
        _tell_unmade(system, record, entry, digest, most, remedy)
        return
    tell(system.events, "loop.created", loop, actor=ACTOR, detail=f"{entry.name}: {cadence(loop)}")
    system.notify()


def _tell_unmade(
    system: System, record: SessionRecord, entry: DeclaredLoop, digest: str, reason: str, remedy: str
) -> None:
    """Report once, for this entry and this life of the session, that its loop does not exist."""
    with system.database.transaction(durable=False):
        if not system.database.ingested(record.instance_id or record.uid, f"loop:{entry.name}:{digest}"):
            return
        said = f"its declared loop {entry.name} could not be made: {reason}"
        system.events.emit("loop.failed", level="warning", name=record.name, actor=ACTOR, reason=said, detail=remedy)
