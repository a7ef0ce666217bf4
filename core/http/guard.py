"""Who may ask over HTTP. Every request passes the guard before its content is read.

A page in somebody's browser can send requests to loopback. With a host name that it points here (DNS rebinding) it
would be of our origin and could read the answers, so the Host header must name us. From another origin it cannot read
but can send, so an Origin header must be our own; no answer allows another origin to read it (there is no CORS).

Who asks is found by authenticators, in their order: the first that knows the request names its principal. The token of
the operator is one of them; a page's cookie can be another.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from core.http.answers import refusal
from core.http.facts import allowed_hosts
from core.http.principal import Principal

OPEN_PATHS = frozenset({"/health"})  #: what may be asked without a token
UNIX_HOST = "localhost"  #: what a client of the Unix socket calls us
#: What a browser calls us whose machine forwards a port of its own to our Unix socket (`ssh -L`).
_FORWARDED = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")
AGENTS_PATH = "/mcp"  #: what is asked with a session's token, which whoever answers there looks at
_PRINCIPAL, _TRUSTED = "principal", "trusted"


class Authenticator(Protocol):
    """One way to show who asks."""

    def principal(self, scope: Scope) -> Principal | None:
        """Return who asks, None where this request shows nobody by this way. Waits for nothing."""
        ...


class TokenAuthenticator:
    """The API token, which makes whoever sends it the operator."""

    def __init__(self, token: str, actor: str) -> None:
        self._token = token.encode()
        self._principal = Principal(actor)

    def principal(self, scope: Scope) -> Principal | None:
        """Return the operator for a request that carries the token; how long that takes tells nothing of it."""
        given = (bearer_of(scope) or "").encode("latin-1")
        return self._principal if hmac.compare_digest(given, self._token) else None


class Guard:
    """Refuses with 403 what is not addressed to us or comes from another origin, with 401 what shows nobody we know."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        host: str,
        port: int | None,
        authenticators: Sequence[Authenticator],
        open_prefixes: tuple[str, ...] = (),
        open_paths: frozenset[str] = OPEN_PATHS,
    ) -> None:
        """`port` None: there is only the Unix socket. `open_paths`: what needs no token.

        `open_prefixes`: how paths begin that pass unlooked at, since whoever answers them asks for a signature.
        """
        self._app = app
        self._host = host
        self._port = port
        self._authenticators = authenticators
        self._open_prefixes = open_prefixes
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer it."""
        refused = self.refused(scope) if scope["type"] == "http" else None
        await (self._app if refused is None else refused)(scope, receive, send)

    def refused(self, scope: Scope) -> Response | None:
        """Return the answer to a request that goes no further; None for one that may pass."""
        if self._open_prefixes and scope["path"].startswith(self._open_prefixes):
            return None
        hosts, allowed = _values(scope, b"host"), self._hosts(scope)
        if len(hosts) != 1 or not (hosts[0].lower() in allowed or self._is_forwarded(scope, hosts[0].lower())):
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
        if scope["path"] in self._open_paths or scope["path"] == AGENTS_PATH:
            return None
        principal = next((found for one in self._authenticators if (found := one.principal(scope))), None)
        if principal is None:
            return _no_token()
        scope.setdefault("state", {})[_PRINCIPAL] = principal
        trust(scope)
        return None

    def _hosts(self, scope: Scope) -> frozenset[str]:
        server = scope.get("server")
        if self._port is None or self._is_unix(scope):
            return frozenset({UNIX_HOST})
        return allowed_hosts(self._host, self._port, server[0] if server else None)

    def _is_unix(self, scope: Scope) -> bool:
        server = scope.get("server")
        return self._port is None or (server is not None and server[1] is None)

    def _is_forwarded(self, scope: Scope, host: str) -> bool:
        """Return whether it is called by a name of loopback, at whatever port: by no other name can a page reach it."""
        return self._is_unix(scope) and _FORWARDED.fullmatch(host) is not None


def principal_of(scope: Mapping[str, Any]) -> Principal:
    """Return who asks, of a request that has passed the guard. Raises KeyError for one that needed to show nobody."""
    found: Principal = scope["state"][_PRINCIPAL]
    return found


def bearer_of(scope: Scope) -> str | None:
    """Return the token that the request carries, None where it carries none, or several."""
    given = _values(scope, b"authorization")
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token.strip() if scheme.lower() == "bearer" else None


def trust(scope: Scope) -> None:
    """Note that the request shows somebody we know, for whoever bounds those that do not."""
    scope.setdefault("state", {})[_TRUSTED] = True


def is_trusted(scope: Mapping[str, Any]) -> bool:
    """Return whether that was noted."""
    return bool(scope.get("state", {}).get(_TRUSTED))


def _no_token() -> Response:
    return refusal(
        401,
        "unauthorized",
        "the request carries no token, or not the right one",
        "send `Authorization: Bearer TOKEN`; the token is in the variable that service.tokenEnv names, or, if that is "
        "not set, in local/api-token of the state root",
        {"WWW-Authenticate": "Bearer"},
    )


def _values(scope: Scope, name: bytes) -> list[str]:
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return [value.decode("latin-1") for key, value in headers if key == name]
