"""A session of real Gemini CLI: brief, replies, permissions, interruptions, ends and resumes."""

import os
import signal

import pytest

from tests.harness.gemini.product import SECONDS, GeminiProduct
from tests.support.asking import press, wait_buttons, wait_text
from tests.support.product import NAME
from tests.support.tmux import alive, wait_until

SHOWS = "shows a dialog in its terminal"


@pytest.mark.capability("resume")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["TERM", "KILL"])
def test_a_reply_is_answered_and_the_conversation_goes_on(talking: GeminiProduct, number: int) -> None:
    """The brief is taken, a reply confirmed and answered once; after a hard end the next start knows what was said."""
    thread = talking.serve_ready()
    talking.workspace.say("alice", "agents", "remember the heron", thread)
    talking.wait_reply(thread, "remember the heron", SECONDS)
    talking.wait_state("remember the heron", "confirmed")
    [pid] = talking.panes().values()

    os.kill(pid, number)
    wait_until(lambda: not alive(pid), "it has ended", 20)
    talking.cli("standing", "start", NAME, seconds=120)
    talking.workspace.say("alice", "agents", "what was it?", thread)
    talking.wait_reply(thread, "what was it?", SECONDS)

    assert "remember the heron" in str(talking.wait_request("what was it?").body)
    assert len([reply for reply in talking.bot_replies(thread) if "ECHO:" in reply and "heron" in reply]) == 1


@pytest.mark.capability("permission hook")
@pytest.mark.parametrize("choice", ["Allow once", "No, suggest changes (esc)"])
def test_a_permission_is_answered_in_the_thread(talking: GeminiProduct, choice: str) -> None:
    """The dialog is shown with its choices, and holds messages; a press chooses, and the next message goes in."""
    thread = talking.serve_ready()
    made = talking.folder / "work" / "made-by-test"
    talking.workspace.say("alice", "agents", "[[tool bash touch made-by-test]]", thread)
    asked = wait_buttons(talking, thread, SHOWS, SECONDS)
    talking.workspace.say("alice", "agents", "not an answer", thread)
    talking.wait_state("not an answer", "queued")
    before = made.exists()

    press(talking, "alice", asked, choice)
    ended = wait_text(talking, thread, asked["ts"], "chosen by alice", 30)
    talking.wait_reply(thread, "not an answer", SECONDS)

    assert "touch made-by-test" in asked["text"]
    assert choice in ended
    assert (before, made.exists()) == (False, choice == "Allow once")


@pytest.mark.capability("turn edges")
@pytest.mark.parametrize("work", ["[[sleep 60]]", "[[tool bash sleep 60]]"], ids=["mid-turn", "mid-tool"])
def test_a_turn_is_interrupted(talking: GeminiProduct, work: str) -> None:
    """The verb ends the turn, says so, and the next message is a turn of its own."""
    document = talking.document()
    document["routing"]["harnessArgs"] = {"gemini": [*document["routing"]["harnessArgs"]["gemini"], "--yolo"]}
    talking.configure(routing=document["routing"])
    thread = talking.serve_ready()
    talking.workspace.say("alice", "agents", f"work {work}", thread)
    talking.wait_activity("busy")
    talking.wait_request("work")

    done = talking.cli("standing", "interrupt", NAME, "--json")
    talking.workspace.say("alice", "agents", "and the swallows", thread)
    talking.wait_reply(thread, "and the swallows", SECONDS)

    assert done.row["outcome"] == "interrupted"
    talking.wait_state("and the swallows", "confirmed")


@pytest.mark.capability("transcript form")
def test_two_sessions_in_one_folder_are_told_apart(alone: GeminiProduct) -> None:
    """Started at once, each has a conversation of its own, and each gets its own messages."""
    alone.configure(standingSessions={"enabled": True, "sessions": [{"name": n, "prompt": "Wait."} for n in "ab"]})
    alone.serve().wait_swept()

    for name in "ab":
        done = alone.cli("standing", "say", name, "--text", f"for {name} alone", "--wait", "120", seconds=150)
        assert done.code == 0, done.err

    records = [alone.record(name) for name in "ab"]
    assert len({record["harnessSessionId"] for record in records}) == 2
    assert "for b alone" not in str(alone.wait_request("for a alone").body)
