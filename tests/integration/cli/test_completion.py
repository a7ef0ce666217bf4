"""Completion in real shells, by the script that `the-loop completion` prints."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from core.base.paths import StatePaths
from core.model.session import Definition, SessionRecord
from core.store.records import Records
from tests.support.product import PROGRAM
from tests.unit.store.samples import NOON

_BASH = """
source <({program} completion bash)
COMP_WORDS=({words}) COMP_CWORD={last} COMPREPLY=()
_the_loop_completion the-loop
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
#: The functions of zsh's completion system, which only a terminal has, print what they are given.
_ZSH = """
compdef() {{ }}
compadd() {{ print -l -- $completions }}
_describe() {{ print -l -- $completions_with_descriptions }}
source <({program} completion zsh)
words=({words}) CURRENT=$(( {last} + 1 ))
_the_loop_completion
"""
_FISH = """
{program} completion fish | source
complete -C '{line}'
"""


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """Give the environment of a user with a declared session and a recorded one."""
    config, state = tmp_path / "config", tmp_path / "state"
    (config / "the-loop").mkdir(parents=True)
    (config / "the-loop" / "cli-config.yaml").write_text("standingSessions: {sessions: [{name: scribe}]}\n")
    record = SessionRecord("builder", "s-1", Definition("builder"), NOON)
    Records(StatePaths(state / "the-loop")).write(record)
    folders = {"XDG_CONFIG_HOME": str(config), "XDG_STATE_HOME": str(state), "HOME": str(tmp_path)}
    return {**os.environ, **folders, "TERM": "dumb", "LC_ALL": "C.UTF-8"}


def completed(shell: str, line: str, environ: dict[str, str]) -> list[str]:
    """Return what the shell offers for the last word of the line, which may be empty."""
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    script = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}[shell].format(
        program=PROGRAM, words=quoted, last=len(words) - 1, line=line
    )
    program: Sequence[str] = {"bash": ("bash", "--norc"), "zsh": ("zsh", "-f"), "fish": ("fish", "--no-config")}[shell]
    done = subprocess.run(
        [*program, "-c", script], env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return [part.split("\t")[0].split(":")[0] for part in done.stdout.splitlines() if part]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_sessions_verbs_and_options(shell: str, environ: dict[str, str]) -> None:
    """Declared and recorded sessions, in every verb that takes one; verbs of a group; options."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")

    names = completed(shell, "the-loop standing say ", environ)
    begun = completed(shell, "the-loop loop list s", environ)
    verbs = completed(shell, "the-loop standing re", environ)
    options = completed(shell, "the-loop doctor --", environ)

    assert names == ["builder", "scribe"]
    assert begun == ["scribe"]
    assert set(verbs) == {"restart", "resume"}
    assert {"--live", "--strict", "--json"} <= set(options)


def test_a_configuration_that_is_broken_completes_what_is_recorded(environ: dict[str, str]) -> None:
    """A shell must not be disturbed by an error of ours."""
    Path(environ["XDG_CONFIG_HOME"], "the-loop", "cli-config.yaml").write_text("nonsense: [")

    assert completed("bash", "the-loop standing get ", environ) == ["builder"]
