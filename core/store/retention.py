"""Remove the rows of what is over for long. `Retention` says what stays because somebody may still ask for it."""

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
    """Removes what was over before a time and that nothing needs any more, at most so many rows a call.

    A call is a short transaction and returns how many rows it changed: fewer than asked for, and there is no more.

    Nothing here waits for the disk: what a power cut brings back is removed again.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def messages(self, before: datetime, living: Living, most: int) -> int:
        """Remove settled messages with their marks and files' lists. Ticks are the loops' own matter.

        One that is known again by its key, as a sweep that comes past it or a harness that repeats a notice does, loses
        its text alone. One that a turn or evidence may still be about stays as it is.

        Raises StoreBroken.
        """
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
        """Remove requests that were settled, and answered ones only once that was told. Raises StoreBroken."""
        with self._removing():
            return self._database.write(queries.DROP_REQUESTS, (iso(before), most))

    def posts(self, before: datetime, living: Living, most: int) -> int:
        """Remove posts that were sent, failed or left out, once no message, request, part or edit needs them.

        Raises StoreBroken.
        """
        values = {"instances": json.dumps(sorted(living.instances)), "before": iso(before), "most": most}
        with self._removing():
            return self._database.write(queries.DROP_OVER_POSTS, values)

    def traces(self, before: datetime, most: int) -> int:
        """Remove what only counts within a window, and the refusals of threads that are bound no more.

        Raises StoreBroken.
        """
        with self._removing():
            counted = [self._database.write(statement, (iso(before), most)) for statement in queries.DROP_COUNTED]
            return max(*counted, self._database.write(queries.DROP_REFUSED, (most,)))

    def past_ends(self, living: Living) -> frozenset[str]:
        """Return the instances of which an end is remembered, that nobody waits for and that are no session's any more.

        Raises StoreBroken.
        """
        if not living.all_known:
            return frozenset()
        found = self._database.read(queries.PAST_ENDS, (json.dumps(sorted(living.instances)),))
        return frozenset(row["instance"] for row in found)

    def forget_ends(self, instances: Collection[str]) -> None:
        """Forget those instances' ends. Raises StoreBroken."""
        with self._removing():
            self._database.write(queries.DROP_ENDS, (json.dumps(sorted(instances)),))

    def reporters(self) -> tuple[str, ...]:
        """Return the instances of which reports were taken in. Raises StoreBroken."""
        return tuple(row["instance"] for row in self._database.read(queries.REPORTERS))

    def reports(self, instance: str, before: str, spooled: Collection[str], most: int) -> int:
        """Forget that an instance's reports were taken in whose names sort before that, but for those that are still
        spooled.

        Raises StoreBroken.
        """
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
