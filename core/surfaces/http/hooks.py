"""Requests that a chat sends: below /channels/<kind>, without our token, since the chat proves by itself who it is."""

from collections.abc import Awaitable, Callable, Mapping

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from core.ports import WebHook
from core.surfaces.http.bodies import body_of


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
