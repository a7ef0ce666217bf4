"""What is posted into a chat: kinds and states of posts, texts about boots, ends, idleness and turns. No I/O.

- A reaction tells the sender what became of a message; verbosity is how much a thread is told.
- After the database was lost, `why_not` decides whether a thread that a record names is still its session's. Anybody
  may copy a text, and any app may write metadata like ours, so only posts of this installation count, by their metadata
  and never by their words.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING

from core.base.names import standing_ref
from core.base.text import duration_text, in_lines, moment_text
from core.base.values import dataclass, replace
from core.model.asking import Button
from core.model.message import MOST_TEXT, MessageState
from core.model.restarting import BringBack, GiveUp, exit_text
from core.model.session import Hold, HoldKind, LastExit

if TYPE_CHECKING:  # whoever lists sessions tells of no post
    from core.model.reasons import Because, Reason

_NAMED_FAILURES = 5  #: of a boot's
_LONGEST_QUESTION = 1_500  #: characters of one that was asked elsewhere
SHOWN_STEPS = 20  #: of a turn's steps the last so many are shown, and the others counted


class OutboundKind(Enum):
    """What a post is."""

    ROOT = "root"  #: the announcement; its message becomes the session's thread
    ROOT_UPDATE = "root-update"  #: the announcement edited to the present state
    REFRESH = "refresh"  #: as that, on demand: where there is no announcement any more a new one is made
    BOOT = "boot"  #: a later start, as a reply
    HOST = "host"  #: what a boot has started on its machine: a message of the channel, and no session's
    ASKED = "asked"  #: what the agent was asked elsewhere than in the thread, in Markdown
    ANSWER = "answer"  #: the agent's final answer, in Markdown
    PART = "part"  #: one of the messages that a long answer is sent as, in the chat's own markup
    FILE = "file"  #: an answer that is too long for messages, attached
    PROGRESS = "progress"  #: what the running turn has done so far: one message a turn, edited
    REQUEST = "request"  #: a permission or a question, with buttons; its edit tells how it ended. Markdown
    POST = "post"  #: what the agent posts by our command, in Markdown
    ATTACHMENT = "attachment"  #: a file that the agent posts by our command
    NOTE = "note"  #: ours: refused, queued, unknown, with the remedy
    WHISPER = "whisper"  #: ours, shown to one person alone
    CLOSING = "closing"  #: the thread is unbound


K = OutboundKind
#: What goes first, of a session and of all that share a channel's pace: what is waited for. Equals keep their order.
RANKS: Mapping[OutboundKind, int] = {
    K.ROOT: 0,  # without it there is no thread
    K.REQUEST: 1,  # an agent stands still until it is answered
    **dict.fromkeys((K.NOTE, K.BOOT, K.HOST, K.ROOT_UPDATE, K.REFRESH), 2),
    **dict.fromkeys((K.ASKED, K.ANSWER, K.PART, K.FILE, K.POST, K.ATTACHMENT, K.CLOSING), 3),
    K.WHISPER: 4,
    K.PROGRESS: 5,
}


#: what we say ourselves; the rest are an agent's words, in which nothing is changed
OURS = frozenset({K.ROOT, K.ROOT_UPDATE, K.REFRESH, K.BOOT, K.HOST, K.NOTE, K.WHISPER, K.CLOSING})


@dataclass(frozen=True)
class ProgressRow:
    """The steps of a session's latest turn."""

    uid: str
    turn: str  #: its instance and when it began
    lines: tuple[str, ...] = ()  #: the latest ones
    steps: int = 0  #: how many there were
    told: int = 0  #: how many its message tells of
    asked: bool = False  #: its message may have been posted
    channel: str = ""
    ts: str = ""  #: the message, "" before it is known


def asked_text(who: str, text: str) -> str:
    """Return what a thread is told of a question that was asked elsewhere: Markdown, the question quoted."""
    kept = in_lines(text).strip()
    left = len(kept) - _LONGEST_QUESTION
    shown = kept if left <= 0 else f"{kept[:_LONGEST_QUESTION]}… [{left:,} more characters: see the session's terminal]"
    quoted = "\n".join(f"> {line}".rstrip() for line in shown.split("\n"))
    return f"**{who}:**\n{quoted}"


def bounded_text(text: str) -> str:
    """Return what is kept of an answer, or of another text of an agent's: what is too long for that is counted."""
    left = len(text) - MOST_TEXT
    return text if left <= 0 else f"{text[:MOST_TEXT]}…\n\n[{left:,} more characters were left out]"


def step_line(tool: str, detail: str) -> str:
    """Return one line about a tool that runs: Markdown, the detail as code."""
    shown = " ".join(detail.replace("`", "'").split())
    shown = shown if len(shown) <= 100 else f"{shown[:99]}…"
    return f"- {tool} `{shown}`" if shown else f"- {tool}"


def progress_text(row: ProgressRow) -> str:
    """Return the message about a turn's steps, in Markdown."""
    left = row.steps - len(row.lines)
    head = f"**Steps of this turn: {row.steps}**" + (f" (the last {len(row.lines)} are shown)" if left > 0 else "")
    return "\n".join([head, *row.lines])


def what_text(name: str, program: str, version: str, folder: str, host: str) -> str:
    """Return what a session is, in a line: its name, its program, its folder, its machine."""
    return " · ".join((f"`{name}`", f"{program} {version}".rstrip(), f"`{folder}`", host))


def root_text(name: str, what: str, description: str, how: str, blind: str = "", aside: str = "") -> str:
    """Return the announcement, whose message becomes the session's thread.

    `what`: its `what_text`; `how`: how it came up; `blind`: the program that it runs, where that reports nothing;
    `aside`: what a note to colleagues begins with, "" for nothing.
    """
    about = f"\n{description.strip()}" if description.strip() else ""
    blindly = (
        f"\n`{blind}` reports nothing: its answers and questions are only in its terminal. The reaction on your reply "
        f"says only that it was typed. To look: `the-loop standing screen {name}`"
        if blind
        else ""
    )
    begins = f"`{aside}` or with a mention" if aside else "a mention"
    return (
        f"{what}{about}\n"
        f"It is up, {how}. Reply in this thread, and the agent gets your reply, unless it begins with {begins} of "
        f"somebody else: that is a note to colleagues. (`{standing_ref(name)}`){blindly}"
    )


def down_text(name: str, description: str, hold: Hold | None) -> str:
    """Return the announcement of a session that does not run: who or what keeps it down, and what starts it."""
    start = f"To start it: `the-loop standing start {name}`"
    if hold is not None and hold.kind is HoldKind.STOPPED:
        why = f" ({hold.reason})" if hold.reason else ""
        state = f"is stopped by {hold.by}{why}. {start}"
    elif hold is not None and hold.kind is HoldKind.FAILED:
        state = f"is held as failed: {hold.reason}. {start}"
    else:
        state = f"is down. The next `the-loop start` resumes it. To start it now: `the-loop standing start {name}`"
    about = f"\n{description.strip()}" if description.strip() else ""
    return f"standing session `{name}` {state}{about}\n(`{standing_ref(name)}`)"


def boot_text(name: str, how: str) -> str:
    """Return the reply that a later start leaves in the thread."""
    return f"standing session `{name}` is up again — {how}"


@dataclass(frozen=True)
class BootTally:
    """What became of the sessions of one channel that a boot wanted to start."""

    resumed: int = 0
    new: int = 0  #: started with a new conversation
    failed: tuple[str, ...] = ()  #: their names

    @property
    def is_worth_a_line(self) -> bool:
        """Whether there were several, and not only such as have an announcement of their own in the channel."""
        return self.resumed + self.new + len(self.failed) > 1 and (self.resumed > 0 or bool(self.failed))


def host_text(host: str, tally: BootTally) -> str:
    """Return the line that a boot leaves in the channel."""
    counted = (
        (tally.resumed, "resumed"),
        (tally.new, "started with a new conversation"),
        (len(tally.failed), "failed"),
    )
    parts = ", ".join(f"{count} {what}" for count, what in counted if count)
    named = ", ".join(f"`{name}`" for name in tally.failed[:_NAMED_FAILURES])
    left = len(tally.failed) - _NAMED_FAILURES
    more = f" and {left} more" if left > 0 else ""
    return f"`{host}` is up: {parts}{f' ({named}{more}; `the-loop status` tells why)' if named else ''}."


def not_started_text(name: str, reason: str) -> str:
    """Return the note of a session that a boot could not start."""
    return f"`{name}` could not be started: {reason.rstrip('.')}. To try again: `the-loop standing start {name}`"


def moved_text(name: str, channel: str) -> str:
    """Return the last reply in the thread of a session that is announced in another channel now."""
    return (
        f"standing session `{name}` now has a thread in another channel (<#{channel}>). This one is closed: "
        f"replies here reach nobody. (`{standing_ref(name)}`)"
    )


def closing_text(name: str, actor: str, lost: int) -> str:
    """Return the last reply of a session that is deleted. `lost`: messages that went with it and came to no turn."""
    many = "1 message" if lost == 1 else f"{lost} messages"
    gone = f"As far as is known, its agent did not get {many}. " if lost else ""
    return (
        f"standing session `{name}` was deleted by {actor}. {gone}This thread is closed: replies here reach nobody. "
        f"(`{standing_ref(name)}`)"
    )


def ended_text(
    name: str, end: LastExit | None, then: BringBack | GiveUp | None, per_hour: int, kept: str | None = None
) -> str:
    """Return the note of an end that nobody asked for, with the command that starts the session.

    `kept` is the conversation that a start takes up again, where what has ended was begun in its place.
    """
    what = f"`{name}` has ended: {exit_text(end)}."
    if kept:
        what = f"{what} It had begun a new conversation instead of {kept}, and the new one had no turn yet, so the next"
        what = f"{what} start resumes {kept}."
    start = f"`the-loop standing start {name}`"
    if isinstance(then, BringBack):
        budget = f"restart {then.number} of {per_hour} within an hour"
        return f"{what} It will be restarted at {moment_text(then.at)} ({budget}). To start it now: {start}"
    if isinstance(then, GiveUp):
        return f"{what} It is held as failed: {then.reason}. To start it: {start}"
    return f"{what} Its conversation is kept. To start it: {start}"


def given_up_text(name: str, reason: str) -> str:
    """Return the note of a session that could not be brought back and stays down."""
    return f"`{name}` was not restarted: {reason}. To start it: `the-loop standing start {name}`"


def idle_text(name: str, stop_after: timedelta, stop_at: datetime) -> str:
    """Return the announcement of an idle session's end."""
    return (
        f"`{name}` has had nothing to do for nearly {duration_text(stop_after)} and will be stopped at "
        f"{moment_text(stop_at)}. Any message prevents that. Its conversation is kept in either case."
    )


def collected_text(name: str, stop_after: timedelta) -> str:
    """Return the note of a session that is stopped for idleness."""
    return (
        f"`{name}` is stopped: it had nothing to do for {duration_text(stop_after)}. Its conversation is kept; "
        f"to start it: `the-loop standing start {name}`"
    )


class Mark(Enum):
    """One reaction; the latest stands alone."""

    TAKEN = "taken"  #: it was handed to the agent
    TYPED = "typed"  #: it was entered into the terminal, and no more can ever be known
    DONE = "done"  #: the turn that took it is over
    REFUSED = "refused"  #: it goes no further, or its turn ended in an error
    UNKNOWN = "unknown"  #: nobody can tell whether it was taken


S = MessageState
MARKS: Mapping[MessageState, Mark | None] = {
    S.PENDING: None,
    S.QUEUED: None,
    S.CLAIMED: None,
    S.PASTED: None,
    S.SUBMITTED: Mark.TAKEN,
    S.ACCEPTED: Mark.TAKEN,
    S.CONFIRMED: Mark.TAKEN,
    S.UNKNOWN: Mark.UNKNOWN,
    S.REFUSED: Mark.REFUSED,
    S.EXPIRED: Mark.REFUSED,
    S.CANCELLED: Mark.REFUSED,
    S.FAILED: Mark.REFUSED,
}
ENDED, FAILED = "ended", "failed"  #: how the turn that took a message is over


@dataclass(frozen=True)
class MarkRow:
    """A message of a chat, and the reaction that stands there."""

    message: str
    channel: str
    ts: str
    state: MessageState
    over: str  #: "", ENDED or FAILED
    shown: Mark | None
    at: datetime  #: the latest change
    final: bool = False  #: nobody will ever know more
    may_stand: frozenset[Mark] = frozenset()  #: asked for without a recorded answer, or shown before it was sent again

    @property
    def instead_of(self) -> frozenset[Mark]:
        """The reactions that may stand there, and are to give way to its own."""
        standing = self.may_stand | ({self.shown} if self.shown else frozenset())
        return standing - {self.mark}

    @property
    def mark(self) -> Mark | None:
        """The reaction that should stand there."""
        if self.state is MessageState.CONFIRMED and self.over:
            return Mark.DONE if self.over == ENDED else Mark.REFUSED
        if self.state is MessageState.SUBMITTED and self.final:
            return Mark.TYPED
        return MARKS[self.state]


_ALWAYS = frozenset(
    {K.ROOT, K.ROOT_UPDATE, K.REFRESH, K.BOOT, K.HOST, K.REQUEST, K.POST, K.ATTACHMENT, K.NOTE, K.WHISPER, K.CLOSING}
)


class Verbosity(Enum):
    """Each shows all that the one before it shows, and more."""

    QUIET = "quiet"  #: announcements, notes and questions
    NORMAL = "normal"  #: final answers too
    VERBOSE = "verbose"  #: progress too: which tools ran


ADDS: Mapping[Verbosity, frozenset[OutboundKind]] = {
    Verbosity.QUIET: _ALWAYS,
    Verbosity.NORMAL: frozenset({K.ASKED, K.ANSWER, K.PART, K.FILE}),
    Verbosity.VERBOSE: frozenset({K.PROGRESS}),
}


def shows(verbosity: Verbosity, kind: OutboundKind) -> bool:
    """Return whether posts of that kind are shown; a kind that no row of the table adds is always shown."""
    levels = list(Verbosity)
    later = levels[levels.index(verbosity) + 1 :]
    return not any(kind in ADDS[level] for level in later)


ANNOUNCEMENTS = frozenset({OutboundKind.ROOT, OutboundKind.ROOT_UPDATE, OutboundKind.REFRESH})
_ANNOUNCED = frozenset(kind.value for kind in ANNOUNCEMENTS)
_PARTINGS = ("p-sharing-", "p-moved-", "p-closing-")  #: how the ids of posts begin that close a thread

NO_ROOT = "root-gone"
FOREIGN_ROOT = "root-of-another"
PARTED = "parted"


@dataclass(frozen=True)
class OwnPost:
    """A message that this installation posted, by its metadata; "" for what that does not name."""

    ts: str
    post_id: str
    kind: str  #: an OutboundKind's value
    ref: str
    uid: str


@dataclass(frozen=True)
class ThreadSeen:
    """A thread as it was read to its end."""

    team: str
    channel: str
    thread: str
    latest: str  #: the ts of its last message, whoever wrote that
    posts: tuple[OwnPost, ...]  #: this installation's own


def why_not(seen: ThreadSeen, ref: str, uid: str) -> str:
    """Return why the thread is not the session's any more; "" where it is."""
    root = next((post for post in seen.posts if post.ts == seen.thread), None)
    if root is None:
        return NO_ROOT
    if root.kind not in _ANNOUNCED or (root.ref, root.uid) != (ref, uid):
        return FOREIGN_ROOT
    closed = (post.kind == OutboundKind.CLOSING.value or post.post_id.startswith(_PARTINGS) for post in seen.posts)
    return PARTED if any(closed) else ""


@dataclass(frozen=True)
class NoteStand:
    """Which note a post makes, or edits, and how the note stands then. The latest note of a group may be edited on."""

    group: str  #: of those that one note could tell of together
    start: int  #: when the note was made, in microseconds since the epoch
    edits: int  #: how often it was edited
    count: int  #: of the messages that it tells of


OWN_CHAT = ""  #: of a post: the chat of its session's thread, which is filled in when it is committed


@dataclass(frozen=True)
class NewPost:
    """A post as it is committed. Its key makes a second commit of the same one a no-op."""

    id: str
    key: str
    kind: OutboundKind
    uid: str
    name: str
    channel_kind: str  #: OWN_CHAT, or the kind of the chat
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

    def anew(self) -> NewPost:
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
        return self.because.text if self.because is not None else ""

    @property
    def reason(self) -> Reason | None:
        """Return the code of that."""
        return self.because.reason if self.because is not None else None


#: NoteWait.ended: another note tells of it since; the program's own queue holds it; it came back from there; the
#: reason has changed, which the note does not say yet
MOVED, IN_QUEUE, BACK, ANEW = "moved", "in the program's queue", "back", "anew"


@dataclass(frozen=True)
class NoteWait:
    """A message that waits, or of which nobody can tell what became of it, as a note of ours tells."""

    message: str
    because: Because  #: for what it waits, or why nobody can tell
    remedy: str
    ended: str = ""  #: how that ended, and the note says so by now, or one of the above; "": it has not ended
    doubtful: bool = False  #: it waits no more: nobody can tell, until a record does
