"""What the supervisor remembers, as rows of the database: ends of instances, restarts, announced idleness."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from core.clock import from_iso, iso
from core.domain.watchbook import Announced, End, Stage
from core.store import queries
from core.store.columns import from_column, to_column
from core.store.rows import Rows, column

if TYPE_CHECKING:
    import sqlite3

    from core.store.database import SqliteDatabase

_KEPT = timedelta(days=1)  #: longer than any window in which restarts are counted


class SqliteWatchbook:
    """Implements Watchbook."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._ends = Rows(database, "ends", "instance", _end)
        self._restarts = Rows(database, "restarts", "at", _restart)
        self._announced = Rows(database, "announced", "uid", _announced)

    def end(self, instance: str) -> End | None:
        """See Watchbook."""
        return self._ends.one(queries.END, (instance,))

    def due(self) -> tuple[End, ...]:
        """See Watchbook."""
        return self._ends.all(queries.DUE_ENDS)

    def leave(self, instance: str, uid: str) -> None:
        """See Watchbook."""
        with self._database.transaction(durable=False):
            self._database.write(queries.LEAVE, (instance, uid))

    def tell(
        self, instance: str, uid: str, at: datetime, due_at: datetime | None = None, *, counted: bool = False
    ) -> bool:
        """See Watchbook."""
        values = {"instance": instance, "uid": uid, "at": iso(at), "due_at": to_column(due_at), "counted": counted}
        with self._database.transaction(durable=True):
            first = self._database.write(queries.TELL_END, values) == 1
            if first:
                self._database.write(queries.DROP_EARLIER_ENDS, (uid, instance))
            return first

    def put_off(self, instance: str, due_at: datetime | None) -> None:
        """See Watchbook."""
        with self._database.transaction(durable=True):
            self._database.write(queries.PUT_OFF_END, (to_column(due_at), instance))

    def plan(self, instance: str, due_at: datetime) -> None:
        """See Watchbook."""
        with self._database.transaction(durable=True):
            self._database.write(queries.PLAN_END, (to_column(due_at), instance))

    def count_restart(self, uid: str, at: datetime) -> None:
        """See Watchbook."""
        with self._database.transaction(durable=True):
            self._database.write(queries.DROP_EARLIER_RESTARTS, (uid, iso(at - _KEPT)))
            self._database.write(queries.COUNT_RESTART, (uid, iso(at)))

    def restarts(self, uid: str, since: datetime) -> tuple[datetime, ...]:
        """See Watchbook."""
        return self._restarts.all(queries.RESTARTS, (uid, iso(since)))

    def announced(self, uid: str) -> Announced | None:
        """See Watchbook."""
        return self._announced.one(queries.ANNOUNCED, (uid,))

    def announce(self, announced: Announced) -> None:
        """See Watchbook."""
        told = (announced.uid, announced.instance, iso(announced.idle_since), iso(announced.at))
        with self._database.transaction(durable=True):
            self._database.write(queries.ANNOUNCE, (*told, announced.stage.value))

    def forget(self, uid: str) -> None:
        """See Watchbook."""
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
