"""Which reaction stands at which message, as rows of the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.clock import from_iso, iso
from core.domain.marking import ENDED, FAILED, Mark, MarkRow
from core.domain.message import MessageState
from core.store import queries
from core.store.rows import Rows, column

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection
    from datetime import datetime

    from core.clock import Clock
    from core.store.database import SqliteDatabase


class SqliteMarks:
    """Implements Marks. What a row should show follows from the inbox, so that no change of it can be missed."""

    def __init__(self, database: SqliteDatabase, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._rows = Rows(database, "inbox", "id", _row)

    def changed(self, channel_kind: str, since: datetime) -> tuple[MarkRow, ...]:
        """Return what has changed at or after that time, oldest first. Raises StoreBroken."""
        return self._rows.all(queries.MARKS_CHANGED, {"kind": channel_kind, "since": iso(since)})

    def over(self, uid: str, since: datetime, *, failed: bool) -> None:
        """Note that the turn is over which took the session's messages since then."""
        values = {"uid": uid, "since": iso(since), "over": FAILED if failed else ENDED, "at": iso(self._clock.now())}
        with self._database.transaction(durable=False):
            self._database.write(queries.MARKS_OVER, values)

    def left(self) -> tuple[str, ...]:
        """Return the messages that look as if a turn were at them, whose session is idle. Raises StoreBroken."""
        return tuple(found["message"] for found in self._database.read(queries.MARKS_LEFT))

    def end(self, message_ids: Collection[str]) -> None:
        """Note that the turn which took these messages is over. Raises StoreBroken."""
        now = iso(self._clock.now())
        with self._database.transaction(durable=False):
            for message_id in message_ids:
                self._database.write(queries.MARK_OVER, (ENDED, now, message_id))

    def shown(self, message_id: str, mark: Mark) -> None:
        """Note which reaction stands there now. Raises StoreBroken."""
        values = {"message": message_id, "shown": mark.value, "at": iso(self._clock.now())}
        with self._database.transaction(durable=False):
            self._database.write(queries.MARK_SHOWN, values)


def _mark(text: str) -> Mark | None:
    return Mark(text) if text else None


def _row(found: sqlite3.Row) -> MarkRow:
    return MarkRow(
        message=found["id"],
        channel=found["from_channel"],
        ts=found["from_ts"],
        state=column(found, "state", MessageState),
        over=found["over"],
        shown=column(found, "shown", _mark),
        at=column(found, "at", from_iso),
    )
