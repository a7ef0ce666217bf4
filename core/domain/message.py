"""A message on its way into a pane: its kinds, its states and what each state means. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING

from core.values import dataclass

if TYPE_CHECKING:  # whoever lists sessions tells of no message
    from core.domain.reasons import Because, Reason


class Kind(Enum):
    """What would start a turn."""

    SAY = "say"
    REPLY = "reply"
    TICK = "tick"
    KEEP_ALIVE_TICK = "keep-alive-tick"
    NOTICE = "notice"
    BOOT = "boot"


MESSAGES = frozenset({Kind.SAY, Kind.REPLY})  #: what people and other agents write
TICKS = frozenset({Kind.TICK, Kind.KEEP_ALIVE_TICK})  #: what a loop fires: behind people's messages, and in no hurry


class MessageState(Enum):
    """Where a message stands."""

    PENDING = "pending"  #: committed, nothing was done
    QUEUED = "queued"  #: the gate made it wait; its reason says for what
    CLAIMED = "claimed"  #: an attempt with a deadline began; the paste may or may not have happened
    PASTED = "pasted"  #: the receipt is on the pane; not yet submitted
    SUBMITTED = "submitted"  #: the CR was written; final where the harness cannot prove more
    ACCEPTED = "accepted"  #: the harness has it: it said so, or it is in its own queue; no turn is known to have it
    CONFIRMED = "confirmed"  #: a turn took it, by the harness's own record
    UNKNOWN = "unknown"  #: nobody can tell; said, and never repeated by us
    REFUSED = "refused"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    FAILED = "failed"


S = MessageState
TRANSITIONS: Mapping[MessageState, frozenset[MessageState]] = {
    S.PENDING: frozenset(
        {S.CLAIMED, S.QUEUED, S.REFUSED, S.EXPIRED, S.CANCELLED, S.FAILED, S.CONFIRMED, S.ACCEPTED, S.PASTED}
    ),
    S.QUEUED: frozenset({S.CLAIMED, S.QUEUED, S.REFUSED, S.EXPIRED, S.CANCELLED, S.FAILED, S.CONFIRMED, S.ACCEPTED}),
    S.CLAIMED: frozenset(
        {S.PASTED, S.SUBMITTED, S.PENDING, S.QUEUED, S.CONFIRMED, S.ACCEPTED, S.UNKNOWN, S.REFUSED, S.FAILED}
    ),
    S.PASTED: frozenset({S.SUBMITTED, S.CONFIRMED, S.ACCEPTED, S.UNKNOWN, S.PENDING}),
    S.SUBMITTED: frozenset({S.SUBMITTED, S.CONFIRMED, S.ACCEPTED, S.UNKNOWN, S.PENDING}),
    S.ACCEPTED: frozenset({S.ACCEPTED, S.CONFIRMED, S.UNKNOWN, S.PENDING}),
    S.UNKNOWN: frozenset({S.CONFIRMED, S.ACCEPTED}),
    S.CONFIRMED: frozenset(),
    S.REFUSED: frozenset(),
    S.EXPIRED: frozenset(),
    S.CANCELLED: frozenset(),
    S.FAILED: frozenset(),
}

MOST_TEXT = 1 << 20  #: characters of a message
WAITING = frozenset({S.PENDING, S.QUEUED})  #: may be claimed, cancelled or refused
IN_FLIGHT = frozenset({S.CLAIMED, S.PASTED, S.SUBMITTED})  #: nothing else is pasted into that session meanwhile
DELIVERED = frozenset({S.CONFIRMED, S.SUBMITTED, S.ACCEPTED})
EXIT_ZERO = DELIVERED | {S.QUEUED}


@dataclass(frozen=True)
class ReplyAddress:
    """Where a message came from in a chat, so that notes go back there."""

    channel_kind: str  #: the channel plugin: "slack"
    team: str
    channel: str
    thread: str
    ts: str  #: the message itself


@dataclass(frozen=True)
class NewMessage:
    """A message as it is committed. Its key makes a second commit of the same one a no-op."""

    id: str
    key: str  #: `slack:<team>:<channel>:<ts>`, `cli:<id>`, `boot:<instance>`
    uid: str
    name: str
    generation: int
    kind: Kind
    actor: str  #: `cli:ann`, `slack:U1`, `agent:builder`
    who: str  #: how the frame names the person: `alice`
    via: str  #: how the frame names the way: `slack`, `cli`
    marker: str
    text: str
    raw: bool  #: no frame (operators)
    order_us: int  #: microseconds since the epoch by which the session's messages are taken in order
    created_at: datetime
    address: ReplyAddress | None = None
    again_of: str = ""  #: the id of the message that it sends again
    run: str = ""  #: the id of the loop's run whose tick it is
    task: str = ""  #: the background task of which it is the notice; its harness may tell of that again


@dataclass(frozen=True)
class InboxRow:
    """A committed message and how far it has come."""

    message: NewMessage
    seq: int
    state: MessageState
    because: Because | None  #: what it waits for, or why it stands where it stands; None: there is nothing to tell
    updated_at: datetime
    instance: str | None = None  #: the pane of the latest attempt
    attempt: int = 0
    attempt_deadline: datetime | None = None  #: the server refuses the paste after this
    pasted_at: datetime | None = None
    submitted_at: datetime | None = None
    submits: int = 0  #: CRs written, at most two
    stashed: bool = False  #: a person's half-typed text was put aside for this message
    final: bool = False  #: SUBMITTED, and nobody waits for evidence: this harness, or this text, cannot give any
    queued_at: datetime | None = None  #: ACCEPTED: since when the harness's own queue is known to hold it

    @property
    def reason(self) -> Reason | None:
        """The code of what it waits for, or of why it stands where it stands."""
        return self.because.reason if self.because is not None else None

    @property
    def detail(self) -> str:
        """The reason as people read it; "" without one. Nothing is decided by it."""
        return self.because.text if self.because is not None else ""

    @property
    def token(self) -> str:
        """The receipt that the latest attempt leaves on the pane."""
        return f"{self.message.id}-{self.attempt}"
