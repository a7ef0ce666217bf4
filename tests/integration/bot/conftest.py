"""A workspace on loopback and the real channel on it, with a door that records what core would get."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedded.workspace.thread import WorkspaceThread
from tests.integration.bot.served import Door, Served


@pytest.fixture
def workspace() -> Iterator[WorkspaceThread]:
    """A running workspace whose retries come at once."""
    with WorkspaceThread(retry_scale=0.001, ack_seconds=1.0) as running:
        yield running


@pytest.fixture
def door() -> Door:
    """Core's side."""
    return Door()


@pytest.fixture
def served(workspace: WorkspaceThread, door: Door) -> Iterator[Served]:
    """The channel, connected; alice may steer."""
    with Served(workspace, door) as running:
        door.wait_until_up()
        yield running
