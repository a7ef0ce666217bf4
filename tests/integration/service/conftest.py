"""The real product, run as processes."""

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
def talking() -> Iterator[Product]:
    """Give a product whose one session has a thread in a workspace."""
    with WorkspaceThread() as workspace, product(workspace) as running:
        yield running
