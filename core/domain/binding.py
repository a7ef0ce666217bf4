"""Which thread belongs to which session. No I/O."""

from datetime import datetime

from core.values import dataclass

CHANNEL = "slack"  #: the one channel kind that sessions are bound in


@dataclass(frozen=True)
class Binding:
    """A thread that belongs to a session: (channel_kind, team, channel, thread) -> uid."""

    channel_kind: str
    team: str
    channel: str
    thread: str
    uid: str
    name: str
    created_at: datetime
    cursor: str = ""  #: the last message of the last complete sweep; "": none was complete
    begins: str = ""  #: what stands up to this message may have been taken before the database was lost; "": nothing
    shared: bool | None = None  #: whether others than our organization were in the channel at first sight

    @property
    def swept_to(self) -> str:
        """The time stamp after which messages may have been missed."""
        return self.cursor or self.begins or self.thread
