"""The web application: guard, routers, and one shape for every error."""

from collections.abc import Sequence

from fastapi import APIRouter, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from core.surfaces.http.agents import agents_router
from core.surfaces.http.answers import refusal
from core.surfaces.http.bodies import HANDLERS
from core.surfaces.http.facts import Facts
from core.surfaces.http.guard import Guard
from core.surfaces.http.health import health_router
from core.surfaces.http.hooks import hooks_router, open_prefixes
from core.surfaces.http.metrics import metrics_router


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
