"""What an agent of Gemini CLI is doing, by its conversation's file: plan, model, context and tokens (0.53.0 to 0.61.0).

Each message of the model's has the `tokens` of its request; `input` has in it what was read from the cache. A call of a
tool is written down once it is over, so the tool that runs is not known; nor is what anything costs.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from core.harness.base import list_of, object_of, text_of, whole_of
from core.harness.gemini.record import failure_in, typed_in
from core.harness.records import Parts, Tally, entry_of
from core.model.activity import Failure
from core.model.harness import Limit, PlanItem, PlanState, Usage, Working

_PLAN = "write_todos"
_STATES = {
    "pending": PlanState.PENDING,
    "in_progress": PlanState.IN_PROGRESS,
    "completed": PlanState.DONE,
}  #: what is cancelled is on the plan no more

_Entry = Mapping[str, Any]


class WorkFile:
    """What a conversation's file says, read forward."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begin()

    def _begin(self) -> None:
        self._parts = Parts(self.path)
        self._tally = Tally()
        self._plan: tuple[PlanItem, ...] = ()
        self._model: str | None = None
        self._context: int | None = None
        self._limit: Limit | None = None

    def look(self) -> Working | None:
        """Return what is known; None while more of the file has to be read. Raises StoreBroken."""
        if self._parts.is_replaced():
            self._begin()
        for line in self._parts.new():
            for message in _messages(entry_of(line)):
                self._take(message)
        if not self._parts.whole or self._parts.offset == 0:
            return None
        return Working(
            plan=self._plan,
            model=self._model,
            context_used=self._context,
            turn=self._tally.turn,
            session=self._tally.total(),
            by_model=dict(self._tally.by_model),
            limit=self._limit,
        )

    def _take(self, message: _Entry) -> None:
        if typed_in(message):
            self._tally.begin()
        failed = failure_in(message)
        if failed is not None and failed.failure is Failure.LIMIT:
            self._limit = Limit(failed.message)
        if text_of(message, "type") != "gemini":
            return
        self._limit = None
        self._model = text_of(message, "model") or self._model
        tokens = object_of(message, "tokens")
        if tokens:
            self._tally.count(text_of(message, "id"), text_of(message, "model"), _usage(tokens))
            self._context = _count(tokens, "input")
        for call in list_of(message, "toolCalls"):
            if isinstance(call, dict) and text_of(call, "name") == _PLAN and text_of(call, "status") == "success":
                self._plan = _items(object_of(call, "args"))


def _messages(entry: _Entry | None) -> Iterator[_Entry]:
    """Yield the messages of a line: its own, or all that take the place of the earlier ones."""
    if entry is None:
        return
    if text_of(entry, "id"):
        yield entry
    yield from (one for one in list_of(object_of(entry, "$set"), "messages") if isinstance(one, dict))


def _usage(tokens: _Entry) -> Usage:
    cached = _count(tokens, "cached")
    sent = _count(tokens, "input") + _count(tokens, "tool")
    return Usage(max(0, sent - cached), _count(tokens, "output") + _count(tokens, "thoughts"), cached)


def _count(tokens: _Entry, key: str) -> int:
    return whole_of(tokens, key) or 0


def _items(arguments: _Entry) -> tuple[PlanItem, ...]:
    todos = [todo for todo in list_of(arguments, "todos") if isinstance(todo, dict)]
    return tuple(
        PlanItem(text_of(todo, "description"), state)
        for todo in todos
        if (state := _STATES.get(text_of(todo, "status"))) is not None
    )
