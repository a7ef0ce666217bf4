"""A list of 50 sessions inside the service, which asks tmux over its control client."""

import sys
from collections.abc import Iterator

from benchmarks.measuring import Ratio, call_time, compare, process_time, report
from benchmarks.stage import declared, stage
from core.lifecycle.look import list_standing

BOUND = 2.0
RUNS = 51
SESSIONS = 50


def ratios() -> Iterator[Ratio]:
    """Yield the ratio of `list_standing` to one `tmux list-panes -a`, with 50 live panes."""
    with stage() as here:
        here.configure(declared(SESSIONS))
        here.record_all()
        system = here.system(persistent=True)
        try:
            yield compare(
                (f"list_standing of {SESSIONS} sessions", call_time(lambda: list_standing(system))),
                ("`tmux list-panes -a`", process_time(here.tmux("list-panes", "-a"), here.environ)),
                bound=BOUND,
                runs=RUNS,
            )
        finally:
            system.close()


if __name__ == "__main__":
    sys.exit(report(list(ratios())))
