"""A tmux server of a person's own, with hooks of theirs, and a `tmux` that is none."""

from functools import partial

import pytest

from core.base.errors import TmuxSilent
from core.model.session import Live
from core.tmux.runner import Runner
from core.tmux.server import TmuxServer
from tests.support.tmux import PrivateTmux, alive, launcher, wait_until

OTHER = "loop-standing-other"


@pytest.fixture
def first(private: PrivateTmux, runner: Runner) -> str:
    """Have the server run, and return the tag of a pane that lives in it."""
    return private.reading(runner)[0].tag


@pytest.mark.parametrize(
    "hook",
    ['run-shell "echo hi; exit 3"', "rename-session renamed", "source-file /nonexistent", "display-message -p hello"],
)
def test_a_pane_that_was_made_is_told_whatever_a_hook_does(
    private: PrivateTmux, runner: Runner, first: str, hook: str
) -> None:
    """It lives, under its own name, with what is to be of it; so does one that is made after it."""
    private.tmux("set-hook", "-g", "after-new-session", hook)

    panes = [
        private.spawn(runner, launcher(private.folder / "launch", "exec cat"), target=target)
        for target in (OTHER, f"{OTHER}-2")
    ]

    for pane, target in zip(panes, (OTHER, f"{OTHER}-2"), strict=True):
        wait_until(partial(alive, pane.pid), "its program runs")
        assert runner.survey().live(target, pane.tag) is Live.LIVE
        assert private.tmux("show-options", "-w", "-v", "-t", f"={target}:", "window-size").strip() == "manual"
        assert private.tmux("show-options", "-v", "-t", f"={target}:", "destroy-unattached").strip() == "off"


@pytest.mark.parametrize("hook", ["display-message -p hello", 'run-shell "exit 3"', "source-file /nonexistent"])
def test_a_hook_of_a_listing_makes_nobody_silent(private: PrivateTmux, runner: Runner, first: str, hook: str) -> None:
    """What it prints is no pane, and that it fails is no refusal of ours."""
    private.tmux("set-hook", "-g", "after-list-panes", hook)

    assert [pane.tag for pane in runner.survey().panes] == [first]


def test_a_program_that_says_nothing_is_no_tmux(private: PrivateTmux, first: str) -> None:
    """That nothing lives is concluded from an answer alone."""
    launcher(private.folder / "bin" / "tmux", "exit 0")
    server = TmuxServer(
        private.server.socket_name,
        private.server.conf,
        frozenset(),
        environ={**private.environ, "PATH": str(private.folder / "bin")},
    )

    with pytest.raises(TmuxSilent, match="did not answer"):
        Runner(server, server.process()).survey()


@pytest.mark.parametrize("hook", ['run-shell "exit 3"', "source-file /nonexistent"])
def test_a_screen_that_was_captured_is_shown_whatever_a_hook_does(
    private: PrivateTmux, runner: Runner, first: str, hook: str
) -> None:
    """That the hook of the capture fails is no refusal of the capture."""
    private.tmux("set-hook", "-g", "after-capture-pane", hook)

    assert runner.screen(first, 5) is not None
    assert runner.view(first).rows
