"""The gate: the one decision that every wake passes before anything starts a turn. A table; no I/O.

`decide` is total: every wake, hold and observation has a cell. A hold that is stronger than the observation has a row
of its own; the others have one row for each observation. Precedence, strongest first: deleting, stopped, failed,
foreign, silent, paused, then what is observed.
"""

from collections.abc import Mapping
from enum import Enum

from core.base.values import dataclass
from core.model.message import Kind
from core.model.reasons import Because, Reason, Remedy
from core.model.session import HoldKind, Phase, SessionRecord
from core.model.texts import arguments, text


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
    """What to do, whether the sender's thread gets one note, why, and the words for what a person can do."""

    action: Action
    note: bool
    because: Because
    remedy: str = ""


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


def _row(*, say: Entry, reply: Entry, tick: Entry, keep_alive: Entry, notice: Entry, sweep: Entry) -> Row:
    return {
        Wake.SAY: say,
        Wake.REPLY: reply,
        Wake.TICK: tick,
        Wake.KEEP_ALIVE_TICK: keep_alive,
        Wake.NOTICE: notice,
        Wake.SWEEP: sweep,
    }


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

HELD: Mapping[HoldState, Row] = {
    HoldState.DELETING: _row(say=_REFUSE, reply=_REFUSE, tick=_DROP, keep_alive=_DROP, notice=_DROP, sweep=_FINISH),
    HoldState.STOPPED: _row(say=_REFUSE, reply=_REFUSE_NOTE, tick=_HOLD, keep_alive=_HOLD, notice=_RECORD, sweep=_END),
    HoldState.FAILED: _row(say=_REFUSE, reply=_REFUSE_NOTE, tick=_HOLD, keep_alive=_HOLD, notice=_RECORD, sweep=_END),
    HoldState.PAUSED: _row(
        say=_QUEUE, reply=_QUEUE_NOTE, tick=_HOLD, keep_alive=_HOLD, notice=_QUEUE, sweep=_ADOPT_HELD
    ),
}

SEEN: Mapping[Observed, Row] = {
    Observed.NEVER_RUN: _row(
        say=_REFUSE, reply=_REFUSE_NOTE, tick=_HOLD, keep_alive=_HOLD, notice=_DROP, sweep=_AUTO_START
    ),
    Observed.DOWN: _row(say=_DOWN, reply=_DOWN_NOTE, tick=_HOLD, keep_alive=_HOLD, notice=_DROP, sweep=_AUTO_START),
    Observed.STARTING: _row(say=_QUEUE, reply=_QUEUE_NOTE, tick=_DEFER, keep_alive=_DEFER, notice=_QUEUE, sweep=_WAIT),
    Observed.IDLE: _row(
        say=_DELIVER, reply=_DELIVER, tick=_DELIVER, keep_alive=_DELIVER, notice=_DELIVER, sweep=_ADOPT
    ),
    Observed.BUSY: _row(say=_TAKEN, reply=_TAKEN_NOTE, tick=_DEFER, keep_alive=_DEFER, notice=_QUEUE, sweep=_ADOPT),
    Observed.PERMISSION: _row(
        say=_QUEUE, reply=_QUEUE_NOTE, tick=_DEFER, keep_alive=_DEFER, notice=_QUEUE, sweep=_ADOPT
    ),
    Observed.QUESTION: _row(say=_QUEUE, reply=_ANSWER, tick=_DEFER, keep_alive=_DEFER, notice=_QUEUE, sweep=_ADOPT),
    Observed.DIALOG: _row(say=_QUEUE, reply=_QUEUE_NOTE, tick=_DEFER, keep_alive=_DEFER, notice=_QUEUE, sweep=_ADOPT),
    Observed.UNKNOWN: _row(say=_DELIVER, reply=_DELIVER, tick=_PACED, keep_alive=_PACED, notice=_DELIVER, sweep=_ADOPT),
    Observed.DEAD: _row(say=_GONE, reply=_GONE_NOTE, tick=_FAIL, keep_alive=_REARM, notice=_RECORD, sweep=_BRING_BACK),
    Observed.LOST: _row(say=_GONE, reply=_GONE_NOTE, tick=_FAIL, keep_alive=_REARM, notice=_RECORD, sweep=_BRING_BACK),
    Observed.SILENT: _row(say=_QUEUE, reply=_QUEUE_NOTE, tick=_DEFER, keep_alive=_DEFER, notice=_QUEUE, sweep=_RETRY),
    Observed.FOREIGN: _row(
        say=_REFUSE, reply=_REFUSE_NOTE, tick=_HOLD, keep_alive=_HOLD, notice=_RECORD, sweep=_FAIL_ROW
    ),
}

_HELD_REASONS = {
    HoldState.DELETING: Reason.DELETING,
    HoldState.STOPPED: Reason.STOPPED,
    HoldState.FAILED: Reason.FAILED,
    HoldState.PAUSED: Reason.PAUSED,
}
_SEEN_REASONS = {
    Observed.NEVER_RUN: Reason.NEVER_RUN,
    Observed.DOWN: Reason.DOWN,
    Observed.STARTING: Reason.STARTING,
    Observed.IDLE: Reason.IDLE,
    Observed.BUSY: Reason.BUSY,
    Observed.PERMISSION: Reason.PERMISSION,
    Observed.QUESTION: Reason.QUESTION,
    Observed.DIALOG: Reason.DIALOG,
    Observed.UNKNOWN: Reason.UNKNOWN,
    Observed.DEAD: Reason.DEAD,
    Observed.LOST: Reason.LOST,
    Observed.SILENT: Reason.SILENT,
    Observed.FOREIGN: Reason.FOREIGN,
}
_QUEUE_REMEDIES = {
    Observed.STARTING: Remedy.GOES_IN_READING,
    Observed.BUSY: Remedy.GOES_IN_AFTER_TURN,
    Observed.PERMISSION: Remedy.ALLOW_OR_DENY,
    Observed.QUESTION: Remedy.ANSWER,
    Observed.DIALOG: Remedy.ANSWER_BY_BUTTONS,
    Observed.DOWN: Remedy.GOES_IN_STARTED,
    Observed.DEAD: Remedy.GOES_IN_STARTED,
    Observed.LOST: Remedy.GOES_IN_STARTED,
    Observed.SILENT: Remedy.TRIED_AGAIN,
}
#: where the thread does not show what is asked, nothing is said of a button
_UNSHOWN_REMEDIES = {
    Observed.PERMISSION: Remedy.ANSWER_IN_TERMINAL,
    Observed.QUESTION: Remedy.ANSWER_IN_TERMINAL,
    Observed.DIALOG: Remedy.ANSWER_WHERE_SHOWN,
}


def decide(kind: Wake, hold: HoldState, observed: Observed, context: GateContext) -> Decision:
    """Return what to do with a wake. Pure and total; see the module's docstring for the precedence."""
    held = _outranking(hold, observed)
    entry = (HELD[held] if held else SEEN[observed])[kind]
    while isinstance(entry, Branch):
        entry = entry.yes if getattr(context, entry.flag) else entry.no
    reason = held_reason(held) if held else seen_reason(observed)
    why = Because(reason, {"ahead": context.ahead} if reason is Reason.PAUSED else {})
    remedy = _remedy(entry.action, held, observed, shown=context.shown)
    return Decision(entry.action, entry.note, why, _told(remedy, context.name) if remedy else "")


def _outranking(hold: HoldState, observed: Observed) -> HoldState | None:
    """Return the hold whose row counts, or None where the observation's row does."""
    if hold is HoldState.NONE or (hold is HoldState.PAUSED and observed in (Observed.FOREIGN, Observed.SILENT)):
        return None
    return hold


def _remedy(action: Action, held: HoldState | None, observed: Observed, *, shown: bool) -> Remedy | None:
    if action in (Action.REFUSE, Action.FAIL_ROW):
        if held is HoldState.DELETING:
            return Remedy.CREATE_ANEW
        return Remedy.LOOK_AT_FOREIGN if held is None and observed is Observed.FOREIGN else Remedy.START
    if action in (Action.QUEUE, Action.ANSWER):
        if held is HoldState.PAUSED:
            return Remedy.GOES_IN_RESUMED
        unshown = None if shown else _UNSHOWN_REMEDIES.get(observed)
        return unshown or _QUEUE_REMEDIES.get(observed)
    return None


def _told(remedy: Remedy, name: str) -> str:
    """Return the text of a remedy whose only argument, if any, is the session's name."""
    return text(remedy, name=name) if arguments(remedy) else text(remedy)


def seen_reason(observed: Observed) -> Reason:
    """Return the reason that is what is observed."""
    return _SEEN_REASONS[observed]


def held_reason(hold: HoldState) -> Reason:
    """Return the reason that is a mark."""
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
