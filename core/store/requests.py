"""Permissions and questions that wait for a person, as rows of the database; and how often agents posted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from core.clock import from_iso, iso
from core.domain.asking import Request, RequestKind, RequestState, Unseen, payload_of, questions_of
from core.store import queries
from core.store.columns import from_column, to_column
from core.store.rows import Rows, column

if TYPE_CHECKING:
    import sqlite3

    from core.store.database import SqliteDatabase


class SqliteRequests:
    """Implements RequestBook. A call inside an open transaction of this thread is part of it."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._rows = Rows(database, "requests", "id", _request)

    def add(self, request: Request) -> bool:
        """See RequestBook."""
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
        """See RequestBook."""
        return self._rows.one(queries.REQUEST, (request_id,))

    def of_key(self, instance: str, key: str) -> Request | None:
        """See RequestBook."""
        return self._rows.one(queries.REQUEST_OF_KEY, (instance, key))

    def open(self, uid: str | None = None) -> tuple[Request, ...]:
        """See RequestBook."""
        return self._rows.all(queries.OPEN_REQUESTS, {"uid": uid})

    def untold(self) -> tuple[Request, ...]:
        """See RequestBook."""
        return self._rows.all(queries.UNTOLD_REQUESTS)

    def move(self, request: Request, **changes: Any) -> Request | None:
        """See RequestBook."""
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
        """See RequestBook."""
        with self._database.transaction(durable=True):
            self._database.write(queries.DROP_SPOKEN, (uid, iso(since), kind))
            if self._database.read(queries.SPOKEN, (uid, kind))[0]["posts"] >= most:
                return False
            self._database.write(queries.SPEAK, (uid, iso(at), kind))
            return True

    def forget(self, uid: str) -> None:
        """See RequestBook."""
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
