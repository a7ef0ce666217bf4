"""What a turn's live post shows: the agent's plan, the tools that ran, and how far each is. No I/O.

A live post is a message that grows while its turn runs, and ends with the answer. A chat bounds what one holds, so
titles are short and not every step has a line of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import Enum
from typing import Any

from core.base.values import dataclass

MOST_ITEMS, MOST_STEPS = 15, 20  #: lines of a plan and of tools; what is more is counted in one
_TITLE_BYTES = 120
#: The tools by which an agent writes its plan, which is shown as such.
_PLANNERS = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate", "update_plan", "write_todos", "todowrite"})


class StepState(Enum):
    """How far a step is."""

    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STRUCK = "struck"  #: taken off the plan


@dataclass(frozen=True)
class TurnStep:
    """A tool that the running turn has called. `call` is the harness's id of the call, "" where it names none."""

    number: int
    call: str
    tool: str
    detail: str
    state: StepState


@dataclass(frozen=True)
class LiveStep:
    """One line of a live post. Its id stays, and title and state change."""

    id: str
    title: str
    state: StepState


@dataclass(frozen=True)
class LiveShown:
    """What a live post shows above its text. `title` stands above the steps."""

    title: str = ""
    steps: tuple[LiveStep, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return what is stored of it."""
        return {"title": self.title, "steps": [[step.id, step.title, step.state.value] for step in self.steps]}


def shown_of(stored: Mapping[str, Any]) -> LiveShown:
    """Return what was stored. Raises ValueError, TypeError, LookupError for anything else."""
    steps = (LiveStep(str(each), str(title), StepState(state)) for each, title, state in stored["steps"])
    return LiveShown(str(stored["title"]), tuple(steps))


class LiveState(Enum):
    """Where a live post stands."""

    OPENING = "opening"  #: the chat was asked for it, and no answer is recorded: looked up by its id
    OPEN = "open"  #: it can be written to
    PARKED = "parked"  #: the chat takes no more for it, or soon would not; it stays as it is
    ENDING = "ending"  #: its answer is being written, the row of the outbox is SENDING
    REMOVING = "removing"  #: it was cut off, and has to go


@dataclass(frozen=True)
class LiveRow:
    """A live post as it is stored. There is none any more once it has ended well, or is gone."""

    id: str
    uid: str
    turn: str  #: its instance and when it began
    channel_kind: str
    channel: str
    thread: str
    reader: str  #: who asked, as the chat names them
    ts: str  #: the message, "" before it is known
    state: LiveState
    opened_at: datetime
    round: int  #: how many the turn had before it
    shown: LiveShown
    post: str  #: the id of the post that ends it, "" while the turn runs


def turn_key(instance: str, began: datetime) -> str:
    """Return by what a turn is known: its instance and when it began."""
    return f"{instance}-{int(began.timestamp() * 1_000_000)}"


def plans(tool: str) -> bool:
    """Return whether a tool does nothing but write down the agent's plan."""
    return tool in _PLANNERS


def instance_of(turn: str) -> str:
    """Return the instance whose turn it is."""
    return turn.rpartition("-")[0]


def compose(
    plan: Sequence[Mapping[str, str]], steps: Sequence[TurnStep], before: LiveShown, *, over: bool = False
) -> LiveShown:
    """Return what is shown of a turn. `plan`: the agent's, as Working.to_json has it; `before`: what is shown.

    A plan that was done before the turn is none of it. `over`: the turn has ended, and with it every tool, even one of
    whose end nobody told.
    """
    planned = any(step.id.startswith("plan-") for step in before.steps) or any(plans(step.tool) for step in steps)
    if not planned and all(item["state"] == "done" for item in plan):
        plan = ()
    steps = [step for step in steps if not plans(step.tool)]
    items = [_item(number, item) for number, item in enumerate(plan[:MOST_ITEMS], start=1)]
    if len(plan) > MOST_ITEMS:
        more = len(plan) - MOST_ITEMS
        state = StepState.DONE if all(item["state"] == "done" for item in plan[MOST_ITEMS:]) else StepState.PENDING
        items.append(LiveStep("plan-more", f"… and {more} more of the plan", state))
    tools = [_line(f"tool-{step.number}", step, over) for step in steps[:MOST_STEPS]]
    if len(steps) > MOST_STEPS:
        latest = _line("tool-more", steps[-1], over)
        more = len(steps) - MOST_STEPS
        tools.append(LiveStep(latest.id, _short(f"… and {more} more, the latest: {latest.title}"), latest.state))
    done = sum(item["state"] == "done" for item in plan)
    parts = [f"{done} of {len(plan)} done"] if plan else []
    parts += [f"{len(steps)} {'step' if len(steps) == 1 else 'steps'}"] if steps else []
    return LiveShown(", ".join(parts), (*items, *tools))


def changed(before: LiveShown, after: LiveShown) -> LiveShown:
    """Return what has to be told of `after` where `before` is shown: a new title, steps that are new or differ.

    A step that is not there any more, such as an item of a plan, is told as struck off.
    """
    known = {step.id: step for step in before.steps}
    there = {step.id for step in after.steps}
    fresh = tuple(step for step in after.steps if known.get(step.id) != step)
    gone = tuple(_struck(step) for step in before.steps if step.id not in there and step.state is not StepState.STRUCK)
    return LiveShown(after.title if after.title != before.title else "", (*fresh, *gone))


def merged(before: LiveShown, change: LiveShown) -> LiveShown:
    """Return what is shown after a change was told."""
    steps = {step.id: step for step in (*before.steps, *change.steps)}
    return LiveShown(change.title or before.title, tuple(steps.values()))


def _struck(step: LiveStep) -> LiveStep:
    """Return a step that is not to be done any more."""
    return LiveStep(step.id, _short(step.title, " (taken off the plan)"), StepState.STRUCK)


def settled(shown: LiveShown, note: str) -> LiveShown:
    """Return what a live post ends with: nothing in it seems to run. `note`: what is said of it, "" for nothing."""
    title = f"{shown.title}: {note}" if shown.title and note else shown.title or note
    return LiveShown(title, tuple(map(_at_rest, shown.steps)))


def _at_rest(step: LiveStep) -> LiveStep:
    if step.state is not StepState.RUNNING:
        return step
    if step.id.startswith("plan-"):
        return LiveStep(step.id, step.title, StepState.PENDING)
    return LiveStep(step.id, _short(step.title, " (was at work)"), StepState.DONE)


def reopens_at(row: LiveRow, lifetime: timedelta) -> datetime:
    """Return when a parked live post may give way to a fresh one: each time after a longer while."""
    return row.opened_at + lifetime * (2 << min(row.round, 6))


_STATES = {"done": StepState.DONE, "in progress": StepState.RUNNING}


def _item(number: int, item: Mapping[str, str]) -> LiveStep:
    return LiveStep(f"plan-{number}", _short(item["text"]) or "…", _STATES.get(item["state"], StepState.PENDING))


def _line(step_id: str, step: TurnStep, over: bool) -> LiveStep:
    title = " ".join(f"{step.tool} {step.detail}".split()) or "a tool"
    if over and step.state is StepState.RUNNING:
        return LiveStep(step_id, _short(title, " (how it ended was not told)"), StepState.DONE)
    return LiveStep(step_id, _short(title), step.state)


def _short(title: str, ending: str = "") -> str:
    """Return the title on one line and bounded in bytes, `ending` kept whole."""
    line = " ".join(title.split())
    if len(f"{line}{ending}".encode()) <= _TITLE_BYTES:
        return line + ending
    room = _TITLE_BYTES - len(f"…{ending}".encode())
    return line.encode()[:room].decode(errors="ignore") + "…" + ending
