"""What variables a session's program has: those of whoever starts it, at that start."""

import os
from pathlib import Path

import pytest

from core.lifecycle.look import get_standing
from core.lifecycle.pause import restart_standing
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.service.wiring import build_system
from core.session.system import System
from tests.support.tmux import PrivateTmux
from tests.support.world import ACTOR, World

_SHIM = """\
#!/bin/sh
echo "$*" >>{log}
exec {tmux} "$@"
"""


def shell(world: World, **variables: str) -> System:
    """Return the ports of a command that is given in a shell with these variables."""
    return build_system(world.settings(), {**world.environ(), **variables})


def environ_of(system: System) -> dict[str, str]:
    """Return the variables of the session's program."""
    pane = system.runner.survey().panes[0]
    entries = Path(f"/proc/{pane.pid}/environ").read_bytes().split(b"\0")
    return dict(os.fsdecode(entry).partition("=")[::2] for entry in entries if entry)


@pytest.mark.parametrize("again", ["start", "restart"])
def test_each_start_gives_the_environment_of_whoever_starts(world: World, again: str) -> None:
    """A rotated key is the new one, a new variable is there, one that has gone is gone; the tmux server lives on."""
    old = shell(world, AGENT_KEY="one", OUTDATED="yes")
    start_standing(old, "scribe", ACTOR)
    server = old.runner.survey().server
    new = shell(world, AGENT_KEY="two", PATH=f"/opt/newer:{os.environ['PATH']}")
    if again == "start":
        stop_standing(new, "scribe", ACTOR)
        start_standing(new, "scribe", ACTOR)
    else:
        restart_standing(new, "scribe", ACTOR)

    environ = environ_of(new)

    assert (environ["AGENT_KEY"], environ["PATH"].split(":")[0]) == ("two", "/opt/newer")
    assert "OUTDATED" not in environ
    assert new.runner.survey().server == server


def test_shell_of_another_agent_leaves_none_of_its_marks(world: World) -> None:
    """What it put there goes, with what it was told to work with; the operator's accounts stay."""
    marks = {"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "cli", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "5", "NO_COLOR": "1"}
    choices = {"ANTHROPIC_MODEL": "small", "GIT_EDITOR": "true", "PAGER": "cat"}
    kept = {"ANTHROPIC_API_KEY": "k", "CLAUDE_CODE_USE_BEDROCK": "1", "CLAUDE_CONFIG_DIR": "/c", "EDITOR": "vi"}
    system = shell(world, **marks, **choices, **kept)

    start_standing(system, "scribe", ACTOR)

    environ = environ_of(system)
    assert {*marks, *choices} & set(environ) == set()
    assert {name: environ.get(name) for name in kept} == kept


def test_operators_own_wishes_are_passed_on(world: World) -> None:
    """In a person's shell the same names are what that person wants."""
    wishes = {"ANTHROPIC_MODEL": "large", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "5", "NO_COLOR": "1", "PAGER": "cat"}
    system = shell(world, **wishes)

    start_standing(system, "scribe", ACTOR)

    environ = environ_of(system)
    assert {name: environ.get(name) for name in wishes} == wishes


def test_values_stand_on_no_command_line_and_in_no_file(world: World, private: PrivateTmux, tmp_path: Path) -> None:
    """Neither on tmux's, nor in the state folder, nor in what the tmux server keeps."""
    programs, log = tmp_path / "bin", tmp_path / "calls"
    programs.mkdir()
    tmux = next(path for folder in os.environ["PATH"].split(":") if (path := Path(folder) / "tmux").exists())
    (programs / "tmux").write_text(_SHIM.format(log=log, tmux=tmux))
    (programs / "tmux").chmod(0o755)
    system = shell(world, AGENT_KEY="very-secret", PATH=f"{programs}:{os.environ['PATH']}")

    start_standing(system, "scribe", ACTOR)

    assert environ_of(system)["AGENT_KEY"] == "very-secret"
    calls = log.read_text()
    assert "new-session" in calls
    assert "show-buffer" in calls
    assert "very-secret" not in calls
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert [path for path in files if b"very-secret" in path.read_bytes()] == []
    kept = (private.tmux("show-environment", "-g"), private.tmux("show-environment", "-t", "=loop-standing-scribe:"))
    assert "very-secret" not in "".join(kept)
    assert private.tmux("list-buffers") == ""


def test_row_names_what_a_start_would_change_and_no_value(world: World) -> None:
    """By name, in the row's detail; `drift` has it as `environment`. What changes with every login is no difference."""
    start_standing(shell(world, AGENT_KEY="one", OUTDATED="yes", SSH_AUTH_SOCK="/a"), "scribe", ACTOR)

    same = get_standing(shell(world, AGENT_KEY="one", OUTDATED="yes", SSH_AUTH_SOCK="/b", SHLVL="3"), "scribe")
    other = get_standing(shell(world, AGENT_KEY="two", NEWER="x", SSH_AUTH_SOCK="/b"), "scribe")

    assert (same.drift, same.detail) == ((), "")
    assert other.drift == ("environment",)
    assert other.detail == "a start from here would change its environment: AGENT_KEY, NEWER, OUTDATED"


def test_row_inside_of_a_session_says_nothing_of_it(world: World) -> None:
    """An agent starts nothing, and its own shell is none of the operator's."""
    start_standing(shell(world, AGENT_KEY="one"), "scribe", ACTOR)

    row = get_standing(shell(world, AGENT_KEY="two", THE_LOOP_INSTANCE="i-x"), "scribe")

    assert (row.drift, row.detail) == ((), "")


def test_session_of_an_earlier_release_is_not_said_to_differ(world: World) -> None:
    """Nobody noted what its program was given."""
    system = shell(world, AGENT_KEY="one")
    start_standing(system, "scribe", ACTOR)
    [note] = (tmp for tmp in system.paths.sessions.rglob("environment"))
    note.write_text("[")
    unreadable = get_standing(shell(world, AGENT_KEY="two"), "scribe")
    note.unlink()

    assert get_standing(shell(world, AGENT_KEY="two"), "scribe").drift == unreadable.drift == ()
