"""POST /mcp: the tools of agents, for whoever carries a session's token; the operator's opens nothing here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import anyio
from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from core.domain.session import SessionRecord
from core.errors import StoreBroken
from core.session.credentials import BadToken, session_of_token
from core.surfaces.http.answers import refusal
from core.surfaces.http.bodies import body_of
from core.surfaces.http.guard import AGENTS_PATH, bearer_of, trust
from core.system import System

if TYPE_CHECKING:
    from core.surfaces.http.mcpserver import Served
    from core.tools.toolbox import Toolbox

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
    return session_of_token(system, bearer_of(request.scope) or "")


def _served() -> type[Served]:
    from core.surfaces.http.mcpserver import Served

    return Served
