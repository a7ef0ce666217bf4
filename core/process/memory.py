"""How much memory the C library keeps for itself. glibc's alone is told; another one is left as it is.

glibc gives each thread a heap of its own, and the service has more than a dozen, nearly all of which wait. Python asks
the C library under its own lock as a rule, so one heap for all of them keeps nobody waiting.
"""

from __future__ import annotations

import os
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
