"""Who may ask over HTTP. Every request passes here before anything of it is read.

A page in somebody's browser can send requests to loopback. By a name of its own that it points here (DNS rebinding)
it would be of our origin and could read the answers: so the Host header must name us. From another origin it cannot
read, but it can send: so an Origin header must be our own. The token keeps out other users of the machine.
"""

import hmac
from collections.abc import Iterable, Mapping
from typing import Any

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from core.surfaces.http.addresses import allowed_hosts
from core.surfaces.http.answers import refusal

OPEN_PATHS = frozenset({"/health"})  #: what may be asked without a token
UNIX_HOSTS = frozenset({"localhost"})  #: what a client of the Unix socket may call us
AGENTS_PATH = "/mcp"  #: what is asked with a session's token, which whoever answers there looks at
_TRUSTED = "trusted"


class Guard:
    """Refuses with 403 what is not addressed to us or comes from another origin, with 401 what has no token."""

    def __init__(self, app: ASGIApp, *, host: str, port: int, token: str, open_prefixes: tuple[str, ...] = ()) -> None:
        """`open_prefixes`: how paths begin that pass unlooked at, since whoever answers them asks for a signature."""
        self._app = app
        self._host = host
        self._port = port
        self._token = token.encode()
        self._open_prefixes = open_prefixes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it."""
        refused = self.refused(scope) if scope["type"] == "http" else None
        await (self._app if refused is None else refused)(scope, receive, send)

    def refused(self, scope: Scope) -> JSONResponse | None:
        """Return the answer to a request that goes no further; None for one that may pass."""
        if self._open_prefixes and scope["path"].startswith(self._open_prefixes):
            return None
        hosts = _values(scope, b"host")
        server = scope.get("server")
        if server is not None and server[1] is None:  # our Unix socket, which no page can reach
            allowed = UNIX_HOSTS
        else:
            allowed = allowed_hosts(self._host, self._port, server[0] if server else None)
        if len(hosts) != 1 or hosts[0].lower() not in allowed:
            return refusal(
                403,
                "host_not_allowed",
                "the Host header does not name this service",
                f"ask {', '.join(sorted(allowed))}, or set service.host to the name that you use",
            )
        origins = _values(scope, b"origin")
        if origins and [origin.lower() for origin in origins] != [f"http://{hosts[0].lower()}"]:
            return refusal(
                403,
                "origin_not_allowed",
                "the request comes from a page of another origin",
                f"send it from http://{hosts[0]}, or by a program that sends no Origin header",
            )
        if scope["path"] in OPEN_PATHS or scope["path"] == AGENTS_PATH:
            return None
        if not self._has_token(scope):
            return _no_token()
        trust(scope)
        return None

    def _has_token(self, scope: Scope) -> bool:
        return hmac.compare_digest((bearer_of(scope) or "").encode("latin-1"), self._token)


def bearer_of(scope: Scope) -> str | None:
    """Return the token that the request carries, None where it carries none, or several."""
    given = _values(scope, b"authorization")
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip() if scheme.lower() == "bearer" else None


def trust(scope: Scope) -> None:
    """Note that the request carries a token that is good, for whoever bounds those that carry none."""
    scope.setdefault("state", {})[_TRUSTED] = True


def is_trusted(scope: Mapping[str, Any]) -> bool:
    """Tell whether that was noted."""
    return bool(scope.get("state", {}).get(_TRUSTED))


def _no_token() -> JSONResponse:
    return refusal(
        401,
        "unauthorized",
        "the request carries no token, or not the right one",
        "send `Authorization: Bearer TOKEN`; the token is in the variable that service.tokenEnv names where that is "
        "set, else in local/api-token of the state root",
        {"WWW-Authenticate": "Bearer"},
    )


def _values(scope: Scope, name: bytes) -> list[str]:
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return [value.decode("latin-1") for key, value in headers if key == name]
