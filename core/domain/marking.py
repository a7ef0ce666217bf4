"""What a reaction tells the sender of a message. No I/O."""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum

from core.domain.message import MessageState
from core.values import dataclass


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
