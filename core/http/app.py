"""The web application: its guard, its routes, and one form for every error.

Every request passes the guard before its content is read. A page in somebody's browser can send requests to loopback.
With a host name that it points here (DNS rebinding) it would be of our origin and could read the answers, so the Host
header must name us. From another origin it cannot read but can send, so an Origin header must be our own. The token
keeps out other users of the machine.

- Every error is `{"error": {"code", "message", "remedy"}}`. Bodies are read whole, up to a bound, before they are used.
- GET /health needs no token, so it says only whether the service is well.
- /channels/<kind> is for requests that a chat sends. It needs no token of ours, because the chat proves its identity.
- POST /mcp is for agents' tools and takes a session's token; the operator's token does not open it.
- uvicorn does not limit connections. An idle or slow one would hold a descriptor of the service for ever, so
  connections without a token are limited in number and in the time of each request.
"""

from __future__ import annotations

import hmac
from asyncio import BaseTransport, TimerHandle
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio
from fastapi import APIRouter, FastAPI, Request
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from core.base.errors import StoreBroken
from core.http.facts import Facts, allowed_hosts
from core.http.metrics import metrics_router
from core.model.channel import WebHook
from core.model.session import SessionRecord
from core.session.launching import BadToken, session_of_token
from core.session.system import System

if TYPE_CHECKING:
    from core.http.mcpserver import Served
    from core.tools.toolbox import Toolbox


_HEADERS = {"Cache-Control": "no-store"}


def refusal(
    status: int, code: str, message: str, remedy: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return the response."""
    body = {"error": {"code": code, "message": message, "remedy": remedy}}
    return JSONResponse(body, status, {**_HEADERS, **(headers or {})})


LONGEST = 1024 * 1024  #: bytes; calls of tools and a chat's events are far smaller


class TooLarge(Exception):
    """A request brings more than is read."""


async def body_of(request: Request) -> bytes:
    """Return the whole body. Raises TooLarge, and ClientDisconnect where the client went away before its end."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST:
            raise TooLarge
    return bytes(body)


async def refuse_large(request: Request, _: Exception) -> Response:
    """Answer a request whose body is too large."""
    return refusal(413, "too_large", f"{request.url.path} takes {LONGEST:,} bytes", "send less")


async def let_go(_request: Request, _: Exception) -> Response:
    """Answer a client that went away: nobody reads this, and nothing was asked."""
    return Response(status_code=400)


HANDLERS = {TooLarge: refuse_large, ClientDisconnect: let_go}


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
    """Return whether that was noted."""
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


CALLS = 64  #: tools at work at once; a question to people is at work until it is answered


def agents_router(system: System, toolbox: Callable[[], Toolbox]) -> APIRouter:
    """Return the route. The MCP library is imported at the first request whose token is good (docs/adr/0017)."""
    router = APIRouter()
    limiter: list[anyio.CapacityLimiter] = []

    async def answer(request: Request) -> Response:
        try:
            record = await run_in_threadpool(_session, system, request)
        except (BadToken, StoreBroken) as error:
            status, headers = (401, {"WWW-Authenticate": "Bearer"}) if isinstance(error, BadToken) else (503, {})
            return refusal(status, error.code, error.message, error.remedy, headers)
        trust(request.scope)
        body = await body_of(request)
        served = await run_in_threadpool(_served)
        if not limiter:
            limiter.append(anyio.CapacityLimiter(CALLS))
        return served(record, body, await run_in_threadpool(toolbox), limiter[0])

    router.add_api_route(AGENTS_PATH, answer, methods=["POST"], response_model=None)
    return router


def _session(system: System, request: Request) -> SessionRecord:
    return session_of_token(system.paths, system.records, bearer_of(request.scope) or "")


def _served() -> type[Served]:
    from core.http.mcpserver import Served

    return Served


def health_router(facts: Facts) -> APIRouter:
    """Return the route. It answers 200 while the service answers at all; what is not well is in the body."""
    router = APIRouter()

    async def health() -> Mapping[str, Any]:
        channels, tmux = facts.channels(), facts.tmux()
        return {
            "ok": tmux == "ok" and all(channels.values()),
            "service": {"pid": facts.pid, "uptimeSeconds": round(facts.uptime(), 3)},
            "tmux": tmux,
            "channels": channels,
        }

    router.add_api_route("/health", health, methods=["GET"])
    return router


def hooks_router(hooks: Mapping[str, WebHook]) -> APIRouter:
    """Return the routes, one for each channel that takes requests."""
    router = APIRouter()
    for kind, hook in hooks.items():
        router.add_api_route(f"/channels/{kind}/{{rest:path}}", _endpoint(hook), methods=["POST"], response_model=None)
    return router


def open_prefixes(hooks: Mapping[str, WebHook]) -> tuple[str, ...]:
    """Return how the paths begin that are asked without a token, and by whatever name the chat reaches us."""
    return tuple(f"/channels/{kind}/" for kind in hooks)


def _endpoint(hook: WebHook) -> Callable[[Request, str], Awaitable[Response]]:
    """Return what reads the raw body, which is what is signed, and lets the channel answer in a thread."""

    async def answer(request: Request, rest: str) -> Response:
        body = await body_of(request)
        answered = await run_in_threadpool(hook, f"/{rest}", dict(request.headers), body)
        return Response(answered.body, answered.status, media_type=answered.kind)

    return answer


def build_app(facts: Facts, *, host: str, port: int, token: str) -> FastAPI:
    """Return the application for a service that listens on host and port."""
    app = FastAPI(title="the-loop", openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False)
    routers: Sequence[APIRouter] = (
        health_router(facts),
        metrics_router(facts),
        hooks_router(facts.hooks),
        agents_router(facts.system, facts.toolbox),
    )
    for router in routers:
        app.include_router(router)
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _internal_error)
    app.add_middleware(Guard, host=host, port=port, token=token, open_prefixes=open_prefixes(facts.hooks))
    return app


async def _http_error(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    known = {404: ("not_found", "there is nothing at"), 405: ("method_not_allowed", f"{request.method} is not for")}
    code, words = known.get(error.status_code, ("http_error", f"{error.detail}:"))
    return refusal(
        error.status_code,
        code,
        f"{words} {request.url.path}",
        "look up the address in the documentation",
        error.headers,
    )


async def _internal_error(request: Request, _: Exception) -> Response:
    return refusal(500, "internal_error", f"{request.url.path} failed inside the service", "see the log of the service")


STRANGERS = 64  #: at once; where one comes too many, the oldest goes
CONNECTIONS = 256  #: of everybody; the newest goes
SECONDS = 20.0  #: for a whole request and its answer. A chat gets an answer within half of them


class BoundedProtocol(H11Protocol):
    """One connection. Without a good token it ends after SECONDS, counted from its opening or its latest answer.

    With one, an answer may take as long as it takes: a question to people waits for them.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._timer: TimerHandle | None = None
        self._since = 0.0

    def connection_made(self, transport: BaseTransport) -> None:
        """Bound it, and make place for it."""
        super().connection_made(transport)  # type: ignore[arg-type]  # uvicorn's is narrower than asyncio's
        self._since = self.loop.time()
        self._bound()
        others = [other for other in self.connections if isinstance(other, BoundedProtocol)]
        strangers = [other for other in others if not other.is_trusted]
        if len(strangers) > STRANGERS:
            min(strangers, key=lambda other: other._since).leave()
        elif len(others) > CONNECTIONS:
            self.leave()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it no longer."""
        self._unbound()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Bound what comes next on it."""
        super().on_response_complete()
        self._bound()

    @property
    def is_trusted(self) -> bool:
        """Return whether a request with a good token is being answered."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is not None and not cycle.response_complete and is_trusted(self.scope)

    def leave(self) -> None:
        """End it at once; what was still to be sent is not."""
        self._unbound()
        self.connections.discard(self)
        self.transport.abort()

    def _bound(self) -> None:
        self._unbound()
        self._timer = self.loop.call_later(SECONDS, self._late)

    def _unbound(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        if not self.is_trusted:
            self.leave()
