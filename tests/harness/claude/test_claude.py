"""What only real Claude Code can show: its dialogs, its files, its settings, its turns at resume."""

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from core.base.clock import SystemClock
from core.harness.claude.adapter import ClaudeHarness
from core.model.harness import DialogReported, Ready, TextTaken, ToolEnded, TurnBlocked, TurnEnded, TurnFailed
from tests.fakes.model import ModelServer
from tests.harness.claude.conftest import WORDS
from tests.harness.claude.product import CLAUDE, KEY, SLEEPING
from tests.integration.harness.stage import Stage
from tests.support.tmux import wait_until

QUESTION = {
    "questions": [
        {
            "question": "Which colour?",
            "header": "Colour",
            "options": [{"label": "red", "description": "r"}, {"label": "blue", "description": "b"}],
            "multiSelect": False,
        }
    ]
}
LOOSE = CLAUDE.before("2.1.281")  #: names of servers are compared with `_` for what is odd
Make = Callable[..., Stage]


@pytest.fixture
def make(tmp_path: Path, environ: dict[str, str]) -> Iterator[Make]:
    """Make sessions of Claude Code with arguments, a folder to work in and further variables."""
    made: list[Stage] = []

    def stage(args: tuple[str, ...] = SLEEPING, work: str = "work", **variables: str) -> Stage:
        root = tmp_path / str(len(made))
        pane = {**environ, **variables}
        new = Stage(ClaudeHarness(SystemClock(), pane), WORDS, root, pane, args)
        cwd = root / work
        cwd.mkdir(parents=True, exist_ok=True)
        new.context = replace(new.context, cwd=cwd)
        made.append(new)
        return new

    yield stage
    for each in made:
        each.close()


@pytest.mark.capability("background tasks")
def test_blocked_notification_reaches_no_model(stage: Stage, model: ModelServer) -> None:
    """While held, a finished background task makes no request at all."""
    stage.start_ready()
    stage.say("back1", stage.words.background)
    stage.expect(TurnEnded, lambda event: event.pending_tasks != ())

    (stage.context.folder / "hold").touch()
    stage.expect(TurnBlocked)
    stage.say("echo1", "a request after it")
    stage.expect(TurnEnded, lambda event: stage.words.echo(event.answer))

    assert model.requests("<task-notification>") == ()


@pytest.mark.capability("background tasks")
def test_task_that_a_kill_cut_off_makes_no_request_while_held(stage: Stage, model: ModelServer) -> None:
    """The model is told of it: 2.1.197 begins a turn at each resume until one is let through, later ones do not.

    They tell it with the next prompt.
    """
    stage.start_ready()
    stage.say("back1", "[[bg sleep 60]]")
    stage.expect(TurnEnded, lambda event: event.pending_tasks != ())
    stage.terminate(signal.SIGKILL)
    hold = stage.context.folder / "hold"

    hold.touch()
    stage.start_ready()
    if CLAUDE.before("2.1.280"):
        stage.expect(TurnBlocked)
    stage.say("echo1", "somebody is here")
    stage.expect(TurnEnded, lambda event: stage.words.echo(event.answer))
    stage.terminate()
    assert model.requests("<task-notification>") == ()

    hold.unlink()
    stage.events.clear()
    stage.start_ready()
    if CLAUDE.before("2.1.280"):
        wait_until(lambda: model.requests("<task-notification>"), "the turn is let through")
    stage.say("echo1", "and once more")
    stage.expect(TurnEnded, lambda event: stage.words.echo(event.answer))
    assert "</task-notification>" in json.dumps(model.requests("and once more")[-1].body["messages"])
    assert len(model.requests("<task-notification>")) == int(CLAUDE.before("2.1.280"))


@pytest.mark.capability("boot hook")
def test_settings_of_the_operator_are_merged(make: Make, tmp_path: Path) -> None:
    """Hooks, permissions and other keys given by --settings work beside ours."""
    proof = tmp_path / "their-hook-ran"
    theirs = {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": f"touch {proof}"}]}]},
        "permissions": {"allow": ["Bash(printenv:*)"]},
        "env": {"FROM_THEIR_SETTINGS": "yes"},
    }
    stage = make(("--settings", json.dumps(theirs)))
    stage.start_ready()

    stage.say("set1", "[[tool bash printenv FROM_THEIR_SETTINGS]]")
    ended = stage.expect(TurnEnded)

    assert ended.answer == "DONE: yes"
    wait_until(proof.exists, "their hook has run")
    assert stage.of(DialogReported) == []


@pytest.mark.capability("boot hook")
def test_first_start_shows_no_dialog_and_trust_lasts(stage: Stage, environ: dict[str, str]) -> None:
    """Trust, onboarding and the key are settled before the start, and Claude Code keeps what was written."""
    stage.start_ready("hello")
    stage.expect(TurnEnded)
    stage.terminate()

    content = json.loads((Path(environ["HOME"]) / ".claude.json").read_text())

    assert content["projects"][str(stage.context.cwd)]["hasTrustDialogAccepted"] is True
    assert content["customApiKeyResponses"]["approved"] == [KEY[-20:]]


ASKS_ABOUT_IT = "New MCP server found in this project: the other"


def _start_unasked(stage: Stage) -> None:
    """Start it. While it does not know yet that its folder is trusted, 2.1.332 leaves out the project's local settings;
    on a busy machine it has asked then, once in eight starts. The next start does not."""
    try:
        stage.start_ready("hello")
    except AssertionError:
        if ASKS_ABOUT_IT not in stage.screen():
            raise
        stage.terminate()
        stage.start_ready("hello")


@pytest.mark.parametrize(
    ("place", "settings", "asks"),
    [
        (".mcp.json", {}, True),
        ("../.mcp.json", {}, True),
        (".mcp.json", {"enabledMcpjsonServers": ["the other"]}, False),
        (".mcp.json", {"enabledMcpjsonServers": ["the_other"]}, not LOOSE),
        (".mcp.json", {"disabledMcpjsonServers": ["the other"]}, False),
        (".mcp.json", {"enableAllProjectMcpServers": True}, False),
    ],
)
@pytest.mark.capability("MCP approval")
def test_it_asks_about_a_projects_servers_exactly_where_that_was_foretold(
    make: Make, place: str, settings: dict[str, object], *, asks: bool
) -> None:
    """The dialog that a session would stand at is known beforehand, by the files that Claude Code itself reads."""
    stage = make(work="above/work")
    cwd = stage.context.cwd
    (cwd / place).write_text(json.dumps({"mcpServers": {"the other": {"command": "/bin/false"}}}))
    (cwd / ".claude").mkdir()
    (cwd / ".claude" / "settings.local.json").write_text(json.dumps(settings))

    foretold = stage.harness.dialog_ahead(cwd, stage.context.args)
    if asks:
        stage.start()
        wait_until(lambda: ASKS_ABOUT_IT in stage.screen(), "it asks", 60)
    else:
        _start_unasked(stage)
        stage.expect(TurnEnded)

    assert ("the other" in foretold) is asks
    assert bool(foretold) is asks


@pytest.mark.capability("boot hook")
def test_folder_inside_a_repository_is_trusted(make: Make) -> None:
    """A folder below a repository's root needs no dialog either."""
    stage = make(work="repository/below")
    subprocess.run(["git", "init", "--quiet", str(stage.context.cwd.parent)], check=True, timeout=20)

    stage.start_ready("hello")

    stage.expect(TurnEnded)


@pytest.mark.parametrize(
    "work",
    ["plain", "dots.and_more", "two words", "ünïcödé-日本", "emoji-\N{ROCKET}", "/".join(["long" * 15] * 4)],
    ids=["plain", "dots", "space", "unicode", "astral", "long"],
)
@pytest.mark.capability("transcript form")
def test_conversation_is_found_whatever_its_folder_is_called(make: Make, work: str) -> None:
    """The conversation's file is where we look for it, so a session can be resumed."""
    stage = make(work=work)
    stage.start_ready("hello")
    stage.expect(TurnEnded)

    stage.terminate()

    assert stage.harness.resumable(stage.context)
    stage.events.clear()
    stage.start()
    assert stage.expect(Ready).source == "resume"


@pytest.mark.capability("transcript form")
def test_configuration_folder_of_the_environment_is_respected(make: Make, tmp_path: Path) -> None:
    """With CLAUDE_CONFIG_DIR everything is read and written there."""
    folder = tmp_path / "elsewhere"
    stage = make(CLAUDE_CONFIG_DIR=str(folder))

    stage.start_ready("hello")
    stage.expect(TurnEnded)

    assert (folder / ".claude.json").exists()
    wait_until(lambda: stage.harness.resumable(stage.context), "the conversation is on the disk")
    assert stage.harness.probe_status(stage.context, stage.pane_pid) is not None


@pytest.mark.capability("pasting")
def test_messages_in_the_session_folder_are_read_without_asking(stage: Stage) -> None:
    """A message that was too long to paste lies in the session's folder, and reading it opens no dialog."""
    stage.start_ready()
    message = stage.context.folder / "messages" / "m-1.txt"
    message.parent.mkdir()
    message.write_text("what the message says")

    stage.say("file1", f'[[call Read {{"file_path": "{message}"}}]]')
    ended = stage.expect(TurnEnded)

    assert "what the message says" in ended.answer
    assert stage.of(DialogReported) == []


@pytest.mark.capability("permission hook")
def test_question_is_told_from_a_permission(stage: Stage) -> None:
    """AskUserQuestion is a question, with its text."""
    stage.start_ready()

    stage.say("ask1", f"[[call AskUserQuestion {json.dumps(QUESTION)}]]")

    assert stage.expect(DialogReported) == DialogReported(question=True, summary="Which colour?")
    assert stage.asking()


@pytest.mark.capability("permission hook")
def test_plan_is_a_dialog_like_a_permission(make: Make) -> None:
    """The question whether a plan may be carried out is told, and its marker stands."""
    stage = make(("--permission-mode", "plan"))
    stage.start_ready()

    stage.say("plan1", '[[call ExitPlanMode {"plan": "Do it."}]]')

    assert stage.expect(DialogReported) == DialogReported(question=False, summary="ExitPlanMode")
    assert stage.asking()


@pytest.mark.capability("permission hook")
def test_dialog_of_a_subagent_outlives_the_main_turn(stage: Stage) -> None:
    """A background agent asks while the main turn ends: the marker stands until that dialog is answered."""
    task = {"description": "d", "subagent_type": "general-purpose", "run_in_background": True}
    agent = json.dumps({**task, "prompt": "<<tool bash touch made-by-test>>"})
    stage.start_ready()

    stage.say("sub1", f"[[call Agent {agent}]] [[say over to it]]")
    stage.expect(DialogReported)
    stage.expect(TurnEnded, lambda event: event.answer == "over to it")
    wait_until(lambda: "Do you want to proceed" in stage.screen(), "the dialog is open")
    assert stage.asking()

    stage.type_line("")
    wait_until((stage.context.cwd / "made-by-test").exists, "the command ran")
    wait_until(lambda: stage.collect() and not stage.asking(), "the marker is gone")


@pytest.mark.capability("permission hook")
def test_dialog_outlives_what_a_subagent_does(stage: Stage) -> None:
    """While the main agent asks, the tool calls of a background agent leave the marker alone."""
    task = {"description": "d", "subagent_type": "general-purpose", "run_in_background": True}
    agent = json.dumps({**task, "prompt": "<<tool bash sleep 1>><<tool bash sleep 1>>"})
    stage.start_ready()

    stage.say("sub1", f"[[call Agent {agent}]] {stage.words.permission}")
    stage.expect(DialogReported)
    wait_until(lambda: len([event for event in stage.of(ToolEnded) if event.tool == "Bash"]) == 2, "its calls are over")

    assert "Do you want to proceed" in stage.screen()
    assert stage.asking()


@pytest.mark.capability("turn edges")
def test_api_error_ends_the_turn_as_failed(stage: Stage) -> None:
    """An error that is not retried is told as such."""
    stage.start_ready()

    stage.say("err1", "[[error 400]]")

    assert "400" in stage.expect(TurnFailed).message


@pytest.mark.capability("boot hook")
def test_boot_prompt_may_look_like_an_option(make: Make) -> None:
    """A boot prompt that begins with a dash, after an option that takes a list, is a prompt."""
    stage = make(("--allowedTools", "Read", "Write"))

    stage.start_ready("--help is what I want")

    assert stage.expect(TextTaken).prompt == "--help is what I want"


@pytest.mark.capability("mode")
def test_warning_about_bypassed_permissions_is_answered(make: Make) -> None:
    """With permission checks switched off by the operator, no warning waits for an answer."""
    stage = make(("--dangerously-skip-permissions",), IS_SANDBOX="1")

    stage.start_ready()
    stage.say("free1", stage.words.permission)
    stage.expect(TurnEnded)

    assert (stage.context.cwd / "made-by-test").exists()
    assert stage.of(DialogReported) == []


@pytest.mark.capability("resume")
def test_id_in_use_is_never_given_twice(make: Make) -> None:
    """A conversation that never had a turn is started again under its id, for there is nothing to resume."""
    stage = make()
    stage.start_ready()
    stage.terminate()

    assert not stage.harness.resumable(stage.context)
    stage.events.clear()
    stage.start()
    assert stage.expect(Ready) == Ready(stage.context.session_id, "startup")
