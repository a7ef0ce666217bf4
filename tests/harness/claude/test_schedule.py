"""Real Claude Code's own schedule (CronCreate): its turns are held by a pause, and told as what they are."""

import json

import pytest

from tests.harness.claude.product import ClaudeProduct
from tests.support.product import NAME
from tests.support.tmux import wait_until

PROMPT = "look at the swallows"
CRON = json.dumps({"cron": "* * * * *", "prompt": PROMPT, "recurring": True})
MINUTES = 200.0  #: it fires once a minute, up to half a minute late


def fired(product: ClaudeProduct) -> int:
    """Return how many of its turns went out to the model."""
    return len([request for request in product.model.requests(PROMPT) if request.user.startswith(PROMPT)])


@pytest.mark.capability("turn edges")
def test_its_own_schedule_is_held_by_a_pause(talking: ClaudeProduct) -> None:
    """Before, it is told as its own; under the pause it waits once, in our queue, and goes in after the resume."""
    talking.allow("CronCreate")
    talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_activity("idle")
    talking.cli("standing", "say", NAME, "--text", f"set it [[call CronCreate {CRON}]]")
    wait_until(lambda: fired(talking), "it has fired", MINUTES)
    talking.wait_reply(thread, f"*by its own schedule:*\n&gt; {PROMPT}", 40)
    talking.wait_activity("idle")

    paused = talking.cli("standing", "pause", NAME, "--hard", "--json")
    before = fired(talking)

    def waiting() -> list[str]:
        rows = talking.cli("standing", "queue", NAME, "--text", "--json").json["messages"]
        return [row["text"] for row in rows if PROMPT in row["text"]]

    wait_until(waiting, "it was held", MINUTES)
    during, held = fired(talking), waiting()
    talking.cli("standing", "resume", NAME)
    talking.wait_request(f"once or more often:\n{PROMPT}")

    assert paused.row["outcome"] == "paused"
    assert (during, len(held)) == (before, 1)
    told = [each["text"] for each in talking.workspace.replies("agents", thread)]
    assert not [text for text in told if "at the terminal" in text]
