"""Faults to order: what a client sees, and what was performed all the same."""

from __future__ import annotations

import http.client
from urllib.error import URLError

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from embedded.workspace.model import ControlError
from embedded.workspace.thread import WorkspaceThread


def test_ratelimited_answers_say_how_long(workspace: WorkspaceThread, client: WebClient) -> None:
    """The next calls of the method, and of no other, answer 429 with Retry-After; then all is well."""
    workspace.fault("chat.postMessage", "ratelimited", 2, seconds=7)

    limited = [_failure(client) for _ in range(2)]
    other = client.auth_test()
    fine = client.chat_postMessage(channel="agents", text="x")

    assert [error.response.status_code for error in limited] == [429, 429]
    assert limited[0].response["error"] == "ratelimited"
    assert limited[0].response.headers["Retry-After"] == "7"
    assert other["ok"]
    assert fine["ok"]


def test_server_errors_are_pages(workspace: WorkspaceThread, client: WebClient) -> None:
    """A 503 comes as HTML, as from a proxy in between."""
    workspace.fault("*", "http", status=503)

    error = _failure(client)

    assert error.response.status_code == 503


def test_ordered_error_code_is_answered(workspace: WorkspaceThread, client: WebClient) -> None:
    """An `ok: false` of one's choice."""
    workspace.fault("chat.postMessage", "error", code="fatal_error")

    assert _failure(client).response["error"] == "fatal_error"


def test_lost_answer_was_performed(workspace: WorkspaceThread, client: WebClient) -> None:
    """The connection is cut without an answer, but the message stands."""
    workspace.fault("chat.postMessage", "lost")

    with pytest.raises((http.client.HTTPException, URLError, ConnectionError)):
        client.chat_postMessage(channel="agents", text="did I?")

    assert [message["text"] for message in workspace.messages("agents")] == ["did I?"]


def test_refused_call_was_not_performed(workspace: WorkspaceThread, client: WebClient) -> None:
    """The connection is cut before anything happens."""
    workspace.fault("chat.postMessage", "refused")

    with pytest.raises((http.client.HTTPException, URLError, ConnectionError)):
        client.chat_postMessage(channel="agents", text="did I?")

    assert workspace.messages("agents") == []


def test_slow_call_is_performed_late(workspace: WorkspaceThread) -> None:
    """A caller with a short time limit gives up; the message stands later."""
    hasty = WebClient(workspace.bot_token, base_url=workspace.api_url, retry_handlers=[], timeout=1)
    workspace.fault("chat.postMessage", "slow", seconds=1.5)

    with pytest.raises(TimeoutError):
        hasty.chat_postMessage(channel="agents", text="at last")

    assert workspace.wait_for_message(lambda message: message["text"] == "at last")


def test_unknown_fault_is_refused(workspace: WorkspaceThread) -> None:
    """A typing error in a test does not become a test without a fault."""
    with pytest.raises(ControlError, match="ratelimited, http"):
        workspace.fault("chat.postMessage", "rate_limited")


def _failure(client: WebClient) -> SlackApiError:
    with pytest.raises(SlackApiError) as failure:
        client.chat_postMessage(channel="agents", text="x")
    return failure.value
