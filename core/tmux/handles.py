"""Look at processes (/proc on Linux, psutil elsewhere), and signal one without hitting another that got its pid.

`Watcher` is one thread that reports when processes end: by pidfds, or by looking four times a second where there are
none.
"""

import errno
import functools
import itertools
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from core.base.clock import Deadline, SystemClock
from core.base.errors import ProcessesUnknown
from core.base.values import dataclass

_STARVED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


@dataclass(frozen=True)
class ProcessInfo:
    """One process as it was seen; `start` tells it from a later one with the same pid."""

    pid: int
    ppid: int
    session: int  #: as getsid tells; 0 where it cannot be told
    start: float  #: since boot or epoch, in the table's own unit
    zombie: bool
    stopped: bool


class ProcessTable(Protocol):
    """What the machine knows of its processes. Each call raises ProcessesUnknown where it cannot be asked."""

    def all(self) -> tuple[ProcessInfo, ...]:
        """Return every process."""
        ...

    def get(self, pid: int) -> ProcessInfo | None:
        """Return one process, or None if there is none."""
        ...

    def start_of(self, pid: int) -> str | None:
        """Return what tells the process from others of its pid; None if there is none, or only its remains."""
        ...

    def variable(self, pid: int, name: str) -> str | None:
        """Return the variable that the process was started with; None if it had none, or we may not look."""
        ...

    def locks_limit(self, pid: int) -> int | None:
        """Return the process's soft limit on file locks; None if it has none, or there is no telling."""
        ...

    def name_of(self, pid: int) -> str:
        """Return the program's name, "" if it cannot be told."""
        ...

    def wait_status(self, pid: int) -> int | None:
        """Return the status that a zombie waits to be asked for, as wait() encodes it; None if it cannot be told."""
        ...


class LinuxTable:
    """Reads /proc."""

    def all(self) -> tuple[ProcessInfo, ...]:
        """See ProcessTable."""
        try:
            entries = os.listdir("/proc")
        except OSError as error:
            raise ProcessesUnknown(str(error)) from error
        found = (self.get(int(entry)) for entry in entries if entry.isdigit())
        return tuple(info for info in found if info is not None)

    def get(self, pid: int) -> ProcessInfo | None:
        """See ProcessTable."""
        fields = _stat(pid)
        if fields is None:
            return None
        return ProcessInfo(
            pid, int(fields[1]), int(fields[3]), float(fields[19]), zombie=fields[0] in "ZX", stopped=fields[0] == "T"
        )

    def start_of(self, pid: int) -> str | None:
        """See ProcessTable."""
        info = self.get(pid)
        return None if info is None or info.zombie else f"{_boot()}/{info.start:.0f}"

    def variable(self, pid: int, name: str) -> str | None:
        """See ProcessTable."""
        environ = _read(pid, "environ")
        if environ is None:
            return None
        _, found, rest = (b"\0" + environ).partition(f"\0{name}=".encode())
        return rest.partition(b"\0")[0].decode(errors="replace") if found else None

    def locks_limit(self, pid: int) -> int | None:
        """See ProcessTable. Unlike the environment it can be read of every process."""
        _, found, rest = (_read(pid, "limits") or b"").partition(b"\nMax file locks ")
        soft = rest.split(maxsplit=1)[0] if found else b""
        return int(soft) if soft.isdigit() else None

    def name_of(self, pid: int) -> str:
        """See ProcessTable."""
        return (_read(pid, "comm") or b"").decode(errors="replace").strip()

    def wait_status(self, pid: int) -> int | None:
        """See ProcessTable. Field 52 of /proc/PID/stat, which is 0 for a process that we may not trace."""
        fields = _stat(pid)
        return int(fields[49]) if fields is not None and fields[0] == "Z" else None


class PsutilTable:
    """Asks psutil, where there is no /proc."""

    def all(self) -> tuple[ProcessInfo, ...]:
        """See ProcessTable."""
        import psutil

        return tuple(info for pid in psutil.pids() if (info := self.get(pid)) is not None)

    def get(self, pid: int) -> ProcessInfo | None:
        """See ProcessTable."""
        import psutil

        try:
            process = psutil.Process(pid)
            with process.oneshot():
                status = process.status()
                return ProcessInfo(
                    pid,
                    process.ppid(),
                    _session_of(pid),
                    process.create_time(),
                    zombie=status in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD),
                    stopped=status == psutil.STATUS_STOPPED,
                )
        except psutil.ZombieProcess:
            return ProcessInfo(pid, 0, 0, 0.0, zombie=True, stopped=False)
        except psutil.Error:
            return None

    def start_of(self, pid: int) -> str | None:
        """See ProcessTable."""
        info = self.get(pid)
        return None if info is None or info.zombie else f"{info.start:.2f}"

    def variable(self, pid: int, name: str) -> str | None:
        """See ProcessTable."""
        import psutil

        try:
            return psutil.Process(pid).environ().get(name)
        except (psutil.Error, OSError):
            return None

    def locks_limit(self, pid: int) -> int | None:
        """See ProcessTable. Where there is no /proc there is no such limit."""
        return None

    def name_of(self, pid: int) -> str:
        """See ProcessTable."""
        import psutil

        try:
            return str(psutil.Process(pid).name())
        except psutil.Error:
            return ""

    def wait_status(self, pid: int) -> int | None:
        """See ProcessTable. Nothing tells it here."""
        return None


@functools.cache
def process_table() -> ProcessTable:
    """Return the table of this machine."""
    return LinuxTable() if sys.platform == "linux" else PsutilTable()


class Descent:
    """Which processes descend from which, by one look at all of them."""

    def __init__(self, table: Iterable[ProcessInfo]) -> None:
        self._children: dict[int, list[ProcessInfo]] = {}
        for info in table:
            self._children.setdefault(info.ppid, []).append(info)

    def of(self, root: int) -> tuple[ProcessInfo, ...]:
        """Return the processes that descend from `root`, nearest first."""
        found: list[ProcessInfo] = []
        level = [root]
        while level:
            below = [child for pid in level for child in self._children.get(pid, [])]
            found += below
            level = [child.pid for child in below]
        return tuple(found)


def ancestors(table: ProcessTable, pid: int) -> frozenset[int]:
    """Return the pid itself and everything that it descends from."""
    found: set[int] = set()
    while pid > 0 and pid not in found:
        found.add(pid)
        info = table.get(pid)
        pid = info.ppid if info else 0
    return frozenset(found)


def _stat(pid: int) -> list[str] | None:
    """Return the fields of /proc/PID/stat from the state on; None if the process is gone, or not ours to see."""
    stat = _read(pid, "stat")
    if not stat:
        return None
    return stat[stat.rindex(b")") + 2 :].decode().split()  # the name before may hold anything


def _read(pid: int, name: str) -> bytes | None:
    """Return what a file of the process says; None if the process is gone, or not ours to see.

    Raises ProcessesUnknown where no descriptor or no memory is left: that is no process that has gone.

    Whoever ends a session looks at three of each process of the machine: a Path would double what that costs.
    """
    try:
        with open(f"/proc/{pid}/{name}", "rb", buffering=0) as file:
            return file.read()
    except OSError as error:
        if error.errno in _STARVED:
            raise ProcessesUnknown(str(error)) from error
        return None


@functools.cache
def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _session_of(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return 0


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
        """Return whether the process has ended, a zombie included."""
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
    """Return whether there is such a process and signals of ours reach it; none is sent."""
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


_LOOK_SECONDS = 0.25


@dataclass(frozen=True)
class _Watch:
    pid: int
    start: str | None  #: None: it was gone when the watch began
    descriptor: int | None
    ended: Callable[[], None]


class Watcher:
    """Calls back once for each process that ends. The thread begins with the first watch."""

    def __init__(self, table: ProcessTable) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._watched: dict[int, _Watch] = {}
        self._keys = itertools.count()
        self._thread: threading.Thread | None = None
        self._wake: tuple[int, int] | None = None  # read end, write end
        self._closing = False

    def watch(self, pid: int, ended: Callable[[], None]) -> Callable[[], None]:
        """Call `ended`, which must not raise, from the watcher's thread once the process ends; at once if it has.

        Raises OSError where no thread can be woken for it, ProcessesUnknown.
        """
        with self._lock:
            self._begin()
        start = self._table.start_of(pid)
        try:
            descriptor = open_pidfd(pid)
        except ProcessLookupError:
            start, descriptor = None, None
        key = next(self._keys)
        with self._lock:
            self._watched[key] = _Watch(pid, start, descriptor, ended)
        self._nudge()

        def stop() -> None:
            self._take(key)

        return stop

    def held(self) -> int:
        """Return how many watches are held, with a pidfd or without one: two on one process are two."""
        with self._lock:
            return len(self._watched)

    def close(self) -> None:
        """Stop watching everything."""
        with self._lock:
            self._closing = True
            keys = list(self._watched)
            thread = self._thread
        for key in keys:
            self._take(key)
        self._nudge()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _begin(self) -> None:
        if self._thread is None:
            self._wake = os.pipe()
            for descriptor in self._wake:
                os.set_blocking(descriptor, False)
            self._thread = threading.Thread(target=self._run, name="process-watcher", daemon=True)
            self._thread.start()

    def _nudge(self) -> None:
        with self._lock:
            if self._wake is not None:
                try:
                    os.write(self._wake[1], b"x")
                except BlockingIOError:  # it is full, so the thread will wake
                    return

    def _take(self, key: int) -> _Watch | None:
        """Stop one watch and return it, unless that was done before: whoever gets it is the only one to call back."""
        with self._lock:
            watch = self._watched.pop(key, None)
        if watch is not None and watch.descriptor is not None:
            os.close(watch.descriptor)
        return watch

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._closing or self._wake is None:
                    break
                wake = self._wake[0]
                watched = dict(self._watched)
            for key in self._ended(watched, wake):
                watch = self._take(key)
                if watch is not None:
                    watch.ended()
        with self._lock:
            for descriptor in self._wake or ():
                os.close(descriptor)
            self._wake = None

    def _has_gone(self, watch: _Watch) -> bool:
        """Return whether the process is there no more; who cannot ask looks again."""
        try:
            return self._table.start_of(watch.pid) != watch.start
        except ProcessesUnknown:
            return False

    def _ended(self, watched: dict[int, _Watch], wake: int) -> list[int]:
        """Wait for something to happen and return the watches whose process has ended."""
        blind = {key: watch for key, watch in watched.items() if watch.descriptor is None or watch.start is None}
        gone = [key for key, watch in blind.items() if watch.start is None]
        poll = select.poll()
        poll.register(wake, select.POLLIN)
        keys = {watch.descriptor: key for key, watch in watched.items() if watch.descriptor is not None}
        for descriptor in keys:
            poll.register(descriptor, select.POLLIN)
        ready = [descriptor for descriptor, _ in poll.poll(0 if gone else _LOOK_SECONDS * 1000 if blind else None)]
        if wake in ready:
            os.read(wake, 4096)
        gone += [key for key, watch in blind.items() if self._has_gone(watch)]
        return list(dict.fromkeys([*gone, *(keys[descriptor] for descriptor in ready if descriptor in keys)]))
