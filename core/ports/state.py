"""What is kept on the disk: records, locks, the event log, the database and how long it keeps things."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from core.domain.message import MessageState
from core.domain.session import SessionRecord
from core.errors import RecordUnreadable
from core.values import dataclass


class Records(Protocol):
    """One file a session. Writes need the session's lock; reads need none."""

    def read(self, name: str) -> SessionRecord | None:
        """Return the record, or None if there is none. Raises RecordUnreadable."""
        ...

    def all(self) -> tuple[SessionRecord | RecordUnreadable, ...]:
        """Return every record by name, unreadable ones as the error that names path and reason."""
        ...

    def write(self, record: SessionRecord) -> None:
        """Replace the file: temp file, fsync, rename. Raises StoreBroken, RecordUnreadable (never overwritten)."""
        ...

    def remove(self, name: str) -> None:
        """Remove the file; absent is fine. Raises StoreBroken."""
        ...


class Locks(Protocol):
    """The sessions' locks, exclusive across processes and threads."""

    def hold(self, name: str, purpose: str, seconds: float) -> AbstractContextManager[None]:
        """Hold the session's lock. Raises LockBusy after `seconds`, naming the holder and its purpose."""
        ...


class EventLog(Protocol):
    """Append-only record of what happened."""

    def emit(
        self,
        event: str,
        *,
        level: str = "info",
        name: str | None = None,
        actor: str | None = None,
        reason: str | None = None,
        detail: str | MessageState | None = None,
        instance: str | None = None,
        generation: int | None = None,
        message: str | None = None,
        channel: str | None = None,
        thread: str | None = None,
        text: str | None = None,
    ) -> None:
        """Append one event. `ref` follows from `name`; `text` is stored as length and hash unless includeText.

        A log that cannot be written is reported on the standard log and stops nobody.
        """
        ...

    def emit_all(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Append events that belong together, in one write: each with the fields that `emit` takes."""
        ...

    def read(self, *, follow: bool = False) -> Iterator[Mapping[str, Any]]:
        """Yield every event that is kept, oldest first; with `follow` also those to come. Raises StoreBroken."""
        ...


@dataclass(frozen=True)
class Living:
    """What the records tell of sessions that there are."""

    uids: frozenset[str]
    instances: frozenset[str]  #: each session's latest
    all_known: bool  #: False: a record cannot be read, so whoever is not named here may exist, too


class Retention(Protocol):
    """Removes what was over before a time and that nothing needs any more, at most so many rows a call.

    A call is a short transaction and returns how many rows it changed: fewer than asked for, and there is no more.
    """

    def messages(self, before: datetime, living: Living, most: int) -> int:
        """Remove settled messages with their marks and files' lists. Ticks are the loops' own matter.

        One that is known again by its key, as a sweep that comes past it or a harness that repeats a notice does, loses
        its text alone. One that a turn or evidence may still be about stays as it is.
        """
        ...

    def requests(self, before: datetime, most: int) -> int:
        """Remove requests that were settled, and answered ones only once that was told."""
        ...

    def posts(self, before: datetime, living: Living, most: int) -> int:
        """Remove posts that were sent, failed or left out, once no message, request, part or edit needs them."""
        ...

    def traces(self, before: datetime, most: int) -> int:
        """Remove what only counts within a window, and the refusals of threads that are bound no more."""
        ...

    def past_ends(self, living: Living) -> frozenset[str]:
        """Return the instances of which an end is remembered, that nobody waits for and that are no session's any
        more."""
        ...

    def forget_ends(self, instances: Collection[str]) -> None:
        """Forget those instances' ends."""
        ...

    def reporters(self) -> tuple[str, ...]:
        """Return the instances of which reports were taken in."""
        ...

    def reports(self, instance: str, before: str, spooled: Collection[str], most: int) -> int:
        """Forget that an instance's reports were taken in whose names sort before that, but for those that are still
        spooled."""
        ...


class Database(Protocol):
    """Transactions over inbox, outbox, bindings, loops and activities."""

    @property
    def path(self) -> Path:
        """Return its file."""
        ...

    def transaction(self, *, durable: bool) -> AbstractContextManager[None]:
        """Run the calls of this thread's block as one transaction; `durable` syncs it to the disk before it returns."""
        ...

    def transaction_to_sync(self) -> AbstractContextManager[None]:
        """Run the calls of this thread's block as one transaction that is durable once `sync` has returned."""
        ...

    def sync(self) -> None:
        """Return once all that was committed is on the disk. Callable from every thread. Raises StoreBroken."""
        ...

    def open(self) -> None:
        """Make the database where there is none. Raises StoreBroken."""
        ...

    def leave(self) -> None:
        """Let go of what this thread holds to use it, outside of a transaction; its next use begins anew."""
        ...

    def is_there(self) -> bool:
        """Tell whether there is one that holds anything. Raises StoreBroken where that cannot be seen."""
        ...

    def same_file(self) -> None:
        """Raise StoreGone where the file was removed, replaced or emptied since this process has opened it."""
        ...

    def check(self) -> None:
        """Raise StoreBroken where what is in it is damaged, as far as a second of looking shows."""
        ...

    def ingested(self, instance: str, report: str) -> bool:
        """Record that a spool report is being taken in; False if it was before. Part of the open transaction."""
        ...

    def end_told(self, instance: str, turn: str, at: datetime) -> bool:
        """Record that the end of a turn is being told; False if it was before. Part of the open transaction."""
        ...

    def forget_reports(self, instance: str) -> None:
        """Forget which reports of an instance were taken in, and its turns, once its spool folder is gone."""
        ...

    def heard(self, channel_kind: str, mark: str, now: datetime, until: datetime, *, durable: bool) -> bool:
        """Record that a request of a chat is being taken; False if it was before. It is known until then."""
        ...

    def unheard(self, channel_kind: str, mark: str) -> None:
        """Forget a request that was not taken: it may come again."""
        ...

    def bad_rows(self) -> tuple[str, ...]:
        """Return the rows that were found and not understood so far, each with its remedy."""
        ...
