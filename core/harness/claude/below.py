"""Which processes run below one: Claude Code may be started by a script."""

from __future__ import annotations

import os
import sys


def descendants(pid: int) -> list[int]:
    """Return the processes below one; none where it has gone."""
    return _by_proc(pid) if sys.platform == "linux" else _by_psutil(pid)


def _by_proc(root: int) -> list[int]:
    """Read /proc, nearest first; psutil would be a megabyte of memory in a service for this alone."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (parent := _parent_of(entry)) is not None:
            children.setdefault(parent, []).append(int(entry))
    found, level = [], [root]
    while level:
        level = [child for pid in level for child in children.pop(pid, [])]
        found += level
    return found


def _parent_of(pid: str) -> int | None:
    """Return the parent's pid, None of a process that has ended. Raises OSError where no descriptor is left."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            stat = file.read()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    return int(stat[stat.rindex(b")") + 2 :].split()[1])  # the name before may hold anything


def _by_psutil(pid: int) -> list[int]:
    import psutil  # here, since what only lists sessions must not pay for it

    try:
        return [process.pid for process in psutil.Process(pid).children(recursive=True)]
    except psutil.Error:
        return []
