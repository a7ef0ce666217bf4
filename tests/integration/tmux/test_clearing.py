"""Dead panes of anybody's are cleared away; a session in which a program runs is nobody's to clear."""

import os
import signal
import threading
from datetime import UTC, datetime

import pytest

from core.errors import TmuxSilent
from core.tmux.control import ControlTransport
from core.tmux.runner import TmuxRunner
from tests.support.tmux import PrivateTmux, launcher, wait_until

TARGET = "loop-standing-test"


@pytest.fixture(params=["process", "control"])
def runner(request: pytest.FixtureRequest, private: PrivateTmux) -> TmuxRunner:
    """Give a runner over each transport."""
    return private.runner(ControlTransport(private.server) if request.param == "control" else None)


def dead_session(private: PrivateTmux, target: str = TARGET) -> None:
    """Leave a session whose one pane is dead, and not tagged."""
    private.spawn(private.runner(), launcher(private.folder / "brief", "exec true"), target=target)
    private.tmux("set-option", "-p", "-u", "-t", f"={target}:", "@the_loop_instance")
    wait_until(lambda: states(private, target) == "1", "the pane is dead")


def states(private: PrivateTmux, target: str) -> str:
    """Return for each pane of the session whether it is dead, as 0 and 1."""
    return "".join(sorted(private.tmux("list-panes", "-s", "-t", f"={target}:", "-F", "#{pane_dead}").split()))


def test_dead_panes_are_cleared(private: PrivateTmux, runner: TmuxRunner) -> None:
    """The session goes with all its dead windows, and one whose name it begins stays."""
    dead_session(private)
    dead_session(private, f"{TARGET}2")
    private.tmux("new-window", "-d", "-t", f"={TARGET}:", "true")
    wait_until(lambda: states(private, TARGET) == "11", "both are dead")

    cleared = runner.clear(TARGET)

    assert cleared
    assert {pane.target for pane in runner.survey().panes} == {f"{TARGET}2"}


def test_a_window_with_a_program_keeps_its_session(private: PrivateTmux, runner: TmuxRunner) -> None:
    """A program in any of its windows is enough."""
    dead_session(private)
    private.tmux("new-window", "-d", "-t", f"={TARGET}:", "cat")

    cleared = runner.clear(TARGET)

    assert not cleared
    assert states(private, TARGET) == "01"


def test_nothing_there_is_clear(private: PrivateTmux, runner: TmuxRunner) -> None:
    """Neither a session nor even a server is needed."""
    assert runner.clear(TARGET)


def test_clearing_that_slept_ends_nothing(private: PrivateTmux) -> None:
    """A line that a stopped server comes to after its deadline refuses itself: a new pane may stand there by then."""
    patient = private.runner(ControlTransport(private.server), timeout=20)
    hasty = private.runner(timeout=1)
    dead_session(private)
    patient.survey()

    with private.frozen(), pytest.raises(TmuxSilent):
        hasty.clear(TARGET)

    assert patient.survey().of_target(TARGET)


def test_the_guard_looks_again_in_the_server(private: PrivateTmux) -> None:
    """A pane that was respawned between the look and the line is not killed."""
    runner = private.runner(ControlTransport(private.server), timeout=20)
    dead_session(private)
    runner.survey()
    [pane] = runner.survey().panes
    pid = private.pid()
    began = datetime.now(UTC)
    threading.Timer(0.5, os.kill, (pid, signal.SIGCONT)).start()

    private.tmux("respawn-pane", "-t", pane.pane_id, "cat")
    cleared = runner.clear(TARGET)

    assert not cleared
    assert datetime.now(UTC) > began
    assert states(private, TARGET) == "0"
