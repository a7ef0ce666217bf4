"""What a process does about its own memory, and how it keeps other processes from reading it.

glibc gives each thread a heap of its own. The service has more than a dozen threads and nearly all of them wait; Python
usually calls the C library under its own lock, so one heap for all delays none. Other C libraries are left as they are.

Every process of the same user may read another's `/proc/PID/environ` and memory. So agents could read those of the
service, with its tokens. The kernel refuses this for a process that is not dumpable (prctl(2), PR_SET_DUMPABLE) and
writes no core file of it; only a process with CAP_SYS_PTRACE, usually root's, may still read them. Programs that it
starts are dumpable as usual.
"""

from __future__ import annotations

import logging
import os
import resource
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ctypes


_ARENA_MAX = -8  # <malloc.h>


def share_one_heap() -> None:
    """Let all threads that are started from now on use one heap."""
    library = _glibc()
    if library is not None:
        library.mallopt(_ARENA_MAX, 1)


def give_back() -> None:
    """Give the system the memory that is free now: what a start needs once, nothing needs for days."""
    library = _glibc()
    if library is not None:
        library.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    """Return this process's C library, None where it is another one."""
    if sys.platform != "linux" or "CS_GNU_LIBC_VERSION" not in os.confstr_names:
        return None
    try:
        if not os.confstr("CS_GNU_LIBC_VERSION"):
            return None
    except (OSError, ValueError):  # a C library that does not know the name
        return None
    import ctypes

    return ctypes.CDLL(None)


_LOG = logging.getLogger(__name__)
_SET_DUMPABLE = 4  # <linux/prctl.h>
OPEN = "THE_LOOP_DEBUGGABLE"  #: a variable; set, it leaves the service open to debuggers, and so to agents


def close_process() -> None:
    """Keep this process to itself from now on; where the system cannot do that, at least write no core."""
    if os.environ.get(OPEN):
        return
    if not (sys.platform == "linux" and _made_undumpable()):
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def _made_undumpable() -> bool:
    import ctypes

    try:
        done = bool(ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0) == 0)
    except (OSError, AttributeError):  # a C library without it
        done = False
    if not done:
        _LOG.warning("other processes of this user can read the service's tokens", extra={"reason": "prctl failed"})
    return done
