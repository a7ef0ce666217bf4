"""What a process keeps to itself: its environment, its memory, and what would be left of it in a core file.

Every process of the same user may read another's `/proc/PID/environ` and memory, agents those of the service, and with
them its tokens. The kernel refuses that for a process that is not dumpable (prctl(2), PR_SET_DUMPABLE), and writes no
core of it; only who holds CAP_SYS_PTRACE, root as a rule, may look all the same. Programs that it starts are as others.
"""

import logging
import os
import resource
import sys

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
