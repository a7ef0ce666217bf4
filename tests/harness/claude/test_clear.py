"""`/clear` at the terminal in the middle of a turn of real Claude Code: a message behind it goes into the new one."""

import time

import pytest

from tests.harness.claude.product import ClaudeProduct
from tests.support.tmux import wait_until

BEHIND = "behind the clear"


@pytest.mark.capability("queue evidence")
def test_a_message_behind_a_clear_is_followed_into_the_new_conversation(talking: ClaudeProduct) -> None:
    """It is confirmed by the new conversation's file, ticked off, and taken once."""
    talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_activity("idle")
    work = "work [[sleep 12]]"
    talking.workspace.say("alice", "agents", work, thread)
    talking.wait_state(work, "confirmed")
    talking.keys("-l", "/clear")
    wait_until(lambda: "/clear" in talking.screen(), "it is typed")
    time.sleep(0.8)  # else the Enter is read with the text
    talking.keys("Enter")
    time.sleep(1.0)  # it waits in its queue; nothing else tells of it

    ts = talking.workspace.say("alice", "agents", BEHIND, thread)
    talking.wait_state(BEHIND, "confirmed")

    done = ["white_check_mark"]
    wait_until(lambda: list(talking.workspace.reactions("agents", ts)) == done, "it is ticked off", 40)
    assert len([each for each in talking.model.requests(BEHIND) if not each.user.startswith("#")]) >= 1
    notes = [each["text"] for each in talking.workspace.replies("agents", thread)]
    assert not [text for text in notes if "not known whether" in text]
