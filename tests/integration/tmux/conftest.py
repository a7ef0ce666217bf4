"""A private tmux server for each test."""

from collections.abc import Iterator

import pytest

from core.tmux.runner import Runner
from tests.support.tmux import PrivateTmux, private_tmux


@pytest.fixture
def private() -> Iterator[PrivateTmux]:
    """Give a tmux server that nobody else knows; it is not started yet."""
    with private_tmux() as server:
        yield server


@pytest.fixture
def runner(private: PrivateTmux) -> Runner:
    """Give a runner that asks by processes."""
    return private.runner()
