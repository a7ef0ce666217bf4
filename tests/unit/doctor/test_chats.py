"""What the doctor and `the-loop <chat> check` say of a chat besides what the chat itself finds."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.config.settings import ServiceSettings
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
    findings = list(check(_channel(calls=calls), ServiceSettings(port=port)))

    assert findings[0] == _WELL
    assert [(one.name, one.state) for one in findings[1:]] == [("requests", State.WARNING)] * warned
    assert all("service.port: 4114" in one.remedy for one in findings[1:])
