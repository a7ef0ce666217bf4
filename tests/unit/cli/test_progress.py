"""What only a terminal sees: a line while a command takes long, and colours."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Iterator
from typing import TextIO

import pytest

from core.cli import terminal
from core.cli.printing import has_colours, print_findings, warn
from core.cli.terminal import Progress
from core.model.health import Finding, State
from tests.support.tmux import wait_until


@pytest.fixture
def screen() -> Iterator[tuple[int, TextIO]]:
    """Give a terminal: the descriptor that reads what is shown, and the stream that writes to it."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as stream:
        yield ours, stream
    os.close(ours)


def test_a_command_that_takes_long_says_so_and_cleans_up(
    screen: tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The line goes before a warning is printed, and at the end."""
    ours, stream = screen
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(terminal, "_FIRST_SECONDS", 0.01)
    shown = b""

    with Progress("starting", {"TERM": "xterm"}):
        while b"starting" not in shown:
            shown += os.read(ours, 4096)
        warn("the-loop: look here")
    stream.flush()
    while b"look here" not in shown:
        shown += os.read(ours, 4096)

    assert b" s\r\x1b[Kthe-loop: look here" in shown


def test_without_a_terminal_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A log gets no line that is taken back."""
    with Progress("starting", {"TERM": "xterm"}) as progress:
        progress.tell("still starting")
        wait_until(lambda: True, "a moment")

    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("environ", "coloured"),
    [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({}, False)],
)
def test_colours_are_for_terminals(
    screen: tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], coloured: bool
) -> None:
    """And not for those whose user wants none."""
    ours, stream = screen
    monkeypatch.setattr(sys, "stdout", stream)

    print_findings([Finding("disk", State.FAILED, "it is full", "free some space")], environ)
    stream.flush()

    assert (b"\x1b[31mfailed" in os.read(ours, 4096)) is coloured


def test_a_pipe_has_no_colours() -> None:
    """Whatever the terminal can."""
    read, write = os.pipe()
    with os.fdopen(read), os.fdopen(write, "w") as stream:
        assert not has_colours(stream, {"TERM": "xterm"})
