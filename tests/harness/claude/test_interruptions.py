"""Interruptions with real Claude Code: what becomes of messages that waited in its own queue."""

import json

import pytest

from tests.harness.claude.product import LONG, ClaudeProduct
from tests.support.product import NAME
from tests.support.tmux import wait_until

pytestmark = pytest.mark.capability("queue evidence")
BUSY = {"waiting": "[[sleep 30]]", "streaming": "[[drip 30]]", "tool": f"[[tool bash {LONG}]]"}
QUEUED = ("the second thing", "the third thing")
HELD = {"pending", "queued"}
TAKEN = ("confirmed", "accepted")  # a prompt that was cut off is in the next request too, and may be obeyed again


def busy_with_queue(product: ClaudeProduct, busy: str) -> None:
    """Let the session work, with two messages in its own queue."""
    product.serve().wait_swept()
    product.wait_activity("idle")
    product.cli("standing", "say", NAME, "--text", busy)
    product.wait_status("busy")
    for text in QUEUED:
        product.cli("standing", "say", NAME, "--text", text)
        product.wait_state(text, "accepted")


def times(product: ClaudeProduct, text: str) -> int:
    """Return how often the conversation's file says that the text was taken: as a prompt, or slipped into a turn."""
    home = product.folder / "home" / ".claude" / "projects"
    lines = [line for path in home.rglob("*.jsonl") for line in path.read_text().splitlines()]
    return sum(text in line and ('"type":"user"' in line or '"queued_command"' in line) for line in lines)


@pytest.mark.parametrize("busy", BUSY.values(), ids=BUSY)
def test_a_hard_pause_gives_back_what_its_queue_held(alone: ClaudeProduct, busy: str) -> None:
    """Claude Code begins a turn with it at once, which the hook blocks; after the resume each is taken once."""
    busy_with_queue(alone, busy)

    paused = alone.cli("standing", "pause", NAME, "--hard", "--json")
    wait_until(lambda: {alone.state_of(text) for text in QUEUED} <= HELD, "it is given back", 20)
    during = sum(times(alone, text) for text in QUEUED)
    resumed = alone.cli("standing", "resume", NAME, "--json")
    for text in QUEUED:
        alone.wait_state(text, *TAKEN)

    assert (paused.row["outcome"], resumed.row["outcome"]) == ("paused", "unpaused")
    assert during == 0
    wait_until(lambda: times(alone, QUEUED[0]) == 1, "the first is in the conversation", 40)


@pytest.mark.parametrize("busy", BUSY.values(), ids=BUSY)
def test_an_interruption_loses_nothing_of_its_queue(alone: ClaudeProduct, busy: str) -> None:
    """Without a pause Claude Code goes on with it, and what is said next is sent by itself."""
    busy_with_queue(alone, busy)

    done = alone.cli("standing", "interrupt", NAME, "--json")
    said = alone.cli("standing", "say", NAME, "--text", "the fourth thing", "--json")

    assert done.row["outcome"] == "interrupted"
    assert said.json["state"] in TAKEN
    wait_until(lambda: all(times(alone, text) == 1 for text in QUEUED), "each is taken once", 60)


@pytest.mark.capability("input line")
def test_a_prompt_that_came_back_is_not_sent_with_the_next_message(alone: ClaudeProduct) -> None:
    """Interrupted before its first token, Claude Code puts it back into the input line."""
    alone.serve().wait_swept()
    alone.wait_activity("idle")
    alone.cli("standing", "say", NAME, "--text", "[[sleep 30]] come back")
    alone.wait_status("busy")

    done = alone.cli("standing", "interrupt", NAME, "--json")
    said = alone.cli("standing", "say", NAME, "--text", "a message of its own", "--json")

    assert done.row["outcome"] == "interrupted"
    assert said.json["state"] in TAKEN
    request = alone.wait_request("a message of its own")
    assert "come back" not in request.user.partition("a message of its own")[0].rpartition("[root via")[2]


@pytest.mark.capability("turn edges")
def test_who_is_cut_off_while_it_thinks_gets_no_answer_of_another(talking: ClaudeProduct) -> None:
    """Escape at the terminal, before the model says anything, and the next reply at once: the first one is marked as
    cut off, and who waits for its answer is told so."""
    talking.serve().wait_swept()
    thread = talking.root()
    talking.wait_activity("idle")
    lost = talking.workspace.say("alice", "agents", "[[sleep 30]] the lost one", thread)
    talking.wait_state("[[sleep 30]] the lost one", "confirmed")
    talking.wait_status("busy")
    talking.keys("Escape")
    talking.workspace.say("alice", "agents", "the next one", thread)
    talking.wait_reply(thread, "the next one", 60)
    talking.workspace.wait_for_reaction("agents", lost, "x", 60)

    asks = ("standing", "say", NAME, "--text", "[[sleep 30]] who is there", "--wait-answer", "--json")
    waiting, out = talking.begin("--config", str(talking.config), *asks)
    talking.wait_request("who is there")
    talking.keys("Escape")
    talking.workspace.say("alice", "agents", "the last one", thread)
    talking.wait_reply(thread, "the last one", 60)
    waiting.wait(60)
    told = json.loads(out.read_text())

    assert (told["answer"], told["answerState"]) == (None, "failed")
