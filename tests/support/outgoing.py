"""What the outbox's tests share: a clock to move, posts of the session `scribe`, and turns of the worker."""

from datetime import datetime, timedelta
from typing import Any

from core.base.clock import SystemClock
from core.chat.outbound import OutboundWorker
from core.model.posts import NewPost, OutboundKind
from core.session.system import System
from tests.support.lines import entries


class HandClock(SystemClock):
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> datetime:
        """Return the moved wall clock."""
        return super().now() + timedelta(seconds=self.ahead)

    def monotonic(self) -> float:
        """Return the moved monotonic clock."""
        return super().monotonic() + self.ahead


def post(kind: OutboundKind, number: int = 0, uid: str = "s-1", **changes: Any) -> NewPost:
    """Return a post."""
    return NewPost(f"p-{kind.value}-{uid}-{number}", f"{kind.value}:{uid}:{number}", kind, uid, "scribe", "slack",
                   f"{kind.value} {number}", **changes)  # fmt: skip


def drain(worker: OutboundWorker, clock: HandClock, turns: int = 10) -> None:
    """Take turns, each after what it asked to wait for."""
    for _ in range(turns):
        clock.ahead += worker.turn()


def events(system: System) -> list[str]:
    """Return the names of what was told."""
    return [event["event"] for event in entries(system.paths.events)]
