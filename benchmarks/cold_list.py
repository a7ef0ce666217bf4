"""Cold `the-loop standing list`: what a script or a status line pays for asking how the sessions are."""

import sys
from collections.abc import Iterator

from benchmarks.measuring import Ratio, compare, process_time, report
from benchmarks.stage import declared, script, stage

BOUND = 6.0
RUNS = 21
SESSIONS = (0, 5, 50)


def ratios() -> Iterator[Ratio]:
    """Yield the ratio to a bare interpreter with no session, with 5 and with 50, all declared, recorded and alive."""
    for count in SESSIONS:
        with stage() as here:
            here.configure(declared(count))
            here.record_all()
            yield compare(
                (
                    f"`the-loop standing list` of {count} sessions",
                    process_time([script("the-loop"), "standing", "list"], here.environ),
                ),
                ("`python -c pass`", process_time([sys.executable, "-c", "pass"], here.environ)),
                bound=BOUND,
                runs=RUNS,
            )


if __name__ == "__main__":
    sys.exit(report(list(ratios())))
