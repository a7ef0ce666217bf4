"""Run checks side by side, each within its own time."""

import threading
from collections.abc import Callable, Iterable, Sequence

from core.base.clock import Clock, Deadline
from core.base.errors import CoreError
from core.base.values import dataclass
from core.model.health import Finding, State


@dataclass(frozen=True)
class Check:
    """Some questions that belong together. What `run` yields before its time is over counts."""

    name: str  #: of the finding that says that there is no answer
    seconds: float
    run: Callable[[], Iterable[Finding]]


class _Running:
    """A check at work. Its thread is left behind where it does not come back: the process ends without it."""

    def __init__(self, check: Check, clock: Clock) -> None:
        self._check = check
        self._found: list[Finding] = []
        self._over = False
        self._deadline = Deadline(clock, check.seconds)
        self._thread = threading.Thread(target=self._work, name=f"doctor-{check.name}", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            for finding in self._check.run():
                self._found.append(finding)
        except CoreError as error:
            self._found.append(Finding(self._check.name, State.UNKNOWN, error.message, error.remedy))
        self._over = True

    def findings(self) -> tuple[Finding, ...]:
        """Wait, and return what was found; where the check is not over, one says so."""
        self._thread.join(self._deadline.remaining())
        over, found = self._over, tuple(self._found)
        if over:
            return found
        if self._thread.is_alive():
            told, remedy = f"no answer within {self._check.seconds:g} s", "see what it waits for, then ask again"
        else:
            told, remedy = "this check failed by itself", "report it with the lines on standard error that say where"
        return (*found, Finding(self._check.name, State.UNKNOWN, told, remedy))


def run_all(
    checks: Sequence[Check], clock: Clock, waits: Callable[[Check], None] = lambda _: None
) -> tuple[Finding, ...]:
    """Return what all of them find, in their order. `waits` is told which is waited for."""
    running = [(check, _Running(check, clock)) for check in checks]
    found: list[Finding] = []
    for check, one in running:
        waits(check)
        found += one.findings()
    return tuple(found)
