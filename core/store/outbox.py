"""Rows of the database about what is said to people: posts, marks at messages, progress of turns."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from core.base.clock import Clock, from_iso, iso
from core.base.errors import Refused
from core.base.values import replace
from core.model.asking import Button, Press
from core.model.message import MessageState
from core.model.posts import (
    ANEW,
    BACK,
    ENDED,
    FAILED,
    IN_QUEUE,
    MOVED,
    OURS,
    RANKS,
    SHOWN_STEPS,
    Mark,
    MarkRow,
    NewPost,
    NoteStand,
    NoteWait,
    OutboundKind,
    OutboxRow,
    PostState,
    ProgressRow,
)
from core.store import queries
from core.store.columns import Rows, column, from_column, reason_from, reason_to, to_column

if TYPE_CHECKING:
    import sqlite3

    from core.model.reasons import Because, Reason
    from core.store.database import Database


DUE_POSTS = queries.due_posts({kind.value: rank for kind, rank in RANKS.items()})
_NO_NOTE = NoteStand("", 0, 0, 0)
_OPEN = frozenset({PostState.PENDING, PostState.SENDING})


class Outbox:
    """Posts on their way out, in order within a thread.

    A call inside an open transaction of this thread is part of it.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        exact: Callable[[str], str] = str,
        own_chat: Callable[[NewPost], str] = lambda post: "",
    ) -> None:
        """`exact` makes the commands that a text of ours names such that they can be typed.

        `own_chat` tells the kind of the chat in which the post's session has its thread, "" where it has none.
        """
        self._database = database
        self._own_chat = own_chat
        self._clock = clock
        self._exact = exact
        self._rows = Rows(database, "outbox", "id", _outbox_row)

    def add(self, posts: Sequence[NewPost]) -> tuple[bool, ...]:
        """Commit all durably; each answer tells whether it was new. Raises StoreBroken.

        A post to the session's own chat, of a session that has none, is not committed.
        """
        with self._database.transaction(durable=True):
            return tuple([self._add(post) for post in posts])

    def _add(self, post: NewPost) -> bool:
        kind = post.channel_kind or self._own_chat(post)
        if not kind:
            return False
        text = self._exact(post.text) if post.kind in OURS else post.text
        columns = _outbox_columns(replace(post, channel_kind=kind, text=text))
        return self._database.write(queries.ADD_POST, {**columns, "now": iso(self._clock.now())}) == 1

    def due(self, channel_kind: str, now: datetime) -> tuple[OutboxRow, ...]:
        """Return the first open row of each session (uid) whose not_before has passed, by rank (RANKS) and seq.

        Where the first one still has to wait, the session's later ones wait with it.
        """
        passed_over: list[int] = []
        while True:
            found = self._database.read(DUE_POSTS, (channel_kind, json.dumps(passed_over), iso(now)))
            rows, odd = self._rows.understood(found)
            if not odd:
                return rows
            passed_over += [row["seq"] for row in odd]

    def open(self, channel_kind: str) -> tuple[OutboxRow, ...]:
        """Return all posts that are neither sent nor given up, in the order of their commits. Raises StoreBroken."""
        return self._rows.all(queries.OPEN_POSTS, (channel_kind,))

    def get(self, post_id: str) -> OutboxRow | None:
        """Return the row of a post. Raises StoreBroken."""
        return self._rows.one(queries.POST_OF_ID, (post_id,))

    def latest(self, uid: str, kinds: Collection[OutboundKind], limit: int) -> tuple[tuple[OutboxRow, datetime], ...]:
        """Return the session's latest posts of these kinds that all may see, oldest first, and when each was committed.

        Raises StoreBroken.
        """
        query = queries.LATEST_POSTS.format(kinds=", ".join("?" * len(kinds)))
        found = self._database.read(query, (uid, *(kind.value for kind in kinds), limit))
        known = {row.seq: row for row in self._rows.understood(found)[0]}
        return tuple((known[row["seq"]], from_iso(row["added_at"])) for row in found[::-1] if row["seq"] in known)

    def whole(self, row: OutboxRow) -> OutboxRow:
        """Return the row that a part was made from, and any other row as it is. Raises StoreBroken."""
        found = [] if row.part_of is None else self._database.read(queries.POST, (row.part_of,))
        return _outbox_row(found[0]) if found else row

    def latest_note(self, group: str) -> NewPost | None:
        """Return the group's latest note as it stands: what made it, or its latest edit. Raises StoreBroken."""
        found = self._rows.all(queries.LATEST_NOTE, (group,))
        return found[0].post if found else None

    def is_overtaken(self, row: OutboxRow) -> bool:
        """Return whether a later edit of the same message waits behind this one. Raises StoreBroken."""
        post = row.post
        values = (post.channel_kind, post.uid, row.seq, post.edits)
        return bool(post.edits) and bool(self._database.read(queries.OVERTAKEN, values))

    def is_said_again(self, row: OutboxRow) -> bool:
        """Return whether a later post of its kind and session waits that says the very same. Raises StoreBroken."""
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

    def tell_anew(self, uid: str, before: Reason, because: Because, remedy: str) -> bool:
        """Let the notes about the session's messages in doubt tell that reason in place of the one before.

        Return whether there are any. Raises StoreBroken.
        """
        values = {"uid": uid, "before": before.value, "remedy": remedy, "anew": ANEW, **reason_to(because)}
        with self._database.transaction(durable=False):
            return self._database.write(queries.TELL_ANEW, values) > 0

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
        """Return the notes with a message that no longer stands as they tell. Raises StoreBroken."""
        values = {"chat": channel_kind, "moved": MOVED, "queued": IN_QUEUE, "back": BACK, "anew": ANEW}
        return tuple(row["note"] for row in self._database.read(queries.OUTDATED_NOTES, values))

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
            from core.model.reasons import Because, Reason  # what lists sessions splits no post

            self.advance(row, PostState.SPLIT, because=Because(Reason.IN_PARTS, {"count": len(parts)}))
            for number, part in enumerate(parts, start=1):
                place = {"part_of": row.seq, "part": number, "now": iso(self._clock.now())}
                self._database.write(queries.ADD_PART, {**_outbox_columns(part), **place})

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


def _outbox_columns(post: NewPost) -> dict[str, str | int]:
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
    from core.model.reasons import said

    why = reason_from(found) or said("")
    return NoteWait(found["message"], why, found["remedy"], found["ended"], bool(found["doubtful"]))


def _outbox_row(found: sqlite3.Row) -> OutboxRow:
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


class Marks:
    """What a person is shown of each message by a reaction to it, and what follows from the message's row.

    What a row should show follows from the inbox, so that no change of it can be missed.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._rows = Rows(database, "inbox", "id", _mark_row)

    def changed(self, channel_kind: str, since: datetime) -> tuple[MarkRow, ...]:
        """Return what has changed at or after that time, oldest first. Raises StoreBroken."""
        return self._rows.all(queries.MARKS_CHANGED, {"kind": channel_kind, "since": iso(since)})

    def over(
        self, uid: str, instance: str, since: datetime, until: datetime | None = None, *, failed: bool
    ) -> tuple[str, ...]:
        """Note that the instance's turn is over which took the session's messages since then, and return their ids.

        `until`: what left the harness's own queue later than that began another turn. None: now. Part of the open
        transaction.
        """
        end = iso(until or self._clock.now())
        values = {"uid": uid, "instance": instance, "since": iso(since), "until": end}
        with self._database.transaction(durable=False):
            taken = tuple(str(row["id"]) for row in self._database.read(queries.MARKS_TAKEN, values))
            self.end(dict.fromkeys(taken, failed))
        return taken

    def left(self, since: datetime) -> Mapping[str, bool]:
        """Return the messages that look as if a turn were at them and none is, of whose end nobody told.

        With each whether its turn was cut off: its instance has ended, or the turn did without its harness's word.
        `since`: those confirmed at or after that time may not have been shown as taken.

        Raises StoreBroken.
        """
        from core.model.reasons import Reason

        found = self._database.read(queries.MARKS_LEFT, {"since": iso(since), "cut_off": Reason.CUT_OFF.value})
        return {row["id"]: bool(row["failed"]) for row in found}

    def end(self, left: Mapping[str, bool]) -> None:
        """Note that the turns which took these messages are over, and whether they were cut off.

        Raises StoreBroken.
        """
        now = iso(self._clock.now())
        with self._database.transaction(durable=False):
            for message_id, failed in left.items():
                self._database.write(queries.MARK_OVER, (message_id, FAILED if failed else ENDED, now))

    def fail(self, message_id: str) -> None:
        """Note that the turn which took the message was cut off, whatever was taken for its end. Raises StoreBroken."""
        with self._database.transaction(durable=False):
            self._database.write(queries.MARK_FAILED_LATE, (message_id, FAILED, iso(self._clock.now())))

    def asked(self, row: MarkRow, mark: Mark) -> None:
        """Note that the reaction may stand there from now on. Raises StoreBroken."""
        with self._database.transaction(durable=False):
            self._database.write(queries.MARK_ASKED, {"message": row.message, "asked": mark.value, "at": iso(row.at)})

    def failed(self, message_id: str) -> bool:
        """Return whether the turn that took the message failed, or was cut off. Raises StoreBroken."""
        return bool(self._database.read(queries.MARK_FAILED, (message_id, FAILED)))

    def shown(self, message_id: str, mark: Mark) -> None:
        """Note which reaction stands there now. Raises StoreBroken."""
        values = {"message": message_id, "shown": mark.value, "at": iso(self._clock.now())}
        with self._database.transaction(durable=False):
            self._database.write(queries.MARK_SHOWN, values)


def _mark(text: str) -> Mark | None:
    return Mark(text) if text else None


def _marks(text: str | None) -> frozenset[Mark]:
    return frozenset(Mark(word) for word in (text or "").split(",") if word)


def _mark_row(found: sqlite3.Row) -> MarkRow:
    return MarkRow(
        message=found["id"],
        channel=found["from_channel"],
        ts=found["from_ts"],
        state=column(found, "state", MessageState),
        over=found["over"],
        shown=column(found, "shown", _mark),
        at=column(found, "at", from_iso),
        final=bool(found["final"]),
        may_stand=column(found, "asked", _marks) | column(found, "earlier", _marks),
    )


class Progress:
    """What the running turn of each session has done so far, and how much of it its thread was told.

    One row a session, for its latest turn.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows = Rows(database, "progress", "uid", _progress_row)

    def note(self, uid: str, turn: str, line: str) -> None:
        """Add a line; another turn begins with none. Raises StoreBroken."""
        with self._database.transaction(durable=False):
            found = self._database.read(queries.PROGRESS, (uid,))
            before = self._rows.decoded(found[0]) if found and found[0]["turn"] == turn else ProgressRow(uid, turn)
            lines = (*before.lines, " ".join(line.splitlines()))[-SHOWN_STEPS:]
            self._database.write(
                queries.PUT_PROGRESS, _progress_columns(replace(before, lines=lines, steps=before.steps + 1))
            )

    def due(self) -> tuple[ProgressRow, ...]:
        """Return the turns with lines that were not told. Raises StoreBroken."""
        return self._rows.all(queries.PROGRESS_DUE)

    def asked(self, row: ProgressRow) -> None:
        """Note durably that its message may stand in the thread. Raises StoreBroken."""
        with self._database.transaction(durable=True):
            self._database.write(queries.PROGRESS_ASKED, (row.uid, row.turn))

    def told(self, row: ProgressRow, channel: str, ts: str) -> None:
        """Note that the row's lines stand in that message; nothing where another turn has begun."""
        with self._database.transaction(durable=False):
            self._database.write(queries.PROGRESS_TOLD, (row.steps, channel, ts, row.uid, row.turn))

    def forget(self, uid: str) -> None:
        """Remove what is known of a session. Raises StoreBroken."""
        with self._database.transaction(durable=False):
            self._database.write(queries.FORGET_PROGRESS, (uid,))


def _progress_row(found: sqlite3.Row) -> ProgressRow:
    return ProgressRow(
        uid=found["uid"],
        turn=found["turn"],
        lines=tuple(found["lines"].split("\n")),
        steps=found["steps"],
        told=found["told"],
        asked=bool(found["asked"]),
        channel=found["channel"],
        ts=found["ts"],
    )


def _progress_columns(row: ProgressRow) -> Mapping[str, Any]:
    return {
        "uid": row.uid,
        "turn": row.turn,
        "lines": "\n".join(row.lines),
        "steps": row.steps,
        "told": row.told,
        "asked": int(row.asked),
        "channel": row.channel,
        "ts": row.ts,
    }
