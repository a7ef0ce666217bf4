"""What the supervisor must still know after it was killed: ends told, restarts due, idleness announced. No I/O."""

from datetime import datetime
from enum import Enum

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


class Stage(Enum):
    """What has followed from an idleness that was announced."""

    ANNOUNCED = "announced"  #: nothing yet
    TAKEN = "taken"  #: the instance is being stopped for it, or was, and its thread has not heard of that
    TOLD = "told"  #: the thread has


@dataclass(frozen=True)
class Announced:
    """An idleness that was announced: that of which instance, since when it was idle, and when it was said."""

    uid: str
    instance: str
    idle_since: datetime
    at: datetime
    stage: Stage = Stage.ANNOUNCED

    def ended(self, instance: str) -> bool:
        """Return whether the instance was stopped for it: it sleeps as it should."""
        return self.instance == instance and self.stage is not Stage.ANNOUNCED

    def is_untold(self, instance: str) -> bool:
        """Return whether the instance was stopped for it, and its thread has not heard of that."""
        return self.instance == instance and self.stage is Stage.TAKEN
