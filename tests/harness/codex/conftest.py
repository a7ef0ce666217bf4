"""Real Codex: its stage."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.harness.codex.adapter import CodexHarness
from tests.fakes.model import ModelServer
from tests.harness.codex.product import ASKS, CODEX, settle, variables
from tests.integration.harness.stage import Stage, Words

WORDS = Words(
    busy="[[tool bash sleep 4]]",
    permission=ASKS,
    background='[[call exec_command {"cmd": "sleep 2", "yield_time_ms": 300}]]',
    echo=lambda answer: answer.startswith("ECHO: [ann #echo1]"),
)


@pytest.fixture
def environ(tmp_path: Path, model: ModelServer) -> dict[str, str]:
    """The whole environment of the pane."""
    home = tmp_path / "home"
    settle(home, model)
    path = f"{CODEX.programs}:{os.environ['PATH']}"
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "TERM": "xterm-256color", **variables(home, model)}


@pytest.fixture
def stage(tmp_path: Path, environ: dict[str, str]) -> Iterator[Stage]:
    """A session of Codex, not yet started."""
    stage = Stage(CodexHarness(environ), WORDS, tmp_path, environ)
    yield stage
    stage.close()
