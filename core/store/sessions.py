"""Rows of the database about sessions: threads, activity, ends and restarts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from core.base.clock import from_iso, iso
from core.base.errors import Refused
from core.model.activity import Activity, ActivityState, Capability, Silence
from core.model.restarting import Announced, End, Stage
from core.model.session import Binding, Thread
from core.model.working import told_of
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

    def of_session(self, uid: str, channel_kind: str = "") -> Binding | None:
        """Return the session's binding in that chat, or wherever it has one: the latest. Raises StoreBroken."""
        if channel_kind:
            return self._rows.one(queries.BINDING_OF_SESSION, (uid, channel_kind))
        return self._rows.one(queries.LATEST_BINDING, (uid,))

    def all(self, channel_kind: str = "") -> tuple[Binding, ...]:
        """Return every binding of that kind, or of all kinds with the latest last, by name. Raises StoreBroken."""
        if channel_kind:
            return self._rows.all(queries.BINDINGS, (channel_kind,))
        return self._rows.all(queries.ALL_BINDINGS)

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

    def is_left(self, uid: str, place: Thread) -> bool:
        """Return whether the session has left the thread. Raises StoreBroken."""
        return bool(self._database.read(queries.LEFT_THREAD, (place.kind, uid, place.channel, place.thread)))

    def left(self) -> frozenset[str]:
        """Return the sessions (uids) that have left a thread, whether they have another or not. Raises StoreBroken."""
        return frozenset(found["uid"] for found in self._database.read(queries.LEFT_BY))

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
        "link": binding.link,
        "head": binding.head,
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
        link=found["link"],
        head=found["head"],
    )


class Activities:
    """What each session does, as last told.

    These are progress: the last writes before a power cut may be lost, and are told anew.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows = Rows(database, "activities", "uid", lru_cache(maxsize=512)(_activity))
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


class Workings:
    """What each session's agent is doing by its harness's own records, as JSON (see Working.to_json): as last told."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows = Rows(database, "workings", "uid", _working)

    def get(self, uid: str) -> tuple[str, Mapping[str, Any]] | None:
        """Return the instance that it is told of, and what; None where nothing is. Raises StoreBroken."""
        return next((told[1:] for told in self._rows.all(queries.WORKING, (uid,))), None)

    def all(self) -> Mapping[str, tuple[str, Mapping[str, Any]]]:
        """Return the same by uid for every session. Raises StoreBroken."""
        return {uid: (instance, told) for uid, instance, told in self._rows.all(queries.WORKINGS)}

    def put(self, uid: str, instance: str, told: Mapping[str, Any]) -> None:
        """Store it, in place of what was known. Raises StoreBroken."""
        self._database.write_alone(queries.PUT_WORKING, (uid, instance, json.dumps(told)), durable=False)

    def forget(self, uid: str) -> None:
        """Remove what is known of a session. Raises StoreBroken."""
        self._database.write_alone(queries.FORGET_WORKING, (uid,), durable=False)


def _working(found: sqlite3.Row) -> tuple[str, str, Mapping[str, Any]]:
    return found["uid"], found["instance"], column(found, "told", told_of)


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
