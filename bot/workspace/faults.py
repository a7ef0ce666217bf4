"""Faults to order: what the next calls of a method suffer."""

from __future__ import annotations

from dataclasses import dataclass

from bot.workspace.errors import ControlError

KINDS = ("ratelimited", "http", "error", "lost", "refused", "slow")


@dataclass
class Fault:
    """One order: the next `count` calls of `method` ("*": of any) go wrong in one way.

    ratelimited: 429 with Retry-After `seconds`. http: an HTML page with `status`. error: ok false with `code`.
    lost: performed, then the connection is cut without an answer. refused: cut before anything is performed.
    slow: performed after `seconds`.
    """

    method: str
    kind: str
    count: int = 1
    seconds: float = 1.0
    status: int = 503
    code: str = "internal_error"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ControlError(f"{self.kind!r} is no kind of fault; use one of {', '.join(KINDS)}")


class Faults:
    """The faults that are still to happen, taken in the order they were asked for."""

    def __init__(self) -> None:
        self.hides_scopes = False  #: no answer has the headers that name scopes
        self._pending: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Order a fault."""
        self._pending.append(fault)

    def clear(self) -> None:
        """Take back all that has not happened."""
        self._pending.clear()

    def take(self, method: str) -> Fault | None:
        """Return what befalls this call, if anything, and count it."""
        fault = next((fault for fault in self._pending if fault.method in (method, "*")), None)
        if fault is None:
            return None
        fault.count -= 1
        if fault.count <= 0:
            self._pending.remove(fault)
        return fault
