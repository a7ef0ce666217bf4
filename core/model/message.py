"""A message on its way into a pane: its kinds, its states and what each state means; and attached files. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING

from core.base.text import in_lines
from core.base.values import dataclass, replace

if TYPE_CHECKING:
    from core.model.reasons import Because, Reason


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
    S.UNKNOWN: frozenset({S.CONFIRMED, S.ACCEPTED, S.PENDING}),  # the last where our own hook has blocked it
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

    channel_kind: str  #: the kind of the chat
    team: str
    channel: str
    thread: str
    ts: str  #: the message itself


@dataclass(frozen=True)
class NewMessage:
    """A message as it is committed. Its key makes a second commit of the same one a no-op."""

    id: str
    key: str  #: `<chat>:<team>:<channel>:<ts>`, `cli:<id>`, `boot:<instance>`
    uid: str
    name: str
    generation: int
    kind: Kind
    actor: str  #: `cli:ann`, `<chat>:U1`, `agent:builder`
    who: str  #: how the frame names the person: `alice`
    via: str  #: how the frame names the way: the kind of a chat, or `cli`
    marker: str
    text: str
    raw: bool  #: no frame (operators)
    order_us: int  #: microseconds since the epoch by which the session's messages are taken in order
    created_at: datetime
    address: ReplyAddress | None = None
    again_of: str = ""  #: the id of the message that it sends again
    run: str = ""  #: the id of the loop's run whose tick it is
    task: str = ""  #: the background task of which it is the notice; its harness may tell of that again


def sent_again(message: NewMessage, generation: int, marker: str, new_id: str, now: datetime) -> NewMessage:
    """Return the same text as a message of its own, of the same author. Its key lets it be sent again only once.

    Its marker is another, so that what a record tells of the first one says nothing about it.
    """
    return replace(
        message,
        id=new_id,
        key=f"again:{message.id}",
        again_of=message.id,
        generation=generation,
        marker=marker,
        order_us=int(now.timestamp() * 1_000_000),
        created_at=now,
    )


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


# Compiled at their first use, and kept by `re`: most commands load this module, and few have to do with files.
_UNSAFE = r"[^\w.+-]+"
_UNTOLD = r"[^\w .+:/-]+"
_KIND = r"[\w.+-]{1,60}/[\w.+-]{1,80}"
_LONGEST_NAME = 80
_LONGEST_SHOWN = 200


@dataclass(frozen=True)
class Attachment:
    """A file as the chat describes it. `problem`: why it is not to be fetched at all, "" where it is."""

    id: str
    name: str
    kind: str  #: the media type that the chat states
    size: int  #: bytes, as stated
    url: str
    problem: str = ""
    clip: bool = False  #: somebody speaks in it, and the chat writes down what is said


@dataclass(frozen=True)
class Fetched:
    """What became of a file: the path where it is, or why it could not be had."""

    attachment: Attachment
    path: str = ""
    size: int = 0  #: bytes that were read
    problem: str = ""
    said: str = ""  #: what is said in a clip, as the chat has written it down


@dataclass(frozen=True)
class Fetch:
    """A committed message that waits for its files."""

    message_id: str
    name: str
    files: tuple[Attachment, ...]


def encoded(files: Sequence[Attachment]) -> str:
    """Return the files as JSON."""
    return json.dumps([[file.id, file.name, file.kind, file.size, file.url, file.problem, file.clip] for file in files])


def decoded(text: str) -> tuple[Attachment, ...]:
    """Return the files of `encoded`."""
    return tuple(Attachment(*entry) for entry in json.loads(text))


def safe_name(name: str, position: int) -> str:
    """Return a file name that is no path, hides nothing and collides with no other of its message: `2-notes.txt`."""
    kept = re.sub(_UNSAFE, "_", name.replace("\\", "/").rpartition("/")[2]).strip("._-")
    stem, dot, suffix = kept.rpartition(".")
    if len(kept.encode()) > _LONGEST_NAME:
        room = _LONGEST_NAME - len(suffix.encode()[:10]) - 1
        kept = f"{_cut(stem or kept, room)}{dot}{_cut(suffix, 10)}"
    return f"{position}-{kept}" if kept else f"{position}-file"


def shown_name(file: Attachment) -> str:
    """Return what a file is called, in one line."""
    return re.sub(_UNTOLD, "_", file.name).strip("._- ")[:_LONGEST_SHOWN] or "without a name"


def _cut(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")


def told(files: Sequence[Fetched]) -> str:
    """Return what the agent reads of the files: a line for each, in brackets that say what they are."""
    return "\n".join(_line(file) for file in files)


def _line(file: Fetched) -> str:
    kind = file.attachment.kind if re.fullmatch(_KIND, file.attachment.kind) else "unknown type"
    if file.problem:
        return f"(a part of this message, {shown_name(file.attachment)}, could not be read: {file.problem})"
    if file.attachment.clip and not file.said:
        return f"(file: {file.path} , {kind}, {file.size:,} bytes; the chat has not written down what is said in it)"
    if not file.said:
        return f"(file: {file.path} , {kind}, {file.size:,} bytes)"
    quoted = "\n".join(f"> {line}" for line in in_lines(file.said).split("\n"))
    return f"(file: {file.path} , {kind}, {file.size:,} bytes; said in it, as the chat has written it down:)\n{quoted}"
