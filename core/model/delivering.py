"""Decide what to do next with a session's first message: one pure step over everything that is known. No I/O.

`step` is level-triggered: its input is the present situation, not an event. A process may die between any two steps,
and the next one continues from what is on the disk, on the pane and in the harness's records. At most one message of a
session is being delivered. None is pasted a second time without proof that the first paste was lost.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum

from core.base.values import dataclass, field
from core.model.framing import most_pieces
from core.model.gate import Action, Decision
from core.model.harness import Traits
from core.model.message import TICKS, WAITING, InboxRow, Kind, MessageState
from core.model.pane import Receipt
from core.model.reasons import Because, Reason, Remedy
from core.model.texts import text

RECORD_WINDOW = timedelta(seconds=5)  #: from a hook's report of a text to the record of it: 0.1 s, a busy machine more
#: For each paste that a long text goes in with: Claude Code reads 500 of them in 1 s, on a busy machine in 8 s.
PIECE_SETTLES, PIECE_SHOWS = timedelta(milliseconds=3), timedelta(milliseconds=20)
ECHO_WITHIN = timedelta(seconds=10)  #: from a paste to the screen that shows it, on a busy machine; then it is entered
ECHO_UNREAD = timedelta(seconds=5)  #: from an Enter that changes nothing on the screen to the second one
ECHO_POLL = timedelta(milliseconds=100)
TOOL_MARGIN = timedelta(seconds=1)  #: from a tool call to the dialog that it may open: 0.2 s on a busy machine
PREPARING_SETTLES = (
    4  #: settle times from a key that prepares the line to the paste: after one a busy Claude Code read both
)
TYPING_QUIET = timedelta(seconds=5)
TYPING_LIMIT = timedelta(seconds=60)
SILENCE_RETRY = timedelta(seconds=1)
RETURNING = timedelta(seconds=1)  #: until a text that was refused, or put aside, stands in the input line again
MAX_SUBMITS = 2

#: a row that waits for one of these expires
EXPIRING = frozenset({Reason.SILENT, Reason.TYPING, Reason.HALF_TYPED, Reason.STASHING, Reason.CLEARING})
#: what is worth a moment's wait by whoever sent the message
PASSING = frozenset({Reason.STARTING, Reason.TYPING, Reason.STASHING, Reason.CLEARING, Reason.TOOL_CALL})

_DELIVERS = frozenset({Action.DELIVER, Action.DELIVER_PACED})


class PaneState(Enum):
    """What tmux says of the pane that the row is meant for, or was pasted into."""

    ALIVE = "alive"
    GONE = "gone"  #: dead, absent, or an earlier instance's
    SILENT = "silent"


@dataclass(frozen=True)
class Timing:
    """How long things may take."""

    command: timedelta  #: one guarded line
    start: timedelta  #: from a spawn to the first turn
    expiry: timedelta  #: of a row that waits for tmux or for a typist


@dataclass(frozen=True)
class Situation:
    """How things stand for the row whose turn it is."""

    row: InboxRow
    generation: int | None  #: the record's; None: the session is gone
    decision: Decision
    traits: Traits
    provable: bool  #: the harness's records can show that a turn took this text
    timing: Timing
    pane: PaneState
    receipts: Mapping[Receipt, str] = field(default_factory=dict)
    looked_at: datetime | None = None  #: when the pane's receipts were asked for
    durable: bool = False  #: the harness's records outlive the instance, and were read to their end
    asking: bool = False  #: a dialog may be open: an Enter would answer it
    tool_at: datetime | None = None  #: the latest tool call
    typed_at: datetime | None = None  #: the latest key of a writable client that is attached
    left: bool = False  #: its input line was looked at, and text stands in it
    stash_back_at: datetime | None = None  #: the Enter of the message before it, which brings back what was put aside
    turn_started_at: datetime | None = None
    doubt_since: datetime | None = None  #: since when a text that no turn took may stand in its input line
    cut_off_at: datetime | None = None  #: its turn was ended in the terminal, and its text may stand there again
    paused: bool = False  #: nothing of ours may start a turn, and nothing that waits is lost by it
    authorized: bool | None = True  #: its author may steer, by the list that holds now; None: it cannot be asked here


@dataclass(frozen=True)
class Attempt:
    """Claim the row, then paste it; the server refuses the paste after `deadline`.

    `enter`: the harness needs no moment, so the CR follows in the same turn of the server.
    """

    deadline: datetime
    enter: bool = False


@dataclass(frozen=True)
class Stash:
    """Put half-typed text aside; the server refuses after `deadline`."""

    deadline: datetime


@dataclass(frozen=True)
class Clear:
    """Empty the input line, where an earlier message of ours may still stand; the server refuses after `deadline`."""

    deadline: datetime


@dataclass(frozen=True)
class MarkPasted:
    """The receipt is on the pane, and the row does not say so yet."""


@dataclass(frozen=True)
class Submit:
    """Write the CR; `number` 2 is the lone one, after nothing showed that the first arrived."""

    number: int


@dataclass(frozen=True)
class MarkSubmitted:
    """The CR's receipt is on the pane, and the row does not say so yet."""

    number: int


@dataclass(frozen=True)
class Settle:
    """The row is over. `note`: the sender's thread is told, with the remedy."""

    state: MessageState
    because: Because
    remedy: str = ""
    note: bool = False


@dataclass(frozen=True)
class Queue:
    """The row waits for what its reason says; look again at `until`, or when something changed."""

    because: Because
    remedy: str = ""
    note: bool = False
    until: datetime | None = None


@dataclass(frozen=True)
class BackToPending:
    """The attempt is known to be lost: the row may be tried again."""

    because: Because


@dataclass(frozen=True)
class Wait:
    """Nothing to do before `until` (None: before something changes)."""

    until: datetime | None
    because: Because


Step = Attempt | Stash | Clear | MarkPasted | Submit | MarkSubmitted | Settle | Queue | BackToPending | Wait


def step(situation: Situation, now: datetime) -> Step:
    """Return the next step for the row. Pure.

    The harness's records come first: what they prove has moved the row before anybody asks for a step.
    """
    row = situation.row
    if row.state in WAITING:
        return _waiting(situation, now)
    early = resting_until(row, situation.provable, situation.traits, situation.timing)
    if early is not None and now < early:
        return Wait(early, Because(Reason.SETTLING))
    if situation.pane is PaneState.SILENT:
        return Wait(now + SILENCE_RETRY, Because(Reason.SILENT))
    if row.state is MessageState.CLAIMED:
        return _claimed(situation, now)
    return _pasted(situation, now) if row.state is MessageState.PASTED else _submitted(situation, now)


def resting_until(row: InboxRow, provable: bool, traits: Traits, timing: Timing) -> datetime | None:
    """Return the moment before which only evidence can move a row that is in flight; None: look now."""
    if row.state is MessageState.PASTED and row.pasted_at:
        return row.pasted_at + timedelta(seconds=traits.settle) + PIECE_SETTLES * _further_pieces(row, traits)
    if row.state is MessageState.SUBMITTED and row.submitted_at and provable:
        recorded = timedelta(seconds=traits.recorded_within) + PIECE_SHOWS * _further_pieces(row, traits)
        return row.submitted_at + (timing.start if by_argument(row) else recorded)
    return None


def _further_pieces(row: InboxRow, traits: Traits) -> int:
    return most_pieces(row.message.text, traits) - 1


def by_argument(row: InboxRow) -> bool:
    """Return whether a boot prompt was the program's argument: evidence settles it, and nothing submits it again."""
    return row.message.kind is Kind.BOOT and row.attempt_deadline is None


# ---------------------------------------------------------------- waiting


def _waiting(s: Situation, now: datetime) -> Step:
    row = s.row
    if s.generation is None or row.message.generation < s.generation:
        remedy = text(Remedy.SEND_AGAIN_RUNNING)
        return Settle(MessageState.CANCELLED, Because(Reason.OUTLIVED), remedy, note=True)
    if row.reason is Reason.FETCHING:
        return Wait(None, Because(Reason.FETCHING))
    if s.authorized is None:
        return Queue(Because(Reason.NEEDS_SERVICE), text(Remedy.START_SERVICE))
    if not s.authorized:
        return Settle(MessageState.REFUSED, Because(Reason.NOT_AUTHORIZED))
    expired = not s.paused and row.message.kind not in TICKS and now >= _began_to_wait(row, now) + s.timing.expiry
    if expired and row.because is not None and row.reason in EXPIRING:
        return _expire(row.because)
    if s.decision.action not in _DELIVERS:
        return _held_back(row, s.decision, expired)
    if (early := _too_early(s, now)) is not None:
        settled = row.state is MessageState.PENDING or row.reason in PASSING
        return early if settled else Queue(early.because, until=early.until)  # what it waited for before is over
    receipt = _PREPARING.get(row.reason) if row.reason is not None else None
    if row.because is None or receipt is None:
        return _deliverable(s, now)
    return _prepared(s, row.because, receipt, now)


def _too_early(s: Situation, now: datetime) -> Wait | None:
    """Wait a moment after a tool call: the dialog that it may open takes an Enter, and can swallow a text."""
    if s.tool_at is None or now >= s.tool_at + TOOL_MARGIN:
        return None
    return Wait(s.tool_at + TOOL_MARGIN, Because(Reason.TOOL_CALL))


def awaits_confirmation(row: InboxRow) -> bool:
    """Return whether the row goes in only once a person said so; it holds up none of those behind it."""
    return row.state is MessageState.QUEUED and row.reason is Reason.CONFIRM


def _began_to_wait(row: InboxRow, now: datetime) -> datetime:
    """Return since when the row waits for something that lets it expire: not for what it was queued for before."""
    if row.state is MessageState.PENDING:
        return row.message.created_at
    return row.updated_at if row.reason in EXPIRING else now


def _held_back(row: InboxRow, decision: Decision, expired: bool) -> Step:
    if decision.action in (Action.QUEUE, Action.ANSWER):
        if expired and decision.because.reason in EXPIRING:
            return _expire(decision.because)
        return Queue(decision.because, decision.remedy, note=decision.note or decision.action is Action.ANSWER)
    refused = decision.action is Action.REFUSE
    late = refused and row.message.kind is Kind.SAY and decision.because.reason is not Reason.DELETING
    state = MessageState.REFUSED if refused else MessageState.CANCELLED
    return Settle(
        state, decision.because, decision.remedy, note=decision.note or late
    )  # late: its command was answered


def _expire(why: Because) -> Settle:
    waited = Because(Reason.WAITED_TOO_LONG, {"why": why})
    return Settle(MessageState.EXPIRED, waited, text(Remedy.SEND_AGAIN), note=True)


def _half_typed(s: Situation) -> Queue:
    remedy = text(Remedy.LEFT_TEXT if s.left else Remedy.TYPIST_SENDS)
    return Queue(Because(Reason.HALF_TYPED), remedy, note=True)


def _deliverable(s: Situation, now: datetime) -> Step:
    typed = s.typed_at is not None and (s.turn_started_at is None or s.typed_at > s.turn_started_at)
    half_typed = typed or s.left
    if s.typed_at is not None and now < s.typed_at + TYPING_QUIET:
        began = s.row.updated_at if s.row.reason is Reason.TYPING else now
        if now < began + TYPING_LIMIT:
            until = min(s.typed_at + TYPING_QUIET, began + TYPING_LIMIT)
            return Queue(Because(Reason.TYPING), text(Remedy.GOES_IN_AFTER_PAUSE), until=until)
    doubt = s.doubt_since is not None and (s.turn_started_at is None or s.turn_started_at <= s.doubt_since)
    if doubt and s.doubt_since is not None and s.doubt_since <= now < s.doubt_since + RETURNING:  # or by another clock
        return Wait(s.doubt_since + RETURNING, Because(Reason.RETURNING))
    back = s.stash_back_at
    if back is not None and not half_typed and back <= now < back + RETURNING:  # or by another clock
        return Wait(back + RETURNING, Because(Reason.STASH_RETURNING))
    if half_typed and (s.traits.stash is None or doubt):
        return _half_typed(s)
    if doubt and s.traits.clear is None:
        return Queue(Because(Reason.IN_DOUBT), text(Remedy.LOOK_IN_DOUBT), note=True)
    if (
        half_typed and s.row.stashed and s.row.reason is Reason.HALF_TYPED
    ):  # typed after the stash: another would pop it
        return _half_typed(s)
    if half_typed and (not s.row.stashed or s.row.reason is Reason.STASHING):
        return Stash(_deadline(s, now))
    restored = s.cut_off_at is not None and s.traits.clear is not None and not half_typed
    return Clear(_deadline(s, now)) if doubt or restored else _attempt(s, now)


_PREPARING = {Reason.STASHING: Receipt.STASHED, Reason.CLEARING: Receipt.CLEARED}


def _prepared(s: Situation, why: Because, receipt: Receipt, now: datetime) -> Step:
    """Return what follows the keys that were to prepare the input line, of which the receipt tells.

    A harness takes them for text where it reads them together with the paste, and then the text would be glued to what
    a person has half typed (Claude Code 2.1.197, once in 94 tests on a busy machine, 0.3 s apart).
    """
    row = s.row
    if s.receipts.get(receipt) == row.token:
        ready = row.updated_at + timedelta(seconds=PREPARING_SETTLES * s.traits.settle)
        if now < ready:
            return Wait(ready, why)
        if s.left or (s.typed_at is not None and s.typed_at > row.updated_at):
            return _half_typed(s)
        return _attempt(s, now)
    if (until := _may_still_run(s, now)) is not None:
        return Wait(until, why)
    return _deliverable(s, now)


def _may_still_run(s: Situation, now: datetime) -> datetime | None:
    """Return when to look again, where the server may have acted since its receipts were asked for; else None.

    What decides is the time of that look: a process may stand still between it and its decision.
    """
    deadline = s.row.attempt_deadline
    if deadline is None or (s.looked_at or now) > deadline:
        return None
    return max(deadline, now)


def _attempt(s: Situation, now: datetime) -> Attempt:
    return Attempt(_deadline(s, now), enter=s.traits.settle == 0 and not s.asking)


def looks_anew(row: InboxRow) -> bool:
    """Return whether what stands on the pane for the row decides its next step: no earlier look will do."""
    return row.state not in WAITING or row.reason in _PREPARING


def _deadline(s: Situation, now: datetime) -> datetime:
    """Return when the server is to refuse the line: soon, and not after the row itself expires."""
    deadline, expires = now + s.timing.command, s.row.message.created_at + s.timing.expiry
    return min(deadline, expires) if expires > now else deadline


# ---------------------------------------------------------------- in flight


def _claimed(s: Situation, now: datetime) -> Step:
    if s.receipts.get(Receipt.PASTED) == s.row.token:
        return MarkPasted()
    if s.pane is PaneState.GONE:
        return _gone(s)
    if (until := _may_still_run(s, now)) is not None:
        return Wait(until, Because(Reason.PASTE_PENDING))
    return BackToPending(Because(Reason.SILENT))


def _pasted(s: Situation, now: datetime) -> Step:
    if s.receipts.get(Receipt.SUBMITTED) == submit_token(s.row, 1):
        return MarkSubmitted(1)
    if s.pane is PaneState.GONE:
        return _gone(s)
    if s.asking or s.decision.action not in _DELIVERS:
        return Wait(None, s.decision.because)
    return _too_early(s, now) or Submit(1)


def _submitted(s: Situation, now: datetime) -> Step:
    row, following = s.row, s.row.submits + 1
    if not s.provable:
        return Settle(MessageState.SUBMITTED, Because(Reason.UNPROVEN))
    if by_argument(row) and s.asking and s.pane is PaneState.ALIVE:
        return Wait(None, s.decision.because)  # a dialog stands before the turn that is to take it
    if s.receipts.get(Receipt.SUBMITTED) == submit_token(row, following):
        return MarkSubmitted(following)
    if s.pane is PaneState.GONE:
        return _gone(s)
    if s.paused:
        return Wait(None, s.decision.because)
    obstacle = _no_lone_submit(s)
    if obstacle is not None:
        why = Because(Reason.NOT_SHOWN, {"why": obstacle})
        return Settle(MessageState.UNKNOWN, why, text(Remedy.LOOK_FIRST), note=True)
    return _too_early(s, now) or Submit(following)


def _no_lone_submit(s: Situation) -> Because | None:
    """Return why no further CR may be written, or None if one may."""
    row = s.row
    if by_argument(row):
        return Because(Reason.BY_ARGUMENT)
    if row.submits >= MAX_SUBMITS:
        return Because(Reason.SECOND_ENTER)
    if s.asking or s.decision.action not in _DELIVERS:
        return _no_enter(s.decision.because)
    if row.stashed:
        return _no_enter(Because(Reason.STASHED_FOR_IT))
    if s.typed_at is not None and row.pasted_at is not None and s.typed_at > row.pasted_at:
        return _no_enter(Because(Reason.TYPED_SINCE))
    return None


def _no_enter(why: Because) -> Because:
    return Because(Reason.NO_ENTER, {"why": why})


def _gone(s: Situation) -> Step:
    """Return what becomes of a row whose pane ended: the conversation's own record decides, where there is one."""
    if s.durable and not by_argument(s.row):
        return BackToPending(Because(Reason.PANE_ENDED))
    why, remedy = Because(Reason.PANE_ENDED_UNSHOWN), text(Remedy.LOOK_FIRST)
    return Settle(MessageState.UNKNOWN, why, remedy, note=True)


def submit_token(row: InboxRow, number: int) -> str:
    """Return the receipt that the row's CR of that number leaves on the pane."""
    return f"{row.token}-{number}"
