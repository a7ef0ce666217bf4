"""The HTTP host: one worker of the service that listens, serves, and ends in time. It also keeps the token.

It listens at a Unix socket in the state folder, where no other user can listen, so a client that asks there gives its
token to us alone; and at a TCP port, if the operator configures one. If the port is taken, the service goes on with its
socket, and `status` shows the reason. The token is the operator's (a variable), or one that is made once and kept.
"""

from __future__ import annotations

import errno
import logging
import secrets
import select
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from core.base.errors import CoreError, StoreBroken
from core.base.files import read_token, remove_file, write_private
from core.http.facts import HTTP_ROW, Facts, bracketed, is_loopback
from core.process.control import listening
from core.process.presence import user_name

if TYPE_CHECKING:
    from core.http.guard import Authenticator

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
_KEEP_SECONDS = 20  #: that a connection may rest between two requests
_DRAIN_SECONDS = 2  #: what requests that are under way get when the service ends
_EXPOSED = "not on this machine alone, and without encryption: whoever reads the network reads the token"

Tell = Callable[[str, bool, str], object]


class CannotListen(CoreError):
    """The address cannot be listened on."""

    code = "cannot_listen"

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(
            f"HTTP cannot be served on {bracketed(host)}:{port}: {reason}",
            "set service.port to another port (0: a free one) or service.host to an address of this machine, "
            "then restart the service",
        )


class HttpHost:
    """Serves the application until told to stop.

    `tell` takes the row of `status`: name, running, detail. `others` gives the ways besides the token by which requests
    show who asks; it is called once somebody asks, since they may need the web framework.
    """

    def __init__(self, facts: Facts, tell: Tell, others: Callable[[], Sequence[Authenticator]] = lambda: ()) -> None:
        self._facts = facts
        self._tell = tell
        self._others = others
        self._settings = facts.system.settings.service
        self.port: int | None = None  #: where it listens; None: at its Unix socket alone

    def run(self, stopping: threading.Event) -> None:
        """Listen and serve; where that cannot be, say so and wait for the end."""
        try:
            self._serve(stopping)
        except StoreBroken as error:
            self._tell(HTTP_ROW, False, str(error))
            stopping.wait()

    def _serve(self, stopping: threading.Event) -> None:
        paths = self._facts.system.paths
        token = api_token(paths.api_token, self._settings.token_env, self._facts.system.environ)
        remove_file(paths.local / "http.json")  # named the port of a service that may have been killed long ago
        try:
            with ExitStack() as held:
                listeners = [held.enter_context(listening(paths.http_socket))]
                listener, told = self._port()
                if listener is not None:
                    listeners.append(held.enter_context(listener))
                self.port = int(listener.getsockname()[1]) if listener is not None else None
                self._tell(HTTP_ROW, *told)
                if _asked(listeners, stopping):
                    _run_server(self._facts, listeners, self._settings.host, self.port, token, self._others(), stopping)
        finally:
            remove_file(paths.http_socket)

    def _port(self) -> tuple[socket.socket | None, tuple[bool, str]]:
        """Return what listens at the configured port, None without one, and the row's `running` and detail.

        Raises OSError where the machine has no place for one more socket.
        """
        settings, hooks = self._settings, self._facts.hooks
        if settings.port is None:
            if hooks:
                lacks = f"{', '.join(hooks)} sends its requests to service.port, which is not set; set it, and restart"
                return None, (False, f"{lacks} the service")
            return None, (True, str(self._facts.system.paths.http_socket))
        try:
            listener = listen(settings.host, settings.port)
        except CannotListen as error:
            return None, (False, str(error))
        url = url_of(settings.host, int(listener.getsockname()[1]))
        return listener, (True, url if is_loopback(settings.host) else f"{url}: {_EXPOSED}")


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
    facts: Facts,
    listeners: list[socket.socket],
    host: str,
    port: int | None,
    token: str,
    others: Sequence[Authenticator],
    stopping: threading.Event,
) -> None:
    import uvicorn

    from core.http.app import BoundedProtocol, build_app
    from core.http.guard import TokenAuthenticator

    class Server(uvicorn.Server):
        """Ends when the worker is told to; signals are the service's own and not touched outside the main thread."""

        async def on_tick(self, counter: int) -> bool:
            return stopping.is_set() or await super().on_tick(counter)

    authenticators = (TokenAuthenticator(token, f"http:{user_name()}"), *others)
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
        timeout_keep_alive=_KEEP_SECONDS,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )
    Server(config).run(sockets=listeners)


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; of several addresses of a name the first IPv4 one.

    Raises CannotListen for an address that cannot be had, OSError where the machine has no place for one more socket.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = sorted(found, key=lambda entry: entry[0] != socket.AF_INET)[0]
        listener = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:  # UnicodeError: a name that no resolver can be asked for
        if isinstance(error, OSError) and error.errno in _PASSING:
            raise
        raise CannotListen(host, port, _reason(error)) from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the port of a service that has just ended
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise CannotListen(host, port, _reason(error)) from error
    return listener


def _reason(error: OSError | UnicodeError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def url_of(host: str, port: int) -> str:
    """Return the address by which this machine reaches the service."""
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://{bracketed(here)}:{port}"
