"""Messages in and out: the inbox, the outbox, and what a person is shown of each message."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, Protocol

from core.domain.attachment import Attachment, Fetch
from core.domain.binding import Binding
from core.domain.buttons import Button
from core.domain.marking import Mark, MarkRow
from core.domain.message import InboxRow, MessageState, NewMessage, ReplyAddress
from core.domain.posting import OutboundKind, ProgressRow
from core.domain.reasons import Because, Reason, text_of
from core.values import dataclass, replace


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

    def is_closed(self, uid: str, address: ReplyAddress) -> bool:
        """Tell whether a message of that thread was refused for want of room, and older ones wait still."""
        ...

    def counts(self) -> Mapping[str, int]:
        """Return waiting rows by uid, in one query."""
        ...

    def tally(self) -> Mapping[str, int]:
        """Return how many rows are in each state, by the state's value; one that no row is in may be missing."""
        ...

    def advance(self, row: InboxRow, state: MessageState, because: Because | None = None, **changes: Any) -> InboxRow:
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

    def cancel_waiting(self, uid: str, because: Because) -> tuple[InboxRow, ...]:
        """Cancel every waiting row of the session, durably, and return them."""
        ...

    def check(self) -> None:
        """Look at all that is not over, so that `Database.bad_rows` knows what of it nobody can understand."""
        ...


@dataclass(frozen=True)
class NoteStand:
    """Which note a post makes, or edits, and how the note stands then. The latest note of a group may be edited on."""

    group: str  #: of those that one note could tell of together
    start: int  #: when the note was made, in microseconds since the epoch
    edits: int  #: how often it was edited
    count: int  #: of the messages that it tells of


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
    only_for: str = ""  #: the member who alone sees it; "": all of the thread
    about: str = ""  #: the id of the message or the post of which it tells once: it is kept as long as that
    starts: str = ""  #: the instance whose start it tells: it is kept as long as that is the latest
    note: NoteStand | None = None

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
    because: Because | None  #: why it stands there
    part_of: int | None = None  #: the seq of the row whose part it is

    @property
    def detail(self) -> str:
        """Return in words why it stands there."""
        return text_of(self.because)

    @property
    def reason(self) -> Reason | None:
        """Return the code of that."""
        return self.because.reason if self.because is not None else None


MOVED = "moved"  #: NoteWait.ended: another note tells of it since


@dataclass(frozen=True)
class NoteWait:
    """A message that waits, or of which nobody can tell what became of it, as a note of ours tells."""

    message: str
    because: Because  #: for what it waits, or why nobody can tell
    remedy: str
    ended: str = ""  #: how that ended, as the note says by now, or MOVED; "": it says that it is so
    doubtful: bool = False  #: it waits no more: nobody can tell, until a record does


class Outbox(Protocol):
    """Posts on their way out, in order within a thread."""

    def add(self, posts: Sequence[NewPost]) -> tuple[bool, ...]:
        """Commit all; each answer tells whether it was new."""
        ...

    def due(self, channel_kind: str, now: datetime) -> tuple[OutboxRow, ...]:
        """Return the first open row of each session (uid) whose not_before has passed, by rank (RANKS) and seq."""
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

    def latest_note(self, group: str) -> NewPost | None:
        """Return the group's latest note as it stands: the post that made it, or its latest edit."""
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
        because: Because | None = None,
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

    def drop(self, uid: str, because: Because) -> int:
        """Fail the session's open rows that are not CLOSING, and return how many."""
        ...

    def check(self) -> None:
        """Look at all that is not over, so that `Database.bad_rows` knows what of it nobody can understand."""
        ...


class Marks(Protocol):
    """What a person is shown of each message by a reaction to it, and what follows from the message's row."""

    def changed(self, channel_kind: str, since: datetime) -> tuple[MarkRow, ...]:
        """Return what has changed at or after that time, oldest first; of one that was sent again only the latest."""
        ...

    def over(
        self, uid: str, instance: str, since: datetime, until: datetime | None = None, *, failed: bool
    ) -> tuple[str, ...]:
        """Note that the instance's turn is over which took the session's messages since then, and return their ids.

        `until`: what left the harness's own queue later than that began another turn. None: now.
        Part of the open transaction.
        """
        ...

    def left(self, since: datetime) -> Mapping[str, bool]:
        """Return the messages that look as if a turn were at them and none is, of whose end nobody told.

        With each whether its turn was cut off: its instance has ended, or the turn did without its harness's word.
        `since`: those confirmed at or after that time may not have been shown as taken.
        """
        ...

    def end(self, left: Mapping[str, bool]) -> None:
        """Note that the turns which took these messages are over, and whether they were cut off."""
        ...

    def asked(self, row: MarkRow, mark: Mark) -> None:
        """Note that the reaction may stand there from now on, whatever becomes of the call."""
        ...

    def failed(self, message_id: str) -> bool:
        """Return whether the turn that took the message failed, or was cut off."""
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
