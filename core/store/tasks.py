"""The tasks that became, or are to become, sessions of their own: one row a message, whatever happens in between."""

import json
import sqlite3
from datetime import datetime
from typing import Any

from core.base.clock import from_iso, iso
from core.model.tasks import TaskRow, TaskState
from core.store import queries
from core.store.columns import Rows, column
from core.store.database import Database


class Tasks:
    """The rows. Writes are durable; inside an open transaction of this thread they are part of it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows = Rows(database, "tasks", "key", _row)

    def add(self, key: str, channel_kind: str, name: str, asked: dict[str, Any], now: datetime) -> bool:
        """Commit a task, and tell whether it is new. Raises StoreBroken."""
        values = (key, channel_kind, name, json.dumps(asked), iso(now))
        return self._database.write_alone(queries.ADD_TASK, values, durable=True) == 1

    def open(self, channel_kind: str) -> tuple[TaskRow, ...]:
        """Return the tasks that wait or run, the oldest first. Raises StoreBroken."""
        return self._rows.all(queries.OPEN_TASKS, (channel_kind,))

    def move(self, row: TaskRow, state: TaskState, ends_at: datetime | None = None) -> bool:
        """Let a task stand elsewhere from now on, without its words, and tell whether it stood where `row` says.

        Raises StoreBroken.
        """
        asked = {**row.asked, "message": {**row.asked["message"], "text": "", "quoted": "", "files": []}}
        values = {
            "key": row.key,
            "from": row.state.value,
            "to": state.value,
            "ends_at": iso(ends_at) if ends_at else None,
            "asked": json.dumps(asked),
        }
        return self._database.write_alone(queries.MOVE_TASK, values, durable=True) == 1

    def tried(self, row: TaskRow) -> None:
        """Count an attempt after which the task stands where it stood. Raises StoreBroken."""
        self._database.write_alone(queries.TRIED_TASK, (row.key,), durable=True)

    def get(self, key: str) -> TaskRow | None:
        """Return the task of a message; None where there is none. Raises StoreBroken."""
        return self._rows.one(queries.TASK, (key,))

    def ask(self, row: TaskRow, asked: dict[str, Any]) -> None:
        """Keep what is asked now, if the task still waits for its session. Raises StoreBroken."""
        self._database.write_alone(queries.ASK_TASK, (json.dumps(asked), row.key), durable=True)

    def forget(self, before: datetime) -> None:
        """Remove what was over before that time. Raises StoreBroken."""
        self._database.write_alone(queries.FORGET_TASKS, (iso(before),), durable=False)


def _row(found: sqlite3.Row) -> TaskRow:
    return TaskRow(
        key=found["key"],
        channel_kind=found["channel_kind"],
        name=found["name"],
        asked=column(found, "asked", json.loads),
        state=column(found, "state", TaskState),
        attempts=found["attempts"],
        ends_at=None if found["ends_at"] is None else column(found, "ends_at", from_iso),
    )
