"""The adapter of OpenCode, without the program."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from core.base.errors import HarnessNotInstalled, InvalidValue, UnsupportedHarness
from core.harness.opencode.adapter import OpenCodeHarness
from core.harness.opencode.reports import PLUGIN, STATUS, TUI_CONFIG
from core.model.activity import ActivityState, Capability, Failure
from core.model.harness import (
    DialogReported,
    Ended,
    HarnessEvent,
    PromptReported,
    Ready,
    Report,
    SessionContext,
    StatusProbe,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnFailed,
)
from core.model.session import Definition
from tests.support.opencode_database import OpenCodeDatabase

DEFINITION = Definition("scribe")

VERSION = "1.18.33"


def install(folder: Path, version: str) -> Path:
    """Install a package of that version whose program is nothing to be run, and return the folder for PATH."""
    package = folder / "node_modules" / "opencode-ai"
    (package / "bin").mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": "opencode-ai", "version": version}))
    program = package / "bin" / "opencode.exe"
    program.write_text("#!/bin/sh\nexit 7\n")
    program.chmod(0o755)
    programs = folder / "bin"
    programs.mkdir()
    (programs / "opencode").symlink_to(program)
    return programs


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment with a version whose plugins are known."""
    return {"HOME": str(tmp_path / "home"), "PATH": str(install(tmp_path, VERSION))}


@pytest.fixture
def opencode(environ: dict[str, str]) -> OpenCodeHarness:
    """The adapter."""
    return OpenCodeHarness(environ)


@pytest.fixture
def context(tmp_path: Path) -> SessionContext:
    """One instance of a session whose conversation is known."""
    (tmp_path / "work").mkdir()
    return SessionContext(
        name="scribe",
        uid="s-1",
        instance="i-1",
        cwd=tmp_path / "work",
        folder=tmp_path / "sessions" / "s-1",
        spool=tmp_path / "spool" / "i-1",
        notify=tmp_path / "poke",
        args=("--agent", "plan"),
        session_id="ses_1",
    )


def test_the_version_is_told_by_its_package(opencode: OpenCodeHarness) -> None:
    """The program itself, which takes its time to start, is not asked."""
    found = opencode.installed()

    assert found is not None
    assert found.version == VERSION
    assert found.note() == ""


def test_a_program_of_no_package_is_asked(tmp_path: Path, environ: dict[str, str]) -> None:
    """One that was installed in another way tells its version; one that tells none is told of with its words."""
    program = tmp_path / "opencode"
    program.write_text("#!/bin/sh\necho 9.1.0\n")
    program.chmod(0o755)
    told = OpenCodeHarness({**environ, "PATH": f"{tmp_path}:/usr/bin:/bin"}).installed()
    program.write_text("#!/bin/sh\necho no idea\nexit 3\n")
    untold = OpenCodeHarness({**environ, "PATH": f"{tmp_path}:/usr/bin:/bin"}).installed()

    assert told is not None
    assert told.version == "9.1.0"
    assert "newer than any that was tried" in told.note()
    assert untold is not None
    assert "ended with 3 and said: no idea" in untold.trouble


def test_what_cannot_run_is_refused(tmp_path: Path, opencode: OpenCodeHarness) -> None:
    """A program that is not there, and one that loads no plugins yet, with what to do about it."""
    opencode.check(DEFINITION, ())
    with pytest.raises(HarnessNotInstalled):
        OpenCodeHarness({"PATH": str(tmp_path / "nowhere")}).check(DEFINITION, ())
    old = OpenCodeHarness({"PATH": str(install(tmp_path / "old", "1.17.20"))})
    with pytest.raises(UnsupportedHarness, match=r"1\.17\.20 is too old: 1\.18 and newer"):
        old.check(DEFINITION, ())


@pytest.mark.parametrize(
    "args", [("--session", "ses_2"), ("-s=ses_2",), ("-c",), ("--prompt=hi",), ("--pure",), ("serve",), ("--mini",)]
)
def test_arguments_that_are_ours_are_refused(opencode: OpenCodeHarness, args: tuple[str, ...]) -> None:
    """So is a word that would be a folder or a command."""
    with pytest.raises(InvalidValue, match="cannot be given"):
        opencode.check(DEFINITION, args)


def test_other_arguments_are_taken(opencode: OpenCodeHarness) -> None:
    """The value of a flag is no word of its own."""
    opencode.check(DEFINITION, ("--model", "fake/m", "--agent=plan", "--auto"))


def test_a_start_adds_a_plugin_and_the_tools(opencode: OpenCodeHarness, context: SessionContext) -> None:
    """Both by variables of the session alone; the home stays untouched, and the boot prompt may begin with a dash."""
    opencode.prepare(context)
    launch = opencode.launch(replace(context, session_id=None), resume=False, prompt="-hello")

    tui = json.loads((context.folder / TUI_CONFIG).read_text())
    assert launch.env["OPENCODE_TUI_CONFIG"] == str(context.folder / TUI_CONFIG)
    assert tui == {"plugin": [(context.folder / PLUGIN).as_uri()], "plugin_enabled": {"the-loop": True}}
    assert str(context.spool) in (context.folder / PLUGIN).read_text()
    served = json.loads(launch.env["OPENCODE_CONFIG_CONTENT"])["mcp"]["the-loop"]
    assert served == {"type": "local", "command": list(context.tool_server), "enabled": True}
    assert launch.argv[1:] == ("--agent", "plan", "--prompt=-hello")
    assert launch.env["THE_LOOP_OPENCODE_SESSION"] == ""
    assert not (context.folder.parents[1] / "home").exists()


def test_a_resume_names_the_conversation(opencode: OpenCodeHarness, context: SessionContext) -> None:
    """To the program and to the plugin; what is no id of OpenCode's starts nothing."""
    launch = opencode.launch(context, resume=True, prompt=None)

    assert launch.argv[1:] == ("--session", "ses_1", "--agent", "plan")
    assert launch.env["THE_LOOP_OPENCODE_SESSION"] == "ses_1"
    with pytest.raises(InvalidValue, match="has no conversation"):
        opencode.launch(replace(context, session_id="--help"), resume=True, prompt=None)


def test_what_the_operator_has_set_is_kept(tmp_path: Path, environ: dict[str, str], context: SessionContext) -> None:
    """Both variables are added to; relative plugins of theirs are still found, and comments cannot be added to."""
    theirs = tmp_path / "mine.json"
    theirs.write_text(json.dumps({"theme": "x", "plugin": ["./own.ts", ["../b.ts", {"a": 1}], "@acme/p"]}))
    config = json.dumps({"model": "fake/m", "mcp": {"other": {"type": "remote"}}})
    opencode = OpenCodeHarness({**environ, "OPENCODE_TUI_CONFIG": str(theirs), "OPENCODE_CONFIG_CONTENT": config})

    opencode.prepare(context)
    launch = opencode.launch(context, resume=True, prompt=None)

    tui = json.loads((context.folder / TUI_CONFIG).read_text())
    own = (context.folder / PLUGIN).as_uri()
    assert tui["theme"] == "x"
    assert tui["plugin"] == [str(tmp_path / "./own.ts"), [str(tmp_path / "../b.ts"), {"a": 1}], "@acme/p", own]
    merged = json.loads(launch.env["OPENCODE_CONFIG_CONTENT"])
    assert merged["model"] == "fake/m"
    assert set(merged["mcp"]) == {"other", "the-loop"}
    theirs.write_text("// a comment\n{}")
    with pytest.raises(InvalidValue, match="no plain JSON"):
        opencode.check(DEFINITION, ())


def test_an_earlier_instance_leaves_nothing_behind(opencode: OpenCodeHarness, context: SessionContext) -> None:
    """Who reported, and what its status was, is forgotten at the next start."""
    opencode.prepare(context)
    (context.folder / "opencode-claim-i-0").write_text("1")
    (context.folder / STATUS).write_text('{"status": "busy"}')

    opencode.prepare(context)

    assert opencode.probe_status(context, 1) is None
    assert not (context.folder / "opencode-claim-i-0").exists()


def test_the_status_file_is_a_second_source(opencode: OpenCodeHarness, context: SessionContext) -> None:
    """It tells what the terminal program shows, and how much its model can hold."""
    opencode.prepare(context)
    OpenCodeDatabase(Path(str(context.folder.parents[1] / "home/.local/share/opencode/opencode.db")))
    (context.folder / STATUS).write_text('{"status": "busy", "sessionId": "ses_1", "contextSize": 1000}')

    told = opencode.probe_status(context, 1)
    working = opencode.working(context)

    assert told == StatusProbe(ActivityState.BUSY)
    assert working is not None
    assert working.context_size == 1000


def test_a_conversation_is_looked_up_in_the_database(
    tmp_path: Path, opencode: OpenCodeHarness, context: SessionContext
) -> None:
    """It can be resumed once something was said, and is answered once an answer is whole."""
    assert not opencode.resumable(context)
    database = OpenCodeDatabase(tmp_path / "home/.local/share/opencode/opencode.db")
    assert not opencode.resumable(context)
    asked = database.user("hello")
    database.answer(asked, finish="")
    assert opencode.resumable(context)
    assert not opencode.answered(context)
    database.answer(asked, "hi")

    assert opencode.answered(context)
    assert not opencode.resumable(replace(context, session_id="ses_2"))
    assert "holds no message" in opencode.missing(context)


@pytest.mark.parametrize(
    ("payload", "event"),
    [
        ({"hook_event_name": "SessionStart", "source": "startup", "session_id": ""}, Ready(None, "startup")),
        ({"hook_event_name": "SessionStart", "source": "clear", "session_id": "ses_1"}, Ready("ses_1", "clear")),
        (
            {"hook_event_name": "UserPromptSubmit", "prompt": "hi", "prompt_id": "m1"},
            PromptReported("hi", turn="m1"),
        ),
        (
            {"hook_event_name": "PreToolUse", "tool_name": "bash", "tool_input": {"command": "ls"}, "prompt_id": "m1"},
            ToolStarted("bash", "ls", "m1"),
        ),
        ({"hook_event_name": "PostToolUse", "tool_name": "bash"}, ToolEnded("bash")),
        (
            {"hook_event_name": "PermissionRequest", "tool_name": "edit", "tool_input": {"patterns": ["a.py"]}},
            DialogReported(question=False, summary="edit: a.py"),
        ),
        (
            {
                "hook_event_name": "PermissionRequest",
                "tool_name": "AskUserQuestion",
                "tool_input": {"questions": [{"question": "Red?"}]},
            },
            DialogReported(question=True, summary="Red?"),
        ),
        ({"hook_event_name": "Answered", "tool_name": "bash"}, ToolStarted("bash")),
        (
            {"hook_event_name": "Stop", "last_assistant_message": "done", "prompt_id": "m1"},
            TurnEnded("done", turn="m1"),
        ),
        (
            {"hook_event_name": "StopFailure", "error": "APIError", "message": "no", "status": 503, "prompt_id": "m1"},
            TurnFailed("APIError", "no", Failure.SERVICE, "m1"),
        ),
        ({"hook_event_name": "SessionEnd", "reason": "other"}, Ended("other", by_person=False)),
        (
            {"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"},
            Ended("prompt_input_exit", by_person=True),
        ),
    ],
)
def test_reports_are_interpreted(opencode: OpenCodeHarness, payload: dict[str, object], event: HarnessEvent) -> None:
    """Each has one meaning."""
    assert opencode.interpret(Report("i-1", "1-2-X.json", payload)) == (event,)


def test_what_it_never_tells_is_missing_from_the_start(opencode: OpenCodeHarness) -> None:
    """No row calls it guessed: what its jobs do after a turn, and in which mode it runs."""
    assert opencode.traits.lacks == {Capability.MODE, Capability.BACKGROUND_TASKS}


def test_other_reports_mean_nothing(opencode: OpenCodeHarness) -> None:
    """Whatever stands in them."""
    assert opencode.interpret(Report("i-1", "x.json", {"hook_event_name": ["odd"]})) == ()
