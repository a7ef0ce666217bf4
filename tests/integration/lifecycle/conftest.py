"""A the-loop of its own for each test, with a private tmux server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.session.system import System
from tests.support.tmux import PrivateTmux, private_tmux
from tests.support.world import World


@pytest.fixture
def private() -> Iterator[PrivateTmux]:
    """Give a tmux server that nobody else knows."""
    with private_tmux() as server:
        yield server


@pytest.fixture
def world(private: PrivateTmux, tmp_path: Path) -> World:
    """Give a world that declares `scribe` and `scribe-two`."""
    world = World(tmp_path, private.server.socket_name, private.folder, declared=("scribe", "scribe-two"))
    world.store.mkdir()
    world.cwd.mkdir()
    return world


@pytest.fixture
def system(world: World) -> System:
    """Give the world's ports."""
    return world.system()
