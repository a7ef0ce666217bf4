"""The door for importers has the verbs of the command line."""

import os

import pytest

import the_loop
from core.base.errors import NotRunning, UnknownMessage
from core.sdk.loop import Standing
from tests.unit.cli.conftest import Terminal


@pytest.fixture
def standing(terminal: Terminal) -> Standing:
    """Give the verbs of the terminal's configuration."""
    return the_loop.connect(terminal.config, {**os.environ}).standing


def test_the_verbs_on_what_runs_refuse_what_never_ran(standing: Standing) -> None:
    """Each names the start command."""
    for verb in (standing.pause, standing.resume, standing.interrupt, standing.logs):
        with pytest.raises(NotRunning, match="`the-loop standing start scribe`"):
            verb("scribe")


def test_queue_and_cancel_answer_without_anything_running(standing: Standing) -> None:
    """An empty queue, and an id that nobody knows."""
    assert standing.queue("scribe").messages == ()
    with pytest.raises(UnknownMessage):
        standing.cancel("m-1")
