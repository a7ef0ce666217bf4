"""The processes of instances: found by their marker and by descent, asked to end first, then killed."""

import os
import signal
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from core.base.clock import SystemClock
from core.base.environment import MARKER, limit_of
from core.model.pane import EndedTree
from core.model.session import LastExit
from core.tmux.handles import (
    Descent,
    Handle,
    ProcessInfo,
    ProcessTable,
    Watcher,
    ancestors,
    may_signal,
    process_table,
    wait_ended,
)

_SWEEP_GRACE = 0.5  # seconds that what the harness left behind gets between SIGTERM and SIGKILL
_KILL_SECONDS = 2.0  # seconds that a SIGKILL may take to be seen
_LOOKS, _LOOK_PAUSE = 4, 0.05  # at an environment that shows no marker, and the seconds between
_ROUNDS = 6  # of sweeping: a process may have started another one meanwhile


class Processes:
    """Finds and ends the processes of instances on this machine. Works whether or not tmux answers."""

    def __init__(self, table: ProcessTable | None = None) -> None:
        self._table = table or process_table()
        self._watcher = Watcher(self._table)

    def alive(self, pid: int) -> bool:
        """Return whether the process lives (a zombie does not)."""
        return self._table.start_of(pid) is not None

    def marked(self, instance: str) -> tuple[int, ...]:
        """Return the pids of those that carry the instance's marker, ourselves excepted."""
        spared = ancestors(self._table, os.getpid())
        found = _Marks(self._table, [instance]).find(self._table.all()).get(instance, ())
        return tuple(info.pid for info in found if info.pid not in spared)

    def end_trees(self, panes: Mapping[str, int | None], grace: float) -> Mapping[str, EndedTree]:
        """End the processes of these instances, all together: SIGTERM to each harness, SIGKILL to those that live after
        `grace` seconds, then a sweep of what carries the markers. Return what each came to.

        `panes`: each instance with its pane's first process, as far as tmux has told.

        A harness is every process of its pane's terminal session, not the first alone: wrappers pass no signal on, and
        some ignore theirs. What it started in sessions of its own is left to it until all have ended, then swept. We
        ourselves and what we descend from are never touched.
        """
        ending = _Ending(self._table, panes)
        try:
            ending.end_harnesses(grace)
            ending.sweep()
            return ending.results()
        finally:
            ending.close()

    def watch(self, pid: int, ended: Callable[[], None]) -> Callable[[], None]:
        """Call `ended` once from a watcher thread when the process ends; the answer stops watching.

        `ended` must not raise.
        """
        return self._watcher.watch(pid, ended)

    def watches(self) -> int:
        """Return how many watches are held: until they are stopped or their process has ended, each by itself."""
        return self._watcher.held()

    def close(self) -> None:
        """Stop watching."""
        self._watcher.close()


class _Tree:
    """The processes of one instance, and how its ending goes."""

    def __init__(self, instance: str, pane_pid: int | None) -> None:
        self.instance = instance
        self.pane_pid = pane_pid
        self.leader: int | None = None  #: the harness's first process
        self.handles: dict[int, Handle] = {}
        self.exit: LastExit | None = None
        self.killed = 0

    def living(self) -> list[Handle]:
        return [handle for handle in self.handles.values() if not handle.ended()]

    def result(self) -> EndedTree:
        return EndedTree(self.leader is not None, self.exit, self.killed, tuple(one.pid for one in self.living()))


class _Ending:
    """One ending of the processes of some instances, all of them together."""

    def __init__(self, table: ProcessTable, panes: Mapping[str, int | None]) -> None:
        self._table = table
        self._clock = SystemClock()
        self._spared = ancestors(table, os.getpid())
        self._trees = {instance: _Tree(instance, pid) for instance, pid in panes.items()}
        self._marks = _Marks(table, panes)

    def end_harnesses(self, grace: float) -> None:
        """End the processes of the panes' terminal sessions: SIGTERM, SIGKILL to what is left after the grace."""
        table = self._table.all()
        marked = self._marks.find(table)
        leaders = self._leaders(table, marked)
        self._collect(table, marked, leaders)
        harnesses: list[tuple[_Tree, Handle]] = []
        sessions = _by_session(table)
        for instance, leader in leaders.items():
            tree = self._trees[instance]
            tree.leader = leader.pid
            same = {leader.pid, *sessions.get(leader.session, ())}
            harnesses += [(tree, handle) for pid, handle in tree.handles.items() if pid in same]
        self._end(harnesses, grace)

    def sweep(self) -> None:
        """End whatever else is marked or was seen to descend from a harness, until two looks find nothing.

        One look may meet a process in the moment in which it becomes another program and shows no environment.
        """
        clean = 0
        for _ in range(_ROUNDS):
            table = self._table.all()
            self._collect(table, self._marks.find(table), {})
            left = [(tree, handle) for tree in self._trees.values() for handle in tree.living()]
            if left:
                clean = 0
                self._end(left, _SWEEP_GRACE)
                continue
            clean += 1
            if clean == 2:
                return
            self._clock.pause(_LOOK_PAUSE)

    def results(self) -> dict[str, EndedTree]:
        """Return what it came to, by instance."""
        return {instance: tree.result() for instance, tree in self._trees.items()}

    def close(self) -> None:
        """Let go of the processes."""
        for tree in self._trees.values():
            for handle in tree.handles.values():
                handle.close()

    def _leaders(
        self, table: Collection[ProcessInfo], marked: Mapping[str, Sequence[ProcessInfo]]
    ) -> dict[str, ProcessInfo]:
        """Return each harness's first process: the pane's if it is still that one, else the oldest that is marked.

        A pid that tmux remembers of an ended program may belong to anybody by now.
        """
        living = {info.pid: info for info in table if not info.zombie and info.pid not in self._spared}
        panes = {tree.instance: living[tree.pane_pid] for tree in self._trees.values() if tree.pane_pid in living}
        leaders = self._ours_of(panes)
        for instance, infos in marked.items():
            if instance not in leaders and (others := [info for info in infos if info.pid in living]):
                leaders[instance] = min(others, key=lambda info: (info.start, info.pid))
        return leaders

    def _ours_of(self, panes: Mapping[str, ProcessInfo]) -> dict[str, ProcessInfo]:
        """Return those that are the panes' of our instances.

        Programs may overwrite the environment that others see of them, so a child of tmux that shows no marker is
        believed; but not at the first look, since a process that is just being started shows none either.
        """
        ours: dict[str, ProcessInfo] = {}
        unsure = dict(panes)
        for _ in range(_LOOKS):
            for instance, pane in list(unsure.items()):
                carried = self._marks.carried_by(pane.pid)
                if carried is not None:
                    del unsure[instance]
                    if carried == instance:
                        ours[instance] = pane
            if not unsure:
                return ours
            self._clock.pause(_LOOK_PAUSE)
        return ours | {instance: pane for instance, pane in unsure.items() if self._is_tmux_child(pane)}

    def _is_tmux_child(self, pane: ProcessInfo) -> bool:
        names = self._table.name_of(pane.pid), self._table.name_of(pane.ppid)
        return not names[0].startswith("tmux") and names[1].startswith("tmux")

    def _collect(
        self,
        table: Collection[ProcessInfo],
        marked: Mapping[str, Sequence[ProcessInfo]],
        leaders: Mapping[str, ProcessInfo],
    ) -> None:
        """Take hold of everything that belongs to the instances: children are found only while their parent lives."""
        below = Descent(table)
        for instance, tree in self._trees.items():
            found = {info.pid: info for info in marked.get(instance, ())}
            if instance in leaders:
                found[leaders[instance].pid] = leaders[instance]
            for root in [*found, *(handle.pid for handle in tree.living())]:
                found.update({info.pid: info for info in below.of(root)})
            for info in found.values():
                self._hold(tree, info)

    def _hold(self, tree: _Tree, info: ProcessInfo) -> None:
        known = tree.handles.get(info.pid)
        if info.pid in self._spared or info.zombie or (known is not None and not known.ended()):
            return
        handle = Handle.open(self._table, info)
        if handle is not None:
            if known is not None:
                known.close()
            tree.handles[info.pid] = handle

    def _end(self, handles: Sequence[tuple[_Tree, Handle]], grace: float) -> None:
        tree_of = {handle: tree for tree, handle in handles}
        for _, handle in handles:
            handle.send(signal.SIGTERM)
            handle.send(signal.SIGCONT)  # a stopped process would hear of it only when somebody else lets it go on
        left = wait_ended(tree_of, grace, lambda handle: self._noticed(tree_of[handle], handle))
        for handle in left:
            tree = tree_of[handle]
            if handle.send(signal.SIGKILL):
                tree.killed += 1
                if handle.pid == tree.leader:
                    tree.exit = LastExit(None, int(signal.SIGKILL))
        wait_ended(left, _KILL_SECONDS, lambda handle: self._noticed(tree_of[handle], handle))

    def _noticed(self, tree: _Tree, handle: Handle) -> None:
        """Read the leader's exit while it is there to be read: until tmux asks for it, or as long as tmux does not."""
        if handle.pid != tree.leader or tree.exit is not None:
            return
        status = self._table.wait_status(handle.pid)
        if status is not None and os.WIFSIGNALED(status):
            tree.exit = LastExit(None, os.WTERMSIG(status))
        elif status is not None:
            tree.exit = LastExit(os.WEXITSTATUS(status), None)


class _Marks:
    """What marks the processes of some instances: a variable, or, where their environment shows none, a limit.

    Whoever becomes another user keeps the limit; what we may not signal is not ours to end.
    """

    def __init__(self, table: ProcessTable, instances: Iterable[str]) -> None:
        self._table = table
        self._by_limit = {limit_of(instance): instance for instance in instances}
        self._instances = frozenset(self._by_limit.values())

    def find(self, processes: Iterable[ProcessInfo]) -> dict[str, list[ProcessInfo]]:
        """Return by instance the processes that carry its mark, each looked at once."""
        found: dict[str, list[ProcessInfo]] = {}
        for info in processes:
            carried = None if info.zombie else self._carried(info.pid)
            if carried in self._instances:
                found.setdefault(carried, []).append(info)
        return found

    def carried_by(self, pid: int) -> str | None:
        """Return the instance whose mark a process of ours carries, which may be another one; None: it shows none."""
        return self._table.variable(pid, MARKER) or self._by_limit.get(self._table.locks_limit(pid) or 0)

    def _carried(self, pid: int) -> str | None:
        marker = self._table.variable(pid, MARKER)
        if marker:
            return marker
        instance = self._by_limit.get(self._table.locks_limit(pid) or 0)
        return instance if instance is not None and may_signal(pid) else None


def _by_session(table: Iterable[ProcessInfo]) -> dict[int, list[int]]:
    sessions: dict[int, list[int]] = {}
    for info in table:
        sessions.setdefault(info.session, []).append(info.pid)
    return sessions
