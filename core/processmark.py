"""What tells a process of an instance: a variable, and on Linux a limit that nothing else uses.

A program that cleans its child's environment takes the variable away, and one that leaves the tree and the terminal's
session cannot be found by descent. Limits stay with a process and all that it starts, whatever becomes of parent,
session and environment, and everybody may read them. The one on file locks means nothing since Linux 2.4.25
(getrlimit(2)), and each process may set its own: a pane within a pane is marked anew.
"""

import sys

from core.names import INSTANCE_VARIABLE

MARKER = INSTANCE_VARIABLE

_LOCKS = 10  # RLIMIT_LOCKS, which the module resource has no name for
_LEAST = 1 << 61  # no number that anybody would set; all that follow have 19 digits


def limit_of(instance: str) -> int:
    """Return the soft limit on file locks that processes of that instance carry."""
    import hashlib

    return _LEAST + (int.from_bytes(hashlib.sha256(instance.encode()).digest()[:8], "big") >> 3)


def shed_limit() -> None:
    """Give the limit up in this process, before it starts what belongs to no instance, whoever started it."""
    if sys.platform != "linux":
        return
    import resource

    soft, hard = resource.getrlimit(_LOCKS)
    if soft != hard:
        resource.setrlimit(_LOCKS, (hard, hard))
