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
