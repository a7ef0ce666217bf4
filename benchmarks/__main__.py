"""`python -m benchmarks`: run all, print the ratios, exit 1 when a bound is missed."""

import sys

from benchmarks import cold_list, list_in_process
from benchmarks.measuring import report


def main() -> int:
    """Run every benchmark and return the exit code."""
    codes = [report([ratio]) for module in (cold_list, list_in_process) for ratio in module.ratios()]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
