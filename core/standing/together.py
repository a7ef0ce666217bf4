"""One verb for many sessions: what it asks of tmux, and the locks under which it works on all of them at once."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import TypeVar

from core.clock import Deadline
from core.domain.pane import Survey
from core.errors import CoreError, LockBusy, StoreBroken, TmuxMissing, TmuxSilent
from core.standing.common import lock_seconds
from core.system import System

_T = TypeVar("_T")
_GLIMPSE_SECONDS = 0.5  #: what tmux gets to answer before processes are signalled: it takes some milliseconds
_MOMENT_SECONDS = 0.3  #: for locks that are held for a moment, as by deliveries
_PAUSE = 0.01
_FEW = 50  #: sessions for which every process has descriptors enough
_DESCRIPTORS_EACH, _DESCRIPTORS_BESIDE = 8, 128  #: a lock and a handle on each process of one; what else there is


class Tmux:
    """tmux as one verb asks it for all of its sessions: once it has been silent it is not asked again."""

    def __init__(self, system: System) -> None:
        self._runner = system.runner
        self.silence: TmuxSilent | TmuxMissing | None = None

    def survey(self) -> Survey:
        """Return all panes. Raises TmuxSilent, TmuxMissing; at once where tmux was silent before."""
        if self.silence is not None:
            raise self.silence
        try:
            return self._runner.survey()
        except (TmuxSilent, TmuxMissing) as error:
            self.silence = error
            raise

    def glimpse(self) -> Survey | None:
        """Return all panes, None where tmux does not tell them in a moment: that says nothing about it."""
        if self.silence is not None:
            return None
        try:
            return self._runner.survey(_GLIMPSE_SECONDS)
        except TmuxSilent:
            return None
        except TmuxMissing as error:
            self.silence = error
            return None


def together(
    system: System,
    names: Iterable[str],
    purpose: str,
    act: Callable[[Mapping[str, str]], Mapping[str, _T]],
    failed: Callable[[str, CoreError], _T],
    *,
    seconds: float | None = None,
    lockless: bool = False,
) -> dict[str, _T]:
    """Act on these sessions under their locks, and return what `act` and `failed` say of each, in their order.

    All whose locks are free are given to `act` at once, and it answers for each; then those that were busy, until
    `seconds` are over (None: more than a stop takes). Nobody is waited for while another's lock is held, so that no two
    wait for one another.

    `act` is given by name what stands against a lock at all, "" where it is held: with `lockless` a disk that allows
    none keeps nobody from acting.
    """
    order = list(names)
    waiting, told, most = list(order), dict[str, _T](), _most(len(order))
    deadline = Deadline(system.clock, lock_seconds(system) if seconds is None else seconds)
    patient = False  # nobody is waited for as long as there is somebody to act on
    while waiting:
        with ExitStack() as locks:
            taking = _Taking(system, purpose, locks, lockless=lockless)
            taking.take(waiting[:most], deadline.remaining() if patient else None)
            told |= {name: failed(name, error) for name, error in taking.failed.items()}
            if taking.held:
                told |= act(taking.held)
        waiting = [name for name in waiting if name not in told]
        patient = not taking.held
    return {name: told[name] for name in order}


def _most(count: int) -> int:
    """Return how many of so many sessions may be worked on at once, by the descriptors that this process may have."""
    if count <= _FEW:
        return count
    import resource

    from core.descriptors import raise_limit

    raise_limit()
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return count if soft == resource.RLIM_INFINITY else max(_FEW, (soft - _DESCRIPTORS_BESIDE) // _DESCRIPTORS_EACH)


class _Taking:
    """Takes the locks of several sessions, as many as can be had."""

    def __init__(self, system: System, purpose: str, locks: ExitStack, *, lockless: bool) -> None:
        self._system = system
        self._purpose = purpose
        self._locks = locks
        self._lockless = lockless
        self.held: dict[str, str] = {}
        self.failed: dict[str, CoreError] = {}

    def take(self, names: list[str], seconds: float | None) -> None:
        """Wait for the first so long (None: not at all), and take whichever of the others are free within a moment."""
        if seconds is not None:
            try:
                self._try(names[0], seconds)
            except LockBusy as error:
                self.failed[names[0]] = error
                return
        moment = Deadline(self._system.clock, _MOMENT_SECONDS)
        left = [name for name in names if name not in self.held and name not in self.failed]
        while left := [name for name in left if not self._is_over(name)]:
            if moment.passed():
                return
            self._system.clock.pause(_PAUSE)

    def _is_over(self, name: str) -> bool:
        try:
            self._try(name, 0.0)
        except LockBusy:
            return False
        return True

    def _try(self, name: str, seconds: float) -> None:
        """Take the lock. Raises LockBusy."""
        try:
            self._locks.enter_context(self._system.locks.hold(name, self._purpose, seconds))
            self.held[name] = ""
        except LockBusy:
            raise
        except StoreBroken as error:
            if self._lockless:
                self.held[name] = f"no lock could be taken: {error}"
            else:
                self.failed[name] = error
        except CoreError as error:
            self.failed[name] = error
