"""What the kernel says that a process holds open."""

import os
from pathlib import Path


def pidfds(holder: int | None = None) -> list[int]:
    """Return the pid behind each pidfd that the process holds, we ourselves by default; -1 where that one is gone.

    Linux: of all descriptors, pidfds alone have a line `Pid:` in /proc/PID/fdinfo (pidfd_open(2), proc(5)).
    """
    folder = Path(f"/proc/{holder or os.getpid()}/fdinfo")
    found = []
    for number in os.listdir(folder):
        try:
            lines = (folder / number).read_text().splitlines()
        except FileNotFoundError:  # it was closed meanwhile
            continue
        found += [int(line.removeprefix("Pid:")) for line in lines if line.startswith("Pid:")]
    return found
