"""A chat on the other side of the Channel port: keeps what was posted, and fails as told."""

from collections.abc import Callable
from dataclasses import dataclass, field

from core.errors import ChannelError
from core.ports import CoreDoor, Finding, NewPost, Posted

TEAM, HOME = "T1", "C1"


@dataclass
class Message:
    """What stands in the chat."""

    post_id: str
    channel: str
    thread: str
    ts: str
    text: str


@dataclass
class Chat:
    """Implements Channel. `faults` are raised by the next calls, by name; "lost" ones after the work was done."""

    kind: str = "slack"
    members: set[str] = field(default_factory=lambda: {"U1"})
    messages: list[Message] = field(default_factory=list)
    faults: list[tuple[str, ChannelError]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def serve(self, door: CoreDoor, stopping: Callable[[], bool]) -> None:
        """Listen to nobody."""

    def default_channel(self) -> str:
        """Return the configured channel."""
        return HOME

    def authorized(self, author: str) -> bool:
        """Tell whether the member is on the list."""
        return author in self.members

    def post(self, post: NewPost, channel: str, thread: str) -> Posted:
        """Post, or fail as told."""
        self._fault("post")
        message = Message(post.id, channel, thread, f"1700.{len(self.messages):06d}", post.text)
        self.messages.append(message)
        self._fault("lost")
        return Posted(TEAM, channel, message.ts)

    def update(self, post: NewPost, channel: str, ts: str) -> Posted:
        """Edit, or fail as told."""
        self._fault("update")
        for message in self.messages:
            if (message.channel, message.ts) == (channel, ts):
                message.text = post.text
        return Posted(TEAM, channel, ts)

    def find(self, post_id: str, channel: str, thread: str) -> Posted | None:
        """Look for a message by the id of its post."""
        self._fault("find")
        found = (message for message in self.messages if message.post_id == post_id)
        return next((Posted(TEAM, message.channel, message.ts) for message in found), None)

    def check(self) -> tuple[Finding, ...]:
        """Find nothing wrong."""
        return ()

    def manifest(self) -> str:
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
