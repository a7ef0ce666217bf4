"""What the sessions' running turns have done, as rows of the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.domain.posting import SHOWN_STEPS, ProgressRow
from core.store import queries
from core.store.rows import Rows
from core.values import replace

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from typing import Any

    from core.store.database import SqliteDatabase


class SqliteProgress:
    """Implements Progress: one row a session, whose latest turn it is."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._rows = Rows(database, "progress", "uid", _row)

    def note(self, uid: str, turn: str, line: str) -> None:
        """Add a line; another turn begins with none. Raises StoreBroken."""
        with self._database.transaction(durable=False):
            found = self._database.read(queries.PROGRESS, (uid,))
            before = self._rows.decoded(found[0]) if found and found[0]["turn"] == turn else ProgressRow(uid, turn)
            lines = (*before.lines, " ".join(line.splitlines()))[-SHOWN_STEPS:]
            self._database.write(queries.PUT_PROGRESS, _columns(replace(before, lines=lines, steps=before.steps + 1)))

    def due(self) -> tuple[ProgressRow, ...]:
        """Return the turns with lines that were not told. Raises StoreBroken."""
        return self._rows.all(queries.PROGRESS_DUE)

    def asked(self, row: ProgressRow) -> None:
        """Note durably that its message may stand in the thread. Raises StoreBroken."""
        with self._database.transaction(durable=True):
            self._database.write(queries.PROGRESS_ASKED, (row.uid, row.turn))

    def told(self, row: ProgressRow, channel: str, ts: str) -> None:
        """Note that the row's lines stand in that message; nothing where another turn has begun."""
        with self._database.transaction(durable=False):
            self._database.write(queries.PROGRESS_TOLD, (row.steps, channel, ts, row.uid, row.turn))

    def forget(self, uid: str) -> None:
        """Remove what is known of a session. Raises StoreBroken."""
        with self._database.transaction(durable=False):
            self._database.write(queries.FORGET_PROGRESS, (uid,))


def _row(found: sqlite3.Row) -> ProgressRow:
    return ProgressRow(
        uid=found["uid"],
        turn=found["turn"],
        lines=tuple(found["lines"].split("\n")),
        steps=found["steps"],
        told=found["told"],
        asked=bool(found["asked"]),
        channel=found["channel"],
        ts=found["ts"],
    )


def _columns(row: ProgressRow) -> Mapping[str, Any]:
    return {
        "uid": row.uid,
        "turn": row.turn,
        "lines": "\n".join(row.lines),
        "steps": row.steps,
        "told": row.told,
        "asked": int(row.asked),
        "channel": row.channel,
        "ts": row.ts,
    }
