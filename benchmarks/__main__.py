"""`python -m benchmarks`: run all, print the ratios, exit 1 when a bound is missed."""

import sys

from benchmarks import (
    cold_list,
    cold_say,
    death_to_event,
    drain,
    event_to_pane,
    fair_posts,
    fleet_exchange,
    fleet_hosts,
    fleet_posts,
    full_stop,
    http_calls,
    idle_hundred,
    list_in_process,
    loops,
    page_keys,
    say_to_pane,
    service_at_rest,
    streamed_answer,
    sweep_threads,
)
from benchmarks.measuring import report


def main() -> int:
    """Run every benchmark and return the exit code."""
    modules = (
        cold_list,
        cold_say,
        list_in_process,
        say_to_pane,
        http_calls,
        event_to_pane,
        drain,
        full_stop,
        service_at_rest,
        death_to_event,
        idle_hundred,
        loops,
        page_keys,
        streamed_answer,
        sweep_threads,
        fair_posts,
        fleet_exchange,
        fleet_hosts,
        fleet_posts,
    )
    return max(report([ratio]) for module in modules for ratio in module.ratios())


if __name__ == "__main__":
    sys.exit(main())
