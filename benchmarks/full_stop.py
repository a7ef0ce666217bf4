"""A full stop of three hundred sessions whose programs do not listen to SIGTERM: each needs the whole grace.

The floor is the same stop of one such session. What is left of the ratio is what each session's files and rows cost.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

from benchmarks.measuring import Ratio, report
from benchmarks.stage import declared, stage
from core.lifecycle.stop import stop_standing
from core.model.session import Outcome

BOUND = 3.0
RUNS = 2
SESSIONS = 300
_DEAF = "trap '' TERM HUP\nwhile :; do sleep 2147483647; done\n"


def ratios() -> Iterator[Ratio]:
    """Yield the ratio of the stop of all of them to that of one."""
    seconds = [(_stopped(SESSIONS), _stopped(1)) for _ in range(RUNS)]
    yield Ratio(
        f"a full stop of {SESSIONS} sessions that need the whole grace",
        "of one",
        "s",
        tuple(many for many, _ in seconds),
        tuple(one for _, one in seconds),
        BOUND,
    )


def _stopped(count: int) -> float:
    """Return how many seconds the stop of so many sessions takes. Raises RuntimeError if it does not end them all."""
    with stage() as here:
        here.configure(declared(count))
        here.record_all(_DEAF)
        system = here.system()
        try:
            begun = time.monotonic()
            answer = stop_standing(system, None, "cli:bench")
            taken = time.monotonic() - begun
        finally:
            system.close()
    if {row.outcome for row in answer.sessions} != {Outcome.STOPPED}:
        raise RuntimeError(f"not all were stopped: {[row.detail for row in answer.sessions if row.detail]}")
    return taken


if __name__ == "__main__":
    sys.exit(report(list(ratios())))
