"""A server of somebody else, which notes what it is asked for and by which token."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Elsewhere(ThreadingHTTPServer):
    """Answers everything."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[str] = []  #: the Authorization header of each request

    @property
    def url(self) -> str:
        """The address of something on it."""
        return f"http://127.0.0.1:{self.server_port}/x"


class _Handler(BaseHTTPRequestHandler):
    server: Elsewhere

    def do_GET(self) -> None:
        """Take note, and answer."""
        self.server.seen.append(self.headers.get("Authorization", ""))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"stolen")

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def somewhere_else() -> Iterator[Elsewhere]:
    """Serve while the block runs."""
    server = Elsewhere()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
