"""Real Claude Code: its stage, and products whose sessions it is."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.base.clock import SystemClock
from core.harness.claude.adapter import ClaudeHarness
from embedded.workspace.thread import WorkspaceThread
from tests.fakes.model import ModelServer
from tests.harness.claude.product import SLEEPING, ClaudeProduct, claude_environ, claude_product
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
    return claude_environ(home, model)


@pytest.fixture
def stage(tmp_path: Path, environ: dict[str, str]) -> Iterator[Stage]:
    """A session of Claude Code, not yet started. Sleeping needs no permission, so that only `permission` asks."""
    stage = Stage(ClaudeHarness(SystemClock(), environ), WORDS, tmp_path, environ, SLEEPING)
    yield stage
    stage.close()


@pytest.fixture
def talking(model: ModelServer) -> Iterator[ClaudeProduct]:
    """Give a product whose one session, of Claude Code, has a thread in a workspace."""
    with WorkspaceThread(retry_scale=0.01, ack_seconds=2.0) as workspace, claude_product(workspace, model) as product:
        yield product


@pytest.fixture
def alone(model: ModelServer) -> Iterator[ClaudeProduct]:
    """Give a product without a channel."""
    with claude_product(None, model) as product:
        yield product
