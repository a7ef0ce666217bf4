"""Whether a process that left its pid somewhere is still there."""

import os


def running_since(pid: int) -> str | None:
    """Return when the process began, as /proc/PID/stat counts it (field 22, see proc_pid_stat(5)); None without one.

    "" where there is no /proc, or it cannot be read now (no free descriptor). A pid is given to another process
    once its own has ended: both together name one.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            fields = file.readall().rpartition(b")")[2].split()  # from the third on: a program's name may hold blanks
    except (FileNotFoundError, ProcessLookupError):
        return None if os.path.exists("/proc/self/stat") or not answers(pid) else ""
    except OSError:
        return "" if answers(pid) else None
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def is_running(pid: int, began: str = "") -> bool:
    """Return whether the process lives, and is the one that began then, see `running_since`; "": nobody noted when."""
    since = running_since(pid)
    return since is not None and (since == began or "" in (since, began))


def answers(pid: int) -> bool:
    """Return whether there is a process with that pid, whoever's it is. No signal is sent."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
