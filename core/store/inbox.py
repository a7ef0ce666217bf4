"""Rows of the database about messages on their way in, and the files that came with them."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from core.base.clock import Clock, from_iso, iso
from core.base.errors import Refused
from core.base.values import replace
from core.model.message import (
    TRANSITIONS,
    Attachment,
    Fetch,
    InboxRow,
    Kind,
    MessageState,
    NewMessage,
    ReplyAddress,
    decoded,
    encoded,
)
from core.model.session import Binding
from core.store import queries
from core.store.columns import Rows, column, from_column, reason_from, reason_to, to_column

if TYPE_CHECKING:
    import sqlite3

    from core.model.reasons import Because
    from core.store.database import Database


_LATEST = 200  #: messages of a session among which a thread's latest ones are looked for
_FIXED = {"message", "seq", "state", "because", "updated_at"}
_CHANGEABLE = frozenset(InboxRow.__match_args__) - _FIXED


class Inbox:
    """Messages on their way in. A call inside an open transaction of this thread is part of it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._rows = Rows(database, "inbox", "id", lru_cache(maxsize=2)(_inbox_row))  # a step reads its row twice
        self._fetches = Rows(database, "attachments", "message", _fetch)

    def add(self, messages: Sequence[NewMessage]) -> tuple[bool, ...]:
        """Commit all in one durable transaction; each answer tells whether it was new. Raises StoreBroken."""
        now = iso(self._clock.now())
        rows = [{**_inbox_columns(message), "updated_at": now} for message in messages]
        if len(rows) == 1:
            return (self._database.write_alone(queries.ADD_MESSAGE, rows[0], durable=True) == 1,)
        with self._database.transaction(durable=True):
            return tuple(self._database.write(queries.ADD_MESSAGE, row) == 1 for row in rows)

    def get(self, message_id: str) -> InboxRow | None:
        """Return one row. Raises StoreBroken."""
        return self._rows.one(queries.MESSAGE, (message_id,))

    def of_key(self, key: str) -> InboxRow | None:
        """Return the row of that key. Raises StoreBroken."""
        return self._rows.one(queries.MESSAGE_OF_KEY, (key,))

    def unsettled(self, uid: str, limit: int = -1) -> tuple[InboxRow, ...]:
        """Return the session's rows that are waiting or in flight: in flight first, ticks last, by order_us and seq.

        The first `limit` of them; -1: all.
        """
        return self._rows.all(queries.UNSETTLED, (uid, limit))

    def latest(self, uid: str, limit: int) -> tuple[InboxRow, ...]:
        """Return the session's latest rows, oldest first. Raises StoreBroken."""
        return self._rows.all(queries.LATEST_MESSAGES, (uid, limit))[::-1]

    def still(self, message_ids: Sequence[str], state: MessageState) -> tuple[str, ...]:
        """Return those of the messages that are in the state, in their order. Raises StoreBroken."""
        found = {row["id"] for row in self._database.read(queries.STILL, (json.dumps(list(message_ids)), state.value))}
        return tuple(message_id for message_id in message_ids if message_id in found)

    def with_states(self, uid: str, states: Collection[MessageState], limit: int = 200) -> tuple[InboxRow, ...]:
        """Return the session's rows in these states, newest first."""
        values = [state.value for state in states]
        if len(values) == 1 and (query := queries.WITH_STATE.get(values[0])):
            return self._rows.all(query, (uid, limit))
        query = queries.WITH_STATES.format(states=", ".join("?" * len(values)))
        return self._rows.all(query, (uid, *values, limit))

    def attempted(self, uid: str, states: Collection[MessageState], limit: int) -> tuple[InboxRow, ...]:
        """Return the session's rows in these states that were attempted and are not final, newest first."""
        query = queries.ATTEMPTED.format(states=", ".join("?" * len(states)))
        return self._rows.all(query, (uid, *(state.value for state in states), limit))

    def last_taken(self, uid: str, before: datetime) -> InboxRow | None:
        """Return the latest message written before that moment that reached the session's agent; notices aside."""
        found = self._database.read(queries.LAST_TAKEN, (uid, iso(before)))
        return _inbox_row(found[0]) if found else None

    def busy_uids(self) -> tuple[str, ...]:
        """Return the uids that have waiting or in-flight rows."""
        return tuple(found["uid"] for found in self._database.read(queries.BUSY_UIDS))

    def accepted_uids(self) -> tuple[str, ...]:
        """Return the uids with rows in a harness's own queue."""
        return tuple(found["uid"] for found in self._database.read(queries.ACCEPTED_UIDS))

    def waiting(self, uid: str) -> int:
        """Return how many of the session's rows wait. Raises StoreBroken."""
        found = self._database.read(queries.WAITING_COUNT, (uid,))
        return int(found[0]["waiting"]) if found else 0

    def is_closed(self, uid: str, address: ReplyAddress) -> bool:
        """Return whether a message of that thread was refused for want of room, and older ones wait still.

        Those that wait for a person's word hold up nobody. Raises StoreBroken.
        """
        from core.model.reasons import Reason  # what lists sessions asks for no message

        of = {
            "uid": uid,
            "kind": address.channel_kind,
            "team": address.team,
            "channel": address.channel,
            "thread": address.thread,
            "full": Reason.QUEUE_FULL.value,
            "confirm": Reason.CONFIRM.value,
        }
        return bool(self._database.read(queries.CLOSED, of)[0]["closed"])

    def counts(self) -> Mapping[str, int]:
        """Return waiting rows by uid, in one query."""
        return {found["uid"]: found["waiting"] for found in self._database.read(queries.WAITING_COUNTS)}

    def tally(self) -> Mapping[str, int]:
        """Return how many rows are in each state, by the state's value; one that no row is in is missing."""
        return {found["state"]: found["rows"] for found in self._database.read(queries.MESSAGE_TALLY)}

    def advance(self, row: InboxRow, state: MessageState, because: Because | None = None, **changes: Any) -> InboxRow:
        """Move a row on and return it as stored. `changes` name further columns of InboxRow.

        A cancelled row is committed durably: a person was told. Raises Refused if the row is no longer in the state and
        attempt that `row` shows, ValueError for a step the table lacks or a column that may not change.
        """
        if state not in TRANSITIONS[row.state]:
            raise ValueError(f"message {row.message.id}: no step from {row.state.value} to {state.value}")
        if foreign := changes.keys() - _CHANGEABLE:
            raise ValueError(f"message {row.message.id}: {', '.join(sorted(foreign))} cannot be changed")
        moved = replace(row, state=state, because=because, updated_at=self._clock.now(), **changes)
        durable = state is MessageState.CANCELLED
        if not self._database.write_alone(queries.ADVANCE_MESSAGE, _step(row, moved), durable=durable):
            raise _overtaken(row, self.get(row.message.id))
        return moved  # as stored: what else may change in a row, its text, counts as another attempt

    def edit(self, row: InboxRow, text: str) -> InboxRow:
        """Replace the text of a waiting row, durably, and return it as stored.

        It counts as another attempt, so that whoever has read the old text can no longer claim the row. Raises Refused
        if the row has moved on.
        """
        values = (text, iso(self._clock.now()), row.message.id, row.state.value, row.attempt)
        with self._database.transaction(durable=True):
            if not self._database.write(queries.EDIT_TEXT, values):
                raise _overtaken(row, self.get(row.message.id))
            return self._rows.decoded(self._database.read(queries.MESSAGE, (row.message.id,))[0])

    def of_thread(self, binding: Binding) -> tuple[tuple[str, bool], ...]:
        """Return the time stamps of the thread's replies that wait (True), and of its latest others (False)."""
        of = {
            "uid": binding.uid,
            "kind": binding.channel_kind,
            "team": binding.team,
            "channel": binding.channel,
            "thread": binding.thread,
            "latest": _LATEST,
        }
        return tuple((found["from_ts"], bool(found["waits"])) for found in self._database.read(queries.OF_THREAD, of))

    def add_files(self, message_id: str, files: Sequence[Attachment]) -> None:
        """Note which files came with a message. Part of the open transaction."""
        self._database.write(queries.ADD_FILES, (message_id, encoded(files)))

    def told_files(self, message_id: str) -> str | None:
        """Return the lines about its files that a message's text ends with: "" without files, None before they came."""
        found = self._database.read(queries.FILES_OF, (message_id,))
        if not found:
            return ""
        return None if found[0]["told"] is None else str(found[0]["told"])

    def tell_files(self, message_id: str, told: str) -> bool:
        """Keep those lines, once; False if they were told before. Part of the open transaction."""
        return self._database.write(queries.TELL_FILES, (told, message_id)) == 1

    def to_fetch(self, channel_kind: str) -> tuple[Fetch, ...]:
        """Return the messages of a chat that still wait for their files. Raises StoreBroken."""
        return self._fetches.all(queries.FILES_TO_FETCH, (channel_kind,))

    def cancel_waiting(self, uid: str, because: Because) -> tuple[InboxRow, ...]:
        """Cancel every waiting row of the session, durably, and return them as stored."""
        with self._database.transaction(durable=True):
            ids = [found["id"] for found in self._database.read(queries.WAITING_IDS, (uid,))]
            self._database.write(queries.CANCEL_WAITING, (because.code, because.given, iso(self._clock.now()), uid))
            found = (self._database.read(queries.MESSAGE, (message_id,))[0] for message_id in ids)
            return self._rows.understood(found)[0]

    def check(self) -> None:
        """Look at all that is not over, for rows that nobody can understand. Raises StoreBroken."""
        self._rows.all(queries.CHECK_MESSAGES, (json.dumps([state.value for state in MessageState]),))


def _overtaken(row: InboxRow, now: InboxRow | None) -> Refused:
    stands = f"it is {now.state.value} (attempt {now.attempt})" if now else "it is gone"
    return Refused(
        f"message {row.message.id} is no longer {row.state.value} (attempt {row.attempt}): {stands}",
        "somebody else has moved it on; read it again",
    )


def _inbox_columns(message: NewMessage) -> dict[str, Any]:
    address = message.address
    return {
        "id": message.id,
        "key": message.key,
        "uid": message.uid,
        "name": message.name,
        "generation": message.generation,
        "kind": message.kind.value,
        "actor": message.actor,
        "who": message.who,
        "via": message.via,
        "marker": message.marker,
        "text": message.text,
        "raw": int(message.raw),
        "order_us": message.order_us,
        "created_at": iso(message.created_at),
        "from_kind": address and address.channel_kind,
        "from_team": address and address.team,
        "from_channel": address and address.channel,
        "from_thread": address and address.thread,
        "from_ts": address and address.ts,
        "again_of": message.again_of,
        "run": message.run,
        "task": message.task,
    }


def _step(row: InboxRow, moved: InboxRow) -> dict[str, Any]:
    return {
        "id": row.message.id,
        "was_state": row.state.value,
        "was_attempt": row.attempt,
        "state": moved.state.value,
        **reason_to(moved.because),
        "updated_at": iso(moved.updated_at),
        "instance": moved.instance,
        "attempt": moved.attempt,
        "attempt_deadline": to_column(moved.attempt_deadline),
        "pasted_at": to_column(moved.pasted_at),
        "submitted_at": to_column(moved.submitted_at),
        "submits": moved.submits,
        "stashed": int(moved.stashed),
        "final": int(moved.final),
        "queued_at": to_column(moved.queued_at),
    }


def _inbox_row(found: sqlite3.Row) -> InboxRow:
    return InboxRow(
        message=_message(found),
        seq=found["seq"],
        state=column(found, "state", MessageState),
        because=reason_from(found),
        updated_at=column(found, "updated_at", from_iso),
        instance=found["instance"],
        attempt=found["attempt"],
        attempt_deadline=column(found, "attempt_deadline", from_column),
        pasted_at=column(found, "pasted_at", from_column),
        submitted_at=column(found, "submitted_at", from_column),
        submits=found["submits"],
        stashed=bool(found["stashed"]),
        final=bool(found["final"]),
        queued_at=column(found, "queued_at", from_column),
    )


def _message(found: sqlite3.Row) -> NewMessage:
    return NewMessage(
        id=found["id"],
        key=found["key"],
        uid=found["uid"],
        name=found["name"],
        generation=found["generation"],
        kind=column(found, "kind", Kind),
        actor=found["actor"],
        who=found["who"],
        via=found["via"],
        marker=found["marker"],
        text=found["text"],
        raw=bool(found["raw"]),
        order_us=found["order_us"],
        created_at=column(found, "created_at", from_iso),
        address=_address(found),
        again_of=found["again_of"],
        run=found["run"],
        task=found["task"],
    )


def _fetch(found: sqlite3.Row) -> Fetch:
    return Fetch(found["message"], found["name"], column(found, "files", decoded))


def _address(found: sqlite3.Row) -> ReplyAddress | None:
    if found["from_kind"] is None:
        return None
    return ReplyAddress(
        channel_kind=found["from_kind"],
        team=found["from_team"],
        channel=found["from_channel"],
        thread=found["from_thread"],
        ts=found["from_ts"],
    )
