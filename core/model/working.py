"""What an agent is doing, in words, from what is stored of it: see Working.to_json. No I/O."""

import json
import math
from collections.abc import Mapping
from typing import Any

Told = Mapping[str, Any]

_BOXES = {"done": "[x]", "in progress": "[>]", "pending": "[ ]"}


def told_of(text: str) -> Told:
    """Return what is stored, of the form that every surface takes for granted: see Working.to_json.

    Raises ValueError, TypeError, LookupError, AttributeError, RecursionError for anything else.
    """
    told: Told = json.loads(text)
    usage = told["usage"]
    counts = [*filter(None, (usage["turn"], usage["session"])), *usage["byModel"].values()]
    if any(one["costUsd"] is not None and not math.isfinite(one["costUsd"]) for one in counts):
        raise ValueError("a cost is no number")
    described(told)
    in_short(told)
    for one in counts:
        _tokens(one)
    return told


def described(told: Told) -> dict[str, str]:
    """Return each part in words, by its name; what is not known, or is not there, has none."""
    usage, used = told["usage"], context(told)
    tokens = [f"{name}: {_tokens(usage[name])}" for name in ("turn", "session") if usage[name]]
    costs = {name: usage[name]["costUsd"] for name in ("turn", "session") if usage[name]}
    parts = {
        "plan": "; ".join(filter(None, (progress(told), plan_lines(told).replace("\n", "; ")))),
        "tool": told["tool"],
        "model": told["model"],
        "context": used,
        "tokens": "; ".join(tokens),
        "cost": "; ".join(f"{name}: ${cost:.4f}" for name, cost in costs.items() if cost is not None),
        "limit": limit(told),
    }
    return {name: text for name, text in parts.items() if text}


def progress(told: Told) -> str:
    """Return how far the plan is, `1 of 3 done`; "" without a plan."""
    plan = told["plan"] or ()
    return f"{sum(item['state'] == 'done' for item in plan)} of {len(plan)} done" if plan else ""


def now_at(told: Told) -> str:
    """Return the item of the plan that is worked on; "" for none."""
    return next((item["text"] for item in told["plan"] or () if item["state"] == "in progress"), "")


def plan_lines(told: Told) -> str:
    """Return the plan, an item a line."""
    return "\n".join(f"{_BOXES.get(item['state'], '[?]')} {item['text']}" for item in told["plan"] or ())


def context(told: Told) -> str:
    """Return how full the context is: in per cent where its size is known, else in tokens; "" for not known."""
    used, size = told["context"]["used"], told["context"]["size"]
    if used is None:
        return ""
    return f"{round(100 * used / size)} % of {size:,} tokens" if size else f"{used:,} tokens"


def limit(told: Told) -> str:
    """Return which limit of the account was reached, and until when; "" for none."""
    reached = told["limit"]
    if not reached:
        return ""
    until = reached["until"]
    return f"{reached['what']}, until {until[:16].replace('T', ' ')} UTC" if until else str(reached["what"])


def spent(told: Told) -> str:
    """Return in a line what was used: model, context, tokens and cost."""
    parts = described(told)
    named = [f"{name} {parts[name]}" for name in ("model", "context", "tokens", "cost") if name in parts]
    return ", ".join(named)


def cost_of(told: Told) -> str:
    """Return what the conversation has cost so far, `$1.24`; "" where that is not known."""
    session = told["usage"]["session"]
    cost = session["costUsd"] if session else None
    return "" if cost is None else f"${cost:.2f}"


def in_short(told: Told) -> tuple[str, ...]:
    """Return what stands in a line about a session: its plan, its tool, how full its context is, its cost, a limit."""
    at = now_at(told)
    done = progress(told)
    used = context(told)
    return tuple(
        part
        for part in (
            f"{done} (now: {at})" if done and at else done,
            told["tool"] or "",
            told["model"] or "",
            f"context {used}" if used else "",
            cost_of(told),
            limit(told),
        )
        if part
    )


def _tokens(usage: Told) -> str:
    return f"{usage['input']:,} in, {usage['output']:,} out, {usage['cached']:,} cached"
