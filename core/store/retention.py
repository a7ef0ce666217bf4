"""Removes the rows of what is over for long. What may still be asked for stays; see Retention for what that is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from core.base.clock import iso
from core.base.values import dataclass
from core.store import queries as queries

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    pass
    from core.store.database import Database


_OVERWRITE = "PRAGMA secure_delete = ON"  #: of this thread's connection: what is removed is not left in free pages


class Retention:
    """Implements Retention. Nothing here waits for the disk: what a power cut brings back is removed again."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def messages(self, before: datetime, living: Living, most: int) -> int:
        """See Retention. Raises StoreBroken."""
        values = {**_known(living), "before": iso(before), "most": most}
        with self._removing():
            found = self._database.read(queries.OVER_MESSAGES, values)
            kept = json.dumps([row["id"] for row in found if row["kept"]])
            gone = json.dumps([row["id"] for row in found if not row["kept"]])
            self._database.write(queries.BLANK_MESSAGES, (kept,))
            self._database.write(queries.DROP_FILES, (json.dumps([row["id"] for row in found]),))
            self._database.write(queries.DROP_MARKS, (gone,))
            self._database.write(queries.DROP_MESSAGES, (gone,))
        return len(found)

    def requests(self, before: datetime, most: int) -> int:
        """See Retention. Raises StoreBroken."""
        with self._removing():
            return self._database.write(queries.DROP_REQUESTS, (iso(before), most))

    def posts(self, before: datetime, living: Living, most: int) -> int:
        """See Retention. Raises StoreBroken."""
        values = {"instances": json.dumps(sorted(living.instances)), "before": iso(before), "most": most}
        with self._removing():
            return self._database.write(queries.DROP_OVER_POSTS, values)

    def traces(self, before: datetime, most: int) -> int:
        """See Retention. Raises StoreBroken."""
        with self._removing():
            counted = [self._database.write(statement, (iso(before), most)) for statement in queries.DROP_COUNTED]
            return max(*counted, self._database.write(queries.DROP_REFUSED, (most,)))

    def past_ends(self, living: Living) -> frozenset[str]:
        """See Retention. Raises StoreBroken."""
        if not living.all_known:
            return frozenset()
        found = self._database.read(queries.PAST_ENDS, (json.dumps(sorted(living.instances)),))
        return frozenset(row["instance"] for row in found)

    def forget_ends(self, instances: Collection[str]) -> None:
        """See Retention. Raises StoreBroken."""
        with self._removing():
            self._database.write(queries.DROP_ENDS, (json.dumps(sorted(instances)),))

    def reporters(self) -> tuple[str, ...]:
        """See Retention. Raises StoreBroken."""
        return tuple(row["instance"] for row in self._database.read(queries.REPORTERS))

    def reports(self, instance: str, before: str, spooled: Collection[str], most: int) -> int:
        """See Retention. Raises StoreBroken."""
        values = {"instance": instance, "before": before, "spooled": json.dumps(sorted(spooled)), "most": most}
        with self._removing():
            return self._database.write(queries.DROP_REPORTS, values)

    def _removing(self) -> Any:
        self._database.read(_OVERWRITE)
        return self._database.transaction(durable=False)


def _known(living: Living) -> dict[str, Any]:
    return {
        "uids": json.dumps(sorted(living.uids)),
        "instances": json.dumps(sorted(living.instances)),
        "unknown": int(not living.all_known),
    }


@dataclass(frozen=True)
class Living:
    """What the records tell of sessions that there are."""

    uids: frozenset[str]
    instances: frozenset[str]  #: each session's latest
    all_known: bool  #: False: a record cannot be read, so whoever is not named here may exist, too
