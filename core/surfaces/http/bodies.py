"""Bodies of requests: read whole, up to a bound, before anybody makes something of them."""

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from core.surfaces.http.answers import refusal

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
