"""What core needs of the outside, as Protocols: adapters (store, tmux, harness, a channel) implement, wiring picks."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from core.domain.activity import Activity
from core.domain.asking import Request
from core.domain.attachment import Attachment as Attachment
from core.domain.attachment import Fetch as Fetch
from core.domain.attachment import Fetched as Fetched
from core.domain.binding import Binding as Binding
from core.domain.buttons import Button as Button
from core.domain.buttons import Role as Role
from core.domain.harness import HarnessEvent, Launch, Opinion, Report, SessionContext, Traits
from core.domain.loop import Loop, LoopRun
from core.domain.marking import Mark, MarkRow
from core.domain.message import InboxRow, MessageState, NewMessage
from core.domain.pane import Pane, Paste, Receipt, Spawn, Survey, Typing, Written
from core.domain.posting import OutboundKind as OutboundKind
from core.domain.posting import ProgressRow
from core.domain.rebinding import ThreadSeen
from core.domain.session import Definition, LastExit, SessionRecord
from core.domain.watchbook import Announced, End
from core.errors import RecordUnreadable
from core.redaction import Redactor

# ---------------------------------------------------------------- state


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
        detail: str | None = None,
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

    def read(self, *, follow: bool = False) -> Iterator[Mapping[str, Any]]:
        """Yield every event that is kept, oldest first; with `follow` also those to come. Raises StoreBroken."""
        ...


class Inbox(Protocol):
    """Messages on their way in."""

    def add(self, messages: Sequence[NewMessage]) -> tuple[bool, ...]:
        """Commit all in one durable transaction; each answer tells whether it was new. Raises StoreBroken."""
        ...

    def get(self, message_id: str) -> InboxRow | None:
        """Return one row."""
        ...

    def of_key(self, key: str) -> InboxRow | None:
        """Return the row of that key."""
        ...

    def unsettled(self, uid: str, limit: int = -1) -> tuple[InboxRow, ...]:
        """Return the session's rows that are waiting or in flight: in flight first, ticks last, by order_us and seq."""
        ...

    def still(self, message_ids: Sequence[str], state: MessageState) -> tuple[str, ...]:
        """Return those of the messages that are in the state, in their order."""
        ...

    def with_states(self, uid: str, states: Collection[MessageState], limit: int = 200) -> tuple[InboxRow, ...]:
        """Return the session's rows in these states, newest first."""
        ...

    def attempted(self, uid: str, states: Collection[MessageState], limit: int) -> tuple[InboxRow, ...]:
        """Return the session's rows in these states that were attempted and are not final, newest first."""
        ...

    def last_taken(self, uid: str, before: datetime) -> InboxRow | None:
        """Return the latest message written before that moment that reached the session's agent; notices aside."""
        ...

    def busy_uids(self) -> tuple[str, ...]:
        """Return the uids that have waiting or in-flight rows."""
        ...

    def accepted_uids(self) -> tuple[str, ...]:
        """Return the uids with rows in a harness's own queue."""
        ...

    def waiting(self, uid: str) -> int:
        """Return how many of the session's rows wait."""
        ...

    def counts(self) -> Mapping[str, int]:
        """Return waiting rows by uid, in one query."""
        ...

    def tally(self) -> Mapping[str, int]:
        """Return how many rows are in each state, by the state's value; one that no row is in may be missing."""
        ...

    def advance(self, row: InboxRow, state: MessageState, detail: str = "", **changes: Any) -> InboxRow:
        """Move a row on and return it as stored. `changes` name further columns of InboxRow.

        Raises Refused if the row is no longer in the state that `row` shows, ValueError for a step the table lacks.
        """
        ...

    def edit(self, row: InboxRow, text: str) -> InboxRow:
        """Replace the text of a waiting row, durably. Raises Refused if it has moved on since `row` was read."""
        ...

    def of_thread(self, binding: Binding) -> tuple[tuple[str, bool], ...]:
        """Return the time stamps of the thread's replies that wait (True), and of its latest others (False)."""
        ...

    def add_files(self, message_id: str, files: Sequence[Attachment]) -> None:
        """Note which files came with a message. Part of the open transaction."""
        ...

    def told_files(self, message_id: str) -> str | None:
        """Return the lines about its files that a message's text ends with: "" without files, None before they came."""
        ...

    def tell_files(self, message_id: str, told: str) -> bool:
        """Keep those lines, once; False if they were told before. Part of the open transaction."""
        ...

    def to_fetch(self, channel_kind: str) -> tuple[Fetch, ...]:
        """Return the messages of a chat that still wait for their files."""
        ...

    def cancel_waiting(self, uid: str, detail: str) -> tuple[InboxRow, ...]:
        """Cancel every waiting row of the session, durably, and return them."""
        ...

    def check(self) -> None:
        """Look at all that is not over, so that `Database.bad_rows` knows what of it nobody can understand."""
        ...


@dataclass(frozen=True)
class NewPost:
    """A post as it is committed. Its key makes a second commit of the same one a no-op."""

    id: str
    key: str
    kind: OutboundKind
    uid: str
    name: str
    channel_kind: str  #: "slack"
    text: str
    channel: str = ""  #: "" means: wherever the session's binding points at the time of posting
    thread: str = ""
    buttons: tuple[Button, ...] = ()
    edits: str = ""  #: the id of an earlier post, whose message it replaces; "": it is a message of its own
    path: str = ""  #: the file that is attached, in the session's folder; "": none is, or the text itself

    def anew(self) -> "NewPost":
        """Return the announcement that takes the place of one whose message is gone."""
        return replace(self, id=f"{self.id}-anew", key=f"{self.key}:anew", kind=OutboundKind.ROOT)


class PostState(Enum):
    """Where a post stands."""

    PENDING = "pending"
    SENDING = "sending"  #: asked, and no answer recorded yet: looked up by its id before it is sent again
    SENT = "sent"
    FAILED = "failed"
    SPLIT = "split"  #: its parts are rows of their own, in its place
    SKIPPED = "skipped"  #: the channel's verbosity leaves it out


@dataclass(frozen=True)
class OutboxRow:
    """A committed post and how far it has come."""

    post: NewPost
    seq: int
    state: PostState
    attempts: int
    not_before: datetime | None
    ts: str | None  #: the posted message
    detail: str
    part_of: int | None = None  #: the seq of the row whose part it is


MOVED = "moved"  #: NoteWait.ended: another note tells of it since


@dataclass(frozen=True)
class NoteWait:
    """A message that waits, as a note of ours tells."""

    message: str
    reason: str  #: for what it waits
    remedy: str
    ended: str = ""  #: how its waiting ended, as the note says by now, or MOVED; "": it says that it waits


class Outbox(Protocol):
    """Posts on their way out, in order within a thread."""

    def add(self, posts: Sequence[NewPost]) -> tuple[bool, ...]:
        """Commit all; each answer tells whether it was new."""
        ...

    def due(self, channel_kind: str, now: datetime) -> tuple[OutboxRow, ...]:
        """Return the first open row of each session (uid) whose not_before has passed, by seq."""
        ...

    def tally(self) -> Mapping[str, int]:
        """Return how many rows are in each state, by the state's value; one that no row is in may be missing."""
        ...

    def get(self, post_id: str) -> OutboxRow | None:
        """Return the row of a post."""
        ...

    def whole(self, row: OutboxRow) -> OutboxRow:
        """Return the row that a part was made from, and any other row as it is."""
        ...

    def latest(self, prefix: str) -> NewPost | None:
        """Return the post whose key is the last of those that begin so; the prefix ends with a colon."""
        ...

    def is_overtaken(self, row: OutboxRow) -> bool:
        """Tell whether a later edit of the same message waits behind this one."""
        ...

    def with_buttons(self, channel_kind: str, ts: str) -> tuple[OutboxRow, ...]:
        """Return the posts with buttons that stand in the message of that time stamp, the latest first."""
        ...

    def is_said_again(self, row: OutboxRow) -> bool:
        """Tell whether a later post of its kind and session waits that says the very same."""
        ...

    def note_wait(self, note: str, wait: "NoteWait") -> None:
        """Note that a message waits, as that note tells; an earlier note about it is out of date.

        Part of the open transaction.
        """
        ...

    def waits_in(self, note: str) -> tuple["NoteWait", ...]:
        """Return the messages that a note tells of, in the order in which they go in."""
        ...

    def end_wait(self, note: str, message: str, ended: str) -> None:
        """Note how a message's waiting ended, as its note is told to say. Part of the open transaction."""
        ...

    def forget_waits(self, note: str, messages: Collection[str]) -> None:
        """Forget that the note tells of these. Part of the open transaction."""
        ...

    def outdated_notes(self, channel_kind: str) -> tuple[str, ...]:
        """Return the notes with a message that no longer waits as they tell."""
        ...

    def advance(
        self,
        row: OutboxRow,
        state: PostState,
        *,
        ts: str | None = None,
        detail: str = "",
        not_before: datetime | None = None,
        attempts: int | None = None,
    ) -> OutboxRow:
        """Move a row on; SENDING counts an attempt, unless `attempts` says how many there were."""
        ...

    def split(self, row: OutboxRow, parts: Sequence[NewPost]) -> None:
        """Put the parts in the place of a pending row, durably. Raises Refused if the row has moved on."""
        ...

    def edit_instead(self, uid: str, channel_kind: str) -> None:
        """Let the session's roots that wait bring the announcement up to date that is there."""
        ...

    def drop(self, uid: str, detail: str) -> int:
        """Fail the session's open rows that are not CLOSING, and return how many."""
        ...

    def check(self) -> None:
        """Look at all that is not over, so that `Database.bad_rows` knows what of it nobody can understand."""
        ...


class Marks(Protocol):
    """What a person is shown of each message by a reaction to it, and what follows from the message's row."""

    def changed(self, channel_kind: str, since: datetime) -> tuple[MarkRow, ...]:
        """Return what has changed at or after that time, oldest first."""
        ...

    def over(self, uid: str, since: datetime, *, failed: bool) -> None:
        """Note that the turn is over which took the session's messages since then. Part of the open transaction."""
        ...

    def left(self) -> tuple[str, ...]:
        """Return the messages that look as if a turn were at them, whose session is idle: nobody told of its end."""
        ...

    def end(self, message_ids: Collection[str]) -> None:
        """Note that the turn which took these messages is over."""
        ...

    def shown(self, message_id: str, mark: Mark) -> None:
        """Note which reaction stands there now."""
        ...


class Progress(Protocol):
    """What the running turn of each session has done so far, and how much of it its thread was told."""

    def note(self, uid: str, turn: str, line: str) -> None:
        """Add a line; another turn begins with none. Part of the open transaction."""
        ...

    def due(self) -> tuple[ProgressRow, ...]:
        """Return the turns with lines that were not told."""
        ...

    def asked(self, row: ProgressRow) -> None:
        """Note durably that its message is about to be posted: it may stand there from now on."""
        ...

    def told(self, row: ProgressRow, channel: str, ts: str) -> None:
        """Note that the row's lines stand in that message."""
        ...

    def forget(self, uid: str) -> None:
        """Remove what is known of a session."""
        ...


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

    def transaction(self, *, durable: bool) -> AbstractContextManager[None]:
        """Run the calls of this thread's block as one transaction; `durable` syncs it to the disk before it returns."""
        ...

    def transaction_to_sync(self) -> AbstractContextManager[None]:
        """Run the calls of this thread's block as one transaction that is durable once `sync` has returned."""
        ...

    def sync(self) -> None:
        """Return once all that was committed is on the disk. Callable from every thread. Raises StoreBroken."""
        ...

    def ingested(self, instance: str, report: str) -> bool:
        """Record that a spool report is being taken in; False if it was before. Part of the open transaction."""
        ...

    def forget_reports(self, instance: str) -> None:
        """Forget which reports of an instance were taken in, once its spool folder is gone."""
        ...

    def bad_rows(self) -> tuple[str, ...]:
        """Return the rows that were found and not understood so far, each with its remedy."""
        ...


# ---------------------------------------------------------------- tmux and processes


class Runner(Protocol):
    """Drives tmux. Every call has a deadline and raises TmuxSilent where tmux did not answer: never "absent"."""

    def survey(self) -> Survey:
        """Return all panes of the server in one call; no server at all is an empty survey."""
        ...

    def spawn(self, spawn: Spawn) -> Pane:
        """Make a session of one pane, tagged in the same command line, and return the pane.

        Raises SpawnFailed with tmux's words, TmuxSilent if it may or may not have been made.
        """
        ...

    def write(self, instance: str, data: bytes, receipt: Receipt, token: str, deadline: datetime) -> Written:
        """Paste bytes into the pane that carries the tag, guarded in the server, and leave the receipt on the pane."""
        ...

    def recent(self, seconds: float) -> Survey | None:
        """Return the latest survey of this process if it is no older: tmux answered then. What is pasted by it is
        guarded by it (`Paste.seen`).
        """
        ...

    def paste_all(self, pastes: Sequence[Paste]) -> tuple[Written | None, ...]:
        """Paste messages into the panes that carry their tags, in one piece, each guarded by itself in the server.

        None where it is not known what became of one: the receipt tells, once its deadline has passed.
        """
        ...

    def typing(self, instance: str) -> tuple[Typing, ...]:
        """Return the writable clients attached to the instance's session."""
        ...

    def end(self, instance: str) -> bool:
        """Kill the tmux session whose pane carries the tag, dead or alive; False if there was none."""
        ...

    def clear(self, target: str) -> bool:
        """Kill the tmux session of that name if no program runs in it, whoever made it; False if one does."""
        ...

    def screen(self, instance: str, lines: int) -> str:
        """Return the last lines of the pane's screen and history as text."""
        ...

    def attach_command(self, target: str, *, write: bool) -> tuple[str, ...]:
        """Return the command by which a person attaches, read-only unless `write`."""
        ...

    def kill_command(self, target: str) -> tuple[str, ...]:
        """Return the command by which a person ends that tmux session."""
        ...


@dataclass(frozen=True)
class EndedTree:
    """What ending a harness came to: its exit as far as it was seen, how many were killed hard, what would not go."""

    exit: LastExit | None
    killed: int
    survivors: tuple[int, ...]


class Processes(Protocol):
    """The processes of an instance, found by the marker in their environment and by descent from the pane's."""

    def alive(self, pid: int) -> bool:
        """Tell whether the process lives (a zombie does not)."""
        ...

    def marked(self, instance: str) -> tuple[int, ...]:
        """Return the pids whose environment carries the instance's marker, ourselves excepted."""
        ...

    def end_tree(self, instance: str, pane_pid: int | None, grace: float) -> EndedTree:
        """SIGTERM the harness, wait up to `grace` seconds, SIGKILL it, then sweep what carries the marker."""
        ...

    def watch(self, pid: int, ended: Callable[[], None]) -> Callable[[], None]:
        """Call `ended` once from a watcher thread when the process ends; the answer stops watching."""
        ...


# ---------------------------------------------------------------- harnesses


class Transcript(Protocol):
    """The harness's own record of one conversation, read forward from where it was opened."""

    def new_events(self) -> tuple[HarnessEvent, ...]:
        """Return what was added since the last call. Raises StoreBroken where it cannot be read."""
        ...


class Harness(Protocol):
    """One agent program."""

    name: str
    traits: Traits

    def check(self, definition: Definition, args: Sequence[str]) -> None:
        """Refuse what cannot run. Raises HarnessNotInstalled, UnsupportedHarness, InvalidValue."""
        ...

    def new_session_id(self) -> str | None:
        """Return an id for a fresh conversation, or None where it is learnt later."""
        ...

    def resumable(self, context: SessionContext) -> bool:
        """Tell whether the context's conversation can be resumed, by the harness's own files."""
        ...

    def prepare(self, context: SessionContext) -> None:
        """Write hook settings into the session's folder and pre-seed trust. Raises TrustFailed."""
        ...

    def launch(self, context: SessionContext, *, resume: bool, prompt: str | None) -> Launch:
        """Return what the pane runs; `prompt` is the boot prompt, within the argument limit."""
        ...

    def interpret(self, report: Report) -> tuple[HarnessEvent, ...]:
        """Return what a hook report means; () for one that means nothing to us. Pure."""
        ...

    def transcript(self, context: SessionContext, *, from_start: bool) -> Transcript | None:
        """Open the conversation's record; None where the harness keeps none."""
        ...

    def second_opinion(self, context: SessionContext, pane_pid: int) -> Opinion | None:
        """Ask a source other than the hooks what the live harness does; None where none knows."""
        ...

    def screen_ready(self, screen: str) -> bool | None:
        """Tell from the screen whether a harness without a boot signal reads; None where it has no ready sign."""
        ...


class Harnesses(Protocol):
    """The catalogue: name -> adapter."""

    def get(self, name: str) -> Harness:
        """Return the adapter. Raises UnsupportedHarness naming the ones there are."""
        ...


# ---------------------------------------------------------------- channels


@dataclass(frozen=True)
class Posted:
    """Where a post ended up."""

    team: str
    channel: str
    ts: str


@dataclass(frozen=True)
class Finding:
    """One line of a check: what was looked at, whether it is well, and the remedy if not."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True)
class IncomingReply:
    """What a channel hands to core: a message in some thread, already in plain text, ids only."""

    channel_kind: str
    team: str  #: the team that the bot is installed in
    channel: str
    thread: str
    ts: str
    author: str  #: a member id
    author_name: str
    author_team: str
    is_bot: bool
    is_self: bool
    shape: str  #: plain | file_share | thread_broadcast | me_message, or the subtype that was refused
    text: str
    files: tuple[Attachment, ...] = ()
    shared: bool | None = None  #: whether the channel is shared with other organizations; None: not told
    confirm: str = ""  #: why a person must confirm it before it goes in ("sent 3 h ago"); "": it goes in by itself


@dataclass(frozen=True)
class IncomingChange:
    """What a channel hands to core of an edit or a deletion: the message as it is now, without text if deleted."""

    reply: IncomingReply
    deleted: bool


@dataclass(frozen=True)
class IncomingPress:
    """What a channel hands to core of a pressed button: who, on which message, which button of it."""

    channel_kind: str
    team: str  #: the team that the bot is installed in
    channel: str
    thread: str
    ts: str  #: the message that the button belongs to
    author: str  #: as the allow-list names people
    author_name: str
    author_team: str
    is_bot: bool
    action: str  #: Button.action
    target: str  #: Button.target


@dataclass(frozen=True)
class IncomingOrder:
    """What a channel hands to core of a command: a verb, a session and the rest of the words."""

    channel_kind: str
    author: str
    author_name: str
    verb: str
    name: str
    text: str


@dataclass(frozen=True)
class Told:
    """What somebody gets to see alone. `code` is shown as it is, in a fixed-width font."""

    text: str
    code: str = ""


@dataclass(frozen=True)
class BoundThread:
    """A thread that may have been written in while nobody listened."""

    name: str
    channel: str
    thread: str
    cursor: str  #: the last message of the last complete sweep
    shared: bool | None  #: None: nobody has looked yet whether the channel is shared
    waiting: tuple[str, ...] = ()  #: its replies that wait: an edit or a deletion still counts for them
    fresh: bool = False  #: no sweep has read it to its end yet
    taken: tuple[str, ...] = ()  #: its latest replies that wait no more


@dataclass(frozen=True)
class Swept:
    """A thread that was read to its end."""

    channel: str
    thread: str
    cursor: str  #: the last message that was seen
    forget_before: str  #: no sweep comes past what is older
    caught_up: int  #: replies that became messages by it
    oldest: str  #: how old the oldest of them was, such as "14 min"; "" without one
    shared: bool | None = None  #: whether the channel is shared with other organizations


class Verdict(Enum):
    """What the inbound pipeline did with a reply."""

    COMMITTED = "committed"
    DUPLICATE = "duplicate"
    DROPPED = "dropped"


class CoreDoor(Protocol):
    """What a channel may ask of core, from any thread."""

    def receive(self, replies: Sequence[IncomingReply], committed: Callable[[tuple[Verdict, ...]], None]) -> None:
        """Run the inbound pipeline. Raises StoreBroken.

        `committed` is called with its words as soon as what passed is on the disk. What follows, in this thread, is the
        way into the terminal, which may take seconds.
        """
        ...

    def change(self, changes: Sequence[IncomingChange]) -> None:
        """Apply edits and deletions to what still waits, and tell of those that came too late. Raises StoreBroken."""
        ...

    def threads(self, channel_kind: str, team: str) -> tuple[BoundThread, ...]:
        """Return the bound threads, those of the session that was spoken with last first. Raises StoreBroken."""
        ...

    def behind(self, channel_kind: str) -> None:
        """Replies may have been missed: what comes from now on waits for the next sweep of its thread, for a while."""
        ...

    def swept(self, channel_kind: str, team: str, swept: Swept) -> None:
        """Move the thread's cursor, and tell in the thread what was caught up. Raises StoreBroken."""
        ...

    def to_fetch(self, channel_kind: str) -> tuple[Fetch, ...]:
        """Return the messages that wait for their files. Raises StoreBroken."""
        ...

    def keep_file(self, message_id: str, position: int, name: str, data: bytes) -> str:
        """Write a file into the session's folder under a harmless name, and return its path. Raises StoreBroken."""
        ...

    def fetched(self, message_id: str, files: Sequence[Fetched]) -> None:
        """Let the message go on, its text naming the files. Raises StoreBroken."""
        ...

    def rows(self) -> tuple[Mapping[str, Any], ...]:
        """Return the rows of `list`."""
        ...

    def press(self, press: IncomingPress) -> Told:
        """Do what a button is for, if whoever pressed it may, and return what to tell them. Raises CoreError."""
        ...

    def order(self, order: IncomingOrder) -> Told:
        """Do what a command says, if its author may, and return what to tell them. Raises CoreError."""
        ...

    def shown(self, text: str, *, verbatim: bool = False) -> str:
        """Return a text as it may be shown in a chat: without secrets, its commands such that they can be typed.

        Every text that a channel shows besides what it is given to post passes here. `verbatim`: no command is changed.
        """
        ...

    def connected(self, channel_kind: str, up: bool, detail: str) -> None:
        """Tell the service how the channel's connection stands."""
        ...


@dataclass(frozen=True)
class WebAnswer:
    """What a chat's request over HTTP is answered with."""

    status: int
    kind: str  #: the content type
    body: bytes


#: Answers a request of a chat: its path below /channels/<kind>, its headers by names in small letters, its raw body.
#: It proves by itself who asks: nothing else has.
WebHook = Callable[[str, Mapping[str, str], bytes], WebAnswer]


class Channel(Protocol):
    """A chat, found by the entry point group `the_loop.channels` and made with its raw configuration block."""

    kind: str

    def serve(self, door: CoreDoor, stopping: Callable[[], bool]) -> None:
        """Listen until `stopping` says so; reconnects by itself, raises only on faults that waiting cannot mend."""
        ...

    def sweeps(self) -> bool:
        """Tell whether replies are read, and those missed before it serves: what stands in the inbox waits for that."""
        ...

    def presses(self) -> bool:
        """Tell whether presses of buttons arrive; where they do not, posts have none."""
        ...

    def default_channel(self) -> str:
        """Return the configured channel's id."""
        ...

    def authorized(self, author: str) -> bool:
        """Tell whether the member is on the allow-list now; asked again at delivery."""
        ...

    def holds(self, author: str, role: Role) -> bool:
        """Tell whether somebody has that role now; MEMBER is what `authorized` tells."""
        ...

    def redact_with(self, redactor: Redactor) -> None:
        """Take secrets out of all that goes out by this redactor; called once, before anything is posted."""
        ...

    def post(self, post: NewPost, channel: str, thread: str) -> Posted:
        """Post the text (into the thread unless it is ""). Raises ChannelError."""
        ...

    def update(self, post: NewPost, channel: str, ts: str) -> Posted:
        """Replace an earlier post's text. Raises ChannelError."""
        ...

    def find(self, post_id: str, channel: str, thread: str) -> Posted | None:
        """Look for a post of ours by its id, after an unclear failure. Raises ChannelError."""
        ...

    def read_thread(self, channel: str, thread: str) -> ThreadSeen:
        """Read a thread to its end: which posts there are ours, by who posted them. Raises ChannelError."""
        ...

    def wants(self, kind: OutboundKind) -> bool:
        """Tell whether posts of that kind are shown here, by the channel's verbosity."""
        ...

    def parts(self, post: NewPost) -> tuple[NewPost, ...]:
        """Return what the post is sent as, in order: itself, several, or a summary and a FILE. Pure."""
        ...

    def react(self, channel: str, ts: str, mark: Mark, instead_of: Collection[Mark]) -> None:
        """Show the mark on a message and take the others back; what is so already is well. Raises ChannelError."""
        ...

    def status(self, channel: str, thread: str, text: str) -> None:
        """Show below the thread what the session is doing, for a while; "": nothing. Best effort, raises nothing."""
        ...

    def webhook(self) -> WebHook | None:
        """Return what answers the chat's requests over HTTP; None where it sends none. Called from any thread."""
        ...

    def check(self) -> tuple[Finding, ...]:
        """Ask the other side whether everything is in place."""
        ...

    def manifest(self, url: str = "") -> str:
        """Return the app manifest as YAML. `url`: the public address at which the chat calls us, where it does.

        Raises InvalidValue for an address that cannot be one.
        """
        ...


class Mirror(Protocol):
    """Keeps a copy of a reply on its ticket."""

    def copy(self, ref: str, text: str) -> bool:
        """Copy the reply; False where the ref has no ticket."""
        ...


class ChannelFactory(Protocol):
    """What the entry point of a channel names."""

    def __call__(self, block: Mapping[str, Any], environ: Mapping[str, str], source: Path | None) -> Channel:
        """Make the channel. Raises ConfigError for a malformed block; no network yet."""
        ...
