"""A command whose output goes nowhere, or into an encoding that cannot show it, ends in words, not in a traceback."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from core.base.errors import TmuxSilent
from core.tmux.runner import _refused
from core.tmux.transport import Reply

PROGRAM = Path(sys.executable).with_name("the-loop")
TEXT = "日本語 ü"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Give a configuration that declares one session, described in letters that ASCII lacks."""
    path = tmp_path / "cli-config.yaml"
    path.write_text(
        f"state: {{root: {tmp_path / 'state'}}}\n"
        f"standingSessions: {{enabled: true, sessions: [{{name: scribe, harness: bundled, description: {TEXT}}}]}}\n",
        encoding="utf-8",
    )
    return path


def run(config: Path, shell: str, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run the command by a shell, which redirects its output."""
    command = ["/bin/sh", "-c", f'exec "$@" {shell}', "sh", str(PROGRAM), "--config", str(config), *words]
    home = {"HOME": str(config.parent), "PATH": os.environ["PATH"], **environ}
    return subprocess.run(command, env=home, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    "words", [("standing", "get", "scribe"), ("standing", "get", "scribe", "--json")], ids=" ".join
)
def test_what_an_encoding_lacks_is_shown_as_an_escape(config: Path, words: Sequence[str]) -> None:
    """The row is whole, and JSON stays JSON."""
    done = run(config, "", *words, PYTHONIOENCODING="ascii:strict")

    assert done.returncode == 0, done.stderr
    assert "\\u65e5\\u672c\\u8a9e" in done.stdout
    assert words[-1] != "--json" or json.loads(done.stdout)["name"] == "scribe"


@pytest.mark.parametrize("shell", [">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", [("standing", "list"), ("standing", "get", "scribe", "--json")], ids=" ".join)
def test_closed_streams_change_no_exit_code(config: Path, shell: str, words: Sequence[str]) -> None:
    """Who asks for the exit code alone gets it, and no file of ours takes the place of the stream."""
    done = run(config, shell, *words)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    "words",
    [
        ("standing", "list"),
        ("standing", "list", "--json"),
        ("status",),
        ("standing", "get", "nobody", "--json"),
        ("--help",),
        ("--version",),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_output_that_cannot_be_written_is_said(config: Path, words: Sequence[str], unbuffered: str) -> None:
    """One line with the reason, and exit code 1, whether or not Python keeps it in a buffer (PYTHONUNBUFFERED)."""
    done = run(config, "> /dev/full", *words, PYTHONUNBUFFERED=unbuffered)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1:] == [line for line in done.stderr.splitlines() if "No space left" in line]
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("shell", ["2> /dev/full", "> /dev/full 2> /dev/full", "2>&-"])
@pytest.mark.parametrize(
    ("words", "code"), [(("standing", "get", "nobody"), 1), (("--no-such-option",), 2), (("status", "--help"), 0)]
)
def test_an_error_that_cannot_be_written_keeps_its_exit_code(
    config: Path, shell: str, words: Sequence[str], code: int
) -> None:
    """0, 1 or 2 as ever, and never the interpreter's own for a stream that it cannot empty."""
    done = run(config, shell, *words)

    assert done.returncode == (1 if code == 0 and shell.startswith(">") else code)


@pytest.mark.parametrize(
    ("told", "remedy"),
    [
        ("protocol version mismatch (client 8, server 7)", "another version of tmux"),
        ("access not allowed", "another user"),
        ("something new", "try again"),
    ],
)
def test_what_tmux_says_gets_a_remedy_that_helps(told: str, remedy: str) -> None:
    """Trying again helps only where nothing better is known."""
    with pytest.raises(TmuxSilent, match=remedy):
        _refused(Reply(1, "", told))


@pytest.mark.parametrize(
    ("kind", "drawn"),
    [("xterm-256color", True), ("vt100", True), ("dumb", False), ("no-such-kind", False), ("", False)],
)
def test_a_terminal_in_which_tmux_cannot_draw_is_known(kind: str, drawn: bool) -> None:
    """Before tmux takes the command's place, and says so in words of its own."""
    words = f"from core.cli.standing import _can_draw; print(_can_draw({kind!r}))"

    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout == f"{drawn}\n"
