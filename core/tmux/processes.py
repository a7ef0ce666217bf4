"""The processes of an instance: found by the marker that they carry and by descent, ended softly, then hard."""

import os
import signal
from collections.abc import Callable, Collection, Iterable

from core.clock import SystemClock
from core.domain.session import LastExit
from core.ports import EndedTree
from core.processmark import MARKER, limit_of
from core.tmux.handles import Handle, may_signal, wait_ended
from core.tmux.proctable import ProcessInfo, ProcessTable, ancestors, descendants, process_table
from core.tmux.watcher import Watcher

_SWEEP_GRACE = 0.5  # seconds that what the harness left behind gets between SIGTERM and SIGKILL
_KILL_SECONDS = 2.0  # seconds that a SIGKILL may take to be seen
_LOOKS, _LOOK_PAUSE = 4, 0.05  # at an environment that shows no marker, and the seconds between
_ROUNDS = 6  # of sweeping: a process may have started another one meanwhile


class LocalProcesses:
    """The Processes port on this machine. Works whether or not tmux answers."""

    def __init__(self, table: ProcessTable | None = None) -> None:
        self._table = table or process_table()
        self._watcher = Watcher(self._table)

    def alive(self, pid: int) -> bool:
        """See Processes."""
        return self._table.start_of(pid) is not None

    def marked(self, instance: str) -> tuple[int, ...]:
        """See Processes."""
        spared = ancestors(self._table, os.getpid())
        return tuple(info.pid for info in self._marked(instance, self._table.all()) if info.pid not in spared)

    def end_tree(self, instance: str, pane_pid: int | None, grace: float) -> EndedTree:
        """See Processes.

        The harness is every process of the pane's terminal session, not the first alone: wrappers pass no signal on,
        and some ignore theirs. What it started in sessions of its own is left to it until it has ended, then swept.
        We ourselves and what we descend from are never touched.
        """
        ending = _Ending(self._table, instance)
        try:
            ending.end_harness(pane_pid, grace)
            ending.sweep()
            return ending.result()
        finally:
            ending.close()

    def watch(self, pid: int, ended: Callable[[], None]) -> Callable[[], None]:
        """See Processes. `ended` must not raise."""
        return self._watcher.watch(pid, ended)

    def watches(self) -> int:
        """See Processes."""
        return self._watcher.held()

    def close(self) -> None:
        """Stop watching."""
        self._watcher.close()

    def _marked(self, instance: str, table: Iterable[ProcessInfo]) -> list[ProcessInfo]:
        return _marked(self._table, instance, table)


class _Ending:
    """One ending of one instance's processes: what was found, and how far it has come."""

    def __init__(self, table: ProcessTable, instance: str) -> None:
        self._table = table
        self._instance = instance
        self._clock = SystemClock()
        self._spared = ancestors(table, os.getpid())
        self._handles: dict[int, Handle] = {}
        self._leader: int | None = None
        self._exit: LastExit | None = None
        self._killed = 0

    def end_harness(self, pane_pid: int | None, grace: float) -> None:
        """End the processes of the pane's terminal session: SIGTERM, SIGKILL to what is left after the grace."""
        table = self._table.all()
        leader = self._leader_of(pane_pid, table)
        self._collect(table, leader)
        if leader is None:
            return
        self._leader = leader.pid
        same = {info.pid for info in table if info.session == leader.session} | {leader.pid}
        self._end([handle for pid, handle in self._handles.items() if pid in same], grace)

    def sweep(self) -> None:
        """End whatever else is marked or was seen to descend from the harness, until two looks find nothing.

        One look may meet a process in the moment in which it becomes another program and shows no environment.
        """
        clean = 0
        for _ in range(_ROUNDS):
            self._collect(self._table.all(), None)
            left = [handle for handle in self._handles.values() if not handle.ended()]
            if left:
                clean = 0
                self._end(left, _SWEEP_GRACE)
                continue
            clean += 1
            if clean == 2:
                return
            self._clock.pause(_LOOK_PAUSE)

    def result(self) -> EndedTree:
        """Return what it came to."""
        survivors = tuple(pid for pid, handle in self._handles.items() if not handle.ended())
        return EndedTree(self._exit, self._killed, survivors)

    def close(self) -> None:
        """Let go of the processes."""
        for handle in self._handles.values():
            handle.close()

    def _leader_of(self, pane_pid: int | None, table: Collection[ProcessInfo]) -> ProcessInfo | None:
        """Return the harness's first process: the pane's if it is still that one, else the oldest that is marked.

        A pid that tmux remembers of an ended program may belong to anybody by now.
        """
        pane = next((info for info in table if info.pid == pane_pid and not info.zombie), None)
        if pane is not None and pane.pid not in self._spared and self._is_ours(pane):
            return pane
        marked = [info for info in _marked(self._table, self._instance, table) if info.pid not in self._spared]
        return min(marked, key=lambda info: (info.start, info.pid), default=None)

    def _is_ours(self, pane: ProcessInfo) -> bool:
        """Tell whether the process is the pane's of our instance.

        Programs may overwrite the environment that others see of them, so a child of tmux that shows no marker is
        believed; but not at the first look, since a process that is just being started shows none either.
        """
        for _ in range(_LOOKS):
            marker = self._table.variable(pane.pid, MARKER)
            if marker:
                return marker == self._instance
            if self._table.locks_limit(pane.pid) == limit_of(self._instance):
                return True
            self._clock.pause(_LOOK_PAUSE)
        names = self._table.name_of(pane.pid), self._table.name_of(pane.ppid)
        return not names[0].startswith("tmux") and names[1].startswith("tmux")

    def _collect(self, table: Collection[ProcessInfo], leader: ProcessInfo | None) -> None:
        """Take hold of everything that belongs to the instance: children are found only while their parent lives."""
        found = {info.pid: info for info in _marked(self._table, self._instance, table)}
        if leader is not None:
            found[leader.pid] = leader
        living = [pid for pid, handle in self._handles.items() if not handle.ended()]
        for root in [*found, *living]:
            found.update({info.pid: info for info in descendants(table, root)})
        for pid, info in found.items():
            known = self._handles.get(pid)
            if pid in self._spared or info.zombie or (known is not None and not known.ended()):
                continue
            handle = Handle.open(self._table, info)
            if handle is not None:
                if known is not None:
                    known.close()
                self._handles[pid] = handle

    def _end(self, handles: Collection[Handle], grace: float) -> None:
        for handle in handles:
            handle.send(signal.SIGTERM)
            handle.send(signal.SIGCONT)  # a stopped process would hear of it only when somebody else lets it go on
        left = wait_ended(handles, grace, self._noticed)
        for handle in left:
            if handle.send(signal.SIGKILL):
                self._killed += 1
                if handle.pid == self._leader:
                    self._exit = LastExit(None, int(signal.SIGKILL))
        wait_ended(left, _KILL_SECONDS, self._noticed)

    def _noticed(self, handle: Handle) -> None:
        """Read the leader's exit while it is there to be read: until tmux asks for it, or as long as tmux does not."""
        if handle.pid != self._leader or self._exit is not None:
            return
        status = self._table.wait_status(handle.pid)
        if status is not None and os.WIFSIGNALED(status):
            self._exit = LastExit(None, os.WTERMSIG(status))
        elif status is not None:
            self._exit = LastExit(os.WEXITSTATUS(status), None)


def _marked(table: ProcessTable, instance: str, processes: Iterable[ProcessInfo]) -> list[ProcessInfo]:
    """Return those that carry the marker: as a variable, or, where their environment shows none, as their limit.

    Whoever becomes another user keeps the limit; what we may not signal is not ours to end.
    """
    limit = limit_of(instance)

    def carries(pid: int) -> bool:
        marker = table.variable(pid, MARKER)
        return marker == instance if marker else table.locks_limit(pid) == limit and may_signal(pid)

    return [info for info in processes if not info.zombie and carries(info.pid)]
