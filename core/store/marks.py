"""Which reaction stands at which message, as rows of the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.clock import from_iso, iso
from core.domain.marking import ENDED, FAILED, Mark, MarkRow
from core.domain.message import MessageState
from core.domain.reasons import Reason
from core.store import queries
from core.store.rows import Rows, column

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
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

    def over(
        self, uid: str, instance: str, since: datetime, until: datetime | None = None, *, failed: bool
    ) -> tuple[str, ...]:
        """See Marks."""
        end = iso(until or self._clock.now())
        values = {"uid": uid, "instance": instance, "since": iso(since), "until": end}
        with self._database.transaction(durable=False):
            taken = tuple(str(row["id"]) for row in self._database.read(queries.MARKS_TAKEN, values))
            self.end(dict.fromkeys(taken, failed))
        return taken

    def left(self, since: datetime) -> Mapping[str, bool]:
        """See Marks. Raises StoreBroken."""
        found = self._database.read(queries.MARKS_LEFT, {"since": iso(since), "cut_off": Reason.CUT_OFF.value})
        return {row["id"]: bool(row["failed"]) for row in found}

    def end(self, left: Mapping[str, bool]) -> None:
        """See Marks. Raises StoreBroken."""
        now = iso(self._clock.now())
        with self._database.transaction(durable=False):
            for message_id, failed in left.items():
                self._database.write(queries.MARK_OVER, (message_id, FAILED if failed else ENDED, now))

    def asked(self, row: MarkRow, mark: Mark) -> None:
        """Note that the reaction may stand there from now on. Raises StoreBroken."""
        with self._database.transaction(durable=False):
            self._database.write(queries.MARK_ASKED, {"message": row.message, "asked": mark.value, "at": iso(row.at)})

    def failed(self, message_id: str) -> bool:
        """See Marks. Raises StoreBroken."""
        return bool(self._database.read(queries.MARK_FAILED, (message_id, FAILED)))

    def shown(self, message_id: str, mark: Mark) -> None:
        """Note which reaction stands there now. Raises StoreBroken."""
        values = {"message": message_id, "shown": mark.value, "at": iso(self._clock.now())}
        with self._database.transaction(durable=False):
            self._database.write(queries.MARK_SHOWN, values)


def _mark(text: str) -> Mark | None:
    return Mark(text) if text else None


def _marks(text: str | None) -> frozenset[Mark]:
    return frozenset(Mark(word) for word in (text or "").split(",") if word)


def _row(found: sqlite3.Row) -> MarkRow:
    return MarkRow(
        message=found["id"],
        channel=found["from_channel"],
        ts=found["from_ts"],
        state=column(found, "state", MessageState),
        over=found["over"],
        shown=column(found, "shown", _mark),
        at=column(found, "at", from_iso),
        final=bool(found["final"]),
        may_stand=column(found, "asked", _marks) | column(found, "earlier", _marks),
    )
