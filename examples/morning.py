"""Say the same to every session that runs, and print what became of each message.

python examples/morning.py "What is left to do?"                      in this process
python examples/morning.py "What is left to do?" STATE/local/http.sock   a service, at its socket
"""

import sys
from pathlib import Path

import the_loop


def main(text: str, socket: str = "") -> int:
    """Return 0 if every message is known to have been taken."""
    taken = True
    with the_loop.connect(socket=Path(socket) if socket else None) as loop:
        for session in loop.standing.list():
            if not session.running:
                continue
            try:
                said = loop.standing.say(session.name, text, wait=20)
            except the_loop.CoreError as error:
                print(f"{session.name}: {error.message}; {error.remedy}")
                taken = False
                continue
            print(f"{session.name}: {said.state}")
            taken = taken and said.delivered
    return 0 if taken else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
