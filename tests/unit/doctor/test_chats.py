"""What the doctor and `the-loop <chat> check` say of a chat besides what the chat itself finds."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.config.settings import FleetSettings, ServiceSettings
from core.doctor.chats import check
from core.model.channel import Channel
from core.model.health import Finding, State

_WELL = Finding("token", State.OK, "in THE_TOKEN")


def _channel(*, calls: bool) -> Channel:
    """Return a chat that finds nothing wrong; `calls`: it sends requests over HTTP."""
    answer: Any = (lambda *_: None) if calls else None
    return cast(Channel, SimpleNamespace(check=lambda bound: (_WELL,), webhook=lambda: answer))


@pytest.mark.parametrize(
    ("calls", "port", "warned"), [(True, None, True), (True, 4114, False), (True, 0, False), (False, None, False)]
)
def test_a_chat_that_calls_needs_a_way_in(calls: bool, port: int | None, warned: bool) -> None:
    """Nobody outside can call a Unix socket by himself."""
    findings = list(check(_channel(calls=calls), ServiceSettings(port=port), FleetSettings()))

    assert findings[0] == _WELL
    assert [(one.name, one.state) for one in findings[1:]] == [("requests", State.WARNING)] * warned
    assert all("service.port: 4114" in one.remedy for one in findings[1:])


@pytest.mark.parametrize(
    ("fleet", "asked"),
    [
        (FleetSettings(), True),
        (FleetSettings(enabled=True, gateway=True), True),
        (FleetSettings(enabled=True), False),
        (FleetSettings(gateway=True), True),
    ],
)
def test_a_host_behind_a_gateway_is_asked_for_no_tokens(fleet: FleetSettings, asked: bool) -> None:
    """It has none, and says where they are; every other host looks at its own."""
    failed = Finding("bot token", State.FAILED, "the variable SLACK_BOT_TOKEN is not set", "set it")
    chat = cast(Channel, SimpleNamespace(kind="slack", check=lambda bound: (failed,), webhook=lambda: None))

    [finding] = check(chat, ServiceSettings(), fleet)

    assert (finding == failed) is asked
    if not asked:
        assert (finding.name, finding.state) == ("tokens", State.OK)
        assert "`fleet.gateway: true`" in finding.detail
        assert "`the-loop slack check` there" in finding.detail
