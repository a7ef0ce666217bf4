"""Which thread belongs to which session, as rows of the database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.clock import from_iso, iso
from core.domain.binding import Binding
from core.errors import Refused
from core.store import queries
from core.store.rows import Rows, column

if TYPE_CHECKING:
    import sqlite3

    from core.store.database import SqliteDatabase


class SqliteBindings:
    """Implements Bindings. Writes are durable; inside an open transaction of this thread they are part of it."""

    def __init__(self, database: SqliteDatabase) -> None:
        self._database = database
        self._rows = Rows(database, "bindings", "uid", _binding)

    def bind(self, binding: Binding) -> None:
        """Bind, replacing an earlier binding of the session for that channel kind.

        Raises Refused where the thread belongs to another session: a reply would reach the wrong one.
        """
        with self._database.transaction(durable=True):
            taken = self.of_thread(binding.channel_kind, binding.team, binding.channel, binding.thread)
            if taken is not None and taken.uid != binding.uid:
                raise Refused(
                    f"thread {binding.thread} of channel {binding.channel} belongs to {taken.name!r} already",
                    "give the session a thread of its own",
                )
            self._database.write(queries.UNBIND, (binding.uid, binding.channel_kind))
            self._database.write(queries.BIND, _columns(binding))

    def of_thread(self, channel_kind: str, team: str, channel: str, thread: str) -> Binding | None:
        """Return the binding of a thread. Raises StoreBroken."""
        return self._rows.one(queries.BINDING_OF_THREAD, (channel_kind, team, channel, thread))

    def of_session(self, uid: str, channel_kind: str) -> Binding | None:
        """Return the session's binding. Raises StoreBroken."""
        return self._rows.one(queries.BINDING_OF_SESSION, (uid, channel_kind))

    def all(self, channel_kind: str) -> tuple[Binding, ...]:
        """Return every binding of that kind, by name. Raises StoreBroken."""
        return self._rows.all(queries.BINDINGS, (channel_kind,))

    def move_cursor(self, binding: Binding, ts: str) -> None:
        """Note that all of the thread up to that message was swept; never backwards, never for another binding."""
        place = (binding.channel_kind, binding.team, binding.channel, binding.thread, binding.uid)
        self._database.write(queries.MOVE_CURSOR, (ts, *place, ts))

    def note_sharing(self, binding: Binding, shared: bool) -> None:
        """Keep whether the channel was shared with others when it was first looked at; once a binding."""
        place = (binding.channel_kind, binding.team, binding.channel, binding.thread, binding.uid)
        self._database.write(queries.NOTE_SHARING, (int(shared), *place))

    def refuse(self, key: str, channel: str, thread: str, ts: str) -> None:
        """Remember by its key, without a word of it, that a reply was refused."""
        self._database.write(queries.REFUSE_REPLY, (key, channel, thread, ts))

    def was_refused(self, key: str) -> bool:
        """Tell whether the reply was refused before. Raises StoreBroken."""
        return bool(self._database.read(queries.REFUSED_REPLY, (key,)))

    def forget_refused(self, binding: Binding, before: str) -> None:
        """Forget the refusals that no sweep comes past again, and note from where on one does."""
        place = (binding.channel_kind, binding.team, binding.channel, binding.thread, binding.uid)
        self._database.write(queries.FORGET_REFUSED, (binding.channel, binding.thread, before))
        self._database.write(queries.NOTE_SWEPT, (before, *place, before))

    def unbind(self, uid: str, channel_kind: str) -> Binding | None:
        """Remove the session's binding and return it."""
        with self._database.transaction(durable=True):
            binding = self.of_session(uid, channel_kind)
            self._database.write(queries.UNBIND, (uid, channel_kind))
            if binding is not None:
                self.leave(uid, channel_kind, binding.channel, binding.thread)
            return binding

    def leave(self, uid: str, channel_kind: str, channel: str, thread: str) -> None:
        """Note that the thread is the session's no more, whatever its record says; only its last one counts."""
        self._database.write(queries.LEAVE_THREAD, (channel_kind, uid, channel, thread))

    def is_left(self, uid: str, channel_kind: str, channel: str, thread: str) -> bool:
        """Tell whether the session has left the thread. Raises StoreBroken."""
        return bool(self._database.read(queries.LEFT_THREAD, (channel_kind, uid, channel, thread)))

    def left(self, channel_kind: str) -> frozenset[str]:
        """Return the sessions (uids) that have left a thread, whether they have another or not. Raises StoreBroken."""
        return frozenset(found["uid"] for found in self._database.read(queries.LEFT_BY, (channel_kind,)))

    def forget(self, uid: str) -> None:
        """Forget what a session has left that is no more."""
        self._database.write(queries.FORGET_LEFT, (uid,))


def _columns(binding: Binding) -> dict[str, str]:
    return {
        "channel_kind": binding.channel_kind,
        "team": binding.team,
        "channel": binding.channel,
        "thread": binding.thread,
        "uid": binding.uid,
        "name": binding.name,
        "created_at": iso(binding.created_at),
        "begins": binding.begins,
    }


def _binding(found: sqlite3.Row) -> Binding:
    return Binding(
        channel_kind=found["channel_kind"],
        team=found["team"],
        channel=found["channel"],
        thread=found["thread"],
        uid=found["uid"],
        name=found["name"],
        created_at=column(found, "created_at", from_iso),
        cursor=found["cursor"],
        begins=found["begins"],
        shared=None if found["shared"] is None else bool(found["shared"]),
    )
