"""What a conversation's record tells of the agent's work: plan, tool, model, tokens and limit."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from core.base.clock import from_epoch
from core.base.values import replace
from core.harness.base import list_of, number_of, object_of, text_of, whole_of
from core.harness.records import Parts, Tally, entry_of
from core.harness.reporting import detail_of, short
from core.model.harness import Limit, PlanItem, PlanState, Usage, Working

_PLAN_TOOL = "update_plan"
_LIMITED = "usage_limit_exceeded"
_STATES = {"pending": PlanState.PENDING, "in_progress": PlanState.IN_PROGRESS, "completed": PlanState.DONE}


class WorkingFile:
    """What a conversation's record says, read forward, a part at each look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begin()

    def _begin(self) -> None:
        self._parts = Parts(self.path)
        self._tally = Tally()
        self._working = Working(plan=())
        self._calls: dict[str, str] = {}  #: tool calls without a result, by id: what each does
        self._resets: datetime | None = None  #: when the limit that is used up ends

    def look(self) -> Working | None:
        """Return what it tells by now; None while more of it has to be read. Raises StoreBroken."""
        if self._parts.is_replaced():
            self._begin()
        for line in self._parts.new():
            entry = entry_of(line)
            if entry is not None:
                self._take(text_of(entry, "type"), object_of(entry, "payload"))
        if not self._parts.whole or self._parts.offset == 0:
            return None
        tool = next(reversed(self._calls.values()), "")
        return replace(self._working, tool=tool, by_model=dict(self._tally.by_model))

    def _take(self, kind: str, payload: Mapping[str, Any]) -> None:
        match kind, text_of(payload, "type"):
            case "turn_context", _:
                self._working = replace(self._working, model=text_of(payload, "model") or self._working.model)
            case "token_usage_record", _:
                turn, session = (_usage(payload, f"{each}_token_usage") for each in ("turn", "thread"))
                used = _usage(payload, "usage")
                if used is not None:
                    self._tally.count(text_of(payload, "response_id"), self._working.model or "", used)
                self._working = replace(
                    self._working, turn=turn or self._working.turn, session=session or self._working.session
                )
            case "event_msg", "token_count":
                self._count(payload)
            case "event_msg", "task_started" | "turn_aborted":
                self._calls.clear()
            case "event_msg", "task_complete":
                self._calls.clear()
                error = object_of(payload, "error")
                limited = error.get("codex_error_info") == _LIMITED
                limit = Limit(text_of(error, "message"), self._resets) if limited else None
                self._working = replace(self._working, limit=limit)
            case "response_item", "function_call" | "custom_tool_call":
                self._call(payload)
            case "response_item", "function_call_output" | "custom_tool_call_output":
                self._calls.pop(text_of(payload, "call_id"), None)

    def _count(self, payload: Mapping[str, Any]) -> None:
        info, limits = object_of(payload, "info"), object_of(payload, "rate_limits")
        latest = whole_of(object_of(info, "last_token_usage"), "input_tokens")
        size = whole_of(info, "model_context_window")
        self._working = replace(
            self._working,
            context_used=self._working.context_used if latest is None else latest,
            context_size=self._working.context_size if size is None else size,
            session=_usage(info, "total_token_usage") or self._working.session,
        )
        used_up = [
            each
            for key in ("primary", "secondary")
            if (number_of(each := object_of(limits, key), "used_percent") or 0) >= 100
        ]
        ends = [at for each in used_up if (at := whole_of(each, "resets_at")) is not None]
        self._resets = from_epoch(max(ends)) if ends else None

    def _call(self, payload: Mapping[str, Any]) -> None:
        name = text_of(payload, "name")
        arguments = _object(text_of(payload, "arguments"))
        if name == _PLAN_TOOL:
            steps = [step for step in list_of(arguments, "plan") if isinstance(step, dict)]
            plan = tuple(
                PlanItem(text_of(step, "step"), _STATES.get(text_of(step, "status"), PlanState.PENDING))
                for step in steps
            )
            self._working = replace(self._working, plan=plan)
        detail = text_of(arguments, "cmd") or detail_of(arguments)
        self._calls[text_of(payload, "call_id")] = short(f"{name}: {detail}" if detail else name)


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _usage(payload: Mapping[str, Any], key: str) -> Usage | None:
    """Return the counts under that key. Codex counts what was read from a cache among what was sent."""
    counts = object_of(payload, key)
    sent, cached, written = (
        whole_of(counts, each) for each in ("input_tokens", "cached_input_tokens", "output_tokens")
    )
    if sent is None or written is None:
        return None
    return Usage(sent - (cached or 0), written, cached or 0)
