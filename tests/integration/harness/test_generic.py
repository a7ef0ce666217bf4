"""A declared harness, with the bundled agent in the part of a program that we know nothing about."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import embedded.agent
from core.harness.generic import GenericHarness
from core.model.harness import TurnEnded
from tests.integration.harness.stage import Stage
from tests.integration.harness.test_bundled import WORDS
from tests.support.tmux import wait_until


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A session of the declared harness, not yet started."""
    program = [
        sys.executable,
        "-I",
        "-S",
        str(Path(embedded.agent.__file__).parent),
        "--state",
        str(tmp_path / "state"),
    ]
    harness = GenericHarness(
        "mine",
        [*program, "--session-id", "{id}", "--", "{prompt}"],
        resume=[*program, "--resume", "{id}"],
        ready=r"^> *$",
        settle_ms=50,
    )
    stage = Stage(harness, WORDS, tmp_path, {"HOME": str(tmp_path), "PATH": os.environ["PATH"]})
    yield stage
    stage.close()


def test_declared_harness_starts_takes_text_and_resumes(stage: Stage) -> None:
    """Its ready sign is found on the screen, its prompt is an argument, text arrives, and a resume brings all back."""
    stage.start("be a scribe")
    wait_until(lambda: stage.harness.screen_ready(stage.screen()), "the ready sign")
    assert "> be a scribe" in stage.screen()

    stage.paste("hello there")
    wait_until(lambda: "You said (2 words): “hello there”" in stage.screen(), "the answer is on the screen")
    stage.terminate()

    assert stage.harness.resumable(stage.context)
    stage.start()
    wait_until(lambda: "resumed: 2 messages so far, the last: “hello there”" in stage.screen(), "it is resumed")
    assert stage.of(TurnEnded) == []
