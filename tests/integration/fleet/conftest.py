"""Each test of the contract runs over each exchange; those of PostgreSQL share one server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fleets import FleetRig, MemoryRig, PostgresRig, made_database
from tests.support.postgres import Cluster, needed, running_cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Give a server that runs."""
    with running_cluster(needed()) as made:
        yield made


@pytest.fixture(scope="session")
def database(cluster: Cluster) -> str:
    """Give the name of a database with a fleet in it."""
    return made_database(cluster)


@pytest.fixture
def postgres(cluster: Cluster, database: str, tmp_path: Path) -> Iterator[PostgresRig]:
    """Give an empty fleet in PostgreSQL."""
    rig = PostgresRig(cluster, database, tmp_path)
    yield rig
    rig.close()


@pytest.fixture(params=["memory", "postgres"])
def rig(request: pytest.FixtureRequest) -> FleetRig:
    """Give an empty fleet, of each kind."""
    if request.param == "memory":
        return MemoryRig()
    made: PostgresRig = request.getfixturevalue("postgres")
    return made
