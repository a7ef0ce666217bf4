"""The window that shows a pane, and all that tmux has kept of it."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from core.base.errors import NotRunning, TmuxSilent
from core.model.pane import Pane
from core.tmux.runner import Runner
from core.tmux.window import look
from tests.support.tmux import PATIENCE, PrivateTmux, launcher, wait_until

COUNTING = "i=0; while [ $i -lt {} ]; do echo line $i; i=$((i+1)); done; echo end; exec cat"


def shown(private: PrivateTmux, runner: Runner, body: str, target: str = "loop-standing-test") -> Pane:
    """Give a pane that has printed what the script prints, `end` last."""
    pane = private.spawn(runner, launcher(private.folder / f"run-{target}", body), target=target)
    wait_until(lambda: runner.screen(pane.tag, 1) == "end", "it has printed everything")
    return pane


def asking(private: PrivateTmux, server: int) -> list[str]:
    """Return the programs that ask that server something: their arguments name its socket."""
    found = psutil.process_iter(["cmdline"])
    words = {one.pid: " ".join(one.info["cmdline"] or ()) for one in found}
    return [line for pid, line in words.items() if private.server.socket_name in line and pid != server]


def test_a_window_tells_its_size_what_is_kept_and_what_was_set_for_it(private: PrivateTmux, runner: Runner) -> None:
    """What is set for this window or this pane is told; what is set for all is not."""
    pane = shown(private, runner, COUNTING.format(120))
    private.tmux("set-option", "-w", "-t", pane.pane_id, "synchronize-panes", "on")
    private.tmux("set-option", "-p", "-t", pane.pane_id, "@note", "two words; #{pane_id}")
    private.tmux("set-option", "-g", "-w", "mode-keys", "vi")

    window, text = runner.window(pane.tag, history=False)

    assert window.window_id == private.tmux("display-message", "-p", "-t", pane.pane_id, "#{window_id}").strip()
    assert (window.columns, window.rows, window.history, window.limit) == (200, 50, 72, 10000)
    assert window.options == {
        "remain-on-exit": True,
        "window-size": "manual",
        "synchronize-panes": True,
        "@note": "two words; #{pane_id}",
    }
    assert (window.alternate, text) == (False, "")


def test_a_window_on_the_alternate_screen_says_so(private: PrivateTmux, runner: Runner) -> None:
    """A full-screen program draws there."""
    pane = shown(private, runner, "printf '\\033[?1049hend'; exec cat")

    assert runner.window(pane.tag, history=False)[0].alternate is True


def test_history_is_all_that_tmux_has_kept(private: PrivateTmux, runner: Runner) -> None:
    """More lines than a screen is asked for, each whole, without the empty rest of the screen."""
    body = "i=0; while [ $i -lt 1500 ]; do printf 'line %d %0300d\\n' $i 7; i=$((i+1)); done; echo end; exec cat"
    pane = shown(private, runner, body)

    _, text = runner.window(pane.tag, history=True)

    assert text.split("\n") == [*(f"line {i} {7:0300d}" for i in range(1500)), "end"]


def test_history_says_where_there_is_more_of_it(private: PrivateTmux, runner: Runner) -> None:
    """A server of somebody's may keep any number of lines; so many are not taken while it serves nobody else."""
    shown(private, runner, "echo end; exec cat", target="first")
    private.tmux("set-option", "-g", "history-limit", "20000")
    pane = shown(private, runner, "seq 12000; echo end; exec cat")

    window, text = runner.window(pane.tag, history=True)

    assert window.history > 10000
    first, *others = text.split("\n")
    assert first.startswith("… ")
    assert len(others) > 9990
    assert others[-2:] == ["12000", "end"]


def test_a_frozen_server_is_given_up_in_time_and_nobody_asks_it_any_more(private: PrivateTmux, runner: Runner) -> None:
    """Not libtmux either, which waits for ever by itself, nor the client that it has started."""
    pane = shown(private, runner, "echo end; exec cat")
    seconds = 1.5

    with private.frozen() as server:
        began = time.monotonic()
        with pytest.raises(TmuxSilent, match="no answer about the window"):
            look(private.server, pane.pane_id, pane.tag, 100, seconds)
        assert time.monotonic() - began < 10 * seconds  # much less than until the server goes on, which is never
        wait_until(lambda: asking(private, server) == [], "nobody asks")

    assert runner.window(pane.tag, history=False)[0].columns == 200


def test_a_server_that_freezes_in_the_middle_is_given_up_in_time(private: PrivateTmux, runner: Runner) -> None:
    """It told where the pane is, and answers no more; whoever asked is told as of any silence."""
    pane = shown(private, runner, "echo end; exec cat")
    pid = private.pid()
    real = private.server.program
    slow = launcher(private.folder / "tmux", f'case "$*" in *show-options*) kill -STOP {pid};; esac\nexec {real} "$@"')
    impatient = Runner(replace(private.server, binary=str(slow)), private.server.process(), timeout=3)

    try:
        with pytest.raises(TmuxSilent, match="no answer about the window"):
            impatient.window(pane.tag, history=True)
        wait_until(lambda: asking(private, pid) == [], "nobody asks")
    finally:
        os.kill(pid, signal.SIGCONT)


def test_whatever_tmux_says_instead_is_told(private: PrivateTmux, runner: Runner) -> None:
    """It is no absent window."""
    pane = shown(private, runner, "echo end; exec cat")
    broken = launcher(private.folder / "tmux", "echo 'protocol version mismatch (client 8, server 7)' >&2; exit 1")
    confused = launcher(private.folder / "other" / "tmux", "echo '@1 nonsense'")

    for binary, words in ((broken, "protocol version mismatch"), (confused, "it told something else")):
        asked = Runner(replace(private.server, binary=str(binary)), private.server.process(), timeout=PATIENCE)
        with pytest.raises(TmuxSilent, match=words):
            asked.window(pane.tag, history=False)


def test_only_the_very_pane_is_shown(private: PrivateTmux, runner: Runner) -> None:
    """Sessions whose names begin like it, or hold what tmux reads as a place in it, are not; nor once it is gone."""
    names = ("work2", "work", "work-2")
    panes = {name: shown(private, runner, f"echo of {name}; echo end; exec cat", target=name) for name in names}
    for stranger in ("work.0", "work:1", "wor", "=work"):
        private.tmux("new-session", "-d", "-s", stranger, f"echo of '{stranger}'; exec cat")

    seen = {name: runner.window(pane.tag, history=True)[1] for name, pane in panes.items()}
    runner.end(panes["work"].tag)

    assert seen == {name: f"of {name}\nend" for name in names}
    with pytest.raises(NotRunning):
        runner.window(panes["work"].tag, history=True)


def test_a_pane_that_runs_something_else_by_then_is_not_shown(private: PrivateTmux, runner: Runner) -> None:
    """A person who starts another program in it between our look and libtmux's gets none of that told."""
    pane = shown(private, runner, "echo end; exec cat")
    private.tmux("respawn-pane", "-k", "-t", pane.pane_id, "echo a secret; exec cat")

    seen = look(private.server, pane.pane_id, pane.tag, 100, PATIENCE)
    gone = look(private.server, "%77", pane.tag, 100, PATIENCE)

    assert (seen.window, seen.reply.out) == (None, "")
    assert (gone.window, gone.reply.out) == (None, "")
    with pytest.raises(NotRunning):
        runner.window(pane.tag, history=True)


def test_what_a_program_prints_or_is_called_changes_no_answer(private: PrivateTmux, runner: Runner) -> None:
    """Its title and its folder hold what libtmux parts its own answers by; its text looks like one of ours."""
    folder = private.folder / "a\n␞b"
    folder.mkdir()
    text = '@1 1 1 1 1 0␞{"said": "no server running on "}'
    body = f"cd '{folder}'\nprintf '\\033]2;a␞b␞␞\\007'\necho '{text}'; echo end; exec cat"
    pane = shown(private, runner, body)

    window, kept = runner.window(pane.tag, history=True)

    assert (window.columns, kept) == (200, f"{text}\nend")


def test_a_swept_socket_is_made_again_for_libtmux_too(private: PrivateTmux, runner: Runner) -> None:
    """The look before tells the server to."""
    pane = shown(private, runner, "echo end; exec cat")
    Path(private.server.socket).unlink()

    assert runner.window(pane.tag, history=True)[1] == "end"
