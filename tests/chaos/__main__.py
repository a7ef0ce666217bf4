"""`python -m tests.chaos [--people 5] [--sessions 4] [--replies 2000] [--seed N]`: exit 1 unless all is well."""

import argparse
import secrets
import sys
import time
from collections.abc import Sequence

from tests.chaos.running import Plan, report, run


def main(words: Sequence[str]) -> int:
    """Run once, print what came of it and how to repeat it, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("--people", type=int, default=5)
    parser.add_argument("--sessions", type=int, default=4)
    parser.add_argument("--replies", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two replies of one person, at most")
    chosen = parser.parse_args(words)
    plan = Plan(chosen.people, chosen.sessions, chosen.replies, chosen.seed, chosen.pause)
    print(f"seed {plan.seed}: {plan.replies} replies of {plan.people} people to {plan.sessions} sessions", flush=True)
    began = time.monotonic()
    verdict, made = run(plan)
    return report(verdict, made, plan.seed, time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
