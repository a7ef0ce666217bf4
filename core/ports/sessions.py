"""What is known of sessions besides their records: threads, activity, ends, requests, loops."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from core.domain.activity import Activity
from core.domain.asking import Request
from core.domain.binding import Binding
from core.domain.loop import Loop, LoopRun
from core.domain.watchbook import Announced, End


class Bindings(Protocol):
    """Which thread belongs to which session; one thread a session and channel kind."""

    def bind(self, binding: Binding) -> None:
        """Bind, replacing an earlier binding of the session for that channel kind."""
        ...

    def of_thread(self, channel_kind: str, team: str, channel: str, thread: str) -> Binding | None:
        """Return the binding of a thread."""
        ...

    def of_session(self, uid: str, channel_kind: str) -> Binding | None:
        """Return the session's binding."""
        ...

    def all(self, channel_kind: str) -> tuple[Binding, ...]:
        """Return every binding of that kind."""
        ...

    def move_cursor(self, binding: Binding, ts: str) -> None:
        """Note that all of the thread up to that message was swept; never backwards. Part of the open transaction."""
        ...

    def note_sharing(self, binding: Binding, shared: bool) -> None:
        """Keep whether the channel was shared with others at first sight. Part of the open transaction."""
        ...

    def refuse(self, key: str, channel: str, thread: str, ts: str) -> None:
        """Remember by its key that a reply was refused. Part of the open transaction."""
        ...

    def was_refused(self, key: str) -> bool:
        """Tell whether the reply was refused before."""
        ...

    def forget_refused(self, binding: Binding, before: str) -> None:
        """Forget the thread's refusals before that time stamp, which no sweep comes past again. Part of the open
        transaction."""
        ...

    def unbind(self, uid: str, channel_kind: str) -> Binding | None:
        """Remove the session's binding and return it; the thread is left."""
        ...

    def leave(self, uid: str, channel_kind: str, channel: str, thread: str) -> None:
        """Note that the thread is the session's no more, whatever its record says. Part of the open transaction."""
        ...

    def is_left(self, uid: str, channel_kind: str, channel: str, thread: str) -> bool:
        """Tell whether that is the thread that the session left last."""
        ...

    def left(self, channel_kind: str) -> frozenset[str]:
        """Return the sessions (uids) that have left a thread, whether they have another or not."""
        ...

    def forget(self, uid: str) -> None:
        """Forget which thread a session has left that is no more. Part of the open transaction."""
        ...


class Activities(Protocol):
    """What each session does, as last told."""

    def get(self, uid: str) -> Activity | None:
        """Return the session's activity."""
        ...

    def all(self) -> Mapping[str, Activity]:
        """Return all activities by uid, in one query."""
        ...

    def put(self, activity: Activity) -> None:
        """Store it."""
        ...

    def touch_message(self, uid: str, at: datetime) -> None:
        """Remember when the session last got a message."""
        ...

    def last_messages(self) -> Mapping[str, datetime]:
        """Return by uid when each session last got a message."""
        ...

    def forget(self, uid: str) -> None:
        """Remove what is known of a session."""
        ...


class Watchbook(Protocol):
    """What the supervisor must still know after it was killed. Every call may raise StoreBroken."""

    def end(self, instance: str) -> End | None:
        """Return what is known of the end of an instance."""
        ...

    def due(self) -> tuple[End, ...]:
        """Return the ends after which something is to be brought back, the earliest first."""
        ...

    def leave(self, instance: str, uid: str) -> None:
        """Note that a person leaves the instance by its own command."""
        ...

    def tell(
        self, instance: str, uid: str, at: datetime, due_at: datetime | None = None, *, counted: bool = False
    ) -> bool:
        """Note that the end was told, and when the session is brought back; False, and no change, if it was before."""
        ...

    def put_off(self, instance: str, due_at: datetime | None) -> None:
        """Bring the session back at another time, or not at all."""
        ...

    def plan(self, instance: str, due_at: datetime) -> None:
        """Bring a session back whose end was told before that was asked for; it counts as after any crash."""
        ...

    def count_restart(self, uid: str, at: datetime) -> None:
        """Note a restart after a crash, before it is tried."""
        ...

    def restarts(self, uid: str, since: datetime) -> tuple[datetime, ...]:
        """Return when the session was restarted after crashes since then."""
        ...

    def announced(self, uid: str) -> Announced | None:
        """Return the idleness that was announced last."""
        ...

    def announce(self, announced: Announced) -> None:
        """Note that an idleness is announced."""
        ...

    def forget(self, uid: str) -> None:
        """Remove what is known of a session."""
        ...


class RequestBook(Protocol):
    """Permissions and questions that wait for a person. Every call may raise StoreBroken."""

    def add(self, request: Request) -> bool:
        """Store an open request durably; False, and no change, if its instance asked under that key before."""
        ...

    def get(self, request_id: str) -> Request | None:
        """Return the request of that id."""
        ...

    def of_key(self, instance: str, key: str) -> Request | None:
        """Return what the instance asked under that key."""
        ...

    def open(self, uid: str | None = None) -> tuple[Request, ...]:
        """Return the open requests, of one session or of all, oldest first."""
        ...

    def untold(self) -> tuple[Request, ...]:
        """Return the answered requests whose answer was not handed over."""
        ...

    def move(self, request: Request, **changes: Any) -> Request | None:
        """Change fields of the request durably and return it; None if it is no longer as `request` shows it."""
        ...

    def spoke(self, uid: str, at: datetime, since: datetime, most: int, kind: str = "post") -> bool:
        """Note that the session's agent speaks; False, and no change, if it did so `most` times since then.

        `kind`: what is counted by itself: "post" into its thread, "say" to another session.
        """
        ...

    def forget(self, uid: str) -> None:
        """Remove what is known of a session."""
        ...


class Loops(Protocol):
    """Loops and their runs. Every call may raise StoreBroken."""

    def add(self, loop: Loop, most_open: int) -> bool:
        """Store a new loop durably; False, and no change, if its session has `most_open` open ones (0: no limit).

        False also where its declaration has an open loop already.
        """
        ...

    def get(self, loop_id: str) -> Loop | None:
        """Return the loop of that id."""
        ...

    def of_session(self, uid: str) -> tuple[Loop, ...]:
        """Return the session's loops, open ones first, each group oldest first."""
        ...

    def all_open(self) -> tuple[Loop, ...]:
        """Return the open loops of all sessions."""
        ...

    def counts(self) -> Mapping[str, int]:
        """Return by uid how many loops are open, in one query."""
        ...

    def holds_open(self, uid: str) -> bool:
        """Tell whether the session has an active keep-alive loop."""
        ...

    def change(self, loop: Loop, **changes: Any) -> Loop | None:
        """Change fields durably and return the loop as stored; None, and no change, if it has another revision."""
        ...

    def next_due(self) -> datetime | None:
        """Return when the next active, unheld loop without an open run is due, or a claim lapses if that is earlier."""
        ...

    def claim(self, now: datetime, claimer: str, lease_until: datetime, most: int) -> tuple[tuple[Loop, LoopRun], ...]:
        """Claim due runs in one durable transaction, and those of whose claim the lease has lapsed, under their old id.

        A loop is due when it is active, not held, has no open run and its next_run_at has come; its next_run_at stays.
        Taken in turns over the sessions, each session's loops by how long they have been due. A claim that lapsed and
        whose loop no longer fires is over, outcome `lapsed`: nothing of it was sent.
        """
        ...

    def held(self) -> tuple[Loop, ...]:
        """Return the active loops that something keeps from firing."""
        ...

    def run(self, run_id: str) -> LoopRun | None:
        """Return the run of that id."""
        ...

    def open_runs(self, uid: str | None = None) -> tuple[LoopRun, ...]:
        """Return the runs that are not over, of one session or of all."""
        ...

    def any_open_run(self) -> bool:
        """Tell whether any run is not over."""
        ...

    def settled_runs(self) -> tuple[LoopRun, ...]:
        """Return the runs that are SENT and whose inbox row neither waits nor is in flight any more."""
        ...

    def move_run(self, run: LoopRun, **changes: Any) -> LoopRun | None:
        """Change fields of a run and return it; None if it is no longer in the state and claim that `run` shows.

        Part of the open transaction where there is one, so that a tick's inbox row and its run move together.
        """
        ...

    def forget(self, uid: str) -> None:
        """Remove what is known of a session that is gone."""
        ...

    def over_ticks(self, before: datetime) -> tuple[tuple[str, str], ...]:
        """Return uid and message id of the ticks that `prune` would remove."""
        ...

    def prune(self, before: datetime, ended_before: datetime | None = None) -> int:
        """Remove runs that were over, and the inbox rows of such, before that time; return how many rows went.

        Loops go that had ended before `ended_before`, or before that time without it.
        The latest loop of a declaration stays: it tells that its declaration was carried out.
        """
        ...
