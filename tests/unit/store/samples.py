"""Values that the tests of the store start from, and a clock that stands still."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from core.model.activity import Activity, ActivityState
from core.model.loop import Loop, Mode
from core.model.message import Kind, NewMessage
from core.model.posts import NewPost, OutboundKind
from core.model.session import Binding, Definition, SessionRecord

NOON = datetime(2026, 5, 4, 12, 0, 0, 123456, tzinfo=UTC)


@dataclass
class StandingClock:
    """Implements Clock: time passes only when it is asked to."""

    moment: datetime = NOON
    elapsed: float = field(default=0.0)

    def now(self) -> datetime:
        """Return the moment that the test has set."""
        return self.moment

    def monotonic(self) -> float:
        """Return the seconds that have been let pass."""
        return self.elapsed

    def pause(self, seconds: float) -> None:
        """Let time pass at once."""
        self.elapsed += seconds
        self.moment += timedelta(seconds=seconds)


def a_message(number: int = 1, **changes: Any) -> NewMessage:
    """Return a message whose id, key, marker and order follow from its number."""
    values: dict[str, Any] = {
        "id": f"m-{number}",
        "key": f"cli:m-{number}",
        "uid": "s-scribe",
        "name": "scribe",
        "generation": 1,
        "kind": Kind.SAY,
        "actor": "cli:ann",
        "who": "ann",
        "via": "cli",
        "marker": f"k{number}",
        "text": f"text {number}",
        "raw": False,
        "order_us": number,
        "created_at": NOON,
    }
    return NewMessage(**{**values, **changes})


def a_post(number: int = 1, **changes: Any) -> NewPost:
    """Return a post whose id and key follow from its number."""
    values: dict[str, Any] = {
        "id": f"p-{number}",
        "key": f"note:{number}",
        "kind": OutboundKind.NOTE,
        "uid": "s-scribe",
        "name": "scribe",
        "channel_kind": "slack",
        "text": f"note {number}",
    }
    return NewPost(**{**values, **changes})


def a_binding(**changes: Any) -> Binding:
    """Return the binding of the scribe's thread."""
    values: dict[str, Any] = {
        "channel_kind": "slack",
        "team": "T1",
        "channel": "C1",
        "thread": "1700000000.000100",
        "uid": "s-scribe",
        "name": "scribe",
        "created_at": NOON,
    }
    return Binding(**{**values, **changes})


def an_activity(**changes: Any) -> Activity:
    """Return what the scribe does."""
    values: dict[str, Any] = {"uid": "s-scribe", "instance": "i-1", "state": ActivityState.IDLE, "since": NOON}
    return Activity(**{**values, **changes})


def a_record(name: str = "scribe", **changes: Any) -> SessionRecord:
    """Return a record of a session that was never started."""
    values: dict[str, Any] = {
        "name": name,
        "uid": f"s-{name}",
        "definition": Definition(name=name),
        "created_at": NOON,
    }
    return SessionRecord(**{**values, **changes})


def a_loop(number: int = 1, **changes: Any) -> Loop:
    """Return a loop of five minutes that is due at noon."""
    values: dict[str, Any] = {
        "id": f"loop_{number}",
        "uid": "s-scribe",
        "name": "scribe",
        "instruction": f"look at {number}",
        "mode": Mode.INTERVAL,
        "created_by": "agent:scribe",
        "created_at": NOON - timedelta(minutes=5) + timedelta(microseconds=number),
        "interval": timedelta(minutes=5),
        "next_run_at": NOON,
    }
    return Loop(**{**values, **changes})
