"""Calls of the Web API by hand, for what slack_sdk would not send."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from slack_sdk.errors import SlackApiError

_SECONDS = 40.0  #: for what comes in a moment


def raw(
    url: str, body: bytes | None, headers: Mapping[str, str], method: str | None = None
) -> tuple[int, str, Mapping[str, str]]:
    """Return status, text and headers of one HTTP exchange, whatever the status; redirects are not followed."""
    request = urllib.request.Request(url, data=body, headers=dict(headers), method=method)
    opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_SECONDS) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), dict(error.headers)


def call(api_url: str, method: str, token: str | None, body: bytes, kind: str = "application/json") -> dict[str, Any]:
    """Return the JSON answer of a Web API method to a body as given."""
    headers = {"Content-Type": kind} | ({"Authorization": f"Bearer {token}"} if token else {})
    return dict(json.loads(raw(api_url + method, body, headers)[1]))


def refusal(act: Callable[[], Any]) -> str:
    """Return the error code a slack_sdk call is refused with; AssertionError when it is not refused."""
    try:
        answer = act()
    except SlackApiError as error:
        return str(error.response["error"])
    raise AssertionError(f"not refused: {answer}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None
