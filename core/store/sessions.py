"""Rows of the database about sessions: threads, activity, ends and restarts, requests, loops and their runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from core.base.clock import Clock, from_iso, iso
from core.base.errors import Refused
from core.base.names import new_run_id
from core.base.values import replace
from core.model.activity import Activity, ActivityState, Capability, Silence
from core.model.asking import Request, RequestKind, RequestState, Unseen, payload_of, questions_of
from core.model.loop import TRANSITIONS, Held, Loop, LoopRun, LoopStatus, Mode, RunState
from core.model.restarting import Announced, End, Stage
from core.model.session import Binding
from core.store import queries
from core.store.columns import Rows, column, from_column, reason_from, reason_to, to_column

if TYPE_CHECKING:
    import sqlite3

    from core.model.reasons import Because
    from core.store.database import Database


class Bindings:
    """Which thread belongs to which session; one thread a session and channel kind.

    Writes are durable; inside an open transaction of this thread they are part of it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows = Rows(database, "bindings", "uid", _binding)

    def bind(self, binding: Binding) -> None:
        """Bind, replacing an earlier binding of the session for that channel kind.

        Raises Refused where the thread belongs to another session: a reply would reach the wrong one.
        """
        with self._database.transaction(durable=True):
            taken = self.of_thread(binding.channel_kind, binding.team, binding.channel, binding.thread)
            if taken is not None and taken.uid != binding.uid:
                raise Refused(
                    f"thread {binding.thread} of channel {binding.channel} belongs to {taken.name!r} already",
                    "give the session a thread of its own",
                )
            self._database.write(queries.UNBIND, (binding.uid, binding.channel_kind))
            self._database.write(queries.BIND, _columns(binding))

    def of_thread(self, channel_kind: str, team: str, channel: str, thread: str) -> Binding | None:
        """Return the binding of a thread. Raises StoreBroken."""
        return self._rows.one(queries.BINDING_OF_THREAD, (channel_kind, team, channel, thread))

    def of_session(self, uid: str, channel_kind: str) -> Binding | None:
        """Return the session's binding. Raises StoreBroken."""
        return self._rows.one(queries.BINDING_OF_SESSION, (uid, channel_kind))

    def all(self, channel_kind: str) -> tuple[Binding, ...]:
        """Return every binding of that kind, by name. Raises StoreBroken."""
        return self._rows.all(queries.BINDINGS, (channel_kind,))

    def move_cursor(self, binding: Binding, ts: str) -> None:
        """Note that all of the thread up to that message was swept; never backwards, never for another binding."""
        place = (binding.channel_kind, binding.team, binding.channel, binding.thread, binding.uid)
        self._database.write(queries.MOVE_CURSOR, (ts, *place, ts))

    def note_sharing(self, binding: Binding, shared: bool) -> None:
        """Keep whether the channel was shared with others when it was first looked at; once a binding."""
        place = (binding.channel_kind, binding.team, binding.channel, binding.thread, binding.uid)
        self._database.write(queries.NOTE_SHARING, (int(shared), *place))

    def refuse(self, key: str, channel: str, thread: str, ts: str) -> None:
        """Remember by its key, without a word of it, that a reply was refused."""
        self._database.write(queries.REFUSE_REPLY, (key, channel, thread, ts))

    def was_refused(self, key: str) -> bool:
        """Return whether the reply was refused before. Raises StoreBroken."""
        return bool(self._database.read(queries.REFUSED_REPLY, (key,)))

    def forget_refused(self, binding: Binding, before: str) -> None:
        """Forget the refusals that no sweep comes past again, and note from where on one does."""
        place = (binding.channel_kind, binding.team, binding.channel, binding.thread, binding.uid)
        self._database.write(queries.FORGET_REFUSED, (binding.channel, binding.thread, before))
        self._database.write(queries.NOTE_SWEPT, (before, *place, before))

    def unbind(self, uid: str, channel_kind: str) -> Binding | None:
        """Remove the session's binding and return it."""
        with self._database.transaction(durable=True):
            binding = self.of_session(uid, channel_kind)
            self._database.write(queries.UNBIND, (uid, channel_kind))
            if binding is not None:
                self.leave(uid, channel_kind, binding.channel, binding.thread)
            return binding

    def leave(self, uid: str, channel_kind: str, channel: str, thread: str) -> None:
        """Note that the thread is the session's no more, whatever its record says; only its last one counts."""
        self._database.write(queries.LEAVE_THREAD, (channel_kind, uid, channel, thread))

    def is_left(self, uid: str, channel_kind: str, channel: str, thread: str) -> bool:
        """Return whether the session has left the thread. Raises StoreBroken."""
        return bool(self._database.read(queries.LEFT_THREAD, (channel_kind, uid, channel, thread)))

    def left(self, channel_kind: str) -> frozenset[str]:
        """Return the sessions (uids) that have left a thread, whether they have another or not. Raises StoreBroken."""
        return frozenset(found["uid"] for found in self._database.read(queries.LEFT_BY, (channel_kind,)))

    def forget(self, uid: str) -> None:
        """Forget what a session has left that is no more."""
        self._database.write(queries.FORGET_LEFT, (uid,))


def _columns(binding: Binding) -> dict[str, str]:
    return {
        "channel_kind": binding.channel_kind,
        "team": binding.team,
        "channel": binding.channel,
        "thread": binding.thread,
        "uid": binding.uid,
        "name": binding.name,
        "created_at": iso(binding.created_at),
        "begins": binding.begins,
    }


def _binding(found: sqlite3.Row) -> Binding:
    return Binding(
        channel_kind=found["channel_kind"],
        team=found["team"],
        channel=found["channel"],
        thread=found["thread"],
        uid=found["uid"],
        name=found["name"],
        created_at=column(found, "created_at", from_iso),
        cursor=found["cursor"],
        begins=found["begins"],
        shared=None if found["shared"] is None else bool(found["shared"]),
    )


class Activities:
    """What each session does, as last told.

    These are progress: the last writes before a power cut may be lost, and are told anew.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows = Rows(database, "activities", "uid", _activity)
        self._messages = Rows(database, "last_messages", "uid", _last_message)

    def get(self, uid: str) -> Activity | None:
        """Return the session's activity; one that cannot be understood is none, until the next is put.

        Raises StoreBroken.
        """
        return next(iter(self._rows.all(queries.ACTIVITY, (uid,))), None)

    def all(self) -> Mapping[str, Activity]:
        """Return all activities by uid, in one query. Raises StoreBroken."""
        return {activity.uid: activity for activity in self._rows.all(queries.ACTIVITIES)}

    def put(self, activity: Activity) -> None:
        """Store it, in place of what was known. Raises StoreBroken."""
        columns = {
            "uid": activity.uid,
            "instance": activity.instance,
            "state": activity.state.value,
            "since": iso(activity.since),
            "pending_tasks": json.dumps(activity.pending_tasks),
            "task_names": json.dumps(dict(activity.task_names)),
            **reason_to(activity.because),
            "remarks": json.dumps([(each.code, each.given) for each in activity.remarks]),
            "turn_started_at": to_column(activity.turn_started_at),
            "last_report_at": to_column(activity.last_report_at),
            "mode": activity.mode,
            "turn": activity.turn,
            "turn_ended_at": to_column(activity.turn_ended_at),
            "ended_turn": activity.ended_turn,
            "shown": json.dumps({each.value: has for each, has in activity.shown.items()}),
            "version": activity.version,
            "untried": activity.untried,
            "failed": activity.failed,
            "composer_at": to_column(activity.composer_at),
            "cut_off_tasks": json.dumps(activity.cut_off_tasks),
            "earlier_tasks": json.dumps(activity.earlier_tasks),
            "silence": activity.silence.value if activity.silence is not None else "",
            "silent_since": to_column(activity.silent_since),
            "silent_why": _pair(activity.silent_why),
            "retrying": _pair(activity.retrying),
        }
        with self._database.transaction(durable=False):
            self._database.write(queries.PUT_ACTIVITY, columns)

    def touch_message(self, uid: str, at: datetime) -> None:
        """Remember when the session last got a message; an earlier time changes nothing. Raises StoreBroken."""
        self._database.write_alone(queries.TOUCH_MESSAGE, (uid, iso(at)), durable=False)

    def last_messages(self) -> Mapping[str, datetime]:
        """Return by uid when each session last got a message. Raises StoreBroken."""
        return dict(self._messages.all(queries.LAST_MESSAGES))

    def forget(self, uid: str) -> None:
        """Remove what is known of a session. Raises StoreBroken."""
        with self._database.transaction(durable=False):
            self._database.write(queries.FORGET_ACTIVITY, (uid,))
            self._database.write(queries.FORGET_MESSAGE, (uid,))


def _last_message(found: sqlite3.Row) -> tuple[str, datetime]:
    return found["uid"], column(found, "at", from_iso)


def _shown(text: str) -> Mapping[Capability, bool]:
    """Read what an instance has shown; what another release knows, and this one does not, is left out."""
    known = {each.value: each for each in Capability}
    return {known[name]: bool(has) for name, has in json.loads(text).items() if name in known}


def _remarks(text: str) -> tuple[Because, ...]:
    found = json.loads(text)
    if not found:
        return ()
    from core.model.reasons import stored  # rows without any are the most

    made = (stored(code, given) for code, given in found)
    return tuple(remark for remark in made if remark is not None)


def _pair(because: Because | None) -> str:
    return "" if because is None else json.dumps((because.code, because.given))


def _paired(text: str) -> Because | None:
    return next(iter(_remarks(f"[{text}]")), None)


def _silence(text: str) -> Silence | None:
    return Silence(text) if text else None


def _activity(found: sqlite3.Row) -> Activity:
    return Activity(
        uid=found["uid"],
        instance=found["instance"],
        state=column(found, "state", ActivityState),
        since=column(found, "since", from_iso),
        pending_tasks=tuple(column(found, "pending_tasks", json.loads)),
        task_names=column(found, "task_names", json.loads),
        because=reason_from(found),
        remarks=column(found, "remarks", _remarks),
        turn_started_at=column(found, "turn_started_at", from_column),
        last_report_at=column(found, "last_report_at", from_column),
        mode=found["mode"],
        turn=found["turn"],
        turn_ended_at=column(found, "turn_ended_at", from_column),
        ended_turn=found["ended_turn"],
        shown=column(found, "shown", _shown),
        version=found["version"],
        untried=found["untried"],
        failed=found["failed"],
        composer_at=column(found, "composer_at", from_column),
        cut_off_tasks=tuple(column(found, "cut_off_tasks", json.loads)),
        earlier_tasks=tuple(column(found, "earlier_tasks", json.loads)),
        silence=column(found, "silence", _silence),
        silent_since=column(found, "silent_since", from_column),
        silent_why=column(found, "silent_why", _paired),
        retrying=column(found, "retrying", _paired),
    )


_KEPT = timedelta(days=1)  #: longer than any window in which restarts are counted


class ExitLedger:
    """What the supervisor must still know after it was killed. Every call may raise StoreBroken."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._ends = Rows(database, "ends", "instance", _end)
        self._restarts = Rows(database, "restarts", "at", _restart)
        self._announced = Rows(database, "announced", "uid", _announced)

    def end(self, instance: str) -> End | None:
        """Return what is known of the end of an instance."""
        return self._ends.one(queries.END, (instance,))

    def due(self) -> tuple[End, ...]:
        """Return the ends after which something is to be brought back, the earliest first."""
        return self._ends.all(queries.DUE_ENDS)

    def leave(self, instance: str, uid: str) -> None:
        """Note that a person leaves the instance by its own command."""
        with self._database.transaction(durable=False):
            self._database.write(queries.LEAVE, (instance, uid))

    def tell(
        self, instance: str, uid: str, at: datetime, due_at: datetime | None = None, *, counted: bool = False
    ) -> bool:
        """Note that the end was told, and when the session is brought back; False, and no change, if it was before."""
        values = {"instance": instance, "uid": uid, "at": iso(at), "due_at": to_column(due_at), "counted": counted}
        with self._database.transaction(durable=True):
            first = self._database.write(queries.TELL_END, values) == 1
            if first:
                self._database.write(queries.DROP_EARLIER_ENDS, (uid, instance))
            return first

    def put_off(self, instance: str, due_at: datetime | None) -> None:
        """Bring the session back at another time, or not at all."""
        with self._database.transaction(durable=True):
            self._database.write(queries.PUT_OFF_END, (to_column(due_at), instance))

    def plan(self, instance: str, due_at: datetime) -> None:
        """Bring a session back whose end was told before that was asked for; it counts as after any crash."""
        with self._database.transaction(durable=True):
            self._database.write(queries.PLAN_END, (to_column(due_at), instance))

    def count_restart(self, uid: str, at: datetime) -> None:
        """Note a restart after a crash, before it is tried."""
        with self._database.transaction(durable=True):
            self._database.write(queries.DROP_EARLIER_RESTARTS, (uid, iso(at - _KEPT)))
            self._database.write(queries.COUNT_RESTART, (uid, iso(at)))

    def restarts(self, uid: str, since: datetime) -> tuple[datetime, ...]:
        """Return when the session was restarted after crashes since then."""
        return self._restarts.all(queries.RESTARTS, (uid, iso(since)))

    def announced(self, uid: str) -> Announced | None:
        """Return the idleness that was announced last."""
        return self._announced.one(queries.ANNOUNCED, (uid,))

    def announce(self, announced: Announced) -> None:
        """Note that an idleness is announced."""
        told = (announced.uid, announced.instance, iso(announced.idle_since), iso(announced.at))
        with self._database.transaction(durable=True):
            self._database.write(queries.ANNOUNCE, (*told, announced.stage.value))

    def forget(self, uid: str) -> None:
        """Remove what is known of a session."""
        with self._database.transaction(durable=False):
            for statement in queries.FORGET_WATCHED:
                self._database.write(statement, (uid,))


def _end(row: sqlite3.Row) -> End:
    return End(
        row["instance"],
        row["uid"],
        bool(row["by_person"]),
        column(row, "told_at", from_column),
        column(row, "due_at", from_column),
        bool(row["counted"]),
    )


def _restart(row: sqlite3.Row) -> datetime:
    return column(row, "at", from_iso)


def _announced(row: sqlite3.Row) -> Announced:
    return Announced(
        row["uid"],
        row["instance"],
        column(row, "idle_since", from_iso),
        column(row, "at", from_iso),
        column(row, "stage", Stage),
    )


class RequestBook:
    """Permissions and questions that wait for a person. Every call may raise StoreBroken.

    A call inside an open transaction of this thread is part of it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows = Rows(database, "requests", "id", _request)

    def add(self, request: Request) -> bool:
        """Store an open request durably; False, and no change, if its instance asked under that key before."""
        values = {
            "id": request.id,
            "key": request.key,
            "uid": request.uid,
            "name": request.name,
            "instance": request.instance,
            "agent": request.agent,
            "kind": request.kind.value,
            "payload": payload_of(request),
            "asked_at": iso(request.asked_at),
            "expires_at": iso(request.expires_at),
        }
        with self._database.transaction(durable=True):
            return self._database.write(queries.ADD_REQUEST, values) == 1

    def get(self, request_id: str) -> Request | None:
        """Return the request of that id."""
        return self._rows.one(queries.REQUEST, (request_id,))

    def of_key(self, instance: str, key: str) -> Request | None:
        """Return what the instance asked under that key."""
        return self._rows.one(queries.REQUEST_OF_KEY, (instance, key))

    def open(self, uid: str | None = None) -> tuple[Request, ...]:
        """Return the open requests, of one session or of all, oldest first."""
        return self._rows.all(queries.OPEN_REQUESTS, {"uid": uid})

    def untold(self) -> tuple[Request, ...]:
        """Return the answered requests whose answer was not handed over."""
        return self._rows.all(queries.UNTOLD_REQUESTS)

    def move(self, request: Request, **changes: Any) -> Request | None:
        """Change fields of the request durably and return it; None if it is no longer as `request` shows it."""
        after = _changed(request, changes)
        values = {
            "id": request.id,
            "was_state": request.state.value,
            "was_answered": len(request.answers),
            "was_told": request.told,
            "state": after.state.value,
            "allowed": after.allowed,
            "answers": json.dumps(after.answers, ensure_ascii=False),
            "by": after.by,
            "reason": after.reason,
            "settled_at": to_column(after.settled_at),
            "told": after.told,
        }
        with self._database.transaction(durable=True):
            return after if self._database.write(queries.MOVE_REQUEST, values) == 1 else None

    def spoke(self, uid: str, at: datetime, since: datetime, most: int, kind: str = "post") -> bool:
        """Note that the session's agent speaks; False, and no change, if it did so `most` times since then.

        `kind`: what is counted by itself: "post" into its thread, "say" to another session.
        """
        with self._database.transaction(durable=True):
            self._database.write(queries.DROP_SPOKEN, (uid, iso(since), kind))
            if self._database.read(queries.SPOKEN, (uid, kind))[0]["posts"] >= most:
                return False
            self._database.write(queries.SPEAK, (uid, iso(at), kind))
            return True

    def forget(self, uid: str) -> None:
        """Remove what is known of a session."""
        with self._database.transaction(durable=True):
            self._database.write(queries.FORGET_REQUESTS, (uid,))
            self._database.write(queries.FORGET_SPOKEN, (uid,))


def _changed(request: Request, changes: Mapping[str, Any]) -> Request:
    return Request(**{**request.__dict__, **changes})


def _request(found: sqlite3.Row) -> Request:
    payload = column(found, "payload", json.loads)
    return Request(
        id=found["id"],
        key=found["key"],
        uid=found["uid"],
        name=found["name"],
        instance=found["instance"],
        agent=found["agent"],
        kind=column(found, "kind", RequestKind),
        asked_at=column(found, "asked_at", from_iso),
        expires_at=column(found, "expires_at", from_iso),
        tool=payload["tool"],
        detail=payload["detail"],
        unseen=Unseen(*payload.get("unseen", ())),  # a row of an earlier version has none, and no digest
        digest=payload.get("digest", ""),
        questions=questions_of(payload),
        state=column(found, "state", RequestState),
        allowed=bool(found["allowed"]),
        answers=tuple(column(found, "answers", json.loads)),
        by=found["answered_by"],
        reason=found["reason"],
        settled_at=column(found, "settled_at", from_column),
        told=bool(found["told"]),
    )


_FIXED = {"id", "uid", "created_by", "created_at", "revision"}
_CHANGEABLE = frozenset(Loop.__match_args__) - _FIXED
_RUN_FIXED = {"id", "loop_id", "uid", "slot", "number"}
_RUN_CHANGEABLE = frozenset(LoopRun.__match_args__) - _RUN_FIXED
_MICROSECOND = timedelta(microseconds=1)
_FAR_AHEAD = timedelta(hours=1)  #: no lease ends so much later than one that is taken now


class Loops:
    """Loops and their runs. Every call may raise StoreBroken.

    A call inside an open transaction of this thread is part of it.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._loops = Rows(database, "loops", "id", _loop)
        self._runs = Rows(database, "loop_runs", "id", _run)

    def add(self, loop: Loop, most_open: int) -> bool:
        """Store a new loop durably; False, and no change, if its session has `most_open` open ones (0: no limit).

        False also where its declaration has an open loop already.
        """
        with self._database.transaction(durable=True):
            return self._database.write(queries.ADD_LOOP, {**_loop_columns(loop), "most_open": most_open}) == 1

    def get(self, loop_id: str) -> Loop | None:
        """Return the loop of that id."""
        return self._loops.one(queries.LOOP, (loop_id,))

    def of_session(self, uid: str) -> tuple[Loop, ...]:
        """Return the session's loops, open ones first, each group oldest first."""
        return self._loops.all(queries.LOOPS_OF_SESSION, (uid,))

    def all_open(self) -> tuple[Loop, ...]:
        """Return the open loops of all sessions."""
        return self._loops.all(queries.OPEN_LOOPS)

    def counts(self) -> Mapping[str, int]:
        """Return by uid how many loops are open, in one query."""
        return {found["uid"]: found["loops"] for found in self._database.read(queries.LOOP_COUNTS)}

    def holds_open(self, uid: str) -> bool:
        """Return whether the session has an active keep-alive loop."""
        return bool(self._database.read(queries.HOLDS_OPEN, (uid,)))

    def change(self, loop: Loop, **changes: Any) -> Loop | None:
        """Change fields durably and return the loop as stored; None, and no change, if it has another revision.

        Raises ValueError for a step that the table of states lacks, or a field that may not change.
        """
        _check(f"loop {loop.id}", changes, _CHANGEABLE)
        status = changes.get("status", loop.status)
        if status is not loop.status and status not in TRANSITIONS[loop.status].values():
            raise ValueError(f"loop {loop.id}: no step from {loop.status.value} to {status.value}")
        with self._database.transaction(durable=True):
            if not self._database.write(queries.CHANGE_LOOP, _loop_columns(replace(loop, **changes))):
                return None
            return self._loops.decoded(self._database.read(queries.LOOP, (loop.id,))[0])

    def next_due(self) -> datetime | None:
        """Return when the next active, unheld loop without an open run is due, or a claim lapses if that is earlier."""
        found = self._database.read(queries.NEXT_DUE)
        return from_column(found[0]["at"]) if found else None

    def claim(self, now: datetime, claimer: str, lease_until: datetime, most: int) -> tuple[tuple[Loop, LoopRun], ...]:
        """Claim due runs in one durable transaction, and those of whose claim the lease has lapsed, under their old id.

        A loop is due when it is active, not held, has no open run and its next_run_at has come; its next_run_at stays.
        Taken in turns over the sessions, each session's loops by how long they have been due. A claim that lapsed and
        whose loop no longer fires is over, outcome `lapsed`: nothing of it was sent.
        """
        if not self._anything_due(now, lease_until):
            return ()
        with self._database.transaction(durable=True):
            self._database.write(queries.DROP_LAPSED, _around(now, lease_until))
            again = self._claim_again(now, claimer, lease_until, most)
            return again + self._claim_new(now, claimer, lease_until, most - len(again))

    def held(self) -> tuple[Loop, ...]:
        """Return the active loops that something keeps from firing."""
        return self._loops.all(queries.HELD_LOOPS)

    def run(self, run_id: str) -> LoopRun | None:
        """Return the run of that id."""
        return self._runs.one(queries.RUN, (run_id,))

    def open_runs(self, uid: str | None = None) -> tuple[LoopRun, ...]:
        """Return the runs that are not over, of one session or of all."""
        return self._runs.all(queries.OPEN_RUNS) if uid is None else self._runs.all(queries.OPEN_RUNS_OF, (uid,))

    def any_open_run(self) -> bool:
        """Return whether any run is not over."""
        return bool(self._database.read(queries.ANY_OPEN_RUN))

    def settled_runs(self) -> tuple[LoopRun, ...]:
        """Return the runs that are SENT and whose inbox row neither waits nor is in flight any more."""
        return self._runs.all(queries.SETTLED_RUNS)

    def move_run(self, run: LoopRun, **changes: Any) -> LoopRun | None:
        """Change fields of a run and return it; None if it is no longer in the state and claim that `run` shows.

        Part of the open transaction where there is one, so that a tick's inbox row and its run move together.

        Raises ValueError for a field that may not change.
        """
        _check(f"run {run.id}", changes, _RUN_CHANGEABLE)
        moved = replace(run, **changes)
        values = {
            **_run_columns(moved),
            "updated_at": iso(self._clock.now()),
            "was_state": run.state.value,
            "was_claimer": run.claimer,
            "was_lease": iso(run.lease_until),
        }
        with self._database.transaction(durable=False):
            if not self._database.write(queries.MOVE_RUN, values):
                return None
            return self._runs.decoded(self._database.read(queries.RUN, (run.id,))[0])

    def forget(self, uid: str) -> None:
        """Remove what is known of a session that is gone."""
        with self._database.transaction(durable=True):
            for statement in queries.FORGET_LOOPS:
                self._database.write(statement, (uid,))

    def over_ticks(self, before: datetime) -> tuple[tuple[str, str], ...]:
        """Return uid and message id of the ticks that `prune` would remove."""
        return tuple((found["uid"], found["id"]) for found in self._database.read(queries.OVER_TICKS, (iso(before),)))

    def prune(self, before: datetime, ended_before: datetime | None = None) -> int:
        """Remove runs that were over, and the inbox rows of such, before that time; return how many rows went.

        Loops go that had ended before `ended_before`, or before that time without it. The latest loop of a declaration
        stays: it tells that its declaration was carried out.
        """
        with self._database.transaction(durable=False):
            runs = self._database.write(queries.PRUNE_RUNS, (iso(before),))
            ticks = self._database.write(queries.PRUNE_TICKS, (iso(before),))
            return runs + ticks + self._database.write(queries.PRUNE_LOOPS, (iso(ended_before or before),))

    # ------------------------------------------------------------ claims

    def _anything_due(self, now: datetime, lease_until: datetime) -> bool:
        due = self.next_due()
        return (due is not None and due <= now) or bool(
            self._database.read(queries.ANY_LAPSED, _around(now, lease_until))
        )

    def _claim_again(
        self, now: datetime, claimer: str, lease_until: datetime, most: int
    ) -> tuple[tuple[Loop, LoopRun], ...]:
        lapsed = self._runs.all(queries.LAPSED_RUNS, {**_around(now, lease_until), "most": most})
        runs = [self.move_run(run, claimer=claimer, lease_until=lease_until) for run in lapsed]
        return tuple((self._stored(run.loop_id), run) for run in runs if run is not None)

    def _claim_new(
        self, now: datetime, claimer: str, lease_until: datetime, most: int
    ) -> tuple[tuple[Loop, LoopRun], ...]:
        found = self._database.read(queries.DUE_LOOPS, {"now": iso(now), "most": most})
        loops = [(loop, row) for row in found for loop in self._loops.understood([row])[0]]
        return tuple((loop, self._new_run(row, claimer, lease_until)) for loop, row in loops)

    def _new_run(self, due: sqlite3.Row, claimer: str, lease_until: datetime) -> LoopRun:
        self._database.write(queries.COUNT_CLAIM, (due["id"],))
        run = LoopRun(
            id=new_run_id(),
            loop_id=due["id"],
            uid=due["uid"],
            slot=from_iso(due["next_run_at"]),
            number=due["claims"] + 1,
            state=RunState.CLAIMED,
            claimer=claimer,
            lease_until=lease_until,
        )
        self._database.write(queries.ADD_RUN, {**_run_columns(run), "updated_at": iso(self._clock.now())})
        return run

    def _stored(self, loop_id: str) -> Loop:
        return self._loops.decoded(self._database.read(queries.LOOP, (loop_id,))[0])


def _around(now: datetime, lease_until: datetime) -> dict[str, str]:
    """Return between which times the lease of somebody who lives ends."""
    return {"now": iso(now), "ahead": iso(lease_until + _FAR_AHEAD)}


def _check(what: str, changes: Mapping[str, Any], changeable: frozenset[str]) -> None:
    if foreign := changes.keys() - changeable:
        raise ValueError(f"{what}: {', '.join(sorted(foreign))} cannot be changed")


def _loop_columns(loop: Loop) -> dict[str, Any]:
    interval = loop.interval and loop.interval // _MICROSECOND
    return {
        **loop.__dict__,
        "mode": loop.mode.value,
        "created_at": iso(loop.created_at),
        "interval_us": interval,
        "keep_alive": int(loop.keep_alive),
        "asked": int(loop.asked),
        "status": loop.status.value,
        "held": loop.held and loop.held.value,
        "held_until": to_column(loop.held_until),
        "held_at": to_column(loop.held_at),
        "last_run_at": to_column(loop.last_run_at),
        "next_run_at": to_column(loop.next_run_at),
        "ended_at": to_column(loop.ended_at),
    }


def _held(text: str | None) -> Held | None:
    return Held(text) if text else None


def _loop(found: sqlite3.Row) -> Loop:
    interval = found["interval_us"]
    return Loop(
        id=found["id"],
        uid=found["uid"],
        name=found["name"],
        instruction=found["instruction"],
        mode=column(found, "mode", Mode),
        created_by=found["created_by"],
        created_at=column(found, "created_at", from_iso),
        interval=None if interval is None else timedelta(microseconds=interval),
        cron=found["cron"],
        time_zone=found["time_zone"],
        keep_alive=bool(found["keep_alive"]),
        max_runs=found["max_runs"],
        status=column(found, "status", LoopStatus),
        held=column(found, "held", _held),
        held_until=column(found, "held_until", from_column),
        held_at=column(found, "held_at", from_column),
        run_count=found["run_count"],
        deferrals=found["deferrals"],
        failures=found["failures"],
        last_run_at=column(found, "last_run_at", from_column),
        last_result=found["last_result"],
        last_error=found["last_error"],
        next_run_at=column(found, "next_run_at", from_column),
        reason=found["reason"],
        ended_at=column(found, "ended_at", from_column),
        declared=found["declared"],
        digest=found["digest"],
        asked=bool(found["asked"]),
        revision=found["revision"],
    )


def _run_columns(run: LoopRun) -> dict[str, Any]:
    return {
        **run.__dict__,
        "state": run.state.value,
        "slot": iso(run.slot),
        "lease_until": iso(run.lease_until),
        "last": int(run.last),
        "deferred": int(run.deferred),
        "taken_at": to_column(run.taken_at),
    }


def _run(found: sqlite3.Row) -> LoopRun:
    return LoopRun(
        id=found["id"],
        loop_id=found["loop_id"],
        uid=found["uid"],
        slot=column(found, "slot", from_iso),
        number=found["number"],
        state=column(found, "state", RunState),
        claimer=found["claimer"],
        lease_until=column(found, "lease_until", from_iso),
        last=bool(found["last"]),
        message_id=found["message_id"],
        taken_at=column(found, "taken_at", from_column),
        instance=found["instance"],
        outcome=found["outcome"],
        detail=found["detail"],
        deferred=bool(found["deferred"]),
    )
