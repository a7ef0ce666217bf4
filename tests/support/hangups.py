"""A stand-in for the service that answers everybody with one line, and hangs up."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any


@contextmanager
def hanging_up(path: Path, *lines: dict[str, Any]) -> Iterator[list[int]]:
    """Say one of these lines to each who calls, the last one to all who come later; the calls are counted."""
    heard: list[int] = []
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()

    def serve() -> None:
        for line in chain(lines, repeat(lines[-1])):
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as stream:
                if stream.readline() == b"end\n":
                    return
                heard.append(1)
                connection.sendall(json.dumps(line).encode() + b"\n")

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield heard
    finally:
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(str(path))
            last.sendall(b"end\n")
            thread.join(10)
        server.close()
