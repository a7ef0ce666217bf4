"""Rows of the database about loops and their runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from core.base.clock import Clock, from_iso, iso
from core.base.names import new_run_id
from core.base.values import replace
from core.model.loop import TRANSITIONS, Held, Loop, LoopRun, LoopStatus, Mode, RunState
from core.store import queries
from core.store.columns import Rows, column, from_column, to_column

if TYPE_CHECKING:
    import sqlite3

    from core.store.database import Database


_FIXED = {"id", "uid", "created_by", "created_at", "revision"}
_CHANGEABLE = frozenset(Loop.__match_args__) - _FIXED
_RUN_FIXED = {"id", "loop_id", "uid", "slot", "number"}
_RUN_CHANGEABLE = frozenset(LoopRun.__match_args__) - _RUN_FIXED
_MICROSECOND = timedelta(microseconds=1)
_FAR_AHEAD = timedelta(hours=1)  #: no lease ends so much later than one that is taken now


class Loops:
    """Loops and their runs. Every call may raise StoreBroken.

    A call inside an open transaction of this thread is part of it.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._loops = Rows(database, "loops", "id", _loop)
        self._runs = Rows(database, "loop_runs", "id", _run)

    def add(self, loop: Loop, most_open: int) -> bool:
        """Store a new loop durably; False, and no change, if its session has `most_open` open ones (0: no limit).

        False also where its declaration has an open loop already.
        """
        with self._database.transaction(durable=True):
            return self._database.write(queries.ADD_LOOP, {**_loop_columns(loop), "most_open": most_open}) == 1

    def get(self, loop_id: str) -> Loop | None:
        """Return the loop of that id."""
        return self._loops.one(queries.LOOP, (loop_id,))

    def of_session(self, uid: str) -> tuple[Loop, ...]:
        """Return the session's loops, open ones first, each group oldest first."""
        return self._loops.all(queries.LOOPS_OF_SESSION, (uid,))

    def all_open(self) -> tuple[Loop, ...]:
        """Return the open loops of all sessions."""
        return self._loops.all(queries.OPEN_LOOPS)

    def holds_open(self, uid: str) -> bool:
        """Return whether the session has an active keep-alive loop."""
        return bool(self._database.read(queries.HOLDS_OPEN, (uid,)))

    def change(self, loop: Loop, **changes: Any) -> Loop | None:
        """Change fields durably and return the loop as stored; None, and no change, if it has another revision.

        Raises ValueError for a step that the table of states lacks, or a field that may not change.
        """
        _check(f"loop {loop.id}", changes, _CHANGEABLE)
        status = changes.get("status", loop.status)
        if status is not loop.status and status not in TRANSITIONS[loop.status].values():
            raise ValueError(f"loop {loop.id}: no step from {loop.status.value} to {status.value}")
        with self._database.transaction(durable=True):
            if not self._database.write(queries.CHANGE_LOOP, _loop_columns(replace(loop, **changes))):
                return None
            return self._loops.decoded(self._database.read(queries.LOOP, (loop.id,))[0])

    def next_due(self) -> datetime | None:
        """Return when the next active, unheld loop without an open run is due, or a claim lapses if that is earlier."""
        found = self._database.read(queries.NEXT_DUE)
        try:
            return from_column(found[0]["at"]) if found else None
        except ValueError:  # of a row that cannot be understood, which is told where it is read: the others fire
            known = (_moment(row["at"]) for row in self._database.read(queries.EVERY_DUE))
            return min((at for at in known if at is not None), default=None)

    def claim(self, now: datetime, claimer: str, lease_until: datetime, most: int) -> tuple[tuple[Loop, LoopRun], ...]:
        """Claim due runs in one durable transaction, and those of whose claim the lease has lapsed, under their old id.

        A loop is due when it is active, not held, has no open run and its next_run_at has come; its next_run_at stays.
        Taken in turns over the sessions, each session's loops by how long they have been due. A claim that lapsed and
        whose loop no longer fires is over, outcome `lapsed`: nothing of it was sent.
        """
        if not self._anything_due(now, lease_until):
            return ()
        with self._database.transaction(durable=True):
            self._database.write(queries.DROP_LAPSED, _around(now, lease_until))
            again = self._claim_again(now, claimer, lease_until, most)
            return again + self._claim_new(now, claimer, lease_until, most - len(again))

    def held(self) -> tuple[Loop, ...]:
        """Return the active loops that something keeps from firing."""
        return self._loops.all(queries.HELD_LOOPS)

    def run(self, run_id: str) -> LoopRun | None:
        """Return the run of that id."""
        return self._runs.one(queries.RUN, (run_id,))

    def open_runs(self, uid: str | None = None) -> tuple[LoopRun, ...]:
        """Return the runs that are not over, of one session or of all."""
        return self._runs.all(queries.OPEN_RUNS) if uid is None else self._runs.all(queries.OPEN_RUNS_OF, (uid,))

    def any_open_run(self) -> bool:
        """Return whether any run is not over."""
        return bool(self._database.read(queries.ANY_OPEN_RUN))

    def settled_runs(self) -> tuple[LoopRun, ...]:
        """Return the runs that are SENT and whose inbox row neither waits nor is in flight any more."""
        return self._runs.all(queries.SETTLED_RUNS)

    def move_run(self, run: LoopRun, **changes: Any) -> LoopRun | None:
        """Change fields of a run and return it; None if it is no longer in the state and claim that `run` shows.

        Part of the open transaction where there is one, so that a tick's inbox row and its run move together.

        Raises ValueError for a field that may not change.
        """
        _check(f"run {run.id}", changes, _RUN_CHANGEABLE)
        moved = replace(run, **changes)
        values = {
            **_run_columns(moved),
            "updated_at": iso(self._clock.now()),
            "was_state": run.state.value,
            "was_claimer": run.claimer,
            "was_lease": iso(run.lease_until),
        }
        with self._database.transaction(durable=False):
            if not self._database.write(queries.MOVE_RUN, values):
                return None
            return self._runs.decoded(self._database.read(queries.RUN, (run.id,))[0])

    def forget(self, uid: str) -> None:
        """Remove what is known of a session that is gone."""
        with self._database.transaction(durable=True):
            for statement in queries.FORGET_LOOPS:
                self._database.write(statement, (uid,))

    def over_ticks(self, before: datetime) -> tuple[tuple[str, str], ...]:
        """Return uid and message id of the ticks that `prune` would remove."""
        return tuple((found["uid"], found["id"]) for found in self._database.read(queries.OVER_TICKS, (iso(before),)))

    def prune(self, before: datetime, ended_before: datetime | None = None) -> int:
        """Remove runs that were over, and the inbox rows of such, before that time; return how many rows went.

        Loops go that had ended before `ended_before`, or before that time without it. The latest loop of a declaration
        stays: it tells that its declaration was carried out.
        """
        with self._database.transaction(durable=False):
            runs = self._database.write(queries.PRUNE_RUNS, (iso(before),))
            ticks = self._database.write(queries.PRUNE_TICKS, (iso(before),))
            return runs + ticks + self._database.write(queries.PRUNE_LOOPS, (iso(ended_before or before),))

    # ------------------------------------------------------------ claims

    def _anything_due(self, now: datetime, lease_until: datetime) -> bool:
        due = self.next_due()
        return (due is not None and due <= now) or bool(
            self._database.read(queries.ANY_LAPSED, _around(now, lease_until))
        )

    def _claim_again(
        self, now: datetime, claimer: str, lease_until: datetime, most: int
    ) -> tuple[tuple[Loop, LoopRun], ...]:
        lapsed = self._runs.all(queries.LAPSED_RUNS, {**_around(now, lease_until), "most": most})
        runs = [self.move_run(run, claimer=claimer, lease_until=lease_until) for run in lapsed]
        return tuple((self._stored(run.loop_id), run) for run in runs if run is not None)

    def _claim_new(
        self, now: datetime, claimer: str, lease_until: datetime, most: int
    ) -> tuple[tuple[Loop, LoopRun], ...]:
        found = self._database.read(queries.DUE_LOOPS, {"now": iso(now), "most": most})
        loops = [(loop, row) for row in found for loop in self._loops.understood([row])[0]]
        return tuple((loop, self._new_run(row, claimer, lease_until)) for loop, row in loops)

    def _new_run(self, due: sqlite3.Row, claimer: str, lease_until: datetime) -> LoopRun:
        self._database.write(queries.COUNT_CLAIM, (due["id"],))
        run = LoopRun(
            id=new_run_id(),
            loop_id=due["id"],
            uid=due["uid"],
            slot=from_iso(due["next_run_at"]),
            number=due["claims"] + 1,
            state=RunState.CLAIMED,
            claimer=claimer,
            lease_until=lease_until,
        )
        self._database.write(queries.ADD_RUN, {**_run_columns(run), "updated_at": iso(self._clock.now())})
        return run

    def _stored(self, loop_id: str) -> Loop:
        return self._loops.decoded(self._database.read(queries.LOOP, (loop_id,))[0])


def _moment(text: str) -> datetime | None:
    try:
        return from_iso(text)
    except (ValueError, TypeError):
        return None


def _around(now: datetime, lease_until: datetime) -> dict[str, str]:
    """Return between which times the lease of somebody who lives ends."""
    return {"now": iso(now), "ahead": iso(lease_until + _FAR_AHEAD)}


def _check(what: str, changes: Mapping[str, Any], changeable: frozenset[str]) -> None:
    if foreign := changes.keys() - changeable:
        raise ValueError(f"{what}: {', '.join(sorted(foreign))} cannot be changed")


def _loop_columns(loop: Loop) -> dict[str, Any]:
    interval = loop.interval and loop.interval // _MICROSECOND
    return {
        **loop.__dict__,
        "mode": loop.mode.value,
        "created_at": iso(loop.created_at),
        "interval_us": interval,
        "keep_alive": int(loop.keep_alive),
        "asked": int(loop.asked),
        "status": loop.status.value,
        "held": loop.held and loop.held.value,
        "held_until": to_column(loop.held_until),
        "held_at": to_column(loop.held_at),
        "last_run_at": to_column(loop.last_run_at),
        "next_run_at": to_column(loop.next_run_at),
        "ended_at": to_column(loop.ended_at),
    }


def _held(text: str | None) -> Held | None:
    return Held(text) if text else None


def _loop(found: sqlite3.Row) -> Loop:
    interval = found["interval_us"]
    return Loop(
        id=found["id"],
        uid=found["uid"],
        name=found["name"],
        instruction=found["instruction"],
        mode=column(found, "mode", Mode),
        created_by=found["created_by"],
        created_at=column(found, "created_at", from_iso),
        interval=None if interval is None else timedelta(microseconds=interval),
        cron=found["cron"],
        time_zone=found["time_zone"],
        keep_alive=bool(found["keep_alive"]),
        max_runs=found["max_runs"],
        status=column(found, "status", LoopStatus),
        held=column(found, "held", _held),
        held_until=column(found, "held_until", from_column),
        held_at=column(found, "held_at", from_column),
        run_count=found["run_count"],
        deferrals=found["deferrals"],
        failures=found["failures"],
        last_run_at=column(found, "last_run_at", from_column),
        last_result=found["last_result"],
        last_error=found["last_error"],
        next_run_at=column(found, "next_run_at", from_column),
        reason=found["reason"],
        ended_at=column(found, "ended_at", from_column),
        declared=found["declared"],
        digest=found["digest"],
        asked=bool(found["asked"]),
        revision=found["revision"],
    )


def _run_columns(run: LoopRun) -> dict[str, Any]:
    return {
        **run.__dict__,
        "state": run.state.value,
        "slot": iso(run.slot),
        "lease_until": iso(run.lease_until),
        "last": int(run.last),
        "deferred": int(run.deferred),
        "taken_at": to_column(run.taken_at),
    }


def _run(found: sqlite3.Row) -> LoopRun:
    return LoopRun(
        id=found["id"],
        loop_id=found["loop_id"],
        uid=found["uid"],
        slot=column(found, "slot", from_iso),
        number=found["number"],
        state=column(found, "state", RunState),
        claimer=found["claimer"],
        lease_until=column(found, "lease_until", from_iso),
        last=bool(found["last"]),
        message_id=found["message_id"],
        taken_at=column(found, "taken_at", from_column),
        instance=found["instance"],
        outcome=found["outcome"],
        detail=found["detail"],
        deferred=bool(found["deferred"]),
    )
