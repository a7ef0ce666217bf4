"""Real Gemini CLI: its stage, and products whose sessions it is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.harness.gemini.adapter import GeminiHarness
from embedded.workspace.thread import WorkspaceThread
from tests.fakes.model import ModelServer
from tests.harness.gemini.product import MODEL, GeminiProduct, gemini_environ, gemini_product
from tests.integration.harness.stage import Stage, Words

WORDS = Words(
    busy="[[tool bash sleep 4]]",
    permission="[[tool bash touch made-by-test]]",
    background="[[bg sleep 2]]",
    echo=lambda answer: answer.startswith("ECHO: [ann #echo1]"),
)


@pytest.fixture
def environ(tmp_path: Path, model: ModelServer) -> dict[str, str]:
    """The whole environment of the pane."""
    home = tmp_path / "home"
    home.mkdir()
    return gemini_environ(home, model)


@pytest.fixture
def stage(tmp_path: Path, environ: dict[str, str]) -> Iterator[Stage]:
    """A session of Gemini CLI, not yet started."""
    stage = Stage(GeminiHarness(environ), WORDS, tmp_path, environ, MODEL)
    yield stage
    stage.close()


@pytest.fixture
def talking(model: ModelServer) -> Iterator[GeminiProduct]:
    """Give a product whose one session, of Gemini CLI, has a thread in a workspace."""
    with WorkspaceThread(retry_scale=0.01, ack_seconds=2.0) as workspace, gemini_product(workspace, model) as product:
        yield product


@pytest.fixture
def alone(model: ModelServer) -> Iterator[GeminiProduct]:
    """Give a product without a channel."""
    with gemini_product(None, model) as product:
        yield product
