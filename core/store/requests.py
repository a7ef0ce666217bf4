"""Rows of the database about requests: permissions, questions and dialogs that wait for an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from core.base.clock import from_iso, iso
from core.model.asking import Request, RequestKind, RequestState, Unseen, payload_of, questions_of
from core.store import queries
from core.store.columns import Rows, column, from_column, to_column

if TYPE_CHECKING:
    import sqlite3

    from core.store.database import Database


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
        rules=tuple(payload.get("rules", ())),
        questions=questions_of(payload),
        state=column(found, "state", RequestState),
        allowed=bool(found["allowed"]),
        answers=tuple(column(found, "answers", json.loads)),
        by=found["answered_by"],
        reason=found["reason"],
        settled_at=column(found, "settled_at", from_column),
        told=bool(found["told"]),
    )
