"""The HTTP host: one worker of the service that listens, serves, and ends in time. It also keeps the token.

If the port is taken, sessions are not affected: the service goes on, and `status` shows the reason. There is also a
Unix socket in the state folder, where no other user can listen, so a client that asks there gives its token to us
alone. The token is the operator's (a variable), or one that is made once and kept.
"""

import errno
import logging
import secrets
import select
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from core.base.errors import CoreError, StoreBroken
from core.base.files import read_token, remove_file, write_private
from core.config.settings import ServiceSettings
from core.http.facts import HTTP_ROW, Facts, bracketed, is_loopback
from core.process.control import listening
from core.process.presence import user_name

_BYTES = 32


def api_token(path: Path, variable: str, environ: Mapping[str, str]) -> str:
    """Return the variable's value, else what the file holds, else a new token that is now in the file.

    Raises StoreBroken for a file that cannot be read or written, or that others may read or write.
    """
    given = environ.get(variable, "").strip()
    if given:
        return given
    kept = read_token(path)
    if kept:
        return kept
    token = secrets.token_urlsafe(_BYTES)
    write_private(path, f"{token}\n".encode())
    return token


_BACKLOG = 64
_PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})  #: says nothing of the address
_LOOK_SECONDS = 0.5  # between two looks at whether the service ends
_DRAIN_SECONDS = 2  #: what requests that are under way get when the service ends
_EXPOSED = "not on this machine alone, and without encryption: whoever reads the network reads the token"

Tell = Callable[[str, bool, str], object]


class CannotListen(CoreError):
    """The address cannot be listened on."""

    code = "cannot_listen"

    def __init__(self, settings: ServiceSettings, reason: str) -> None:
        super().__init__(
            f"HTTP cannot be served on {bracketed(settings.host)}:{settings.port}: {reason}",
            "set service.port to another port (0: a free one) or service.host to an address of this machine, "
            "then restart the service",
        )


class HttpHost:
    """Serves the application until told to stop. `tell` takes the row of `status`: name, running, detail."""

    def __init__(self, facts: Facts, tell: Tell) -> None:
        self._facts = facts
        self._tell = tell
        self._settings = facts.system.settings.service

    def run(self, stopping: threading.Event) -> None:
        """Listen and serve; where that cannot be, say so and wait for the end."""
        try:
            listener = listen(self._settings)
            with listener:
                self._serve(listener, stopping)
        except (CannotListen, StoreBroken) as error:
            self._tell(HTTP_ROW, False, str(error))
            stopping.wait()

    def _serve(self, listener: socket.socket, stopping: threading.Event) -> None:
        paths, port = self._facts.system.paths, int(listener.getsockname()[1])
        url = url_of(self._settings.host, port)
        token = api_token(paths.api_token, self._settings.token_env, self._facts.system.environ)
        remove_file(paths.local / "http.json")  # named the port of a service that may have been killed long ago
        try:
            with listening(paths.http_socket) as own:
                self._tell(HTTP_ROW, True, url if is_loopback(self._settings.host) else f"{url}: {_EXPOSED}")
                if _asked((listener, own), stopping):
                    _run_server(self._facts, [listener, own], self._settings.host, port, token, stopping)
        finally:
            remove_file(paths.http_socket)


def _asked(listeners: Sequence[socket.socket], stopping: threading.Event) -> bool:
    """Wait for the first connection, which then waits to be accepted; False if the service ends before one comes.

    The web framework takes 11 to 16 MiB and the better part of a second: where nobody asks, nobody pays for it.
    """
    poll = select.poll()
    for listener in listeners:
        poll.register(listener, select.POLLIN)
    while not stopping.is_set():
        if poll.poll(1000 * _LOOK_SECONDS):
            return True
    return False


def _run_server(
    facts: Facts, listeners: list[socket.socket], host: str, port: int, token: str, stopping: threading.Event
) -> None:
    import uvicorn

    from core.http.app import BoundedProtocol, build_app
    from core.http.guard import TokenAuthenticator

    class Server(uvicorn.Server):
        """Ends when the worker is told to; signals are the service's own and not touched outside the main thread."""

        async def on_tick(self, counter: int) -> bool:
            return stopping.is_set() or await super().on_tick(counter)

    authenticators = (TokenAuthenticator(token, f"http:{user_name()}"),)
    config = uvicorn.Config(
        build_app(facts, host=host, port=port, authenticators=authenticators, stopping=stopping),
        http=BoundedProtocol,
        backlog=_BACKLOG,  # so many are accepted before one of them is looked at
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level=logging.ERROR,  # of what strangers send it warns at each
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )
    Server(config).run(sockets=listeners)


def listen(settings: ServiceSettings) -> socket.socket:
    """Return a listening socket; of several addresses of a name the first IPv4 one.

    Raises CannotListen for an address that cannot be had, OSError where the machine has no place for one more socket.
    """
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = sorted(found, key=lambda entry: entry[0] != socket.AF_INET)[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:  # UnicodeError: a name that no resolver can be asked for
        if isinstance(error, OSError) and error.errno in _PASSING:
            raise
        raise CannotListen(settings, _reason(error)) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the port of a service that has just ended
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise CannotListen(settings, _reason(error)) from error
    return listener


def _reason(error: OSError | UnicodeError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def url_of(host: str, port: int) -> str:
    """Return the address by which this machine reaches the service."""
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{bracketed(here)}:{port}"
