"""What a loop verb answers, in the one shape that every surface gives on."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from core.clock import iso
from core.domain.durations import interval_text
from core.domain.loop import OPEN, Loop, LoopStatus, Mode
from core.domain.tick import cadence
from core.values import dataclass


@dataclass(frozen=True)
class LoopAnswer:
    """The loop that was asked about (None: a list), those of its session, and what was done in a sentence."""

    loop: Loop | None
    loops: tuple[Loop, ...]
    said: str

    def to_json(self) -> dict[str, Any]:
        """Return `{"loop", "loops", "said"}`."""
        return {
            "loop": loop_json(self.loop) if self.loop else None,
            "loops": [loop_json(loop) for loop in self.loops],
            "said": self.said,
        }


def loop_json(loop: Loop) -> Mapping[str, Any]:
    """Return a loop with its fixed keys, times as ISO 8601 in UTC; null is what it has not."""
    return {
        "id": loop.id,
        "session": loop.name,
        "declared": loop.declared or None,
        "mode": loop.mode.value,
        "instruction": loop.instruction,
        "interval": interval_text(loop.interval) if loop.interval else None,
        "cron": loop.cron or None,
        "timeZone": (loop.time_zone or "UTC") if loop.mode is Mode.CRON else None,
        "keepAlive": loop.keep_alive,
        "maxRuns": loop.max_runs,
        "status": loop.status.value,
        "held": loop.held.value if loop.held else None,
        "runCount": loop.run_count,
        "lastRunAt": iso(loop.last_run_at) if loop.last_run_at else None,
        "lastResult": loop.last_result or None,
        "lastError": loop.last_error or None,
        "nextRunAt": iso(loop.next_run_at) if loop.next_run_at else None,
        "reason": loop.reason or None,
        "createdBy": loop.created_by,
        "createdAt": iso(loop.created_at),
    }


def line_of(loop: Loop, now: datetime) -> str:
    """Return a loop in one line for people: `loop_k3f9x2 every 5m, keep-alive: active, 3 runs, next 12:05:00 UTC`."""
    alive = ", keep-alive" if loop.keep_alive else ""
    runs = "1 run" if loop.run_count == 1 else f"{loop.run_count} runs"
    return f"{loop.id} {cadence(loop)}{alive}: {state_text(loop, now)}, {runs}"


def state_text(loop: Loop, now: datetime) -> str:
    """Return where a loop stands: when it runs next, since when it is due, what holds it, why it ended.

    One is due as long as its run before is not over: its session starts, or works.
    """
    if loop.status not in OPEN or loop.status is LoopStatus.PAUSED:
        return f"{loop.status.value} ({loop.reason})" if loop.reason else loop.status.value
    if loop.held is not None:
        return f"held ({loop.held.value})"
    if loop.next_run_at is None:
        return "active, no next run is planned"
    if loop.next_run_at <= now:
        return f"active, due since {when(loop.next_run_at, now)}"
    return f"active, next {when(loop.next_run_at, now)}"


def when(moment: datetime, now: datetime) -> str:
    """Return a time for people, with its day where that is another one."""
    return f"{moment:%H:%M:%S} UTC" if moment.date() == now.date() else f"{moment:%Y-%m-%d %H:%M:%S} UTC"
