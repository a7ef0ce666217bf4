"""Messages that reach real Claude Code while a person's `/compact` runs, of which no hook tells."""

import time

import pytest

from tests.harness.claude.product import ClaudeProduct
from tests.support.product import NAME
from tests.support.tmux import wait_until

TEXT = "said while it compacts"


def compacting(product: ClaudeProduct, seconds: int) -> None:
    """Let a person at the terminal compact a conversation of some turns, which takes so long."""
    product.serve().wait_swept()
    product.wait_activity("idle")
    for text in ("one thing", "another thing"):
        product.cli("standing", "say", NAME, "--text", text)
        product.wait_state(text, "confirmed")
    product.wait_rest()
    product.keys("-l", f"/compact [[sleep {seconds}]]")
    wait_until(lambda: "/compact" in product.screen(), "it is typed")
    time.sleep(0.5)  # else the Enter is read with the text
    product.keys("Enter")
    product.wait_status("busy")


@pytest.mark.capability("queue evidence")
def test_a_message_during_a_compaction_is_queued_in_it(alone: ClaudeProduct) -> None:
    """The row says that it works, the message is known to be in its queue, and a turn takes it afterwards."""
    compacting(alone, 20)

    said = alone.cli("standing", "say", NAME, "--text", TEXT, "--json").json
    alone.wait_activity("busy")

    assert said["state"] == "accepted"
    alone.wait_state(TEXT, "confirmed")


@pytest.mark.capability("queue evidence")
@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
def test_a_pause_during_a_compaction_keeps_what_is_queued(alone: ClaudeProduct, hard: bool) -> None:
    """It comes back into our queue, by the key or blocked by our own hook, and goes in once after the resume."""
    compacting(alone, 25)
    alone.cli("standing", "say", NAME, "--text", TEXT)

    alone.cli("standing", "pause", NAME, *(("--hard",) if hard else ()))
    alone.wait_status("idle")
    alone.wait_state(TEXT, "pending", "queued")
    during = len(alone.model.requests(TEXT))
    alone.cli("standing", "resume", NAME)
    alone.wait_state(TEXT, "confirmed")

    assert during == 0
    alone.wait_request(TEXT)
