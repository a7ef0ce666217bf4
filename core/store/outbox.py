"""Posts on their way out, as rows of the database."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from core.clock import Clock, iso
from core.domain.buttons import Button, Press
from core.domain.reasons import Because, Reason, said
from core.errors import Refused
from core.ports import MOVED, NewPost, NoteStand, NoteWait, OutboundKind, OutboxRow, PostState
from core.store import queries
from core.store.columns import from_column, reason_from, reason_to, to_column
from core.store.rows import Rows, column
from core.values import replace

if TYPE_CHECKING:
    import sqlite3

    from core.store.database import SqliteDatabase

_NO_NOTE = NoteStand("", 0, 0, 0)
_OPEN = frozenset({PostState.PENDING, PostState.SENDING})
_OURS = frozenset(  #: what we say ourselves; the rest are an agent's words, in which nothing is changed
    {
        OutboundKind.ROOT,
        OutboundKind.ROOT_UPDATE,
        OutboundKind.REFRESH,
        OutboundKind.BOOT,
        OutboundKind.NOTE,
        OutboundKind.WHISPER,
        OutboundKind.CLOSING,
    }
)


class SqliteOutbox:
    """Implements Outbox. A call inside an open transaction of this thread is part of it."""

    def __init__(self, database: SqliteDatabase, clock: Clock, exact: Callable[[str], str] = str) -> None:
        """`exact` makes the commands that a text of ours names such that they can be typed."""
        self._database = database
        self._clock = clock
        self._exact = exact
        self._rows = Rows(database, "outbox", "id", _row)

    def add(self, posts: Sequence[NewPost]) -> tuple[bool, ...]:
        """Commit all durably; each answer tells whether it was new. Raises StoreBroken."""
        with self._database.transaction(durable=True):
            return tuple(self._database.write(queries.ADD_POST, self._row_of(post)) == 1 for post in posts)

    def _row_of(self, post: NewPost) -> dict[str, str | int]:
        exact = replace(post, text=self._exact(post.text)) if post.kind in _OURS else post
        return {**_columns(exact), "now": iso(self._clock.now())}

    def due(self, channel_kind: str, now: datetime) -> tuple[OutboxRow, ...]:
        """Return the first open row of each session (uid) whose not_before has passed, by rank (RANKS) and seq.

        Where the first one still has to wait, the session's later ones wait with it.
        """
        passed_over: list[int] = []
        while True:
            found = self._database.read(queries.DUE_POSTS, (channel_kind, json.dumps(passed_over), iso(now)))
            rows, odd = self._rows.understood(found)
            if not odd:
                return rows
            passed_over += [row["seq"] for row in odd]

    def get(self, post_id: str) -> OutboxRow | None:
        """Return the row of a post. Raises StoreBroken."""
        return self._rows.one(queries.POST_OF_ID, (post_id,))

    def whole(self, row: OutboxRow) -> OutboxRow:
        """Return the row that a part was made from, and any other row as it is. Raises StoreBroken."""
        found = [] if row.part_of is None else self._database.read(queries.POST, (row.part_of,))
        return _row(found[0]) if found else row

    def latest_note(self, group: str) -> NewPost | None:
        """Return the group's latest note as it stands: what made it, or its latest edit. Raises StoreBroken."""
        found = self._rows.all(queries.LATEST_NOTE, (group,))
        return found[0].post if found else None

    def is_overtaken(self, row: OutboxRow) -> bool:
        """Tell whether a later edit of the same message waits behind this one. Raises StoreBroken."""
        post = row.post
        values = (post.channel_kind, post.uid, row.seq, post.edits)
        return bool(post.edits) and bool(self._database.read(queries.OVERTAKEN, values))

    def is_said_again(self, row: OutboxRow) -> bool:
        """Tell whether a later post of its kind and session waits that says the very same. Raises StoreBroken."""
        post = row.post
        values = (post.channel_kind, post.uid, row.seq, post.kind.value, post.text)
        return bool(self._database.read(queries.SAID_AGAIN, values))

    def note_wait(self, note: str, wait: NoteWait) -> None:
        """Note that a message waits, or is in doubt, as that note tells; an earlier note that it waits is out of date.

        Raises StoreBroken.
        """
        with self._database.transaction(durable=False):
            if not wait.doubtful:
                self._database.write(queries.MOVE_WAIT, (MOVED, wait.message, note))
            why = wait.because
            values = (note, wait.message, why.code, why.given, wait.remedy, wait.doubtful)
            self._database.write(queries.NOTE_WAIT, values)

    def waits_in(self, note: str) -> tuple[NoteWait, ...]:
        """Return the messages that a note tells of, in the order in which they go in. Raises StoreBroken."""
        return tuple(_wait(row) for row in self._database.read(queries.WAITS_IN, (note,)))

    def end_wait(self, note: str, message: str, ended: str) -> None:
        """Note how a message's waiting ended, as its note is told to say. Raises StoreBroken."""
        with self._database.transaction(durable=False):
            self._database.write(queries.END_WAIT, (ended, note, message))

    def forget_waits(self, note: str, messages: Collection[str]) -> None:
        """Forget that the note tells of these. Raises StoreBroken."""
        with self._database.transaction(durable=False):
            for message in messages:
                self._database.write(queries.FORGET_WAIT, (note, message))

    def outdated_notes(self, channel_kind: str) -> tuple[str, ...]:
        """Return the notes with a message that no longer waits as they tell. Raises StoreBroken."""
        return tuple(row["note"] for row in self._database.read(queries.OUTDATED_NOTES, (channel_kind, MOVED)))

    def with_buttons(self, channel_kind: str, ts: str) -> tuple[OutboxRow, ...]:
        """Return the posts with buttons that stand in the message of that time stamp. Raises StoreBroken."""
        return self._rows.all(queries.POST_WITH_BUTTONS, (ts, channel_kind))

    def tally(self) -> Mapping[str, int]:
        """Return how many rows are in each state, by the state's value; one that no row is in is missing."""
        return {found["state"]: found["rows"] for found in self._database.read(queries.POST_TALLY)}

    def advance(
        self,
        row: OutboxRow,
        state: PostState,
        *,
        ts: str | None = None,
        because: Because | None = None,
        not_before: datetime | None = None,
        attempts: int | None = None,
    ) -> OutboxRow:
        """Move a row on and return it as stored; SENDING counts an attempt, unless `attempts` says how many there were.

        `ts` None keeps the one it has.

        SENDING is durable, for the post that follows cannot be taken back. Raises Refused if the row is no longer as
        `row` shows it, ValueError for one that is sent or failed: both are final.
        """
        if row.state not in _OPEN:
            raise ValueError(f"post {row.post.id} is {row.state.value}, which is final")
        step = {
            "seq": row.seq,
            "was_state": row.state.value,
            "was_attempts": row.attempts,
            "state": state.value,
            "ts": ts or row.ts,
            **reason_to(because),
            "not_before": to_column(not_before),
            "attempts": row.attempts + (state is PostState.SENDING) if attempts is None else attempts,
            "now": iso(self._clock.now()),
        }
        with self._database.transaction(durable=state is PostState.SENDING):
            if not self._database.write(queries.ADVANCE_POST, step):
                raise Refused(
                    f"post {row.post.id} is no longer {row.state.value} (attempt {row.attempts})",
                    "somebody else has moved it on; read what is due again",
                )
            return self._rows.decoded(self._database.read(queries.POST, (row.seq,))[0])

    def split(self, row: OutboxRow, parts: Sequence[NewPost]) -> None:
        """Put the parts in the place of a pending row, all or none, durably.

        They come before whatever was committed after the row. Raises Refused if the row has moved on.
        """
        with self._database.transaction(durable=True):
            self.advance(row, PostState.SPLIT, because=Because(Reason.IN_PARTS, {"count": len(parts)}))
            for number, part in enumerate(parts, start=1):
                place = {"part_of": row.seq, "part": number, "now": iso(self._clock.now())}
                self._database.write(queries.ADD_PART, {**_columns(part), **place})

    def edit_instead(self, uid: str, channel_kind: str) -> None:
        """Let the session's roots that wait bring the announcement up to date that is there, durably."""
        with self._database.transaction(durable=True):
            self._database.write(queries.EDIT_INSTEAD, (iso(self._clock.now()), channel_kind, uid))

    def drop(self, uid: str, because: Because) -> int:
        """Fail the session's open rows that are not CLOSING, durably, and return how many."""
        with self._database.transaction(durable=True):
            return self._database.write(queries.DROP_POSTS, (because.code, because.given, iso(self._clock.now()), uid))

    def check(self) -> None:
        """Look at all that is not over, for rows that nobody can understand. Raises StoreBroken."""
        self._rows.all(queries.CHECK_POSTS, (json.dumps([state.value for state in PostState]),))


def _columns(post: NewPost) -> dict[str, str | int]:
    note = post.note or _NO_NOTE
    return {
        "id": post.id,
        "key": post.key,
        "kind": post.kind.value,
        "uid": post.uid,
        "name": post.name,
        "channel_kind": post.channel_kind,
        "text": post.text,
        "channel": post.channel,
        "thread": post.thread,
        "buttons": _buttons_column(post.buttons),
        "edits": post.edits,
        "path": post.path,
        "only_for": post.only_for,
        "about": post.about,
        "starts": post.starts,
        "note_group": note.group,
        "note_start": note.start,
        "note_edits": note.edits,
        "note_count": note.count,
    }


def _note(found: sqlite3.Row) -> NoteStand | None:
    if not found["note_group"]:
        return None
    return NoteStand(found["note_group"], found["note_start"], found["note_edits"], found["note_count"])


def _buttons_column(buttons: Sequence[Button]) -> str:
    if not buttons:
        return ""
    return json.dumps([[one.press.value, one.target, one.label, *one.place, one.style] for one in buttons])


def _buttons(column: str) -> tuple[Button, ...]:
    if not column:
        return ()
    found = json.loads(column)
    return tuple(
        Button(Press(press), target, label, (question, option), style)
        for press, target, label, question, option, style in found
    )


def _wait(found: sqlite3.Row) -> NoteWait:
    why = reason_from(found) or said("")
    return NoteWait(found["message"], why, found["remedy"], found["ended"], bool(found["doubtful"]))


def _row(found: sqlite3.Row) -> OutboxRow:
    post = NewPost(
        id=found["id"],
        key=found["key"],
        kind=column(found, "kind", OutboundKind),
        uid=found["uid"],
        name=found["name"],
        channel_kind=found["channel_kind"],
        text=found["text"],
        channel=found["channel"],
        thread=found["thread"],
        buttons=column(found, "buttons", _buttons),
        edits=found["edits"],
        path=found["path"],
        only_for=found["only_for"],
        about=found["about"],
        starts=found["starts"],
        note=_note(found),
    )
    return OutboxRow(
        post=post,
        seq=found["seq"],
        state=column(found, "state", PostState),
        attempts=found["attempts"],
        not_before=column(found, "not_before", from_column),
        ts=found["ts"],
        because=reason_from(found),
        part_of=found["part_of"],
    )
