"""Dead panes of anybody's are cleared away; a session in which a program runs is nobody's to clear."""

import os
import signal
from collections.abc import Callable

import pytest

from core.base.errors import TmuxSilent
from core.tmux.control import ControlTransport
from core.tmux.runner import Runner
from core.tmux.transport import Line, ProcessTransport, Reply
from tests.support.tmux import PrivateTmux, launcher, wait_until

TARGET = "loop-standing-test"


@pytest.fixture(params=["process", "control"])
def runner(request: pytest.FixtureRequest, private: PrivateTmux) -> Runner:
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


def test_dead_panes_are_cleared(private: PrivateTmux, runner: Runner) -> None:
    """The session goes with all its dead windows, and one whose name it begins stays."""
    dead_session(private)
    dead_session(private, f"{TARGET}2")
    private.tmux("new-window", "-d", "-t", f"={TARGET}:", "true")
    wait_until(lambda: states(private, TARGET) == "11", "both are dead")

    cleared = runner.clear(TARGET)

    assert cleared
    assert runner.survey().of_target(TARGET) == ()
    assert runner.survey().of_target(f"{TARGET}2") != ()


def test_a_window_with_a_program_keeps_its_session(private: PrivateTmux, runner: Runner) -> None:
    """A program in any of its windows is enough."""
    dead_session(private)
    private.tmux("new-window", "-d", "-t", f"={TARGET}:", "cat")

    cleared = runner.clear(TARGET)

    assert not cleared
    assert states(private, TARGET) == "01"


def test_nothing_there_is_clear(private: PrivateTmux, runner: Runner) -> None:
    """Neither a session nor even a server is needed."""
    assert runner.clear(TARGET)


class Between(ProcessTransport):
    """Asks by processes, and does something between the look and the line that kills."""

    def __init__(self, private: PrivateTmux, act: Callable[[], object]) -> None:
        super().__init__(lambda: private.server.command, private.server.environment())
        self._act = act

    def run(self, line: Line, timeout: float, data: bytes | None = None) -> Reply:
        """See Transport."""
        if "kill-session" in str(line):
            self._act()
        return super().run(line, timeout, data)


def test_a_pane_that_lives_again_is_not_killed(private: PrivateTmux) -> None:
    """The server looks for itself, in the turn in which it would kill."""
    dead_session(private)
    runner = private.runner(Between(private, lambda: private.tmux("respawn-pane", "-t", f"={TARGET}:", "cat")))

    cleared = runner.clear(TARGET)

    assert not cleared
    assert states(private, TARGET) == "0"


def test_clearing_that_slept_ends_nothing(private: PrivateTmux) -> None:
    """A line that a stopped server comes to after its deadline refuses itself."""
    dead_session(private)
    pid = private.pid()
    runner = private.runner(Between(private, lambda: os.kill(pid, signal.SIGSTOP)), timeout=1.2)

    with pytest.raises(TmuxSilent):
        runner.clear(TARGET)
    os.kill(pid, signal.SIGCONT)

    assert private.runner().survey().of_target(TARGET)
