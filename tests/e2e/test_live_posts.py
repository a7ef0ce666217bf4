"""A turn as the thread shows it while it runs: the real service, the bundled agent, a workspace that streams."""

from typing import Any

import pytest

from tests.support.product import RELAYED, Product
from tests.support.tmux import wait_until

pytestmark = pytest.mark.skipif(RELAYED, reason="a gateway shows no turn as it runs: docs/fleet.md")

ASKED = "work Read the notes | Read the code | Run the tests! | Look why | Write it down"


def streamed(product: Product, thread: str) -> dict[str, Any]:
    """Return the thread's message that shows a plan; {} while there is none."""
    found = (
        reply
        for reply in product.workspace.replies("agents", thread)
        if any(block["type"] == "plan" for block in reply.get("blocks", ()))
    )
    return dict(next(found, {}))


def tasks(message: dict[str, Any]) -> dict[str, str]:
    """Return the states of the plan's tasks, by their titles."""
    plans = [block for block in message.get("blocks", ()) if block["type"] == "plan"]
    return {task["title"]: task["status"] for plan in plans for task in plan["tasks"]}


def test_a_turn_is_shown_as_it_runs(shared: Product) -> None:
    """Its plan, each tool with its outcome, then the answer, all in one message."""
    thread = shared.root()
    before = len(shared.workspace.replies("agents", thread))

    shared.workspace.say("alice", "agents", ASKED, thread)
    wait_until(
        lambda: "in_progress" in tasks(streamed(shared, thread)).values(), "the thread shows what the agent works on"
    )
    running = tasks(streamed(shared, thread))
    shared.wait_reply(thread, "I have worked on this:")

    message = streamed(shared, thread)
    plan = next(block for block in message["blocks"] if block["type"] == "plan")
    assert running
    items = ("Read the notes", "Read the code", "Run the tests", "Look why", "Write it down")
    tools = {f"Bash do {item.lower()}": "complete" for item in items} | {"Bash do run the tests": "error"}
    assert tasks(message) == dict.fromkeys(items, "complete") | tools
    assert plan["title"] == "5 of 5 done, 5 steps"
    assert message["blocks"][-1]["text"].endswith(
        "- Run the tests: **failed**\n- Look why: done\n- Write it down: done"
    )
    assert message["metadata"]["event_payload"]["kind"] == "answer"
    assert len(shared.workspace.replies("agents", thread)) == before + 2  # what alice said, and this


def test_a_workspace_without_streams_gets_the_answer(shared: Product) -> None:
    """As a message of its own; what is missing stands in the service's status."""
    thread = shared.root()
    shared.workspace.fault("chat.startStream", "error", code="unknown_method")

    shared.workspace.say("alice", "agents", "work Read more | Read on | Look | Ask | Write more", thread)
    shared.wait_reply(thread, "Write more: done")

    replies = shared.workspace.replies("agents", thread)
    found = [reply for reply in replies if "Write more: done" in reply["text"]]
    status = shared.cli("status").out
    assert len(found) == 1
    assert not any("Read more" in title for reply in replies for title in tasks(reply))
    assert "turns are not shown as they run" in " ".join(status.split())
