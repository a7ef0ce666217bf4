"""What somebody watches: a frame of the screen with its colours, and keys that are written byte by byte."""

from datetime import UTC, datetime, timedelta

import pytest

from core.base.errors import NotRunning
from core.model.pane import Frame, Written
from core.tmux.runner import Runner
from tests.support.tmux import PrivateTmux, launcher, wait_until

SOON = timedelta(seconds=20)


def shown(private: PrivateTmux, runner: Runner, body: str, until: str) -> Frame:
    """Return the frame of a pane that runs the shell's words, once it shows the text."""
    pane = private.spawn(runner, launcher(private.folder / "shows", body))
    wait_until(lambda: until in runner.frame(pane.tag).text, "it is shown")
    return runner.frame(pane.tag)


def test_a_frame_has_size_cursor_and_colours(private: PrivateTmux, runner: Runner) -> None:
    """Each row stands at its place, coloured blanks at its end included."""
    body = r"printf '\033[31mred\033[0m plain\n\033[44m   \033[0m\nend\033[?25l'; exec cat"

    frame = shown(private, runner, body, "end")

    rows = frame.text.split("\n")
    assert (frame.columns, frame.rows) == (200, 50)
    assert frame.cursor == (3, 2)
    assert not frame.cursor_shown
    assert "\x1b[31mred" in rows[0]
    assert rows[1].startswith("\x1b[44m   ")


def test_only_characters_and_styles_leave_the_terminal(private: PrivateTmux, runner: Runner) -> None:
    """No title, no link and no other control that a program prints reaches whoever watches."""
    body = (
        r"printf '\033]0;owned\007\033]8;;https://evil.example\033\\link\033]8;;\033\\'; "
        r"printf '\033[5;31mx\033[0m\033]52;c;b3duZWQ=\007\302\233 end'; exec cat"
    )

    frame = shown(private, runner, body, "end")

    assert "evil.example" not in frame.text
    assert "owned" not in frame.text
    left = frame.text.replace("\n", "")
    while "\x1b[" in left:
        before, _, rest = left.partition("\x1b[")
        style, _, after = rest.partition("m")
        assert set(style) <= set("0123456789;:")
        left = before + after
    assert left.isprintable()
    assert "linkx" in left


def test_keys_are_written_as_they_are(private: PrivateTmux, runner: Runner) -> None:
    """Letters of any script, an arrow key and Enter, without a receipt on the pane."""
    pane = private.spawn(runner, launcher(private.folder / "reads", "stty -echo; exec cat -v"))

    written = runner.type_keys(pane.tag, "größe \x1b[A\r".encode(), datetime.now(UTC) + SOON)

    wait_until(lambda: "^[[A" in runner.frame(pane.tag).text, "they are read")
    assert written is Written.DONE
    assert "gr" in runner.frame(pane.tag).text
    assert "@the_loop_pasted" not in private.tmux("show-options", "-p", "-t", pane.pane_id)
    assert private.tmux("list-buffers") == ""


def test_keys_for_another_instance_or_too_late_are_written_nowhere(private: PrivateTmux, runner: Runner) -> None:
    """The server itself looks at the tag and at the time."""
    pane = private.spawn(runner, launcher(private.folder / "reads", "exec cat"))

    absent = runner.type_keys("i-other", b"lost", datetime.now(UTC) + SOON)
    late = runner.type_keys(pane.tag, b"lost", datetime.now(UTC) - SOON)

    assert (absent, late) == (Written.ABSENT, Written.LATE)
    assert "lost" not in runner.frame(pane.tag).text
    assert private.tmux("list-buffers") == ""


def test_a_pane_that_is_not_there_has_no_frame(private: PrivateTmux, runner: Runner) -> None:
    """It is said, and not shown as empty."""
    private.spawn(runner, launcher(private.folder / "other", "exec cat"))

    with pytest.raises(NotRunning):
        runner.frame("i-other")
