"""The adapter of Claude Code, without the program."""

import json
import os
import subprocess
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.base.clock import SystemClock
from core.base.errors import HarnessNotInstalled, InvalidValue
from core.harness.claude.adapter import ClaudeHarness
from core.harness.claude.files import ClaudeFiles, project_folder
from core.model.activity import ActivityState
from core.model.harness import SessionContext, StatusProbe
from core.model.session import Definition
from core.model.tools import EVERY_TOOL

DEFINITION = Definition("scribe")
OUR_TOOLS = [f"mcp__the-loop__{spec.name}" for spec in EVERY_TOOL]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """An environment with a program called claude."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").write_text("#!/bin/sh\n")
    (programs / "claude").chmod(0o755)
    return {"HOME": str(tmp_path / "home"), "PATH": str(programs)}


@pytest.fixture
def claude(environ: dict[str, str]) -> ClaudeHarness:
    """The adapter."""
    return ClaudeHarness(SystemClock(), environ)


@pytest.fixture
def context(tmp_path: Path) -> SessionContext:
    """One instance of a session."""
    (tmp_path / "work").mkdir()
    return SessionContext(
        name="scribe",
        uid="s-1",
        instance="i-1",
        cwd=tmp_path / "work",
        folder=tmp_path / "sessions" / "s-1",
        spool=tmp_path / "spool" / "i-1",
        notify=tmp_path / "poke",
        args=(),
        session_id=str(uuid.uuid4()),
    )


def settings_in(context: SessionContext) -> dict[str, Any]:
    """Return the settings that the harness is given."""
    settings: dict[str, Any] = json.loads((context.folder / "hook-settings.json").read_text())
    return settings


def commands(settings: dict[str, Any], event: str) -> list[str]:
    """Return the hook commands of an event."""
    return [hook["command"] for entry in settings["hooks"][event] for hook in entry["hooks"]]


def test_missing_program_is_named(context: SessionContext) -> None:
    """Without the program on PATH the session is refused."""
    claude = ClaudeHarness(SystemClock(), {"HOME": "/", "PATH": "/nowhere"})

    with pytest.raises(HarnessNotInstalled, match="'claude' is not on PATH"):
        claude.check(DEFINITION, ())


@pytest.mark.parametrize(
    "arg",
    [
        "--resume",
        "--resume=x",
        "-r",
        "--continue",
        "-c",
        "-cp",
        "--session-id=x",
        "-p",
        "--print",
        "--fork-session",
        "--",
        "--bare",
        "--safe-mode",
        "--worktree",
        "-w",
        "--bg",
        "-h",
        "--version",
        "--no-session-persistence",
        "--tmux=classic",
    ],
)
def test_flags_that_are_ours_are_refused(claude: ClaudeHarness, arg: str) -> None:
    """What decides about the conversation, the pane or the hooks is not the operator's."""
    with pytest.raises(InvalidValue, match="harnessArgs of claude"):
        claude.check(DEFINITION, ("--model", "opus", arg))


@pytest.mark.parametrize(
    "args",
    [
        (),
        ("--model", "opus"),
        ("--allowedTools", "Bash(git *)", "Edit"),
        ("--permission-mode", "acceptEdits"),
        ("-d", "api,hooks"),
        ("-dapi,hooks",),
        ("-n", "name"),
        ("--append-system-prompt", "be brief"),
        ("--settings", "{}"),
    ],
)
def test_other_flags_are_the_operators(claude: ClaudeHarness, args: tuple[str, ...]) -> None:
    """Models, permissions, tools and directories are."""
    claude.check(DEFINITION, args)


def test_fresh_and_resumed_command_lines(
    claude: ClaudeHarness, context: SessionContext, environ: dict[str, str]
) -> None:
    """Ours come first, the operator's next, the prompt last behind `--`."""
    context = replace(context, args=("--allowedTools", "Read", "Write"))

    fresh = claude.launch(context, resume=False, prompt="--help me")
    resumed = claude.launch(context, resume=True, prompt=None)

    program, settings = f"{environ['PATH']}/claude", str(context.folder / "hook-settings.json")
    tools = str(context.folder / "mcp.json")
    theirs = ("--allowedTools", "Read", "Write")
    assert fresh.argv == (
        program,
        "--session-id",
        context.session_id,
        "--mcp-config",
        tools,
        "--settings",
        settings,
        *("--permission-mode", "default"),
        *theirs,
        "--",
        "--help me",
    )
    ours = ("--mcp-config", tools, "--settings", settings, "--permission-mode", "default")
    assert resumed.argv == (program, "--resume", context.session_id, *ours, *theirs)
    assert fresh.env == {}
    assert (fresh.keeps_rows, resumed.keeps_rows) == (True, True)


def modes(claude: ClaudeHarness, context: SessionContext, *args: str) -> list[tuple[str, ...]]:
    """Return what names the permission mode on the command lines of a start and of a resume."""
    found = []
    for resume in (False, True):
        argv = claude.launch(replace(context, args=args), resume=resume, prompt=None).argv
        found.append(tuple(word for word in argv[argv.index("--settings") + 2 :]))
    return found


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "plan", "auto", "dontAsk", "bypassPermissions"])
def test_the_configured_mode_is_named_at_each_start(
    environ: dict[str, str], context: SessionContext, mode: str
) -> None:
    """At a resume too: without a flag a conversation goes on in whatever mode it was left in."""
    claude = ClaudeHarness(SystemClock(), environ, permission_mode=mode)

    assert modes(claude, context) == [("--permission-mode", mode)] * 2


@pytest.mark.parametrize(
    "args",
    [
        ("--permission-mode", "plan"),
        ("--permission-mode=plan",),
        ("--dangerously-skip-permissions",),
        ("--settings", '{"permissions": {"defaultMode": "acceptEdits"}}'),
    ],
)
@pytest.mark.parametrize("configured", [None, "auto"])
def test_what_a_sessions_own_arguments_name_comes_first(
    environ: dict[str, str], context: SessionContext, configured: str | None, args: tuple[str, ...]
) -> None:
    """They are about this session, the configured mode about all of them."""
    claude = ClaudeHarness(SystemClock(), environ, permission_mode=configured)
    kept = () if args[0] == "--settings" else args

    assert modes(claude, context, *args) == [kept] * 2


@pytest.mark.parametrize(
    ("configured", "named"),
    [(None, ()), ("default", ("--permission-mode", "default")), ("harness", ())],
)
def test_the_operators_own_settings_come_before_our_default_alone(
    environ: dict[str, str], context: SessionContext, configured: str | None, named: tuple[str, ...]
) -> None:
    """Whoever has chosen a mode for every Claude Code of theirs keeps it, unless the-loop is told another."""
    settings = Path(environ["HOME"]) / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"permissions": {"defaultMode": "acceptEdits"}}')
    claude = ClaudeHarness(SystemClock(), environ, permission_mode=configured)

    assert modes(claude, context) == [named] * 2


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_a_project_chooses_no_mode(claude: ClaudeHarness, context: SessionContext, name: str) -> None:
    """A folder that somebody has cloned must not say what its agent may do unasked."""
    (context.cwd / ".claude").mkdir()
    (context.cwd / ".claude" / name).write_text('{"permissions": {"defaultMode": "bypassPermissions"}}')

    assert modes(claude, context) == [("--permission-mode", "default")] * 2


def test_a_configured_bypass_is_warned_of_no_more_than_one_of_the_arguments(
    environ: dict[str, str], context: SessionContext
) -> None:
    """The warning is answered, and about a project's servers nothing is asked."""
    claude = ClaudeHarness(SystemClock(), environ, permission_mode="bypassPermissions")
    (context.cwd / ".mcp.json").write_text('{"mcpServers": {"a": {"command": "b"}}}')

    claude.prepare(context)

    assert settings_in(context)[BYPASS] is True
    assert claude.dialog_ahead(context.cwd, ()) == ""
    assert claude.dialog_ahead(context.cwd, ("--permission-mode", "plan")) != ""


def test_conversation_id_is_a_uuid_and_needed(claude: ClaudeHarness, context: SessionContext) -> None:
    """Claude Code takes UUIDs only, and an id is chosen before the first start."""
    assert uuid.UUID(claude.new_session_id() or "").version == 4
    with pytest.raises(InvalidValue, match="conversation id"):
        claude.launch(replace(context, session_id=None), resume=False, prompt=None)


@pytest.mark.parametrize("inline", [True, False], ids=["inline", "file"])
@pytest.mark.parametrize("joined", [True, False], ids=["=", "word"])
def test_settings_of_the_operator_are_taken_in(
    claude: ClaudeHarness, context: SessionContext, inline: bool, joined: bool
) -> None:
    """Their settings, in either form, are in our file, our hooks behind theirs, and --settings is given once."""
    theirs = {
        "env": {"A": "b"},
        "permissions": {"allow": ["Read"], "deny": ["WebFetch"]},
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}]},
    }
    (context.cwd / "mine.json").write_text(json.dumps(theirs))
    value = json.dumps(theirs) if inline else "mine.json"
    context = replace(context, args=(f"--settings={value}",) if joined else ("--settings", value))

    claude.prepare(context)

    settings = settings_in(context)
    assert settings["env"] == {"A": "b"}
    assert settings["permissions"]["deny"] == ["WebFetch"]
    assert settings["permissions"]["allow"] == ["Read", f"Read(/{context.folder}/**)", *OUR_TOOLS]
    assert commands(settings, "Stop") == ["theirs", f"{context.folder}/report Stop"]
    assert claude.launch(context, resume=False, prompt=None).argv.count("--settings") == 1


def test_our_tools_are_named_one_by_one(claude: ClaudeHarness, context: SessionContext) -> None:
    """Neither a whole server nor a pattern is allowed, and the file that names the server holds no secret."""
    claude.prepare(context)

    allowed = settings_in(context)["permissions"]["allow"]
    servers = json.loads((context.folder / "mcp.json").read_text())["mcpServers"]
    assert [rule for rule in allowed if rule.startswith("mcp__")] == OUR_TOOLS
    assert settings_in(context)["disabledMcpjsonServers"] == ["the-loop"]
    assert list(servers) == ["the-loop"]
    assert servers["the-loop"]["args"][-1] == str(context.folder / "mcp-token")
    assert (context.folder / "mcp.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "value",
    ["missing.json", "{", "[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}', '{"disableAllHooks": true}', ""],
)
def test_settings_that_cannot_serve_are_refused(claude: ClaudeHarness, context: SessionContext, value: str) -> None:
    """Unreadable settings, and such as would switch our hooks off, are an error before anything is spawned."""
    (context.cwd / "missing.json").unlink(missing_ok=True)

    with pytest.raises(InvalidValue, match="--settings"):
        claude.prepare(replace(context, args=("--settings", value)))


BYPASS = "skipDangerousModePermissionPrompt"


@pytest.mark.parametrize(
    ("accept", "args", "accepted"),
    [
        ("auto", (), False),
        ("auto", ("--dangerously-skip-permissions",), True),
        ("auto", ("--permission-mode", "bypassPermissions"), True),
        ("auto", ("--permission-mode=bypassPermissions",), True),
        ("auto", ("--permission-mode", "plan"), False),
        ("auto", ("--settings", '{"permissions": {"defaultMode": "bypassPermissions"}}'), True),
        ("always", (), True),
        ("never", ("--dangerously-skip-permissions",), False),
    ],
)
def test_warning_is_answered_as_configured(
    environ: dict[str, str], context: SessionContext, accept: str, args: tuple[str, ...], accepted: bool
) -> None:
    """The warning about bypassed permissions is answered where the operator asked for the bypass, or says always."""
    claude = ClaudeHarness(SystemClock(), environ, accept_bypass=accept)
    context = replace(context, args=args)

    claude.prepare(context)

    assert (settings_in(context).get(BYPASS) is True) is accepted


def test_without_trust_nothing_of_claude_is_written(environ: dict[str, str], context: SessionContext) -> None:
    """With harnessTrust.enabled false only our own folder is written to."""
    claude = ClaudeHarness(SystemClock(), environ, trust_enabled=False, accept_bypass="always")

    claude.prepare(context)

    assert not Path(environ["HOME"]).exists()
    assert BYPASS not in settings_in(context)
    assert commands(settings_in(context), "SessionStart")


def test_every_event_is_reported_by_a_private_script(claude: ClaudeHarness, context: SessionContext) -> None:
    """Settings and reporter are the owner's alone, hooks have a time limit, and markers of an old dialog are gone."""
    context.folder.mkdir(parents=True)
    (context.folder / "asking").touch()
    (context.folder / "hold").touch()

    claude.prepare(context)

    settings = settings_in(context)
    assert (context.folder / "report").stat().st_mode & 0o777 == 0o700
    assert (context.folder / "hook-settings.json").stat().st_mode & 0o777 == 0o600
    waits = {event: hook["timeout"] for event, rows in settings["hooks"].items() for e in rows for hook in e["hooks"]}
    assert waits.pop("PermissionRequest") > 86_400  # longer than any wait for a person's answer
    assert all(seconds <= 10 for seconds in waits.values())
    assert (context.folder / "ask.py").stat().st_mode & 0o777 == 0o600
    assert (context.folder / "nonce").stat().st_mode & 0o777 == 0o600
    assert not any("async" in hook for entries in settings["hooks"].values() for e in entries for hook in e["hooks"])
    assert context.spool.is_dir()
    assert not (context.folder / "asking").exists()
    assert (context.folder / "hold").exists()


def test_resumable_is_what_has_a_turn_on_disk(claude: ClaudeHarness, context: SessionContext) -> None:
    """The conversation's file under the folder's name decides."""
    assert not claude.resumable(context)
    assert not claude.resumable(replace(context, session_id=None))
    assert claude.transcript(replace(context, session_id=None), from_start=True) is None
    path = ClaudeFiles.of({"HOME": str(context.cwd.parent / "home")}).conversation(
        context.cwd, context.session_id or ""
    )
    path.parent.mkdir(parents=True)

    path.write_text('{"type": "user"}\n')

    assert claude.resumable(context)


def test_status_file_is_the_second_opinion(
    claude: ClaudeHarness, context: SessionContext, environ: dict[str, str]
) -> None:
    """The pane's process, or one below it, says what it does; anything unclear is no opinion."""
    folder = Path(environ["HOME"]) / ".claude" / "sessions"
    folder.mkdir(parents=True)
    own = folder / f"{os.getpid()}.json"

    def told(content: str) -> StatusProbe | None:
        own.write_text(content)
        return claude.probe_status(context, os.getpid())

    assert claude.probe_status(context, os.getpid()) is None
    assert told('{"status": "idle"}') == StatusProbe(ActivityState.IDLE, turn_over=True)
    assert told('{"status": "busy"}') == StatusProbe(ActivityState.BUSY)
    assert told('{"status": "shell"}') == StatusProbe(ActivityState.BUSY, turn_over=True)
    assert told('{"status": "waiting", "waitingFor": "permission prompt"}') == StatusProbe(
        ActivityState.PERMISSION, "permission prompt"
    )
    assert [told(content) for content in ('{"status": "new"}', "{", "[]", '{"status": 1}')] == [None] * 4
    own.write_text('{"status": "idle"}')
    assert claude.probe_status(context, os.getppid()) == StatusProbe(ActivityState.IDLE, turn_over=True)


def test_of_a_parked_conversation_its_job_alone_is_the_second_opinion(
    claude: ClaudeHarness, context: SessionContext, environ: dict[str, str]
) -> None:
    """The pane's own file stands still since somebody has looked at the list of agents (2.1.332)."""
    folder = Path(environ["HOME"]) / ".claude" / "sessions"
    folder.mkdir(parents=True)
    (folder / f"{os.getpid()}.json").write_text('{"status": "busy", "parkedJobId": "2728709f"}')
    spare, job = {"jobId": "cc802c7a", "status": "idle"}, {"jobId": "2728709f", "sessionId": "c-2"}
    (folder / f"{os.getppid()}.json").write_text(json.dumps(spare))
    with subprocess.Popen(["sleep", "60"]) as process:
        of_job = folder / f"{process.pid}.json"

        def told(**changes: str) -> StatusProbe | None:
            of_job.write_text(json.dumps({**job, **changes}))
            return claude.probe_status(context, os.getpid())

        assert claude.probe_status(context, os.getpid()) is None
        assert told() is None
        assert told(status="busy") == StatusProbe(ActivityState.BUSY)
        idle = told(status="idle")
        process.kill()
    assert idle == StatusProbe(ActivityState.IDLE, turn_over=True)
    assert idle is not None
    assert idle.session_id == "c-2"
    assert told(status="busy") is None, "its process was killed, and has left its file"


def test_a_status_file_of_another_process_with_that_pid_is_no_opinion(
    claude: ClaudeHarness, context: SessionContext, environ: dict[str, str]
) -> None:
    """A killed process leaves its file, and its pid is given to another one."""
    folder = Path(environ["HOME"]) / ".claude" / "sessions"
    folder.mkdir(parents=True)
    began = Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]

    def told(proc_start: str) -> StatusProbe | None:
        status = json.dumps({"status": "busy", "procStart": proc_start})
        (folder / f"{os.getpid()}.json").write_text(status)
        return claude.probe_status(context, os.getpid())

    assert told(began) == StatusProbe(ActivityState.BUSY)
    assert told(str(int(began) - 1)) is None


@pytest.mark.parametrize(
    ("cwd", "name"),
    [
        ("/home/ann/my_project.x", "-home-ann-my-project-x"),
        ("/a b", "-a-b"),
        ("/é", "--"),
        ("/\N{ROCKET}", "---"),
        ("/" + "x" * 199, "-" + "x" * 199),
        ("/" + "x" * 200, "-" + "x" * 199 + "-d0i18x"),
    ],
)
def test_folder_of_conversations(cwd: str, name: str) -> None:
    """Claude Code's name for a folder: one dash a UTF-16 unit, and a hash where it is too long."""
    assert project_folder(cwd) == name
