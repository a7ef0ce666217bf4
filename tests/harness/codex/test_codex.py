"""What is Codex's own: its id, its plan, its dialogs, and what is not told by a hook."""

import json
from collections.abc import Callable, Iterator

import pytest

from core.model.harness import Ready
from embedded.workspace.thread import WorkspaceThread
from tests.fakes.model import ModelServer
from tests.harness.cases import ask
from tests.harness.codex.product import ASKS, KIT
from tests.harness.product import TURN, HarnessProduct, harness_product
from tests.harness.recording import LACKS
from tests.integration.harness.stage import Stage
from tests.support.asking import press, wait_buttons
from tests.support.product import NAME
from tests.support.tmux import wait_until


@pytest.fixture
def talking(model: ModelServer) -> Iterator[HarnessProduct]:
    """Give a product whose one session has a thread in a workspace."""
    with (
        WorkspaceThread(retry_scale=0.01, ack_seconds=2.0) as workspace,
        harness_product(workspace, model, KIT) as product,
    ):
        yield product


@pytest.fixture
def alone(model: ModelServer) -> Iterator[HarnessProduct]:
    """Give a product without a channel."""
    with harness_product(None, model, KIT) as product:
        yield product


@pytest.mark.capability("transcript form")
def test_its_conversation_is_known_before_its_first_turn(stage: Stage) -> None:
    """By a file that its process has open; the hook of the first prompt names the same."""
    stage.start()
    wait_until(lambda: stage.harness.screen_ready(stage.screen()), f"it reads; {stage.screen()}", TURN)

    def named() -> str:
        found = stage.harness.probe_status(stage.context, stage.pane_pid)
        return found.session_id if found is not None else ""

    wait_until(named, "its conversation is known", TURN)
    before, untold = named(), stage.of(Ready)
    stage.say("echo1", "hello")

    assert untold == []
    assert stage.expect(Ready) == Ready(before, "startup")


@pytest.mark.capability("transcript form")
def test_its_plan_is_shown(alone: HarnessProduct, record_property: Callable[[str, object], None]) -> None:
    """As its agent has written it down; a version that offers its agent no plan has none."""
    steps = [{"step": "look", "status": "completed"}, {"step": "act", "status": "in_progress"}]
    alone.serve().wait_swept()
    alone.wait_activity("idle")
    tools = json.dumps(alone.model.requests()[-1].body["tools"])

    if '"update_plan"' not in tools:
        record_property(LACKS, "this version offers its agent no tool for a plan")
        wait_until(lambda: alone.row()["working"], "what it does is known", TURN, every=1.0)
        assert not alone.row()["working"]["plan"]
        return
    ask(alone, f"plan [[call update_plan {json.dumps({'plan': steps})}]]")
    shown = [{"text": "look", "state": "done"}, {"text": "act", "state": "in progress"}]
    wait_until(lambda: (alone.row()["working"] or {}).get("plan") == shown, "its plan is shown", TURN, every=1.0)


@pytest.mark.capability("permission hook")
def test_a_person_answers_at_the_terminal_where_no_service_is(alone: HarnessProduct) -> None:
    """Codex's own dialog comes; nothing is typed into it, and the session goes on behind it."""
    started = alone.cli("standing", "start", NAME, "--json", seconds=TURN)
    alone.wait_activity("idle")
    alone.cli("standing", "say", NAME, "--text", f"work {ASKS}")
    wait_until(lambda: "Yes, proceed" in alone.screen(), "it asks", TURN)
    asking = alone.activity()

    told = alone.cli("standing", "say", NAME, "--text", "not an answer", "--json", seconds=TURN)
    alone.keys("y")
    alone.wait_activity("idle")

    assert started.code == 0
    assert asking == "permission"
    assert told.json["state"] in ("queued", "pending", "refused")
    assert (alone.folder / "work" / "made-by-test").exists()


@pytest.mark.capability("boot hook")
def test_hooks_of_a_project_are_shown_before_they_run(talking: HarnessProduct) -> None:
    """We trust our own alone: Codex asks about the others, in the thread as well."""
    settings = talking.folder / "work" / ".codex"
    settings.mkdir(parents=True)
    mark = talking.folder / "run-by-project"
    (settings / "config.toml").write_text(
        f'[[hooks.SessionStart]]\n[[hooks.SessionStart.hooks]]\ntype = "command"\ncommand = "touch {mark}"\n'
    )
    talking.serve()
    thread = talking.root()

    asked = wait_buttons(talking, thread, "Hooks need review", TURN)
    before = mark.exists()
    press(talking, "alice", asked, "Continue without trusting (hooks won't run)")
    talking.wait_reply(thread, "Look after it.", TURN)

    assert before is False
    assert not mark.exists()


@pytest.mark.capability("boot hook")
def test_not_logged_in_is_told_at_the_start(alone: HarnessProduct) -> None:
    """With what helps; nothing is typed into its question."""
    config = alone.home / ".codex" / "config.toml"
    config.write_text("[tui]\nscreen_reader_detection_done = true\n")

    alone.cli("standing", "start", NAME, "--json", seconds=TURN)
    detail = alone.row()["detail"]
    status = alone.cli("status", seconds=TURN).out

    assert "Welcome to Codex" in detail
    assert "run `codex login`" in status
