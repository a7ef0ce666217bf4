"""The real product against a workspace on loopback, and without one."""

from collections.abc import Iterator

import pytest

from embedded.workspace.thread import WorkspaceThread
from tests.support.postgres import Cluster, needed, running_cluster
from tests.support.product import Product, product


@pytest.fixture
def workspace() -> Iterator[WorkspaceThread]:
    """Give a workspace whose second delivery comes after 0.6 s and whose third after 3 s."""
    with WorkspaceThread(retry_scale=0.01, ack_seconds=2.0) as running:
        yield running


@pytest.fixture
def talking(workspace: WorkspaceThread) -> Iterator[Product]:
    """Give a product whose one session has a thread in the workspace."""
    with product(workspace) as running:
        yield running


@pytest.fixture(scope="module")
def shared() -> Iterator[Product]:
    """Give a product with a thread to all of a module's tests that leave its one session idle, once it is up."""
    with WorkspaceThread(retry_scale=0.01, ack_seconds=2.0) as workspace, product(workspace) as running:
        running.serve().wait_swept()
        running.wait_reply(running.root(), "Ready.")
        yield running


@pytest.fixture
def alone() -> Iterator[Product]:
    """Give a product without a channel."""
    with product() as running:
        yield running


@pytest.fixture(scope="module")
def fleet_cluster() -> Iterator[Cluster]:
    """Give a PostgreSQL server that runs."""
    with running_cluster(needed()) as made:
        yield made
