"""The bundled agent keeps the contract of the hooked harnesses."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.harness.bundled import BundledHarness
from tests.integration.harness.contract import HookedHarnessContract
from tests.integration.harness.stage import Stage, Words

WORDS = Words(
    busy="sleep 4",
    permission="ask permission",
    background="background 2",
    echo=lambda answer: answer.startswith("You said"),
)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A session of the bundled agent, not yet started."""
    stage = Stage(BundledHarness(), WORDS, tmp_path, {"HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    yield stage
    stage.close()


class TestBundled(HookedHarnessContract):
    """The contract."""
