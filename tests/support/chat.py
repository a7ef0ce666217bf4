"""A chat on the other side of the Channel port: keeps what was posted, and fails as told."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from core.base.errors import ChannelError
from core.base.redaction import Redactor
from core.model.asking import Button, Role
from core.model.channel import CoreApi, Posted, WebHook
from core.model.health import Finding
from core.model.live import LiveRow, LiveShown, merged
from core.model.posts import Mark, NewPost, OutboundKind, OwnPost, ThreadSeen

TEAM, HOME = "T1", "C1"


@dataclass
class Message:
    """What stands in the chat."""

    post_id: str
    channel: str
    thread: str
    ts: str
    text: str
    kind: str = ""
    name: str = ""
    uid: str = ""
    shown: LiveShown = field(default_factory=LiveShown)
    live: str = ""  #: the id of the live post that it is
    over: bool = False  #: it takes nothing any more


@dataclass
class Chat:
    """Implements Channel. `faults` are raised by the next calls, by name; "lost" ones after the work was done."""

    kind: str = "slack"
    members: set[str] = field(default_factory=lambda: {"U1"})
    messages: list[Message] = field(default_factory=list)
    faults: list[tuple[str, ChannelError]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    replies: bool = False  #: whether what people write here is read
    buttons: bool = True  #: whether presses arrive
    removed: int = 0  #: how many messages are there no more
    streams: bool = False  #: whether turns are shown as they run
    echo: bool = False  #: whether posts come back as events
    shown: dict[str, tuple[Button, ...]] = field(default_factory=dict)  #: the buttons of a message, by its ts
    written: list[str] = field(default_factory=list)  #: the time stamps of what people wrote
    unwanted: set[OutboundKind] = field(default_factory=set)
    reactions: dict[str, set[Mark]] = field(default_factory=dict)  #: by the message's ts
    taken_back: list[tuple[str, Mark]] = field(default_factory=list)  #: each call that took a reaction back
    statuses: list[tuple[str, str]] = field(default_factory=list)  #: thread and text, as they were shown

    def serve(self, door: CoreApi, stopping: Callable[[], bool]) -> None:
        """Listen to nobody."""

    def sweeps(self) -> bool:
        """Sweep as the test says."""
        return self.replies

    def presses(self) -> bool:
        """Let presses arrive as the test says."""
        return self.buttons

    def typed(self, role: Role) -> str:
        """Take no commands."""
        return ""

    def default_channel(self) -> str:
        """Return the configured channel."""
        return HOME

    def authorized(self, author: str) -> bool:
        """Return whether the member is on the list."""
        return author in self.members

    def has_role(self, author: str, role: Role) -> bool:
        """Return whether somebody has the role: here every member has each but an operator's."""
        return self.authorized(author) and role is not Role.OPERATOR

    def everybody(self) -> tuple[str, ...]:
        """Return who is on the list."""
        return tuple(sorted(self.members))

    def late(self, ts: str) -> str:
        """Nothing is too late."""
        return ""

    def look_again(self) -> None:
        """No message has files."""

    def redact_with(self, redactor: Redactor) -> None:
        """Keep nothing secret."""

    def post(self, post: NewPost, channel: str, thread: str) -> Posted:
        """Post, or fail as told; a file fails as "file" as well."""
        if post.kind is OutboundKind.FILE:
            self._fault("file")
        self._fault("post")
        message = Message(post.id, channel, thread, self._next_ts(), post.text,
                          post.kind.value, post.name, post.uid)  # fmt: skip
        self.messages.append(message)
        self.shown[message.ts] = post.buttons
        self._fault("lost")
        return Posted(TEAM, channel, message.ts)

    def update(self, post: NewPost, channel: str, ts: str) -> Posted:
        """Edit, or fail as told."""
        self._fault("update")
        for message in self.messages:
            if (message.channel, message.ts) == (channel, ts):
                message.text, self.shown[ts] = post.text, post.buttons
        return Posted(TEAM, channel, ts)

    def find(self, post_id: str, channel: str, thread: str) -> Posted | None:
        """Look for a message by the id of its post."""
        self._fault("find")
        found = (message for message in self.messages if message.post_id == post_id)
        return next((Posted(TEAM, message.channel, message.ts) for message in found), None)

    def read_thread(self, channel: str, thread: str) -> ThreadSeen:
        """Return what was posted in the thread, all of it ours, or fail as told."""
        self._fault("read")
        there = [m for m in self.messages if m.channel == channel and thread in (m.ts, m.thread)]
        latest = max([thread, *self.written, *(message.ts for message in there)])
        own = tuple(OwnPost(m.ts, m.post_id, m.kind, f"standing:{m.name}", m.uid) for m in there)
        return ThreadSeen(TEAM, channel, thread, latest, own)

    def wants(self, kind: OutboundKind) -> bool:
        """Return whether posts of that kind are shown."""
        return kind not in self.unwanted

    def parts(self, post: NewPost) -> tuple[NewPost, ...]:
        """Return an answer's lines as parts where it has several."""
        lines = post.text.split("\n") if post.kind is OutboundKind.ANSWER else [post.text]
        if len(lines) == 1:
            return (post,)
        return tuple(
            replace(post, id=f"{post.id}-{number}", key=f"{post.key}#{number}", text=line)
            for number, line in enumerate(lines, start=1)
        )

    def live(self) -> bool:
        """Show turns as they run, as the test says."""
        return self.streams

    def begin_live(self, row: LiveRow) -> Posted:
        """Begin a message that grows, or fail as told."""
        self._fault("begin")
        message = Message("", row.channel, row.thread, self._next_ts(), "", "live")
        message.shown, message.live = row.shown, row.id
        self.messages.append(message)
        self._fault("lost")
        return Posted(TEAM, row.channel, message.ts)

    def add_live(self, row: LiveRow, change: LiveShown, text: str = "") -> None:
        """Let it grow, or fail as told; what is over takes nothing."""
        self._fault("add")
        self._grow(row, change, text)
        self._fault("lost")

    def end_live(self, row: LiveRow, post: NewPost | None, change: LiveShown, text: str) -> Posted:
        """End it, or fail as told."""
        self._fault("end")
        message = self._grow(row, change, text)
        message.over = True
        if post is not None:
            message.post_id, message.kind = post.id, post.kind.value
        self._fault("lost")
        return Posted(TEAM, row.channel, row.ts)

    def remove_live(self, row: LiveRow) -> None:
        """Remove it, or fail as told."""
        self._fault("remove")
        before = len(self.messages)
        self.messages = [message for message in self.messages if message.ts != row.ts]
        self.removed += before - len(self.messages)
        self._fault("lost")

    def find_live(self, row: LiveRow) -> Posted | None:
        """Look for a live post by its id."""
        self._fault("find_live")
        found = (message for message in self.messages if message.live == row.id)
        return next((Posted(TEAM, message.channel, message.ts) for message in found), None)

    def live_parts(self, post: NewPost, shown: LiveShown) -> tuple[NewPost, ...]:
        """Return an answer's paragraphs as parts where it has several."""
        texts = post.text.split("\n\n")
        return (post,) if len(texts) == 1 else tuple(
            replace(post, id=f"{post.id}-{number}", key=f"{post.key}#{number}", text=text)
            for number, text in enumerate(texts, start=1)
        )  # fmt: skip

    def live_pieces(self, post: NewPost, shown: LiveShown) -> tuple[str, ...]:
        """Return the text's lines; none for a text that a live post does not hold."""
        return () if "too long" in post.text else tuple(post.text.splitlines(keepends=True))

    def _next_ts(self) -> str:
        return f"1700.{len(self.messages) + self.removed:06d}"

    def _grow(self, row: LiveRow, change: LiveShown, text: str) -> Message:
        message = next((one for one in self.messages if one.ts == row.ts), None)
        if message is None or message.over:
            raise ChannelError("it is over", transient=False, reason="over")
        message.shown, message.text = merged(message.shown, change), message.text + text
        return message

    def react(self, channel: str, ts: str, mark: Mark, instead_of: Collection[Mark]) -> None:
        """Show the mark, or fail as told."""
        self._fault("react")
        self.taken_back += [(ts, other) for other in sorted(instead_of, key=lambda one: one.value)]
        self.reactions[ts] = self.reactions.get(ts, set()) - set(instead_of) | {mark}
        self._fault("lost")

    def status(self, channel: str, thread: str, text: str) -> None:
        """Keep what is shown."""
        self.statuses.append((thread, text))

    def link(self, channel: str, thread: str) -> str:
        """Return none: no browser shows it."""
        return ""

    def webhook(self) -> WebHook | None:
        """Take nothing over HTTP."""
        return None

    def echoes(self) -> bool:
        """Return whether posts come back as events, as the test says."""
        return self.echo

    def send_probe(self, channel: str) -> Callable[[], None]:
        """Post nothing."""
        return lambda: None

    def check(self, channels: Collection[str] = ()) -> tuple[Finding, ...]:
        """Find nothing wrong."""
        return ()

    def manifest(self, url: str = "") -> str:
        """Return no manifest."""
        return ""

    def texts(self, thread: str | None = None) -> list[str]:
        """Return what was posted, in one thread or everywhere."""
        return [message.text for message in self.messages if thread is None or message.thread == thread]

    def _fault(self, call: str) -> None:
        if call != "lost":
            self.calls.append(call)
        for number, (name, error) in enumerate(self.faults):
            if name == call:
                del self.faults[number]
                raise error
