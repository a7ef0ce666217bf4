"""Holding on to a process so that a signal never reaches another one that got its pid."""

import os
import select
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress

from core.clock import Deadline, SystemClock
from core.errors import ProcessesUnknown
from core.tmux.proctable import ProcessInfo, ProcessTable

_POLL_SECONDS = 0.02  # where there are no pidfds


def open_pidfd(pid: int) -> int | None:
    """Return a pidfd; None where the system has none. Raises ProcessLookupError if there is no such process."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError:  # an old kernel, a filter on system calls, or no descriptors left
        return None


class Handle:
    """One process that was looked at: signals go to it or to nobody."""

    def __init__(self, table: ProcessTable, info: ProcessInfo, descriptor: int | None) -> None:
        self._table = table
        self._info = info
        self._descriptor = descriptor

    @classmethod
    def open(cls, table: ProcessTable, info: ProcessInfo) -> "Handle | None":
        """Take hold of the process; None if it is gone, or its pid belongs to another one by now.

        Raises ProcessesUnknown.
        """
        try:
            descriptor = open_pidfd(info.pid)
        except ProcessLookupError:
            return None
        handle = cls(table, info, descriptor)
        try:
            same = handle._is_same()
        except ProcessesUnknown:
            handle.close()
            raise
        if same:
            return handle
        handle.close()
        return None

    @property
    def pid(self) -> int:
        """Return the process's pid."""
        return self._info.pid

    @property
    def descriptor(self) -> int | None:
        """Return the pidfd."""
        return self._descriptor

    def ended(self) -> bool:
        """Tell whether the process has ended, a zombie included."""
        if self._descriptor is None:
            return not self._is_same()
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(0))

    def send(self, number: signal.Signals) -> bool:
        """Send the signal and tell whether it was taken: not by a process that is gone, or not ours to signal."""
        try:
            if self._descriptor is not None:
                signal.pidfd_send_signal(self._descriptor, number)
            elif self._is_same():
                os.kill(self._info.pid, number)
            else:
                return False
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def close(self) -> None:
        """Let go."""
        if self._descriptor is not None:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = None

    def _is_same(self) -> bool:
        seen = self._table.get(self._info.pid)
        return seen is not None and not seen.zombie and seen.start == self._info.start


def may_signal(pid: int) -> bool:
    """Tell whether there is such a process and signals of ours reach it; none is sent."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def wait_ended(handles: Iterable[Handle], seconds: float, noticed: Callable[[Handle], None]) -> tuple[Handle, ...]:
    """Wait until all have ended, at most that long, and return those that have not; `noticed` is told of each end."""
    deadline = Deadline(SystemClock(), seconds)
    left = dict.fromkeys(handles)
    watched = {handle.descriptor: handle for handle in left if handle.descriptor is not None}
    poll = select.poll()
    for descriptor in watched:
        poll.register(descriptor, select.POLLIN)
    blind = [handle for handle in left if handle.descriptor is None]
    while True:
        ended = [watched.pop(descriptor) for descriptor, _ in poll.poll(0)]
        for handle in ended:
            poll.unregister(handle.descriptor or 0)
        for handle in [*ended, *(handle for handle in blind if handle.ended())]:
            noticed(handle)
            del left[handle]
        blind = [handle for handle in blind if handle in left]
        if not left or deadline.passed():
            return tuple(left)
        poll.poll(1000 * min(deadline.remaining(), _POLL_SECONDS if blind else deadline.remaining()))
