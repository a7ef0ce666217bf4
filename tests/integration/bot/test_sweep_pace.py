"""Slack allows so many calls of a kind a minute: a sweep keeps to that by itself, however much there is to read."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from contextlib import closing
from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot.app import Self
from bot.backfill import Sweeper, SweepPace
from bot.clients import Tokens
from bot.directory import Directory
from bot.intake import AsyncDoor, Intake
from bot.payloads import Identity
from bot.settings import SlackSettings
from core.base.clock import SystemClock
from core.model.channel import BoundThread
from tests.integration.bot.served import Door


class HandTime(asyncio.SelectorEventLoop):
    """A loop whose time stands still but for its own waits, which are over at once."""

    def __init__(self) -> None:
        super().__init__(_Skipping(self))
        self.at = 1000.0

    def time(self) -> float:
        """Return the hand's time."""
        return self.at


class _Skipping(selectors.DefaultSelector):
    def __init__(self, loop: HandTime) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout:
            self._loop.at += timeout
            timeout = 0
        return super().select(timeout)


class Slack(AsyncWebClient):
    """Slack's other side: every thread has two pages without a message, and each call is noted with its time."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, float]] = []

    async def api_call(self, api_method: str, **arguments: Any) -> AsyncSlackResponse:
        """Note the call and answer."""
        self.calls.append((api_method, asyncio.get_running_loop().time()))
        asked = arguments.get("params") or {}
        more = {} if asked.get("cursor") else {"response_metadata": {"next_cursor": "second"}}
        data = {"ok": True, "channel": {"id": "C1"}, "messages": [], **more}
        return AsyncSlackResponse(
            client=self, http_verb="GET", api_url=api_method, req_args={}, data=data, headers={}, status_code=200
        )


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run it by the hand's time."""
    with asyncio.Runner(loop_factory=HandTime) as runner:
        runner.run(work)


async def _sweep(door: Door, slack: Slack, pace: SweepPace) -> None:
    settings, clock, own = SlackSettings(), SystemClock(), Self()
    own.identity = Identity("T1", "U1", "B1", "the-loop")
    tokens = Tokens(settings, {"THE_LOOP_SLACK_BOT_TOKEN": "xoxb-1"})
    with closing(AsyncDoor(door)) as awaited:
        intake = Intake(awaited, Directory(slack, tokens, clock), settings, clock)
        await Sweeper(slack, tokens, own, awaited, intake, clock, pace).sweep(only_new=True)


@pytest.mark.parametrize(("pace", "between"), [(SweepPace(), 1.2), (SweepPace(between=90.0), 90.0)])
def test_a_sweep_reads_no_faster_than_its_pace(pace: SweepPace, between: float) -> None:
    """The first page is read at once, each further one that long after the one before, in whichever thread it is."""
    door, slack = Door(), Slack()
    for number in range(30):
        root = f"{1700000000 + number}.000001"
        door.bound.append(BoundThread(f"s-{number}", "C1", root, root, None))

    run(_sweep(door, slack, pace))

    at = [moment for method, moment in slack.calls if method == "conversations.replies"]
    assert [round(moment - at[0], 3) for moment in at] == [round(between * number, 3) for number in range(60)]
    assert len(door.sweeps) == 30


def test_the_pace_keeps_within_what_slack_allows_a_minute() -> None:
    """conversations.replies may be asked some 50 times a minute."""
    assert 60 / SweepPace().between <= 50
