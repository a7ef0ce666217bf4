"""What Slack's refusals and a broken network mean."""

from __future__ import annotations

import http.client
import socket
import urllib.error
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError

from bot.clients import PERMANENT, answer_of, beyond_waiting, channel_error


class _Response:
    """What slack_sdk attaches to an error."""

    def __init__(self, data: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.data, self.status_code, self.headers = data, status, headers or {}


def _refused(data: Any, status: int = 200, **headers: str) -> SlackApiError:
    named = {key.replace("_", "-"): value for key, value in headers.items()}
    return SlackApiError("The request to the Slack API failed.", _Response(data, status, named))  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("code", sorted(PERMANENT))
def test_permanent_codes_carry_reason_and_remedy(code: str) -> None:
    """Each known refusal is final, certain, and says what to do."""
    error = channel_error("chat.postMessage", "C1", _refused({"ok": False, "error": code}))

    assert (error.transient, error.unclear) == (False, False)
    assert code in error.message
    assert "C1" in error.message
    assert error.remedy
    assert beyond_waiting(_refused({"ok": False, "error": code}))


@pytest.mark.parametrize("headers", [{"Retry_After": "12"}, {"retry_after": "12"}])
def test_a_rate_limit_names_its_pause(headers: dict[str, str]) -> None:
    """The header is found in either case."""
    error = channel_error("chat.update", "C1", _refused({"ok": False, "error": "ratelimited"}, 429, **headers))

    assert (error.transient, error.unclear, error.retry_after) == (True, False, 12.0)


def test_a_rate_limit_without_a_number_waits_a_while() -> None:
    """A missing or unreadable Retry-After is half a minute."""
    error = channel_error("chat.update", "C1", _refused({}, 429, Retry_After="soon"))

    assert error.retry_after == 30.0


@pytest.mark.parametrize(
    "error",
    [
        _refused({"ok": False, "error": "Received a response in a non-JSON format: <!DOCTYPE html>"}, 503),
        _refused({"ok": False, "error": "internal_error"}),
        _refused({"ok": False, "error": "fatal_error"}),
        _refused(None, 500),
        _refused({}),
        _refused("surprise"),
        urllib.error.URLError(TimeoutError("timed out")),
        ConnectionResetError(104, "reset by peer"),
        http.client.RemoteDisconnected("closed without response"),
        TimeoutError(),
        aiohttp.ServerDisconnectedError(),
    ],
)
def test_what_may_have_been_done_is_unclear(error: Exception) -> None:
    """After these nobody knows whether the call was carried out."""
    found = channel_error("chat.postMessage", "C1", error)

    assert (found.transient, found.unclear) == (True, True)
    assert not beyond_waiting(error)


@pytest.mark.parametrize(
    "error",
    [
        urllib.error.URLError(ConnectionRefusedError(111, "Connection refused")),
        urllib.error.URLError(socket.gaierror(-2, "Name or service not known")),
        ConnectionRefusedError(111, "Connection refused"),
    ],
)
def test_what_never_left_is_certain(error: Exception) -> None:
    """Nobody listened, so nothing was done."""
    found = channel_error("chat.postMessage", "C1", error)

    assert (found.transient, found.unclear) == (True, False)


def test_an_unknown_code_is_final_for_a_post_and_waited_out_by_the_connection() -> None:
    """A post that Slack refuses for a reason we do not know is not repeated for ever."""
    error = _refused({"ok": False, "error": "some_new_reason"})

    assert not channel_error("chat.postMessage", "C1", error).transient
    assert not beyond_waiting(error)


def test_the_missing_scope_is_named() -> None:
    """Slack says which scope it needs, and so do we."""
    refused = _refused({"ok": False, "error": "missing_scope", "needed": "chat:write", "provided": "commands"})

    assert "'chat:write'" in channel_error("chat.postMessage", "", refused).message


def test_no_ticket_gets_into_the_words() -> None:
    """A failed handshake carries the socket's URL; its ticket opens a connection."""
    words = "403, message='Invalid response status', url='wss://wss.slack.com/link/?ticket=abc-123&app_id=A1'"

    assert "abc-123" not in str(channel_error("Socket Mode", "", OSError(words)))


def test_any_response_is_read() -> None:
    """slack_sdk attaches different things; none of them raises here."""
    data: Any
    for data in (None, [], {"error": 5}, {"error": "x" * 500}, b"bytes"):
        assert answer_of(_refused(data)).code == ""
    assert answer_of(SlackApiError("odd", None)).status == 200  # type: ignore[no-untyped-call]
