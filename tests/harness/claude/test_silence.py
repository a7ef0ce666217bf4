"""The real program with hooks that do not report, and with a model's server that fails for a while."""

import json
import shutil
from pathlib import Path

import pytest

from tests.harness.claude.product import ClaudeProduct
from tests.support.asking import press, wait_buttons
from tests.support.product import NAME
from tests.support.tmux import wait_until

TURN = 60.0
SILENT = f"The hooks of `{NAME}` are silent"


def answers(product: ClaudeProduct, thread: str, text: str) -> list[str]:
    """Return the answers of the thread that hold the text."""
    return [each["text"] for each in product.workspace.replies("agents", thread) if f"] {text}" in each["text"]]


def hooks(product: ClaudeProduct) -> str | None:
    """Return what the row says of the session's hooks."""
    found = product.cli("standing", "get", NAME, "--json").json["hooks"]
    return None if found is None else str(found)


def ask(product: ClaudeProduct, thread: str, text: str) -> str:
    """Reply in the thread, wait until that is answered and marked as done, and return the answer."""
    ts = product.workspace.say("alice", "agents", text, thread)
    wait_until(lambda: answers(product, thread, text), f"{text!r} is answered", TURN)
    done = ["white_check_mark"]
    wait_until(lambda: list(product.workspace.reactions("agents", ts)) == done, f"{text!r} is done", TURN)
    [answer] = answers(product, thread, text)
    return answer


@pytest.mark.capability("turn edges")
@pytest.mark.parametrize("place", ["home/.claude", "work/.claude"])
def test_hooks_that_settings_switch_off_are_told_and_do_without(talking: ClaudeProduct, place: str) -> None:
    """It starts, its replies are answered once, a dialog is answered in the thread, a failed turn is told, and why."""
    folder = talking.folder / place
    folder.mkdir(exist_ok=True)
    (folder / "settings.json").write_text(json.dumps({"disableAllHooks": True}))
    talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_activity("idle", seconds=TURN)

    first = ask(talking, thread, "one")
    second = ask(talking, thread, "two")
    talking.workspace.say("alice", "agents", "a file [[tool bash touch made-by-test]]", thread)
    press(talking, "alice", wait_buttons(talking, thread, "touch made-by-test", TURN), "Yes")
    made = talking.folder / "work" / "made-by-test"
    wait_until(made.exists, "it was allowed", TURN)
    talking.wait_activity("idle", seconds=TURN)
    bad = talking.workspace.say("alice", "agents", "three [[error 400]]", thread)
    talking.wait_reply(thread, "was taken by a turn that failed", TURN)
    wait_until(lambda: list(talking.workspace.reactions("agents", bad)) == ["x"], "it is marked as failed", TURN)
    talking.wait_activity("idle", seconds=TURN)

    status = talking.cli("status")
    [note] = [each["text"] for each in talking.workspace.replies("agents", thread) if SILENT in each["text"]]
    [told] = talking.events("standing.hooks_silent")
    assert "one" in first
    assert "two" in second
    assert hooks(talking) == "silent"
    assert (status.code, "idle, hooks-silent" in status.out) == (1, True)
    assert "disableAllHooks is set in" in note
    assert "disableAllHooks is set in" in told["reason"]


@pytest.mark.capability("turn edges")
def test_a_session_whose_folder_was_removed_still_answers(talking: ClaudeProduct) -> None:
    """2.1.197 can start no hook there, which is told; newer ones can. Made again, the folder brings the hooks back."""
    tree = Path(talking.folder / "trees" / "feature")
    tree.mkdir(parents=True)
    session = {"name": NAME, "prompt": "Wait.", "cwd": str(tree), "slack": {"enabled": True}}
    talking.configure(standingSessions={"enabled": True, "sessions": [session]})
    talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_activity("idle", seconds=TURN)
    ask(talking, thread, "one")

    shutil.rmtree(tree)
    ask(talking, thread, "two")
    told = [each["text"] for each in talking.workspace.replies("agents", thread) if SILENT in each["text"]]
    silent = hooks(talking)
    tree.mkdir()
    ask(talking, thread, "three")

    assert bool(told) is (silent == "silent")
    assert all(f"the session's folder {tree} is gone" in each for each in told)
    wait_until(lambda: hooks(talking) == "reporting", "its hooks report again", TURN)
    assert len(talking.events("standing.hooks_back")) == len(told)


@pytest.mark.capability("turn edges")
def test_a_request_that_is_tried_again_for_long_is_told_meanwhile(talking: ClaudeProduct) -> None:
    """Before it fails or goes on, and the note says which in the end."""
    talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_reply(thread, "Look after it.", TURN)

    talking.workspace.say("alice", "agents", "count the swallows [[error 500 for 25]]", thread)
    note = talking.wait_reply(thread, "the program tries again by itself", TURN)["text"]
    detail = talking.cli("standing", "get", NAME, "--json").json["detail"]
    wait_until(lambda: answers(talking, thread, "count the swallows"), "it goes on", 2 * TURN)
    wait_until(
        lambda: any(
            " UTC. Before that: the model's server" in each["text"]
            for each in talking.workspace.replies("agents", thread)
        ),
        "the note is edited",
        TURN,
    )

    assert "nothing is lost" in note
    assert "of 10" in detail
    assert len(talking.events("standing.retrying")) == 1
