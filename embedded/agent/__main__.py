"""Run the agent; `python -I -S <this folder>` finds its own package and nothing else."""

import os
import sys
from pathlib import Path


def run() -> int:
    """Put the folder that holds `core` on the path in place of this one, and run."""
    os.umask(0o077)  # a conversation is nobody else's
    sys.path[0] = str(Path(__file__).resolve().parents[2])
    from embedded.agent.conversation import BadOption, Unwritten, parse
    from embedded.agent.session import run_agent

    try:
        return run_agent(parse(sys.argv[1:]))
    except (BadOption, Unwritten) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(run())
