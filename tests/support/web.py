"""The HTTP host over a system of the tests, in a thread, and a client that asks at its Unix socket."""

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.base.files import private_folder
from core.delivery.permission_requests import Requests
from core.http import host
from core.http.facts import Facts
from core.http.guard import Authenticator
from core.model.rows import ServiceRow
from core.session.system import System
from core.tools.toolbox import Toolbox
from tests.support.tmux import PATIENCE, wait_until


class AtSocket(http.client.HTTPConnection):
    """A connection to a Unix socket."""

    def __init__(self, path: Path, seconds: float = PATIENCE) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        """Connect to the socket."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


@dataclass(frozen=True)
class Answered:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body as a JSON value."""
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """Return the code of an error, "" of an answer."""
        return str(self.json.get("error", {}).get("code", ""))


class Client:
    """Asks the API. Each request is a connection of its own."""

    def __init__(self, path: Path, token: str) -> None:
        self.path = path
        self._headers = {"Authorization": f"Bearer {token}"}

    def get(self, path: str, **headers: str) -> Answered:
        """Ask below /api/v1."""
        return self.send("GET", f"/api/v1{path}", None, headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Answered:
        """Send JSON below /api/v1; `headers` have `_` in the place of `-`."""
        given = {"Content-Type": "application/json", **{key.replace("_", "-"): text for key, text in headers.items()}}
        sent = body if isinstance(body, bytes) else json.dumps({} if body is None else body).encode()
        return self.send("POST", f"/api/v1{path}", sent, given)

    def send(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> Answered:
        """Send a request as it is."""
        connection = AtSocket(self.path)
        try:
            connection.request(method, path, body, headers={**self._headers, **headers})
            response = connection.getresponse()
            told = {name.lower(): value for name, value in response.getheaders()}
            return Answered(response.status, told, response.read())
        finally:
            connection.close()

    @contextmanager
    def stream(self, query: str = "", **headers: str) -> "Iterator[Stream]":
        """Give the stream of events while the block runs."""
        connection = AtSocket(self.path)
        try:
            given = {key.replace("_", "-"): text for key, text in headers.items()}
            wanted = {**self._headers, "Accept": "text/event-stream", **given}
            connection.request("GET", f"/api/v1/events{query}", headers=wanted)
            yield Stream(connection.getresponse())
        finally:
            connection.close()


@dataclass(frozen=True)
class Told:
    """One event of a stream."""

    id: str
    kind: str  #: "" for an event of the log
    data: Any


class Stream:
    """Server-sent events as a browser reads them."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.response = response

    @property
    def status(self) -> int:
        """Return the status code."""
        return self.response.status

    def lines(self) -> list[str]:
        """Return the lines up to the next empty one. Raises EOFError at the stream's end."""
        found = list[str]()
        while True:
            line = self.response.readline()
            if not line:
                raise EOFError
            if line == b"\n":
                return found
            found.append(line.decode().rstrip("\n"))

    def next(self) -> Told:
        """Return the next event, comments passed over. Raises EOFError at the stream's end."""
        while True:
            fields = dict(line.split(": ", 1) for line in self.lines() if not line.startswith(":"))
            if "data" in fields:
                return Told(fields.get("id", ""), fields.get("event", ""), json.loads(fields["data"]))

    def until(self, event: str) -> Told:
        """Return the next event of the log with that name."""
        while True:
            told = self.next()
            if told.data.get("event") == event:
                return told


class Web:
    """A host that serves: its client, and what hooks ask."""

    def __init__(self, system: System, requests: Requests, client: Client, url: str, token: str) -> None:
        """`url`: where it listens on TCP, if it does; else the path of its socket."""
        self.system = system
        self.requests = requests
        self.client = client
        self.url = url
        self.token = token


def facts_of(system: System, requests: Requests) -> Facts:
    """Return what a host knows of a service that has no channel."""
    return Facts(
        system,
        rows=lambda: (),
        tmux=lambda: "ok",
        watches=lambda: 0,
        events=system.events.counts,
        dropped=dict,
        toolbox=lambda: Toolbox(system.settings, system.environ, ()),
        requests=requests,
        status=lambda: {"services": [], "harnesses": [], "standingSessions": [], "ok": True},
    )


@contextmanager
def serving(
    system: System,
    requests: Requests | None = None,
    others: Callable[[], Sequence[Authenticator]] = lambda: (),
) -> Iterator[Web]:
    """Serve a system at its Unix socket while the block runs."""
    private_folder(system.paths.local)
    requests = requests or Requests(system)
    stopping, rows = threading.Event(), list[ServiceRow]()

    def tell(name: str, up: bool, detail: str) -> None:
        rows.append(ServiceRow(name, up, None, detail))

    runner = host.HttpHost(facts_of(system, requests), tell, others)
    thread = threading.Thread(target=runner.run, args=(stopping,))
    thread.start()
    try:
        wait_until(lambda: rows, "it listens")
        assert rows[0].running, rows
        token = system.paths.api_token.read_text().strip()
        yield Web(system, requests, Client(system.paths.http_socket, token), rows[0].detail, token)
    finally:
        stopping.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()
