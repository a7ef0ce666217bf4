"""A hard pause of real Claude Code at a permission dialog, while its own queue holds a message."""

import pytest

from tests.harness.claude.product import ClaudeProduct
from tests.support.asking import wait_buttons
from tests.support.product import NAME
from tests.support.tmux import wait_until

ASKS = "do it [[sleep 6]][[tool bash touch made-by-test]]"
QUEUED = "the queued one [[sleep 25]]"


@pytest.mark.capability("queue evidence")
def test_what_its_queue_held_at_a_dialog_is_given_back_or_told(talking: ClaudeProduct) -> None:
    """As the dialog is rejected it is taken back; where a turn was faster, that is said, and how to send it again."""
    talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_activity("idle")
    talking.workspace.say("alice", "agents", ASKS, thread)
    talking.wait_state(ASKS, "confirmed")
    ts = talking.workspace.say("alice", "agents", QUEUED, thread)
    talking.wait_state(QUEUED, "accepted", "queued")
    talking.wait_activity("permission")

    paused = talking.cli("standing", "pause", NAME, "--hard", "--json").row
    talking.wait_activity("idle", seconds=8)
    state = talking.state_of(QUEUED)

    if state == "confirmed":  # 2.1.332 begins that turn 0.2 s after the key: on a busy machine it is faster, too
        assert (paused["outcome"], "cut off" in paused["detail"]) == ("unconfirmed", True)
        wait_buttons(talking, thread, "was taken by a turn that was cut off by the pause", 20)
    else:
        assert (paused["outcome"], state) == ("paused", "queued" if state == "queued" else "pending")
    talking.cli("standing", "resume", NAME)
    if state == "confirmed":
        assert list(talking.workspace.reactions("agents", ts)) == ["x"]
    else:
        talking.wait_state(QUEUED, "confirmed")
        cut_off = "cut off before it answered" in paused["detail"]  # that turn, too, had asked the model
        wait_until(lambda: len(talking.model.requests(QUEUED)) == 1 + cut_off, "it goes out once", 20)
