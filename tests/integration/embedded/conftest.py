"""A running workspace for each test, and clients of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from slack_sdk import WebClient

from embedded.workspace.thread import WorkspaceThread
from tests.integration.embedded.bolt import BoltBot

RETRY_SCALE = 0.002  # a minute between deliveries becomes 0.12 s
ACK_SECONDS = 0.5


@pytest.fixture
def workspace() -> Iterator[WorkspaceThread]:
    """A workspace in memory whose minutes are short."""
    with WorkspaceThread(retry_scale=RETRY_SCALE, ack_seconds=ACK_SECONDS, ping_seconds=0.5) as running:
        yield running


@pytest.fixture
def client(workspace: WorkspaceThread) -> WebClient:
    """The main app's Web API client, without retries of its own."""
    return WebClient(workspace.bot_token, base_url=workspace.api_url, retry_handlers=[])


@pytest.fixture
def bolt(workspace: WorkspaceThread) -> Iterator[BoltBot]:
    """A Bolt app that has yet to be started, and is stopped at the end."""
    bot = BoltBot(workspace)
    yield bot
    bot.stop()
