"""Real OpenCode: its stage, and products whose sessions it is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.harness.opencode.adapter import OpenCodeHarness
from embedded.workspace.thread import WorkspaceThread
from tests.fakes.model import ModelServer
from tests.harness.opencode.product import (
    START_SECONDS,
    OpenCodeProduct,
    opencode_environ,
    opencode_product,
    write_settings,
)
from tests.integration.harness.stage import Stage, Words

WORDS = Words(
    busy="[[tool bash sleep 8]]",
    permission="[[tool bash touch made-by-test]]",
    background="",  # it tells of none
    echo=lambda answer: answer.startswith("ECHO: [ann #echo1]"),
)


@pytest.fixture
def stage(tmp_path: Path, model: ModelServer) -> Iterator[Stage]:
    """A session of OpenCode, not yet started."""
    home = tmp_path / "home"
    write_settings(home, model)
    environ = opencode_environ(home)
    stage = Stage(OpenCodeHarness(environ), WORDS, tmp_path, environ, patience=START_SECONDS)
    yield stage
    stage.close()


@pytest.fixture
def talking(model: ModelServer) -> Iterator[OpenCodeProduct]:
    """Give a product whose one session, of OpenCode, has a thread in a workspace."""
    with WorkspaceThread(retry_scale=0.01, ack_seconds=2.0) as workspace, opencode_product(workspace, model) as product:
        yield product


@pytest.fixture
def alone(model: ModelServer) -> Iterator[OpenCodeProduct]:
    """Give a product without a channel."""
    with opencode_product(None, model) as product:
        yield product
