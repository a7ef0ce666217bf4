"""What the supervisor must still know after it was killed: ends told, restarts due, idleness announced. No I/O."""

from datetime import datetime

from core.values import dataclass, replace


@dataclass(frozen=True)
class End:
    """The end of one instance. `by_person`: somebody left the program by its own command."""

    instance: str
    uid: str
    by_person: bool = False
    told_at: datetime | None = None  #: None: it may still live
    due_at: datetime | None = None  #: when it is brought back; None: not by itself
    counted: bool = False  #: that restart is one after a crash, of which the hour has only so many


_TAKEN = "taken:"  #: before the instance whose idleness has ended it, until its thread is told
_TOLD = "told:"  #: in its place afterwards


@dataclass(frozen=True)
class Announced:
    """An idleness that was announced: that of which instance, since when it was idle, and when it was said."""

    uid: str
    instance: str
    idle_since: datetime
    at: datetime

    def is_of(self, instance: str) -> bool:
        """Tell whether it is this instance's."""
        return self.instance.removeprefix(_TAKEN).removeprefix(_TOLD) == instance

    def ended(self, instance: str) -> bool:
        """Tell whether the instance was stopped for it: what sleeps then does so because it shall."""
        return self.instance in (f"{_TAKEN}{instance}", f"{_TOLD}{instance}")

    def is_untold(self, instance: str) -> bool:
        """Tell whether the instance was stopped for it, and its thread has not heard of that."""
        return self.instance == f"{_TAKEN}{instance}"

    def taken(self, instance: str) -> "Announced":
        """Return it with the note that the instance is being stopped for it."""
        return replace(self, instance=f"{_TAKEN}{instance}")

    def told(self, instance: str) -> "Announced":
        """Return it with the note that the thread was told so."""
        return replace(self, instance=f"{_TOLD}{instance}")
