"""Real OpenCode: its stage, and a product whose session it is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.harness.opencode.adapter import OpenCodeHarness
from tests.fakes.model import ModelServer
from tests.harness.opencode.product import opencode_environ, settle
from tests.harness.product import TURN
from tests.integration.harness.stage import Stage, Words

WORDS = Words(
    busy="[[tool bash sleep 8]]",
    permission="[[tool bash touch made-by-test]]",
    background="",  # it tells of none
    echo=lambda answer: answer.startswith("ECHO: [ann #echo1]"),
    asked="bash: touch made-by-test",
    anew="/new",
)


@pytest.fixture
def stage(tmp_path: Path, model: ModelServer) -> Iterator[Stage]:
    """A session of OpenCode, not yet started."""
    home = tmp_path / "home"
    settle(home, model)
    environ = opencode_environ(home, model)
    stage = Stage(OpenCodeHarness(environ), WORDS, tmp_path, environ, patience=TURN)
    yield stage
    stage.close()
