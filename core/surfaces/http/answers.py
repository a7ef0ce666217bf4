"""The one shape of every refusal over HTTP: `{"error": {"code", "message", "remedy"}}`."""

from collections.abc import Mapping

from starlette.responses import JSONResponse

_HEADERS = {"Cache-Control": "no-store"}


def refusal(
    status: int, code: str, message: str, remedy: str, headers: Mapping[str, str] | None = None
) -> JSONResponse:
    """Return the response."""
    body = {"error": {"code": code, "message": message, "remedy": remedy}}
    return JSONResponse(body, status, {**_HEADERS, **(headers or {})})
