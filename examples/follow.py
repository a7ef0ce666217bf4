"""Print the events of a session as they come, and go on after a break where it was left.

    python examples/follow.py STATE/local/http.sock NAME [COUNT]

The id of the last event is kept in the file `last-event` of the current folder.
"""

import sys
from itertools import islice
from pathlib import Path

import the_loop

KEPT = Path("last-event")


def main(socket: str, name: str, count: str = "") -> None:
    """Print so many events, or all that come."""
    after = KEPT.read_text().strip() if KEPT.exists() else None
    with the_loop.connect(socket=Path(socket)) as loop:
        for event in islice(loop.events.follow(after=after, name=name), int(count) if count else None):
            print(f"{event.ts:%H:%M:%S} {event.event} {event.data.get('detail', '')}".rstrip(), flush=True)
            KEPT.write_text(event.id)


if __name__ == "__main__":
    main(*sys.argv[1:])
