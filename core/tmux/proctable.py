"""Looking at processes: /proc on Linux, psutil elsewhere. Nothing here signals anybody."""

import errno
import functools
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from core.errors import ProcessesUnknown
from core.values import dataclass

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
