"""Who may ask over HTTP. Every request passes here before anything of it is read.

A page in somebody's browser can send requests to loopback. By a name of its own that it points here (DNS rebinding)
it would be of our origin and could read the answers: so the Host header must name us. From another origin it cannot
read, but it can send: so an Origin header must be our own. The token keeps out other users of the machine.
"""

import hmac
import ipaddress
from collections.abc import Iterable

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from core.surfaces.http.answers import refusal

OPEN_PATHS = frozenset({"/health"})  #: what may be asked without a token
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "::1")


def is_loopback(host: str) -> bool:
    """Tell whether the address or name is this machine's alone."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def bracketed(host: str) -> str:
    """Return the host as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def allowed_hosts(configured: str, port: int, reached: str | None) -> frozenset[str]:
    """Return the values of a Host header that mean us.

    `reached` is the address at which the client reached us: where we listen on all addresses of the machine it is
    the only one of them that this connection shows. An address is safe, since no foreign page can be called by it.
    """
    names = {*_LOOPBACK_NAMES, configured.lower()}
    if reached is not None and _is_wildcard(configured):
        names.add(reached.lower())
    hosts = {f"{bracketed(name)}:{port}" for name in names if not _is_wildcard(name)}
    return frozenset(hosts | ({bracketed(name) for name in names} if port == 80 else set()))


def _is_wildcard(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


class Guard:
    """Refuses with 403 what is not addressed to us or comes from another origin, with 401 what has no token."""

    def __init__(self, app: ASGIApp, *, host: str, port: int, token: str) -> None:
        self._app = app
        self._host = host
        self._port = port
        self._token = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it."""
        refused = self.refused(scope) if scope["type"] == "http" else None
        await (self._app if refused is None else refused)(scope, receive, send)

    def refused(self, scope: Scope) -> JSONResponse | None:
        """Return the answer to a request that goes no further; None for one that may pass."""
        hosts = _values(scope, b"host")
        server = scope.get("server")
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
        return None if scope["path"] in OPEN_PATHS or self._has_token(scope) else _no_token()

    def _has_token(self, scope: Scope) -> bool:
        given = _values(scope, b"authorization")
        if len(given) != 1:
            return False
        scheme, _, token = given[0].partition(" ")
        return hmac.compare_digest(token.strip().encode("latin-1"), self._token) and scheme.lower() == "bearer"


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
