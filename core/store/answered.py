"""What was answered to requests under their Idempotency-Key, so that the same request gets the same answer."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from core.base.clock import iso
from core.base.values import dataclass
from core.store import queries

if TYPE_CHECKING:
    from core.store.database import Database

KEPT = timedelta(hours=24)  #: from the request on


@dataclass(frozen=True)
class Answered:
    """A request that was begun under a key, and its answer; `status` None: none is known."""

    digest: str  #: of the request
    status: int | None
    body: bytes


class AnswerBook:
    """Requests and answers by who asked and under which key. Every call may raise StoreBroken."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, who: str, key: str, digest: str, now: datetime) -> Answered | None:
        """Note, durably, that a request is about to be done; return what was noted under its key before, if anything.

        What is older than KEPT is forgotten.
        """
        with self._database.transaction(durable=True):
            self._database.write(queries.FORGET_ANSWERED, (iso(now - KEPT),))
            if self._database.write(queries.BEGIN_ANSWERED, (who, key, digest, iso(now))) == 1:
                return None
            [row] = self._database.read(queries.ANSWERED, (who, key))
            return Answered(row["digest"], row["status"], row["body"])

    def keep(self, who: str, key: str, status: int, body: bytes) -> None:
        """Keep the answer, durably."""
        with self._database.transaction(durable=True):
            self._database.write(queries.KEEP_ANSWERED, (status, body, who, key))

    def release(self, who: str, key: str) -> None:
        """Forget a request for which nothing was done: it may come again."""
        with self._database.transaction(durable=True):
            self._database.write(queries.RELEASE_ANSWERED, (who, key))
