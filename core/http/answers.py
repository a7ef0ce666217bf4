"""What goes back over HTTP: values as JSON, and every error in one form, `{"error": {"code", "message", "remedy"}}`.

Status codes follow the class of the error: 400 bad input, 403 not permitted, 404 an unknown name or id, 409 a state
that does not allow it, 504 nobody answered in time, 503 with `Retry-After` where nothing was done and the same request
may succeed later, else 500.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from core.base.errors import (
    CoreError,
    LockBusy,
    NotPermitted,
    ProcessesUnknown,
    Refused,
    StoreBroken,
    TmuxMissing,
    TmuxSilent,
)
from core.chat.speaking import NoAnswer

LONGEST = 1024 * 1024  #: bytes of a request's body
RETRY_SECONDS = 2  #: after which somebody asks again who was told that it cannot be done now
_HEADERS = {"Cache-Control": "no-store"}
_STATUS: tuple[tuple[type[Exception], int], ...] = (  # the first that fits
    (NoAnswer, 504),
    (NotPermitted, 403),
    (Refused, 409),
    (LookupError, 404),
    (ValueError, 400),
    (LockBusy, 503),
    (TmuxSilent, 503),
    (TmuxMissing, 503),
    (ProcessesUnknown, 503),
    (StoreBroken, 503),
)


def told(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response that holds a value."""
    return raw(status, json.dumps(value).encode(), headers)  # ASCII alone: a path may hold what is no character


def raw(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response that holds a value as it was written before."""
    return Response(body, status, {**_HEADERS, **(headers or {})}, "application/json")


def refusal(status: int, code: str, message: str, remedy: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response of an error."""
    return told({"error": {"code": code, "message": message, "remedy": remedy}}, status, headers)


def status_of(error: CoreError) -> int:
    """Return the status code of an error."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def problem(error: CoreError, exact: Callable[[str], str]) -> Response:
    """Return the response of an error; `exact` makes the commands that it names such that they can be typed."""
    status = status_of(error)
    headers = {"Retry-After": str(RETRY_SECONDS)} if status == 503 else None
    return refusal(status, error.code, exact(error.message), exact(error.remedy), headers)


class TooLarge(Exception):
    """A request brings more than is read."""


async def body_of(request: Request) -> bytes:
    """Return the whole body. Raises TooLarge, and ClientDisconnect where the client went away before its end."""
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced[:20]) > LONGEST:
        raise TooLarge
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST:
            raise TooLarge
    return bytes(body)


def route(method: str, path: str, endpoint: Callable[[Request], Any]) -> Route:
    """Return a route for that method alone: nobody asks us for heads, and a stream has no end."""
    made = Route(path, endpoint, methods=[method])
    made.methods = {method}
    return made
