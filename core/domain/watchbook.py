"""What the supervisor must still know after it was killed: ends told, restarts due, idleness announced. No I/O."""

from datetime import datetime

from core.values import dataclass


@dataclass(frozen=True)
class End:
    """The end of one instance. `by_person`: somebody left the program by its own command."""

    instance: str
    uid: str
    by_person: bool = False
    told_at: datetime | None = None  #: None: it may still live
    due_at: datetime | None = None  #: when it is brought back; None: not by itself
    counted: bool = False  #: that restart is one after a crash, of which the hour has only so many


@dataclass(frozen=True)
class Announced:
    """An idleness that was announced: that of which instance, since when it was idle, and when it was said."""

    uid: str
    instance: str
    idle_since: datetime
    at: datetime
