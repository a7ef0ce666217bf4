"""A process that holds a control client, for tests that kill it: `python -m … SOCKET CONF`, its client's pid on stdout.

It has another child, which outlives it. Once a line comes in it asks tmux, and waits for the answer.
"""

import subprocess
import sys
from pathlib import Path

from core.tmux.control import ControlTransport
from core.tmux.server import TmuxServer

_LISTING = [("list-panes", "-a", "-F", "#{pane_id} " + "x" * 200)] * 100


def main(socket_name: str, conf: str) -> None:
    """Hold the client until this process is killed."""
    transport = ControlTransport(TmuxServer(socket_name, Path(conf)))
    transport.run([("display-message", "-p", "ready")], 10)
    other = subprocess.Popen(["sleep", "600"])
    print(transport.client_pid, other.pid, flush=True)
    sys.stdin.readline()
    transport.run(_LISTING, 600)


if __name__ == "__main__":
    main(*sys.argv[1:])
