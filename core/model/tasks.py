"""A task that somebody wrote in a chat, for which a session is started: where it stands. No I/O."""

from datetime import datetime
from enum import Enum
from typing import Any

from core.base.values import dataclass


class TaskState(Enum):
    """Where a task stands."""

    PENDING = "pending"  #: committed; its session may or may not have been created yet
    WITHDRAWN = "withdrawn"  #: its message was deleted before a session had it: what was made of it is to be ended
    RUNNING = "running"  #: its session has the task; its lifetime runs
    OVER = "over"  #: its session was ended, or is gone
    FAILED = "failed"  #: no session was made of it


@dataclass(frozen=True)
class TaskRow:
    """A task. `asked` is what was asked, as JSON: the message and the template."""

    key: str  #: of its message: the same message is one task
    channel_kind: str
    name: str  #: of its session
    asked: dict[str, Any]
    state: TaskState
    attempts: int
    ends_at: datetime | None  #: when its session is ended; None: never, or not known yet
