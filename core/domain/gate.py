"""The gate: the one decision that every wake passes before anything starts a turn. A table; no I/O.

`decide` is total: every wake, hold and observation has a cell. A hold that outranks what is observed has its own row;
the others have one row for each observation. Precedence, strongest first: deleting, stopped, failed, foreign, silent,
paused, then what is observed.
"""

from collections.abc import Mapping
from enum import Enum

from core.domain.message import Kind
from core.domain.session import HoldKind, Phase, SessionRecord
from core.values import dataclass


class Wake(Enum):
    """What would start a turn, the boot sweep's question for each session among them."""

    SAY = "say"
    REPLY = "reply"
    TICK = "tick"
    KEEP_ALIVE_TICK = "keep-alive-tick"
    NOTICE = "notice"
    SWEEP = "sweep"  #: a start without a name, or the service's boot: no row, the same gate


class HoldState(Enum):
    """The durable mark on a session."""

    NONE = "none"
    PAUSED = "paused"
    STOPPED = "stopped"
    FAILED = "failed"
    DELETING = "deleting"


class Observed(Enum):
    """What is true of the session now."""

    NEVER_RUN = "never-run"  #: no pane was ever made for it
    DOWN = "down"  #: stopped, and not held
    STARTING = "starting"  #: its harness does not read yet
    IDLE = "idle"
    BUSY = "busy"
    PERMISSION = "permission"  #: a dialog is open, which an Enter would approve
    QUESTION = "question"  #: it asked its person something
    DIALOG = "dialog"  #: its program shows a dialog that no hook announced
    UNKNOWN = "unknown"  #: it lives, and nobody can tell what it does
    DEAD = "dead"  #: the pane is there, its program has ended
    LOST = "lost"  #: it should run, and tmux has no pane of it
    SILENT = "silent"  #: tmux did not answer: nothing is known, nothing is absent
    FOREIGN = "foreign"  #: somebody else's tmux session has its name


class Action(Enum):
    """What is to be done with the wake."""

    # messages and ticks
    DELIVER = "deliver"
    DELIVER_PACED = "deliver-paced"  #: one in flight, and never closer than the loop's interval
    ANSWER = "answer"  #: it is the answer to the open question
    QUEUE = "queue"  #: keep it; ask again when something changed
    DEFER = "defer"  #: the tick comes later; no failure is counted
    HOLD = "hold"  #: the loop is held until the session starts again
    RECORD = "record"  #: keep it, wake nobody
    REARM = "rearm"  #: record it and take the next slot; a restart delivers it
    FAIL = "fail"  #: the tick failed: back off, and hold the loop after five
    REFUSE = "refuse"
    DROP = "drop"
    # the boot sweep
    START = "start"
    RESUME = "resume"  #: bring it back with its conversation
    ADOPT = "adopt"  #: it lives: subscribe to it once, respawn nothing
    ADOPT_HELD = "adopt-held"  #: adopt what lives, start nothing, keep the mark
    WAIT = "wait"  #: its start is under way
    LEAVE = "leave"  #: not ours to start
    END_LEFTOVERS = "end-leftovers"  #: end what still carries our tag, keep the mark, never run
    RETRY = "retry"  #: touch nothing, ask again
    FINISH_DELETE = "finish-delete"
    FAIL_ROW = "fail-row"  #: touch nothing, report the row as failed


STARTS_A_TURN = frozenset({Action.DELIVER, Action.DELIVER_PACED, Action.ANSWER, Action.START, Action.RESUME})


@dataclass(frozen=True)
class GateContext:
    """What the cells that branch must know."""

    name: str
    queues_input: bool = False  #: the harness takes messages while a turn runs
    restart_due: bool = False  #: it crashed, and will be brought back
    auto_start: bool = True
    kept: bool = (
        False  #: it was taken in while the session ran, which ended without a mark: it waits for the next start
    )
    ahead: int = 0  #: messages that wait before this one
    shown: bool = True  #: what the session asks stands in its thread, to be answered there


@dataclass(frozen=True)
class Decision:
    """What to do, whether the sender's thread gets one note, and the words for whoever asks."""

    action: Action
    note: bool
    reason: str
    remedy: str


@dataclass(frozen=True)
class Cell:
    """One entry of the table."""

    action: Action
    note: bool = False


@dataclass(frozen=True)
class Branch:
    """An entry that depends on one flag of the context."""

    flag: str
    yes: "Entry"
    no: "Entry"


Entry = Cell | Branch
Row = Mapping[Wake, Entry]


def _row(say: Entry, reply: Entry, tick: Entry, keep_alive: Entry, notice: Entry, sweep: Entry) -> Row:
    return dict(zip(Wake, (say, reply, tick, keep_alive, notice, sweep), strict=True))


_DELIVER, _PACED, _ANSWER = Cell(Action.DELIVER), Cell(Action.DELIVER_PACED), Cell(Action.ANSWER)
_QUEUE, _QUEUE_NOTE = Cell(Action.QUEUE), Cell(Action.QUEUE, note=True)
_REFUSE, _REFUSE_NOTE = Cell(Action.REFUSE), Cell(Action.REFUSE, note=True)
_DEFER, _HOLD, _FAIL, _REARM = Cell(Action.DEFER), Cell(Action.HOLD), Cell(Action.FAIL), Cell(Action.REARM)
_RECORD, _DROP = Cell(Action.RECORD), Cell(Action.DROP)
_ADOPT, _ADOPT_HELD, _END = Cell(Action.ADOPT), Cell(Action.ADOPT_HELD), Cell(Action.END_LEFTOVERS)
_WAIT, _RETRY, _FINISH, _FAIL_ROW = (
    Cell(Action.WAIT),
    Cell(Action.RETRY),
    Cell(Action.FINISH_DELETE),
    Cell(Action.FAIL_ROW),
)
_START, _RESUME, _LEAVE = Cell(Action.START), Cell(Action.RESUME), Cell(Action.LEAVE)

_TAKEN = Branch("queues_input", _DELIVER, _QUEUE)
_TAKEN_NOTE = Branch("queues_input", _DELIVER, _QUEUE_NOTE)
_DOWN = Branch("kept", _QUEUE, _REFUSE)
_DOWN_NOTE = Branch("kept", _QUEUE_NOTE, _REFUSE_NOTE)
_GONE = Branch("restart_due", _QUEUE, _DOWN)
_GONE_NOTE = Branch("restart_due", _QUEUE_NOTE, _DOWN_NOTE)
_AUTO_START = Branch("auto_start", _START, _LEAVE)
_BRING_BACK = Branch("auto_start", _RESUME, Branch("restart_due", _RESUME, _LEAVE))

# fmt: off
HELD: Mapping[HoldState, Row] = {
    #                         say           reply         tick     keep-alive  notice    boot sweep
    HoldState.DELETING: _row(_REFUSE,       _REFUSE,      _DROP,   _DROP,      _DROP,    _FINISH),
    HoldState.STOPPED:  _row(_REFUSE,       _REFUSE_NOTE, _HOLD,   _HOLD,      _RECORD,  _END),
    HoldState.FAILED:   _row(_REFUSE,       _REFUSE_NOTE, _HOLD,   _HOLD,      _RECORD,  _END),
    HoldState.PAUSED:   _row(_QUEUE,        _QUEUE_NOTE,  _HOLD,   _HOLD,      _QUEUE,   _ADOPT_HELD),
}

SEEN: Mapping[Observed, Row] = {
    #                         say           reply         tick     keep-alive  notice    boot sweep
    Observed.NEVER_RUN:  _row(_REFUSE,      _REFUSE_NOTE, _HOLD,   _HOLD,      _DROP,    _AUTO_START),
    Observed.DOWN:       _row(_DOWN,        _DOWN_NOTE,   _HOLD,   _HOLD,      _DROP,    _AUTO_START),
    Observed.STARTING:   _row(_QUEUE,       _QUEUE_NOTE,  _DEFER,  _DEFER,     _QUEUE,   _WAIT),
    Observed.IDLE:       _row(_DELIVER,     _DELIVER,     _DELIVER, _DELIVER,  _DELIVER, _ADOPT),
    Observed.BUSY:       _row(_TAKEN,       _TAKEN_NOTE,  _DEFER,  _DEFER,     _QUEUE,   _ADOPT),
    Observed.PERMISSION: _row(_QUEUE,       _QUEUE_NOTE,  _DEFER,  _DEFER,     _QUEUE,   _ADOPT),
    Observed.QUESTION:   _row(_QUEUE,       _ANSWER,      _DEFER,  _DEFER,     _QUEUE,   _ADOPT),
    Observed.DIALOG:     _row(_QUEUE,       _QUEUE_NOTE,  _DEFER,  _DEFER,     _QUEUE,   _ADOPT),
    Observed.UNKNOWN:    _row(_DELIVER,     _DELIVER,     _PACED,  _PACED,     _DELIVER, _ADOPT),
    Observed.DEAD:       _row(_GONE,        _GONE_NOTE,   _FAIL,   _REARM,     _RECORD,  _BRING_BACK),
    Observed.LOST:       _row(_GONE,        _GONE_NOTE,   _FAIL,   _REARM,     _RECORD,  _BRING_BACK),
    Observed.SILENT:     _row(_QUEUE,       _QUEUE_NOTE,  _DEFER,  _DEFER,     _QUEUE,   _RETRY),
    Observed.FOREIGN:    _row(_REFUSE,      _REFUSE_NOTE, _HOLD,   _HOLD,      _RECORD,  _FAIL_ROW),
}
# fmt: on

_HELD_REASONS = {
    HoldState.DELETING: "it is being deleted",
    HoldState.STOPPED: "it was stopped",
    HoldState.FAILED: "it crashed too often, or could not be brought back, and is held as failed",
    HoldState.PAUSED: "it is paused",
}
_SEEN_REASONS = {
    Observed.NEVER_RUN: "it was never started",
    Observed.DOWN: "it is not running",
    Observed.STARTING: "it is still starting",
    Observed.IDLE: "it is idle",
    Observed.BUSY: "a turn is running",
    Observed.PERMISSION: "its agent asks for a permission, and what is typed now could answer that",
    Observed.QUESTION: "it waits for the answer to its question",
    Observed.DIALOG: "its program shows a dialog, and what is typed now would answer that",
    Observed.UNKNOWN: "nobody can tell what it does",
    Observed.DEAD: "its program has ended",
    Observed.LOST: "its pane is gone",
    Observed.SILENT: "tmux does not answer",
    Observed.FOREIGN: "a tmux session of that name, which is not ours, is in its place",
}
_ONCE_STARTED = "it goes in once the session runs again: `the-loop standing start {name}`"
_QUEUE_REMEDIES = {
    Observed.STARTING: "it goes in once the agent reads",
    Observed.BUSY: "it goes in when the turn is over",
    Observed.PERMISSION: "allow or deny it in the session's thread, or in the terminal:"
    " `the-loop standing attach {name} --write`; the message goes in afterwards",
    Observed.QUESTION: "answer it in its thread, or in the terminal: `the-loop standing attach {name} --write`",
    Observed.DIALOG: "answer it by its buttons in the session's thread, or in the terminal:"
    " `the-loop standing attach {name} --write`; the message goes in afterwards",
    Observed.DOWN: _ONCE_STARTED,
    Observed.DEAD: _ONCE_STARTED,
    Observed.LOST: _ONCE_STARTED,
    Observed.SILENT: "it is tried again until it expires; look at `the-loop standing list`",
}
_IN_TERMINAL = "answer it in the terminal: `the-loop standing attach {name} --write`; the message goes in afterwards"
#: where the thread does not show what is asked, nothing is said of a button
_UNSHOWN_REMEDIES = {
    Observed.PERMISSION: _IN_TERMINAL,
    Observed.QUESTION: _IN_TERMINAL,
    Observed.DIALOG: f"{_IN_TERMINAL}. Where the thread shows it, its buttons answer it, too",
}


def decide(kind: Wake, hold: HoldState, observed: Observed, context: GateContext) -> Decision:
    """Return what to do with a wake. Pure and total; see the module's docstring for the precedence."""
    held = _outranking(hold, observed)
    entry = (HELD[held] if held else SEEN[observed])[kind]
    while isinstance(entry, Branch):
        entry = entry.yes if getattr(context, entry.flag) else entry.no
    reason = _HELD_REASONS[held] if held else _SEEN_REASONS[observed]
    if held is HoldState.PAUSED and context.ahead:
        reason = f"{reason}, {context.ahead} ahead"
    return Decision(entry.action, entry.note, reason, _remedy(entry.action, held, observed, context))


def _outranking(hold: HoldState, observed: Observed) -> HoldState | None:
    """Return the hold whose row counts, or None where the observation's row does."""
    if hold is HoldState.NONE or (hold is HoldState.PAUSED and observed in (Observed.FOREIGN, Observed.SILENT)):
        return None
    return hold


def _remedy(action: Action, held: HoldState | None, observed: Observed, context: GateContext) -> str:
    name = context.name
    if action in (Action.REFUSE, Action.FAIL_ROW):
        if held is HoldState.DELETING:
            return f"make it anew once it is gone: `the-loop standing create {name}`"
        if held is None and observed is Observed.FOREIGN:
            return f"`the-loop standing start {name}` names the session and how to look at it or end it"
        return f"start it: `the-loop standing start {name}`"
    if action in (Action.QUEUE, Action.ANSWER):
        if held is HoldState.PAUSED:
            return f"it goes in when the session is resumed: `the-loop standing resume {name}`"
        unshown = "" if context.shown else _UNSHOWN_REMEDIES.get(observed, "")
        return (unshown or _QUEUE_REMEDIES.get(observed, "")).format(name=name)
    return ""


def seen_reason(observed: Observed) -> str:
    """Return the words for what is observed."""
    return _SEEN_REASONS[observed]


def held_reason(hold: HoldState) -> str:
    """Return the words for a mark."""
    return _HELD_REASONS[hold]


def hold_state(record: SessionRecord | None) -> HoldState:
    """Return the mark on a record; deleting outranks a hold."""
    if record is None:
        return HoldState.NONE
    if record.phase is Phase.DELETING:
        return HoldState.DELETING
    return _HOLDS[record.hold.kind] if record.hold else HoldState.NONE


def wake_of(kind: Kind) -> Wake:
    """Return the wake of an inbox row's kind. A boot prompt that is pasted asks as what an operator says does."""
    return Wake.SAY if kind is Kind.BOOT else Wake(kind.value)


_HOLDS = {
    HoldKind.PAUSED: HoldState.PAUSED,
    HoldKind.STOPPED: HoldState.STOPPED,
    HoldKind.FAILED: HoldState.FAILED,
}
