"""The two ways from the SDK to a the-loop: in this process, and over HTTP. Both take the API's addresses and keys."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlencode

from core.base import errors
from core.base.errors import CoreError, InvalidValue

if TYPE_CHECKING:
    import http.client

    from core.http.rest import Operation
    from core.session.system import System

API = "/api/v1"
SECONDS = 60.0  #: for an answer, beyond what a call itself waits
_PAGE = 200  #: events that are asked for at once
_LOOK_SECONDS = 0.3
_TRIES = 3
_BACK_SECONDS = 0.5

Json = Mapping[str, Any]


class Transport(Protocol):
    """One way. Its methods may be called from any thread."""

    def call(self, method: str, path: str, given: Json, waits: float = 0.0) -> Any:
        """Return what the address answers. `given` may hold None for what is not given; `waits`: seconds.

        Raises CoreError.
        """
        ...

    def follow(self, after: str | None, name: str | None) -> Iterator[Json]:
        """Yield the events behind that position, None: from now on; ends only by an error. Raises CoreError."""
        ...

    def close(self) -> None:
        """Let go of what is held."""
        ...


class ServiceUnreachable(CoreError):
    """Nobody answers where the service should."""

    code = "service_unreachable"

    def __init__(self, place: str, reason: object) -> None:
        super().__init__(
            f"the service cannot be reached at {place}: {reason}",
            "see `the-loop status`; `the-loop start` starts it, and service.port is where it listens on TCP",
        )


class OutcomeUnknown(CoreError):
    """The connection broke, and it is not known whether the call was carried out."""

    code = "outcome_unknown"


class Local:
    """This process works on the state by itself, as the command line does."""

    def __init__(self, system: System, actor: str) -> None:
        self._system = system
        self._actor = actor
        self._operations: Mapping[tuple[str, str], Operation] | None = None

    def call(self, method: str, path: str, given: Json, waits: float = 0.0) -> Any:
        """Run the operation; what waits for a person's answer is asked of the service."""
        from core.commandtable import CHATS
        from core.http.arguments import from_body
        from core.http.principal import Principal
        from core.http.rest import Asked, operations_of

        if path.startswith("/requests"):
            return self._service().call(method, path, given, waits)
        if self._operations is None:
            self._operations = {(one.method, one.path): one for one in operations_of()}
        operation = self._operations[method, path]
        asked = Asked(self._system, Principal(self._actor), self._status)
        return operation.run(asked, from_body(operation.takes, given, CHATS if operation.chats else ()))

    def follow(self, after: str | None, name: str | None) -> Iterator[Json]:
        """Look at the log every now and then."""
        log, clock = self._system.events, self._system.clock
        position = log.latest(0).end if after is None else after
        while True:
            page = log.after(position, _PAGE)
            if page.lost:
                yield {"event": "lost", "id": "", "ts": clock.now().isoformat()}
            for place, event in page.events:
                if name is None or event.get("name") == name:
                    yield {"id": place, **event}
            if not page.events:
                clock.pause(_LOOK_SECONDS)
            position = page.end

    def close(self) -> None:
        """End the database's connections; panes stay."""
        self._system.close()

    def _status(self) -> Json:
        from core.service.hosting import status

        return status(self._system)

    def _service(self) -> Remote:
        from core.http.host import api_token
        from core.process.presence import running_service

        paths, settings = self._system.paths, self._system.settings
        if running_service(paths.service_lock) is None:
            raise ServiceUnreachable(str(paths.http_socket), "no service is running")
        token = api_token(paths.api_token, settings.service.token_env, self._system.environ)
        return Remote(token, socket=paths.http_socket)


class Remote:
    """A service, asked over HTTP: at its Unix socket or at a URL. Each call has a connection of its own.

    A call that acts carries an Idempotency-Key, so it is sent again where a connection breaks, and done once.
    """

    def __init__(self, token: str, *, url: str = "", socket: Path | None = None) -> None:
        from urllib.parse import urlsplit

        self._token = token
        self._socket = socket
        parts = urlsplit(url)
        if socket is None and (parts.scheme != "http" or not parts.hostname or parts.path.strip("/")):
            raise InvalidValue(f"{url!r} is not the address of a service", "give such as http://127.0.0.1:4114")
        self._host, self._port = parts.hostname or "localhost", parts.port or 80
        self._place = str(socket) if socket is not None else url

    def call(self, method: str, path: str, given: Json, waits: float = 0.0) -> Any:
        """Ask, and return the answer."""
        sent = {key: value for key, value in given.items() if value is not None}
        headers = {"Authorization": f"Bearer {self._token}"}
        if method == "GET":
            words = {key: str(value).lower() if isinstance(value, bool) else value for key, value in sent.items()}
            query = f"?{urlencode(words)}" if words else ""
            return self._asked(method, f"{API}{path}{query}", None, headers, waits)
        from uuid import uuid4

        headers |= {"Content-Type": "application/json", "Idempotency-Key": uuid4().hex}
        return self._asked(method, f"{API}{path}", json.dumps(sent).encode(), headers, waits)

    def _asked(self, method: str, path: str, body: bytes | None, headers: dict[str, str], waits: float) -> Any:
        import http.client

        from core.base.clock import SystemClock

        clock, broke = SystemClock(), OSError()
        for attempt in range(_TRIES):
            if attempt:
                clock.pause(_BACK_SECONDS * attempt)
            connection = self._connection(SECONDS + waits)
            try:
                connection.request(method, path, body, headers)
                response = connection.getresponse()
                return _answer(response.status, response.read())
            except (ConnectionRefusedError, FileNotFoundError) as error:
                raise ServiceUnreachable(self._place, error.strerror or error) from error
            except (OSError, http.client.HTTPException) as error:
                broke = error if isinstance(error, OSError) else OSError(str(error))
            except _UnderWay:
                broke = OSError("it is still being done")
            finally:
                connection.close()
        raise OutcomeUnknown(f"the connection to {self._place} broke: {broke}", "look whether it was done") from broke

    def follow(self, after: str | None, name: str | None) -> Iterator[Json]:
        """Read the stream of events; where it breaks, or the service restarts, go on from the last one that was read.

        Raises ServiceUnreachable where nobody answered from the beginning on.
        """
        import http.client

        from core.base.clock import SystemClock

        position, clock, was_there = after, SystemClock(), False
        while True:
            headers = {"Authorization": f"Bearer {self._token}", "Accept": "text/event-stream"}
            if position:
                headers["Last-Event-ID"] = position
            query = f"?{urlencode({'name': name})}" if name else ""
            connection = self._connection(SECONDS)
            try:
                connection.request("GET", f"{API}/events{query}", headers=headers)
                response = connection.getresponse()
                if response.status != 200:
                    _answer(response.status, response.read())
                was_there = True
                for ident, event in _events(response):
                    position = ident or position
                    if event is not None:
                        yield event
            except (ConnectionRefusedError, FileNotFoundError) as error:
                if not was_there:
                    raise ServiceUnreachable(self._place, error.strerror or error) from error
            except (OSError, http.client.HTTPException):
                pass  # a break, after which it goes on
            finally:
                connection.close()
            clock.pause(_BACK_SECONDS)

    def close(self) -> None:
        """Hold nothing: each call has closed its connection."""

    def _connection(self, seconds: float) -> http.client.HTTPConnection:
        import http.client

        if self._socket is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=seconds)
        return _at_socket(self._socket, seconds)


class _UnderWay(Exception):
    """The same call is still being done."""


def _at_socket(path: Path, seconds: float) -> http.client.HTTPConnection:
    import http.client
    import socket

    class AtSocket(http.client.HTTPConnection):
        """A connection to a Unix socket."""

        def connect(self) -> None:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(seconds)
            self.sock.connect(str(path))

    return AtSocket("localhost", timeout=seconds)


def _answer(status: int, body: bytes) -> Any:
    """Return the JSON of an answer. Raises the error that it tells, and _UnderWay."""
    try:
        told = json.loads(body)
    except ValueError as error:
        raise CoreError(f"the answer is not JSON (status {status})", "is that the service?") from error
    if 200 <= status < 300:
        return told
    problem = told["error"] if isinstance(told, dict) and isinstance(told.get("error"), dict) else {}
    code = str(problem.get("code", ""))
    if code == "under_way":
        raise _UnderWay
    raise error_of(status, code, str(problem.get("message", f"status {status}")), str(problem.get("remedy", "")))


_BY_STATUS = {400: errors.InvalidValue, 403: errors.NotPermitted, 409: errors.Refused}


def error_of(status: int, code: str, message: str, remedy: str) -> CoreError:
    """Return the error that the product raises under that code; of a code that it does not have, by the status."""
    kinds: list[type[CoreError]] = [OutcomeUnknown, *(kind for kind in vars(errors).values() if _is_error(kind))]
    kind: type[CoreError] = {one.code: one for one in kinds}.get(code) or _BY_STATUS.get(status, CoreError)
    told = kind.__new__(kind)
    CoreError.__init__(told, message, remedy)
    told.__dict__["code"] = code
    return told


def _is_error(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, CoreError)


def _events(response: http.client.HTTPResponse) -> Iterator[tuple[str, Json | None]]:
    """Yield the id of each event of a stream and what it tells; None: only that the stream is there."""
    fields = dict[str, str]()
    for raw in response:
        line = raw.decode().rstrip("\n")
        if line:
            key, _, value = line.partition(": ")
            fields[key] = value
            continue
        if fields.get("event") == "lost":
            yield "", {"event": "lost", "id": "", "ts": "1970-01-01T00:00:00Z"}
        elif "data" in fields:
            yield fields["id"], {"id": fields["id"], **json.loads(fields["data"])}
        else:
            yield fields.get("id", ""), None
        fields = {}
