"""The rows of `status` that are not sessions. No I/O."""

from typing import Any

from core.values import dataclass


@dataclass(frozen=True)
class ServiceRow:
    """The service itself, or one channel's connection."""

    name: str
    running: bool
    pid: int | None
    detail: str

    def to_json(self) -> dict[str, Any]:
        """Return `{name, running, pid, detail}`."""
        return {"name": self.name, "running": self.running, "pid": self.pid, "detail": self.detail}
