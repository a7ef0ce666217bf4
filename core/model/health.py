"""What a check of the installation finds. No I/O."""

from collections.abc import Iterable
from enum import Enum
from typing import Any

from core.base.values import dataclass


class State(Enum):
    """How it stands with what was looked at."""

    OK = "ok"
    WARNING = "warning"  #: it works, and a person should know something
    FAILED = "failed"
    UNKNOWN = "unknown"  #: it could not be asked, which is neither ok nor failed


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: how it stands, and the remedy where something is to be done."""

    name: str
    state: State
    detail: str
    remedy: str = ""

    @property
    def ok(self) -> bool:
        """Return whether it is known to work."""
        return self.state in (State.OK, State.WARNING)

    def to_json(self) -> dict[str, Any]:
        """Return `{name, state, detail, remedy}`."""
        return {"name": self.name, "state": self.state.value, "detail": self.detail, "remedy": self.remedy}


def all_well(findings: Iterable[Finding], *, strict: bool = False) -> bool:
    """Return whether each is known to work; `strict`: and none is a warning."""
    return all(finding.ok and not (strict and finding.state is State.WARNING) for finding in findings)
