"""slack_sdk's clients as they are made here."""

from __future__ import annotations

import logging

import pytest

from bot.clients import Token, async_web_client, response_client, web_client
from bot.settings import SlackSettings

LOOPBACK = SlackSettings.of({"apiUrl": "http://127.0.0.1:4600/api/"})


def test_nothing_is_repeated_behind_our_back() -> None:
    """slack_sdk would repeat a post after a broken connection, and the text would appear twice."""
    clients = (web_client(SlackSettings(), Token("X", "xoxb-1")), async_web_client(SlackSettings()))

    assert [client.retry_handlers for client in clients] == [[], []]
    assert response_client("https://hooks.slack.com/x").retry_handlers == []


def test_loopback_is_reached_without_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy cannot reach our own machine; slack_sdk knows no exceptions from it."""
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")

    near = (
        web_client(LOOPBACK, Token("X", "xoxb-1")),
        async_web_client(LOOPBACK),
        response_client("http://localhost:1/"),
    )
    far = (web_client(SlackSettings(), Token("X", "xoxb-1")), async_web_client(SlackSettings()))

    assert [client.proxy for client in near] == [None] * 3
    assert [client.proxy for client in far] == ["http://proxy.example:3128"] * 2


def test_the_libraries_stay_quiet_when_everything_else_is_loud(caplog: pytest.LogCaptureFixture) -> None:
    """At DEBUG they would print payloads, so their level does not follow the root logger's."""
    caplog.set_level(logging.DEBUG)

    client = async_web_client(SlackSettings())

    assert not client._logger.isEnabledFor(logging.INFO)
    assert client.token is None
