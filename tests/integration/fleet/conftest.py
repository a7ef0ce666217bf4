"""Each test of the contract runs over each exchange."""

from __future__ import annotations

import pytest

from tests.support.fleets import FleetRig, MemoryRig


@pytest.fixture(params=["memory"])
def rig() -> FleetRig:
    """Give an empty fleet."""
    return MemoryRig()
