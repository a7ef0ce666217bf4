"""The rows of `status` that are not sessions. No I/O."""

from typing import Any

from core.values import dataclass


@dataclass(frozen=True)
class ServiceRow:
    """The service itself, or one channel's connection. `running` None: it could not be asked, which is no "no"."""

    name: str
    running: bool | None
    pid: int | None
    detail: str
    reason: str = ""  #: the code of the detail, where it has one

    def to_json(self) -> dict[str, Any]:
        """Return `{name, running, pid, detail, reason}`."""
        told = {"name": self.name, "running": self.running, "pid": self.pid}
        return {**told, "detail": self.detail, "reason": self.reason}


@dataclass(frozen=True)
class HarnessRow:
    """A program that sessions run, and whether its version was ever tried. `version` is "" where it does not tell."""

    name: str
    version: str
    tried: tuple[str, ...]  #: oldest first
    detail: str

    def to_json(self) -> dict[str, Any]:
        """Return `{name, version, tried, detail}`; version is null where it is not known."""
        return {"name": self.name, "version": self.version or None, "tried": list(self.tried), "detail": self.detail}
