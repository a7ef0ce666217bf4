"""What an agent of Claude Code is doing, by what its program writes down: tokens, model, context, tool, plan, limit.

- Each request to the model has a message with its `usage` in the conversation's file, one line for each block of it,
  with the same id and the same numbers (2.1.197 to 2.1.332). Subagents have files of their own in a folder beside it.
  2.1.197 writes down of a subagent's last answer only the tokens that its beginning told.
- Requests beside the conversation (its title, what `/compact` asks) are in no line, so they are not counted here.
- What a conversation costs stands in a line that the program writes as it ends (`cost-state`, since a version between
  2.1.197 and 2.1.280), so it is known until the next request. How many tokens a context can hold stands nowhere.
- The list of tasks is a folder with a file for each task, which is emptied some time after all of them are done.
- A limit of the account that is reached names the moment of its end (since a version between 2.1.197 and 2.1.280).
"""

import json
import os
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from core.base.clock import from_epoch
from core.base.files import read_plain
from core.base.values import replace
from core.harness.base import list_of, number_of, object_of, text_of, whole_of
from core.harness.claude.files import user_events
from core.harness.claude.hooks import failure_of
from core.harness.records import PART, Parts, Tally, entry_of, moment_of
from core.harness.reporting import detail_of, short
from core.model.activity import Failure
from core.model.harness import Limit, PlanItem, PlanState, TextTaken, Usage, Working

_TELLS = re.compile(rb'"type": ?"(?:user|assistant|system|cost-state)"')  #: of a line that is worth parsing
_STATES = {"pending": PlanState.PENDING, "in_progress": PlanState.IN_PROGRESS, "completed": PlanState.DONE}
_LATEST = 16  #: messages of which another line may follow
_SESSIONS = 1000  #: that are read forward at once; of more the earliest begins anew
_TASKS = 200  #: of a list that are read
_LONGEST_TASK = 1 << 16  #: bytes of a task's file
_LARGE = "[1m]"  #: ends a model's name in the costs of some versions

_Entry = Mapping[str, Any]


class WorkFile:
    """What one conversation's files say, read forward.

    `path`: the conversation's file. `tasks`: the folder of its list of tasks, None where none is kept.
    """

    def __init__(self, path: Path, tasks: Path | None = None) -> None:
        self.path = path
        self._tasks = _Tasks(tasks) if tasks is not None else None
        self._begin()

    def _begin(self) -> None:
        self._main = Parts(self.path)
        self._subagents: dict[str, Parts] = {}
        self._tally = Tally(_LATEST)
        self._turn_at: datetime | None = None
        self._model: str | None = None
        self._context: int | None = None
        self._tools: dict[str, str] = {}  #: that were called and have no result, by the call's id
        self._todo: tuple[PlanItem, ...] = ()
        self._limit: Limit | None = None
        self._costs: _Entry | None = None

    def look(self) -> Working | None:
        """Return what is known; None while there is no conversation, or more of it to be read. Raises StoreBroken."""
        if self._main.is_replaced() or any(parts.is_replaced() for parts in self._subagents.values()):
            self._begin()
        for line in self._main.new():
            self._take(line, subagent=False)
        if not (self._main.whole and self._read_subagents()) or self._main.offset == 0:
            return None
        return self._working()

    def _read_subagents(self) -> bool:
        """Read on in the subagents' files, and return whether all is read."""
        left = PART
        try:
            with os.scandir(self.path.with_suffix("") / "subagents") as entries:
                found = sorted((entry.name, entry.stat().st_size) for entry in entries if entry.name.endswith(".jsonl"))
        except OSError:
            return True  # it has none
        for name, size in found:
            parts = self._subagents.setdefault(name, Parts(self.path.with_suffix("") / "subagents" / name))
            begin = parts.offset
            if size != begin:
                for line in parts.new(left):
                    self._take(line, subagent=True)
                left -= parts.offset - begin
                if left <= 0:
                    return False
        return True

    def _working(self) -> Working:
        session, by_model, cost = self._tally.total(), self._tally.by_model, None
        if self._costs is not None and _covers(self._costs, session):
            cost = _dollars(self._costs, "totalCostUSD")
            models = {name.removesuffix(_LARGE): one for name, one in object_of(self._costs, "modelUsage").items()}
            by_model = {
                name: replace(one, cost=_dollars(models.get(name), "costUSD")) for name, one in by_model.items()
            }
        plan = self._tasks.plan() if self._tasks is not None else None
        return Working(
            plan=self._todo if plan is None else plan,
            tool=next(reversed(self._tools.values()), ""),
            model=self._model,
            context_used=self._context,
            turn=self._tally.turn,
            session=replace(session, cost=cost),
            by_model=dict(by_model),
            limit=self._limit,
        )

    def _take(self, line: bytes, *, subagent: bool) -> None:
        entry = entry_of(line) if _TELLS.search(line) else None
        if entry is None:
            return
        subagent = subagent or entry.get("isSidechain") is True
        match text_of(entry, "type"):
            case "assistant":
                self._assistant(entry, subagent)
            case "user" if not subagent:
                self._user(entry)
            case "system" if text_of(entry, "subtype") == "compact_boundary" and not subagent:
                self._context = whole_of(object_of(entry, "compactMetadata"), "postTokens")
            case "cost-state":
                self._costs = entry

    def _assistant(self, entry: _Entry, subagent: bool) -> None:
        message = object_of(entry, "message")
        if entry.get("isApiErrorMessage") is True:
            self._limit = self._limit if subagent else _limit(entry)
            return
        usage = _usage(object_of(message, "usage"))
        if usage is not None:
            at, begun = moment_of(entry), self._turn_at
            in_turn = begun is None or at is None or at >= begun
            self._tally.count(text_of(message, "id"), text_of(message, "model"), usage, in_turn=in_turn)
            self._costs = None
        if subagent:
            return
        self._limit = None
        self._model = text_of(message, "model") or self._model
        self._context = self._context if usage is None else usage.input + usage.cached
        for block in list_of(message, "content"):
            if isinstance(block, dict) and text_of(block, "type") == "tool_use":
                self._called(text_of(block, "id"), text_of(block, "name"), object_of(block, "input"))

    def _called(self, call: str, tool: str, given: _Entry) -> None:
        detail = " ".join(detail_of(given).split())
        self._tools[call] = short(f"{tool}: {detail}" if detail else tool)
        if tool == "TodoWrite":
            self._todo = _items(list_of(given, "todos"), "content")

    def _user(self, entry: _Entry) -> None:
        for block in list_of(object_of(entry, "message"), "content"):
            if isinstance(block, dict) and text_of(block, "type") == "tool_result":
                self._tools.pop(text_of(block, "tool_use_id"), None)
        for event in user_events(entry):
            self._tools.clear()  # a turn begins, or one was interrupted
            if isinstance(event, TextTaken):
                self._tally.begin()
                self._turn_at = event.at


class WorkFiles:
    """The sessions' conversations that are read forward, by session."""

    def __init__(self) -> None:
        self._files: dict[str, WorkFile] = {}

    def look(self, uid: str, path: Path, tasks: Path | None = None) -> Working | None:
        """Read on in the session's conversation. `path`, `tasks`: see WorkFile. Raises StoreBroken."""
        known = self._files.get(uid)
        if known is None or known.path != path:
            known = self._files[uid] = WorkFile(path, tasks)
        while len(self._files) > _SESSIONS:
            self._files.pop(next(iter(self._files)))
        return known.look()


class _Tasks:
    """A list of tasks, read again when one of its files has changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._identity: tuple[object, ...] = ()
        self._plan: tuple[PlanItem, ...] | None = None

    def plan(self) -> tuple[PlanItem, ...] | None:
        """Return its tasks in their order; None where there is none."""
        try:
            with os.scandir(self._folder) as entries:
                found = [(int(entry.name[:-5]), entry.stat()) for entry in entries if _is_task(entry.name)]
        except OSError:
            return None
        found.sort(key=lambda one: one[0])
        identity = tuple((number, seen.st_mtime_ns, seen.st_size, seen.st_ino) for number, seen in found)
        if identity != self._identity:
            tasks = [_object(self._folder / f"{number}.json") for number, _ in found[:_TASKS]]
            self._identity, self._plan = identity, _items(tasks, "subject") or None
        return self._plan


def _is_task(name: str) -> bool:
    return re.fullmatch(r"[0-9]{1,9}\.json", name) is not None


def _object(path: Path) -> Any:
    try:
        return json.loads(read_plain(path, _LONGEST_TASK))
    except (OSError, ValueError, RecursionError):
        return None  # it was removed, or is being written


def _items(found: Any, text: str) -> tuple[PlanItem, ...]:
    """Return the items of which text and state are known."""
    objects = [item for item in found if isinstance(item, dict)]
    return tuple(
        PlanItem(short(" ".join(text_of(item, text).split())), _STATES[state])
        for item in objects
        if text_of(item, text) and (state := text_of(item, "status")) in _STATES
    )


def _usage(found: _Entry) -> Usage | None:
    """Return what a request's `usage` says; None where it says nothing, as in what the program writes itself."""
    fresh, written = whole_of(found, "input_tokens"), whole_of(found, "output_tokens")
    if not fresh and not written:
        return None
    kept, read = whole_of(found, "cache_creation_input_tokens"), whole_of(found, "cache_read_input_tokens")
    return Usage((fresh or 0) + (kept or 0), written or 0, read or 0)


def _covers(costs: _Entry, session: Usage) -> bool:
    """Return whether the costs are of all that was counted: a program that was killed wrote none down."""
    names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    models = [one for one in object_of(costs, "modelUsage").values() if isinstance(one, dict)]
    told = sum(whole_of(one, name) or 0 for one in models for name in names)
    return costs.get("hasUnknownModelCost") is not True and told >= session.input + session.output + session.cached


def _dollars(found: Any, key: str) -> float | None:
    value = number_of(found, key) if isinstance(found, dict) else None
    return None if value is None else float(value)


def _limit(entry: _Entry) -> Limit | None:
    """Return the limit that an error tells of; None for every other error."""
    content = list_of(object_of(entry, "message"), "content")
    words = " ".join(text_of(block, "text") for block in content if isinstance(block, dict))
    if failure_of(text_of(entry, "error"), words) is not Failure.LIMIT:
        return None
    seconds = whole_of(object_of(entry, "quotaLimits"), "resetsAt")
    return Limit(short(" ".join(words.split())), from_epoch(seconds) if seconds else None)
