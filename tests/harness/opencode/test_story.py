"""The README's story with real OpenCode: in the thread, at the terminal and by the command line alone."""

import os
import signal

import pytest

from tests.harness.opencode.product import TURN_SECONDS, OpenCodeProduct
from tests.support.asking import press, wait_buttons, wait_text
from tests.support.product import NAME
from tests.support.tmux import alive, wait_until

ASK = "asks for permission"
TOUCH = "[[tool bash touch made-by-test]]"


def serve(product: OpenCodeProduct) -> str:
    """Bring the service up, wait until the boot turn is answered, and return the session's thread."""
    product.up()
    thread = product.root()
    product.wait_reply(thread, "Look after it.", 2 * TURN_SECONDS)
    return thread


@pytest.mark.capability("resume")
def test_a_reply_is_answered_and_the_conversation_goes_on_after_a_stop_and_a_crash(talking: OpenCodeProduct) -> None:
    """Announcement, reply, answer; a graceful stop and a kill; both times the next start knows what was said."""
    thread = serve(talking)
    [pid] = talking.panes().values()
    talking.workspace.say("alice", "agents", "remember the heron", thread)
    answer = talking.wait_reply(thread, "remember the heron", TURN_SECONDS)
    talking.wait_state("remember the heron", "confirmed")
    row = talking.row()

    stopped = talking.cli("standing", "stop", NAME, "--json", seconds=120)
    left = alive(pid)
    again = talking.cli("standing", "start", NAME, "--json", seconds=240)
    talking.workspace.say("alice", "agents", "what was it?", thread)
    talking.wait_reply(thread, "what was it?", TURN_SECONDS)
    [second] = talking.panes().values()
    signalled = talking.row()["harnessSessionId"]
    talking.tmux("kill-session", "-t", f"=loop-standing-{NAME}")
    wait_until(lambda: not alive(second), "it ends without a terminal, or is swept", TURN_SECONDS)
    third = talking.cli("standing", "start", NAME, "--json", seconds=240)
    talking.workspace.say("alice", "agents", "and now?", thread)
    talking.wait_reply(thread, "and now?", TURN_SECONDS)

    assert answer["text"].startswith("ECHO: [alice via slack #")
    assert row["harnessSessionId"].startswith("ses_")
    assert (stopped.code, left) == (0, False)
    assert again.row["outcome"] == third.row["outcome"] == "resumed"
    assert signalled == row["harnessSessionId"] == talking.row()["harnessSessionId"]
    last = talking.model.requests("and now?")[-1]
    assert "remember the heron" in str(last.body)


@pytest.mark.parametrize(("label", "said"), [("Allow", "Allowed"), ("Deny", "Denied")])
@pytest.mark.capability("permission hook")
def test_a_button_answers_the_dialog(talking: OpenCodeProduct, label: str, said: str) -> None:
    """A reply meanwhile presses no Enter; the tool runs, or the model is told."""
    thread = serve(talking)
    made = talking.folder / "work" / "made-by-test"
    talking.workspace.say("alice", "agents", TOUCH, thread)
    asked = wait_buttons(talking, thread, ASK, TURN_SECONDS)
    talking.workspace.say("alice", "agents", "not an answer", thread)
    talking.wait_activity("permission")
    before = made.exists()

    press(talking, "alice", asked, label)
    told = wait_text(talking, thread, asked["ts"], f"{said}* by alice", 30)
    talking.wait_reply(thread, "not an answer", TURN_SECONDS)

    assert before is False
    assert "touch made-by-test" in told
    assert made.exists() is (label == "Allow")


@pytest.mark.capability("turn edges")
def test_a_turn_is_interrupted(alone: OpenCodeProduct) -> None:
    """The key ends it, the row says idle, and the next message is answered."""
    alone.up()
    alone.wait_activity("idle", seconds=2 * TURN_SECONDS)
    work = "work [[tool bash sleep 60]]"
    alone.cli("standing", "say", NAME, "--text", work)
    alone.wait_activity("busy")
    wait_until(lambda: "$ sleep 60" in alone.screen(), "the tool runs", TURN_SECONDS)

    done = alone.cli("standing", "interrupt", NAME, "--json")
    alone.wait_activity("idle")
    said = alone.cli("standing", "say", NAME, "--text", "still here?", "--json", seconds=TURN_SECONDS)
    alone.wait_state("still here?", "confirmed")

    assert (done.code, done.row["outcome"]) == (0, "interrupted"), done.out
    assert said.code == 0, said.out


@pytest.mark.capability("resume")
def test_two_sessions_in_one_folder_are_told_apart(alone: OpenCodeProduct) -> None:
    """Started together, each learns its own conversation, answers its own message, and resumes its own."""
    sessions = [{"name": name, "prompt": f"You are {name}."} for name in ("one", "two")]
    alone.configure(standingSessions={"enabled": True, "sessions": sessions})
    alone.up()
    for name in ("one", "two"):
        alone.wait_activity("idle", name, 3 * TURN_SECONDS)
        alone.cli("standing", "say", name, "--text", f"to {name}", seconds=TURN_SECONDS)
    for name in ("one", "two"):
        alone.wait_state(f"to {name}", "confirmed")
    ids = {name: alone.row(name)["harnessSessionId"] for name in ("one", "two")}

    alone.cli("restart", seconds=400)
    for name in ("one", "two"):
        alone.wait_activity("idle", name, 3 * TURN_SECONDS)

    assert len(set(ids.values())) == 2
    assert {name: alone.row(name)["harnessSessionId"] for name in ids} == ids
    for name, other in (("one", "two"), ("two", "one")):
        [request] = [each for each in alone.model.requests(f"to {name}") if each.body.get("tools")]
        assert f"to {other}" not in str(request.body)


@pytest.mark.capability("resume")
def test_a_crash_is_seen(alone: OpenCodeProduct) -> None:
    """A program that is killed is told as such."""
    alone.up()
    alone.wait_activity("idle", seconds=2 * TURN_SECONDS)
    [pid] = alone.panes().values()

    os.kill(pid, signal.SIGKILL)

    [event] = alone.wait_event("standing.exited", seconds=TURN_SECONDS)
    assert event["name"] == NAME
