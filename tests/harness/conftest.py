"""Real Claude Code on a model of our own: isolated home, made-up key, nothing but loopback."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.clock import SystemClock
from core.harness.claude.adapter import ClaudeHarness
from tests.fakes.model import ModelServer, serving
from tests.integration.harness.stage import Stage, Words

PROGRAMS = Path(__file__).parents[2] / ".harness" / "node_modules" / ".bin"
SLEEPING = ("--allowedTools", "Bash(sleep:*)")
KEY = "sk-ant-test-key-of-nobody-0123456789"
WORDS = Words(
    busy="[[tool bash sleep 4]]",
    permission="[[tool bash touch made-by-test]]",
    background="[[bg sleep 2]]",
    echo=lambda answer: answer.startswith("ECHO: [ann #echo1]"),
)


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """The model that the harness talks to."""
    with serving() as server:
        yield server


@pytest.fixture
def environ(tmp_path: Path, model: ModelServer) -> dict[str, str]:
    """The whole environment of the pane."""
    home = tmp_path / "home"
    home.mkdir()
    return {
        "HOME": str(home),
        "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
        "LANG": "C.UTF-8",
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_API_KEY": KEY,
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


@pytest.fixture
def stage(tmp_path: Path, environ: dict[str, str]) -> Iterator[Stage]:
    """A session of Claude Code, not yet started. Sleeping needs no permission, so that only `permission` asks."""
    stage = Stage(ClaudeHarness(SystemClock(), environ), WORDS, tmp_path, environ, SLEEPING)
    yield stage
    stage.close()
