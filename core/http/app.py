"""The web application: its routes behind the guard, and one form for every error.

- Every error is `{"error": {"code", "message", "remedy"}}`. Bodies are read whole, up to a bound, before they are used.
- GET /health needs no token, so it says only whether the service is well.
- /channels/<kind> is for requests that a chat sends. It needs no token of ours, because the chat proves its identity.
- POST /mcp is for agents' tools and takes a session's token; the operator's token does not open it.
- The page at / needs a login; its files do not. See core.http.webpage.
- /api/v1 and /metrics are for whoever shows who they are; see core.http.guard.
- uvicorn does not limit connections. An idle or slow one would hold a descriptor of the service for ever, so
  connections without a token are limited in number and in the time of each request.
"""

from __future__ import annotations

import resource
import threading
from asyncio import BaseTransport, TimerHandle
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import anyio
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from core.base.errors import StoreBroken
from core.http.answers import LONGEST, TooLarge, body_of, refusal, route, told
from core.http.api import api_routes
from core.http.facts import Facts
from core.http.guard import AGENTS_PATH, OPEN_PATHS, Authenticator, Guard, bearer_of, is_trusted, trust
from core.http.metrics import Answered, metrics_route
from core.http.webpage import open_paths, page_routes
from core.model.channel import WebHook
from core.model.session import SessionRecord
from core.session.launching import BadToken, session_of_token
from core.session.system import System

if TYPE_CHECKING:
    from core.http.mcpserver import Served
    from core.tools.toolbox import Toolbox


async def refuse_large(request: Request, _: Exception) -> Response:
    """Answer a request whose body is too large."""
    return refusal(413, "too_large", f"{request.url.path} takes {LONGEST:,} bytes", "send less")


async def let_go(_request: Request, _: Exception) -> Response:
    """Answer a client that went away: nobody reads this, and nothing was asked."""
    return Response(status_code=400)


HANDLERS = {TooLarge: refuse_large, ClientDisconnect: let_go}


CALLS = 64  #: tools at work at once; a question to people is at work until it is answered


def agents_route(system: System, toolbox: Callable[[], Toolbox]) -> Route:
    """Return the route. The MCP library is imported at the first request whose token is good (docs/adr/0017)."""
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

    return route("POST", AGENTS_PATH, answer)


def _session(system: System, request: Request) -> SessionRecord:
    return session_of_token(system.paths, system.records, bearer_of(request.scope) or "")


def _served() -> type[Served]:
    from core.http.mcpserver import Served

    return Served


def health_route(facts: Facts) -> Route:
    """Return the route. It answers 200 while the service answers at all; what is not well is in the body."""

    async def health(_: Request) -> Response:
        channels, tmux = facts.channels(), facts.tmux()
        return told(
            {
                "ok": tmux == "ok" and all(channels.values()),
                "service": {"pid": facts.pid, "uptimeSeconds": round(facts.uptime(), 3)},
                "tmux": tmux,
                "channels": channels,
            }
        )

    return route("GET", "/health", health)


def hooks_routes(hooks: Mapping[str, WebHook]) -> list[Route]:
    """Return the routes, one for each channel that takes requests."""
    return [route("POST", f"/channels/{kind}/{{rest:path}}", _endpoint(hook)) for kind, hook in hooks.items()]


def open_prefixes(hooks: Mapping[str, WebHook]) -> tuple[str, ...]:
    """Return how the paths begin that are asked without a token, and by whatever name the chat reaches us."""
    return tuple(f"/channels/{kind}/" for kind in hooks)


def _endpoint(hook: WebHook) -> Callable[[Request], Awaitable[Response]]:
    """Return what reads the raw body, which is what is signed, and lets the channel answer in a thread."""

    async def answer(request: Request) -> Response:
        body = await body_of(request)
        answered = await run_in_threadpool(hook, f"/{request.path_params['rest']}", dict(request.headers), body)
        return Response(answered.body, answered.status, media_type=answered.kind)

    return answer


def build_app(
    facts: Facts, *, host: str, port: int | None, authenticators: Sequence[Authenticator], stopping: threading.Event
) -> Starlette:
    """Return the application for a service that listens on host and port; `port` None: at its Unix socket alone."""
    guard = Middleware(
        Guard,
        host=host,
        port=port,
        authenticators=authenticators,
        open_prefixes=open_prefixes(facts.hooks),
        open_paths=OPEN_PATHS | open_paths(),
    )
    answered: Answered = Counter()
    routes = [
        health_route(facts),
        metrics_route(facts, answered),
        *hooks_routes(facts.hooks),
        agents_route(facts.system, facts.toolbox),
        *api_routes(facts, answered, stopping),
        *page_routes(facts, stopping),
    ]
    handlers: dict[Any, Any] = {**HANDLERS, HTTPException: _http_error, Exception: _internal_error}
    app = Starlette(routes=routes, middleware=[guard], exception_handlers=handlers)
    app.router.redirect_slashes = False
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
BURST_SECONDS = 5.0  #: in which nobody has to have shown who they are: many may come at once to a busy machine


@cache
def _most_at_once() -> int:
    """Return how many strangers a burst may have: few of the descriptors that the process may open."""
    return min(CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 16)


class BoundedProtocol(H11Protocol):
    """One connection. Without a good token it ends after SECONDS, counted from its opening or its latest answer.

    With one, an answer may take as long as it takes: a question to people waits for them.
    """

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self._timer: TimerHandle | None = None
        self._since = 0.0
        self._known = False  #: its latest request showed somebody we know

    def connection_made(self, transport: BaseTransport) -> None:
        """Bound it, and make place for it."""
        super().connection_made(transport)  # type: ignore[arg-type]  # uvicorn's is narrower than asyncio's
        self._since = self.loop.time()
        self._bound()
        others = [other for other in self.connections if isinstance(other, BoundedProtocol)]
        strangers = [other for other in others if not other.is_trusted]
        oldest = min(strangers, key=lambda other: other._since)
        if len(strangers) > STRANGERS and (oldest.age >= BURST_SECONDS or len(strangers) > _most_at_once()):
            oldest.leave()
        elif len(others) > CONNECTIONS:
            self.leave()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it no longer."""
        self._unbound()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Bound what comes next on it."""
        super().on_response_complete()
        self._known = is_trusted(self.scope)
        self._since = self.loop.time()
        self._bound()

    @property
    def is_trusted(self) -> bool:
        """Return whether a request of somebody we know is being answered, or was answered last."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or cycle.response_complete:
            return self._known
        return is_trusted(self.scope)

    @property
    def age(self) -> float:
        """Return the seconds since it was opened, or answered last."""
        return float(self.loop.time() - self._since)

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
        cycle: RequestResponseCycle | None = self.cycle
        answering = cycle is not None and not cycle.response_complete and is_trusted(self.scope)
        if not answering:
            self.leave()
