"""A the-loop of its own for each test, in which time passes when it is told to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.simulated import Simulation, simulated


@pytest.fixture
def simulation(tmp_path: Path) -> Iterator[Simulation]:
    """Give a simulation that begins at noon, with a session `scribe` that is idle."""
    simulation = simulated(tmp_path / "state", slack=True)
    simulation.session()
    yield simulation
    simulation.system.close()
