"""Rows about live posts, and the steps of the turns that they show."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from core.base.clock import from_iso, iso
from core.model.live import LiveRow, LiveShown, LiveState, StepState, TurnStep, shown_of
from core.store import queries
from core.store.columns import Rows, column

if TYPE_CHECKING:
    import sqlite3

    from core.store.database import Database


class Lives:
    """Live posts, one row each until it has ended, and the steps of each session's latest turn.

    Every call may raise StoreBroken.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._rows = Rows(database, "live_posts", "id", _live_row)
        self._steps = Rows(database, "turn_steps", "uid", _step)

    # ------------------------------------------------------------ steps

    def begin_step(self, uid: str, turn: str, call: str, tool: str, detail: str) -> None:
        """Add a tool that runs; another turn begins with none. Part of the open transaction, if there is one."""
        with self._database.transaction(durable=False):
            self._database.write(queries.FORGET_OLD_STEPS, (uid, turn))
            values = {"uid": uid, "turn": turn, "call": call, "tool": tool, "detail": detail}
            self._database.write(queries.ADD_STEP, {**values, "state": StepState.RUNNING.value})

    def end_step(self, uid: str, turn: str, call: str, tool: str, state: StepState) -> None:
        """Note how a tool ended: the call of that id, or the oldest of that name that runs."""
        values = {"uid": uid, "turn": turn, "call": call, "tool": tool}
        self._database.write_alone(queries.END_STEP, {**values, "state": state.value}, durable=False)

    def steps(self, uid: str, turn: str) -> tuple[TurnStep, ...]:
        """Return the turn's steps, in their order."""
        return self._steps.all(queries.STEPS, (uid, turn))

    # ------------------------------------------------------------ live posts

    def all(self, channel_kind: str) -> tuple[LiveRow, ...]:
        """Return every live post of a chat, the oldest first."""
        return self._rows.all(queries.LIVE_POSTS, (channel_kind,))

    def get(self, live_id: str) -> LiveRow | None:
        """Return the live post of that id."""
        return self._rows.one(queries.LIVE_POST, (live_id,))

    def of_post(self, post_id: str) -> LiveRow | None:
        """Return the live post that a post is to end."""
        return self._rows.one(queries.LIVE_OF_POST, (post_id,))

    def reader(self, uid: str, instance: str, channel_kind: str, since: str) -> str:
        """Return who in that chat asked for the instance's running turn, as `actor` has them; "" for nobody.

        `since`: when the turn began (ISO).
        """
        found = self._database.read(queries.READER, (uid, instance, channel_kind, since))
        return str(found[0]["actor"]) if found else ""

    def add(self, row: LiveRow) -> None:
        """Store a new one, durably: what follows posts a message."""
        values = {
            "id": row.id, "uid": row.uid, "turn": row.turn, "channel_kind": row.channel_kind,
            "channel": row.channel, "thread": row.thread, "reader": row.reader, "ts": row.ts,
            "state": row.state.value, "opened_at": iso(row.opened_at), "round": row.round,
            "shown": json.dumps(row.shown.to_json()), "post": row.post,
        }  # fmt: skip
        self._database.write_alone(queries.ADD_LIVE, values, durable=True)

    def move(self, row: LiveRow, state: LiveState, *, ts: str | None = None) -> None:
        """Let it stand elsewhere from now on, durably. `ts` None keeps the message that it has."""
        values = (state.value, row.ts if ts is None else ts, row.id)
        self._database.write_alone(queries.MOVE_LIVE, values, durable=True)

    def show(self, row: LiveRow, shown: LiveShown) -> None:
        """Note what it shows now."""
        self._database.write_alone(queries.SHOW_LIVE, (json.dumps(shown.to_json()), row.id), durable=False)

    def answered(self, uid: str, turn: str, post_id: str) -> None:
        """Let that post end the turn's live post, if it has one. Part of the transaction that commits the post."""
        self._database.write_alone(queries.LIVE_ANSWERED, (post_id, uid, turn), durable=False)

    def follow(self, row: LiveRow, post_id: str) -> None:
        """Let another post end it: a part of the one before. Part of the transaction that makes the part."""
        self._database.write_alone(queries.LIVE_FOLLOWS, (post_id, row.id), durable=False)

    def end(self, row: LiveRow) -> None:
        """Forget one that has ended, or is gone."""
        self._database.write_alone(queries.FORGET_LIVE, (row.id,), durable=True)

    def forget(self, uid: str) -> None:
        """Remove the steps of a session, and have its live posts removed."""
        with self._database.transaction(durable=True):
            self._database.write(queries.FORGET_STEPS, (uid,))
            self._database.write(queries.LEAVE_LIVE, (uid,))


def _live_row(found: sqlite3.Row) -> LiveRow:
    return LiveRow(
        id=found["id"],
        uid=found["uid"],
        turn=found["turn"],
        channel_kind=found["channel_kind"],
        channel=found["channel"],
        thread=found["thread"],
        reader=found["reader"],
        ts=found["ts"],
        state=column(found, "state", LiveState),
        opened_at=column(found, "opened_at", from_iso),
        round=found["round"],
        shown=column(found, "shown", lambda text: shown_of(json.loads(text))),
        post=found["post"],
    )


def _step(found: sqlite3.Row) -> TurnStep:
    return TurnStep(found["number"], found["call"], found["tool"], found["detail"], column(found, "state", StepState))
