"""The bridge to the tools: how long a call waits for a service."""

from pathlib import Path
from typing import Any

import pytest

from core.clients import toolbridge
from core.clients.toolbridge import Call
from tests.support.hangups import hanging_up


@pytest.mark.timeout(40)
@pytest.mark.parametrize("line", [{"wait": 60}, {"wait": 0.2}])
def test_a_service_that_hangs_up_again_and_again_is_given_up(
    short_path: Path, monkeypatch: pytest.MonkeyPatch, line: dict[str, Any]
) -> None:
    """A call that may be repeated is, within a minute of the loss, and never longer than was granted at first."""
    monkeypatch.setattr(toolbridge, "RETRY_SECONDS", (0.01, 0.01, 0.01))
    monkeypatch.setattr(toolbridge, "LOST_SECONDS", 0.3)

    with hanging_up(short_path / "s", line) as heard:
        answer = Call(str(short_path / "s"), b"{}\n", again=True).result()

    assert answer["isError"] is True
    assert answer["structuredContent"]["error"]["code"] == "no_service"
    assert len(heard) > 1


@pytest.mark.timeout(40)
@pytest.mark.parametrize("wait", [float("inf"), float("nan"), 1e12])
def test_a_time_that_is_none_is_not_waited_for(short_path: Path, monkeypatch: pytest.MonkeyPatch, wait: float) -> None:
    """The agent is told that it is not clear what was done."""
    monkeypatch.setattr(toolbridge, "LOST_SECONDS", 0.1)

    with hanging_up(short_path / "s", {"wait": wait}):
        answer = Call(str(short_path / "s"), b"{}\n", again=False).result()

    assert answer["structuredContent"]["error"]["code"] == "unclear"
