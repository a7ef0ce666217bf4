"""The contract between core and a chat: what a channel hands to core, asks of it, and must be able to do."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, Protocol

from core.base.redaction import Redactor
from core.base.values import dataclass
from core.model.asking import Button, Role
from core.model.health import Finding
from core.model.live import LiveRow, LiveShown
from core.model.message import Attachment, Fetch, Fetched
from core.model.posts import Mark, NewPost, OutboundKind, ThreadSeen


@dataclass(frozen=True)
class Posted:
    """Where a post ended up."""

    team: str
    channel: str
    ts: str
    link: str = ""  #: where a person can open it; "": not known


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
    text: str  #: the author's own words
    quoted: str = ""  #: what it quotes of others, each line marked as theirs, with its origin; "": nothing
    files: tuple[Attachment, ...] = ()
    shared: bool | None = None  #: whether the channel is shared with other organizations; None: not told
    confirm: str = ""  #: why a person must confirm it before it goes in ("sent 3 h ago"); "": it goes in by itself
    unlisted: bool = False  #: no list of the channel names the author in any form, whoever they are
    piece: str = ""  #: which part of the message this is, where it comes in several; "": the message
    to_others: bool = False  #: it begins with a mention of somebody, and not of the bot
    unordered: bool = False  #: earlier ones of its thread may be missing: it waits until the thread was read


@dataclass(frozen=True)
class IncomingChange:
    """What a channel hands to core of an edit or a deletion: the message as it is now, without text if deleted."""

    reply: IncomingReply
    deleted: bool
    only_quotes: bool = False  #: its author changed nothing: the chat itself has added what the message quotes
    before: IncomingReply | None = None  #: as it was, where the chat tells that


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
    name: str  #: "": every session that the verb changes, which its author was asked about
    text: str


@dataclass(frozen=True)
class IncomingCreation:
    """What a channel hands to core of a form that describes a new session.

    `root` is one of the folders that the operator's file names; all else is what somebody typed or chose.
    """

    channel_kind: str
    author: str  #: as the allow-list names people
    author_name: str
    name: str
    harness: str  #: "": the default one
    root: str
    folder: str  #: below the root; "": the root itself
    prompt: str
    channel: str  #: where its thread is to be; "": the configured channel
    authorized_users: tuple[str, ...] | None  #: who of the channel's list may steer it; None: all of them


@dataclass(frozen=True)
class Template:
    """What the operator's file says of sessions that a message starts: what runs, and where."""

    name: str  #: begins the names of its sessions
    harness: str  #: "": the default one
    root: str
    worktree: bool  #: each session has a git worktree of its own
    prompt: str  #: their brief
    lifetime_seconds: float  #: 0: they are not ended
    role: Role  #: who may start one


@dataclass(frozen=True)
class IncomingTask:
    """What a channel hands to core of a message that is a task: its thread is to be the session's."""

    message: IncomingReply  #: its thread is the message itself
    template: Template


@dataclass(frozen=True)
class Waiting:
    """A permission or a question that waits for an answer, with the buttons that somebody may press, and its post."""

    name: str  #: the session
    text: str
    buttons: tuple[Button, ...]
    channel: str
    thread: str
    ts: str


@dataclass(frozen=True)
class PrivateAnswer:
    """What somebody gets to see alone. `code` is shown as it is, in a fixed-width font."""

    text: str
    code: str = ""
    rows: tuple[Mapping[str, Any], ...] = ()  #: of sessions, as `list` has them: shown as its statuses
    terminal: str = ""  #: the session whose terminal `code` shows: a picture of it can be asked for, see `picture`


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


class CoreApi(Protocol):
    """What a channel may ask of core, from any thread."""

    def receive(self, replies: Sequence[IncomingReply], taken: Callable[[tuple[Verdict | None, ...]], None]) -> None:
        """Run the inbound pipeline; once this returns, what passed is on the disk. Raises StoreBroken.

        `taken` is called with its words, None for what has to come again, as soon as that is committed. What follows,
        in this thread, is the way into the terminal, which may take seconds: who cannot wait for it calls `sync`, in
        another thread.
        """
        ...

    def sync(self) -> None:
        """Return once all that was taken is on the disk. Raises StoreBroken."""
        ...

    def heard(self, channel_kind: str, mark: str, until: datetime, *, durable: bool) -> bool:
        """Take note of a request that is about to be taken; False if it was before, by this or an earlier service.

        `mark` tells it from all others; it is known until that time. `durable`: a power cut does not undo it. Raises
        StoreBroken.
        """
        ...

    def unheard(self, channel_kind: str, mark: str) -> None:
        """Let a request that was not taken come again. Raises StoreBroken."""
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

    def rows(self, author: str) -> tuple[Mapping[str, Any], ...]:
        """Return the rows of `list` that the author may see: those of the sessions that they may steer."""
        ...

    def waiting(self, channel_kind: str, author: str) -> tuple[Waiting, ...]:
        """Return what waits for an answer in sessions that the author may steer, the oldest first."""
        ...

    def press(self, press: IncomingPress) -> PrivateAnswer:
        """Do what a button is for, if whoever pressed it may, and return what to tell them. Raises CoreError."""
        ...

    def order(self, order: IncomingOrder) -> PrivateAnswer:
        """Do what a command says, if its author may, and return what to tell them. Raises CoreError."""
        ...

    def picture(self, name: str, author: str) -> tuple[str, bytes]:
        """Return what a picture of the session's terminal is called, and the picture (PNG); it may take seconds.

        Raises UnknownSession for somebody who may not see it, and CoreError where there is none.
        """
        ...

    def task(self, task: IncomingTask) -> Verdict:
        """Take a task, durably; its session is made after that. Raises StoreBroken."""
        ...

    def harnesses(self) -> tuple[str, ...]:
        """Return the names of the harnesses that there are, the default one first."""
        ...

    def faults(self, creation: IncomingCreation) -> Mapping[str, str]:
        """Return what is wrong with a creation, by field of it; nothing is asked of tmux or a network."""
        ...

    def create(self, creation: IncomingCreation) -> PrivateAnswer:
        """Create and start the session, if its author may, and return what to tell them. Raises CoreError."""
        ...

    def refuse(
        self, channel_kind: str, author: str, what: str, *, name: str = "", press: IncomingPress | None = None
    ) -> None:
        """Tell, once, that the channel refused somebody for want of rights: an order's verb or a button's action.

        `name` is the session as they typed it; `press` tells the message that the button belongs to.
        """
        ...

    def shown(self, text: str, *, verbatim: bool = False) -> str:
        """Return a text as it may be shown in a chat: without secrets, its commands such that they can be typed.

        Every text that a channel shows besides what it is given to post passes here. `verbatim`: no command is changed.
        """
        ...

    def listed(self, channel_kind: str, member: str) -> bool:
        """Return whether a list that the channel cannot see names the member: another host's. Waits for nothing."""
        ...

    def connected(self, channel_kind: str, up: bool, detail: str) -> None:
        """Report the state of the channel's connection to the service."""
        ...

    def sensed(self, channel_kind: str) -> None:
        """Note that an event has come, whatever it is about: what we post comes back as one. Returns at once."""
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

    def serve(self, door: CoreApi, stopping: Callable[[], bool]) -> None:
        """Listen until `stopping` says so; reconnects by itself, raises only on faults that waiting cannot mend."""
        ...

    def sweeps(self) -> bool:
        """Return whether replies are read, and missed ones before it serves: rows of the inbox wait for that."""
        ...

    def echoes(self) -> bool:
        """Return whether every post comes back as an event, of which `CoreApi.sensed` takes note."""
        ...

    def presses(self) -> bool:
        """Return whether presses of buttons arrive; where they do not, posts have none."""
        ...

    def typed(self, role: Role) -> str:
        """Return how a command begins here that needs the role; "" where none is heard, or nobody has the role."""
        ...

    def default_channel(self) -> str:
        """Return the configured channel's id."""
        ...

    def authorized(self, author: str) -> bool:
        """Return whether the member is on the allow-list now; asked again at delivery."""
        ...

    def has_role(self, author: str, role: Role) -> bool:
        """Return whether somebody has that role now; MEMBER is what `authorized` tells."""
        ...

    def everybody(self) -> tuple[str, ...]:
        """Return whoever a list of the channel names, in whatever role."""
        ...

    def late(self, ts: str) -> str:
        """Return why a message with that time stamp must be confirmed if it goes in now ("sent 3 h ago"), else ""."""
        ...

    def look_again(self) -> None:
        """Core has something new for the channel that serves: files to fetch. Returns at once; from any thread."""
        ...

    def redact_with(self, redactor: Redactor) -> None:
        """Take secrets out of all that goes out by this redactor; called once, before anything is posted."""
        ...

    def post(self, post: NewPost, channel: str, thread: str) -> Posted:
        """Post the text (into the thread unless it is ""). Raises ChannelError, HandedOver."""
        ...

    def update(self, post: NewPost, channel: str, ts: str) -> Posted:
        """Replace an earlier post's text. Raises ChannelError, HandedOver."""
        ...

    def find(self, post_id: str, channel: str, thread: str) -> Posted | None:
        """Look for a post of ours by its id, after an unclear failure. Raises ChannelError, HandedOver."""
        ...

    def read_thread(self, channel: str, thread: str) -> ThreadSeen:
        """Read a thread to its end: which posts there are ours, by who posted them. Raises ChannelError."""
        ...

    def wants(self, kind: OutboundKind) -> bool:
        """Return whether posts of that kind are shown here, by the channel's verbosity."""
        ...

    def live(self) -> bool:
        """Return whether turns are to be shown as they run, in messages that grow: live posts."""
        ...

    def begin_live(self, row: LiveRow) -> Posted:
        """Post the message of a live post, with what it shows first. Raises ChannelError.

        NOT_ALLOWED: no live post can be made here, and none is asked for again until the next start.
        """
        ...

    def add_live(self, row: LiveRow, change: LiveShown, text: str = "") -> None:
        """Tell what has changed of the steps, and put a text behind the text so far. Raises ChannelError."""
        ...

    def end_live(self, row: LiveRow, post: NewPost | None, change: LiveShown, text: str) -> Posted:
        """Do the same for the last time, and give the message the post's id, by which `find` finds it.

        Raises ChannelError.
        """
        ...

    def remove_live(self, row: LiveRow) -> None:
        """Remove the message of a live post, wherever that stands; one that is gone is well. Raises ChannelError."""
        ...

    def find_live(self, row: LiveRow) -> Posted | None:
        """Look for the message of a live post by its id, after an unclear failure. Raises ChannelError."""
        ...

    def live_parts(self, post: NewPost, shown: LiveShown) -> tuple[NewPost, ...]:
        """Return the same as `parts` for an answer whose first part ends a live post that shows this. Pure."""
        ...

    def live_pieces(self, post: NewPost, shown: LiveShown) -> tuple[str, ...]:
        """Return the texts that such a live post is given one after another; () where it cannot hold them. Pure."""
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

    def link(self, channel: str, thread: str) -> str:
        """Return the address at which a browser shows the thread, "" where none is known. Waits for nothing."""
        ...

    def webhook(self) -> WebHook | None:
        """Return what answers the chat's requests over HTTP; None where it sends none. Called from any thread."""
        ...

    def check(self, channels: Collection[str] = ()) -> tuple[Finding, ...]:
        """Ask the other side whether everything is in place. `channels`: where threads of sessions are bound."""
        ...

    def send_probe(self, channel: str) -> Callable[[], None]:
        """Post a message that asks nobody anything, and return what removes it. Both raise ChannelError."""
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

    def __call__(self, block: Mapping[str, Any], environ: Mapping[str, str]) -> Channel:
        """Make the channel; no network yet. `block`: as the model of its ChatInfo reads it, by the file's own names."""
        ...
