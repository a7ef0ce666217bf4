"""What Codex is told by its arguments, and what its hooks report."""

import json
import shlex
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import InvalidValue
from core.harness.codex.adapter import CodexHarness
from core.harness.codex.arguments import refuse_owned, settings_of, toml
from core.harness.codex.hooks import hook_overrides, interpret
from core.model.harness import (
    DialogReported,
    Ended,
    HarnessEvent,
    PromptReported,
    Ready,
    Report,
    SessionContext,
    ToolEnded,
    ToolStarted,
    TurnBlocked,
    TurnEnded,
)

TURN = "01a22d83-5277-7c82-8160-5db5a973c201"


def context_in(folder: Path, *args: str, session_id: str | None = None) -> SessionContext:
    """Return a session whose folders are below one."""
    (folder / "work").mkdir(exist_ok=True)
    return SessionContext(
        name="scribe",
        uid="s-1",
        instance="i-1",
        cwd=folder / "work",
        folder=folder / "session's folder",
        spool=folder / "spool",
        notify=folder / "poke",
        args=args,
        session_id=session_id,
    )


def harness_in(folder: Path, config: str = "") -> CodexHarness:
    """Return the adapter for a home whose configuration holds that, with a program that does nothing."""
    (folder / ".codex").mkdir()
    (folder / ".codex" / "config.toml").write_text(config)
    program = folder / "codex"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return CodexHarness({"HOME": str(folder), "PATH": str(folder)})


def given_to(argv: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings that a command line gives by `-c`, as Codex reads them."""
    found: dict[str, Any] = {}
    for word, value in pairwise(argv):
        if word == "-c":
            for key, each in tomllib.loads(value).items():
                found.setdefault(key, {}).update(each) if isinstance(each, dict) else found.update({key: each})
    return found


def test_each_hook_is_trusted_by_its_hash() -> None:
    """The hash is the one that Codex 0.159.3 and 0.171.0 list for that handler (`hooks/list` of their app server)."""
    told: dict[str, Any] = {}
    for each in hook_overrides(Path("/tmp/dev/hook")):
        for event, value in tomllib.loads(each)["hooks"].items():
            told[event] = value

    handler = told["Stop"][0]["hooks"][0]
    assert handler == {"type": "command", "command": "/tmp/dev/hook Stop", "timeout": 10}
    assert set(told["state"]) == {
        f"/<session-flags>/config.toml:{label}:0:0"
        for label in (
            *("session_start", "user_prompt_submit", "pre_tool_use", "post_tool_use", "permission_request", "stop"),
            *("subagent_stop", "interrupt", "session_end"),
        )
    }
    assert told["state"]["/<session-flags>/config.toml:stop:0:0"] == {"trusted_hash": STOP_HASH}


STOP_HASH = "sha256:baea25deaace812bca2bd109272e20b2c96a297b6e9b4dfecc561eab22924d6c"


def test_start_and_resume(tmp_path: Path) -> None:
    """The prompt follows `--`; a resume names the conversation; both keep the daemon out and ask on request."""
    harness, context = harness_in(tmp_path), context_in(tmp_path, "-m", "o9", session_id="01a2")

    fresh = harness.launch(context, resume=False, prompt="-c is what?").argv
    resumed = harness.launch(context, resume=True, prompt=None).argv

    assert fresh[1:6] == ("--no-daemon", "--cd", str(context.cwd), "--ask-for-approval", "on-request")
    assert fresh[-4:] == ("-m", "o9", "--", "-c is what?")
    assert resumed[1:3] == ("resume", "--no-daemon")
    assert resumed[-2:] == ("--", "01a2")


def test_settings_are_of_this_process_alone(tmp_path: Path) -> None:
    """Hooks, our tools and trust come in the arguments, whatever characters the folder's name has."""
    harness, context = harness_in(tmp_path), context_in(tmp_path)
    before = sorted(tmp_path.rglob("*"))

    given = given_to(harness.launch(context, resume=False, prompt=None).argv)

    assert given["projects"] == {str(context.cwd): {"trust_level": "trusted"}}
    assert given["mcp_servers"]["the-loop"]["args"][-1] == str(context.token_file)
    assert shlex.split(given["hooks"]["Stop"][0]["hooks"][0]["command"]) == [str(context.folder / "report"), "Stop"]
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("config", "args"),
    [
        ('approval_policy = "never"', ()),
        ("", ("-a", "never")),
        ("", ("--ask-for-approval=never",)),
        ("", ("-c", 'approval_policy="untrusted"')),
        ("", ("--dangerously-bypass-approvals-and-sandbox",)),
    ],
)
def test_what_asks_for_permission_is_the_operators_to_settle(
    tmp_path: Path, config: str, args: tuple[str, ...]
) -> None:
    """Only where nobody has settled it is Codex told to ask: without that it refuses in the model's name."""
    harness = harness_in(tmp_path, config)

    argv = harness.launch(context_in(tmp_path, *args), resume=False, prompt=None).argv

    assert "on-request" not in argv


@pytest.mark.parametrize("level", ["trusted", "untrusted"])
def test_a_decision_about_the_folder_stands(tmp_path: Path, level: str) -> None:
    """Whoever has decided about the folder, or one above it, is not overruled."""
    harness = harness_in(tmp_path, f"[projects.{json.dumps(str(tmp_path))}]\ntrust_level = {json.dumps(level)}")

    argv = harness.launch(context_in(tmp_path), resume=False, prompt=None).argv

    assert "projects" not in given_to(argv)


@pytest.mark.parametrize(
    "args",
    [
        ("resume",), ("-m", "o9", "exec"), ("-C", "/tmp"), ("--cd=/tmp",), ("--remote", "unix://x"),
        ("-c", "hooks.Stop=[]"), ("-chooks={}",), ("--worktree",), ("--",), ("-h",), ("--last",),
    ],
)  # fmt: skip
def test_what_is_ours_is_refused(args: tuple[str, ...]) -> None:
    """In the long and the short form, joined and apart; a word alone is a prompt or a subcommand."""
    with pytest.raises(InvalidValue, match="cannot be given"):
        refuse_owned(args)


@pytest.mark.parametrize(
    "args", [("-m", "o9"), ("-c", "model=resume"), ("-so9",), ("--search",), ("-p", "work"), ("--add-dir", "/tmp")]
)
def test_all_else_is_taken(args: tuple[str, ...]) -> None:
    """The value of a flag is no word alone."""
    refuse_owned(args)


def test_profile_and_arguments_go_before_the_file(tmp_path: Path) -> None:
    """As Codex layers them; what is no TOML is a text."""
    (tmp_path / "config.toml").write_text('model = "a"\n[features]\nhooks = true\n')
    (tmp_path / "work.config.toml").write_text('model = "b"\nmodel_provider = "b"\n')

    found = settings_of(tmp_path, ("-p", "work", "-c", "model_provider=c d", "--disable", "hooks"))

    assert found == {"model": "b", "model_provider": "c d", "features": {"hooks": False}}


def test_hooks_switched_off_are_told(tmp_path: Path) -> None:
    """With the place, and with what helps."""
    harness = harness_in(tmp_path, "[features]\nhooks = false\n")

    told = harness.silence_ahead(tmp_path, ())

    assert "features.hooks is false" in told
    assert "-c features.hooks=true" in told
    assert harness.silence_ahead(tmp_path, ("-c", "features.hooks=true")) == ""


@pytest.mark.parametrize(
    "value", ['a "quoted" \\ text', "two\nlines", "ünïcödé \x7f", 3, ["a", 1], {"a.b": {"c": "d"}}]
)
def test_values_are_toml(value: Any) -> None:
    """Whatever stands in them."""
    assert tomllib.loads(f"key={toml(value)}") == {"key": value}


@pytest.mark.parametrize(
    ("payload", "event"),
    [
        ({"hook_event_name": "SessionStart", "session_id": "c-1", "source": "resume"}, Ready("c-1", "resume")),
        ({"hook_event_name": "UserPromptSubmit", "prompt": "hi", "turn_id": TURN}, PromptReported("hi", turn=TURN)),
        (
            {
                "hook_event_name": "PreToolUse",
                "tool_name": "Bash",
                "tool_input": {"command": "ls"},
                "turn_id": TURN,
            },
            ToolStarted("Bash", "ls", TURN),
        ),
        (
            {"hook_event_name": "PostToolUse", "tool_name": "mcp__the_loop__post"},
            ToolEnded("mcp__the-loop__post"),
        ),
        (
            {
                "hook_event_name": "PermissionRequest",
                "tool_name": "Bash",
                "tool_input": {"command": "touch a", "description": "why"},
            },
            DialogReported(question=False, summary="Bash: touch a"),
        ),
        (
            {"hook_event_name": "Stop", "last_assistant_message": "done", "turn_id": TURN},
            TurnEnded("done", turn=TURN),
        ),
        ({"hook_event_name": "Interrupt", "turn_id": TURN}, TurnEnded("", turn=TURN)),
        ({"hook_event_name": "SessionEnd", "reason": "other"}, Ended("other", by_person=True)),
    ],
)
def test_reports(payload: dict[str, Any], event: HarnessEvent) -> None:
    """What 0.159.3 and 0.171.0 report."""
    assert interpret(Report("i-1", "1-1-Any.json", payload)) == (event,)


def test_a_blocked_turn() -> None:
    """The reporter's name of the report says it."""
    report = Report("i-1", "1-1-UserPromptSubmit.blocked.json", {"hook_event_name": "UserPromptSubmit", "prompt": "hi"})

    assert interpret(report) == (TurnBlocked("hi", None),)


@pytest.mark.parametrize("payload", [{}, {"hook_event_name": "Else"}, {"hook_event_name": 3}])
def test_what_means_nothing(payload: dict[str, Any]) -> None:
    """Nothing is made of it."""
    assert interpret(Report("i-1", "1-1-Any.json", payload)) == ()
