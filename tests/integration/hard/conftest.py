"""The whole product for each test: its commands, its service, a workspace where one is asked for."""

from collections.abc import Iterator

import pytest

from embedded.workspace.thread import WorkspaceThread
from tests.support.product import Product, product


@pytest.fixture
def alone() -> Iterator[Product]:
    """Give a product without a channel."""
    with product() as running:
        yield running


@pytest.fixture
def workspace() -> Iterator[WorkspaceThread]:
    """Give a workspace that delivers again soon what was not acknowledged."""
    with WorkspaceThread(retry_scale=0.01, ack_seconds=2.0) as running:
        yield running


@pytest.fixture
def threaded(workspace: WorkspaceThread) -> Iterator[Product]:
    """Give a product with a workspace."""
    with product(workspace) as running:
        yield running
