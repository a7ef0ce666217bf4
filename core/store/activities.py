"""What each session does and when it last got a message, as rows of the database."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from core.clock import from_iso, iso
from core.domain.activity import Activity, ActivityState, Silence
from core.domain.capability import Capability
from core.store import queries
from core.store.columns import from_column, reason_from, reason_to, to_column
from core.store.rows import Rows, column

if TYPE_CHECKING:
    import sqlite3

    from core.domain.reasons import Because
    from core.store.database import SqliteDatabase


class SqliteActivities:
    """Implements Activities. These are progress: the last writes before a power cut may be lost, and are told anew."""

    def __init__(self, database: SqliteDatabase) -> None:
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
            "silent_why": activity.silent_why,
            "retrying": activity.retrying,
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
    from core.domain.reasons import stored  # rows without any are the most

    made = (stored(code, given) for code, given in found)
    return tuple(remark for remark in made if remark is not None)


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
        silent_why=found["silent_why"],
        retrying=found["retrying"],
    )
