"""The story that the README tells, by the product's own processes."""

import re

from tests.support.product import NAME, Product, is_root
from tests.support.tmux import alive, wait_until


def test_a_reply_in_the_thread_is_taken_once_and_its_answer_comes_back(talking: Product) -> None:
    """The announcement stands bound in the channel; a reply is in the pane once, submitted; the answer follows."""
    talking.serve().wait_swept()
    thread = talking.root()

    talking.workspace.say("alice", "agents", "count the swallows", thread)
    answer = talking.wait_reply(thread, "You said (3 words): “count the swallows”")

    [event] = talking.events("channel.reply_received")
    assert talking.count("count the swallows") == 1
    assert re.search(r"\[alice via slack #\w{6}\] count the swallows", talking.screen())
    assert "blocks" not in answer or all(block["type"] == "rich_text" for block in answer["blocks"])
    assert event["name"] == NAME
    assert event["text"]["length"] == len("count the swallows")


def test_the_slash_command_tells_how_the_sessions_are(talking: Product) -> None:
    """`/the-loop status`, `list` and `help` answer the person who asks, and nobody else."""
    talking.serve().wait_swept()
    talking.root()

    for verb in ("status", "list", "help"):
        talking.workspace.command("alice", "agents", f"/the-loop {verb}")

    status = talking.workspace.wait_for_ephemeral("alice", lambda m: "1 session, running" in m["text"])
    help_text = talking.workspace.wait_for_ephemeral("alice", lambda m: "Commands: status, list, " in m["text"])
    assert any(NAME in str(block) for block in status["blocks"])
    assert "/the-loop list" in str(help_text["blocks"])
    wait_until(lambda: len(talking.workspace.ephemerals("agents", "alice")) >= 3, "all three are answered")
    assert len(talking.workspace.ephemerals("agents", "alice")) == 3


def test_a_stop_is_graceful_and_the_next_start_resumes_the_conversation(talking: Product) -> None:
    """status 0, stop 0, status not 0; then the same conversation, one boot reply, the root edited, no second root."""
    talking.serve().wait_swept()
    thread = talking.root()
    talking.workspace.say("alice", "agents", "remember the heron", thread)
    talking.wait_reply(thread, "remember the heron")
    conversation = talking.record()["harnessSessionId"]

    up = talking.cli("status", "--json")
    stopped = talking.cli("stop", "--json")
    down = talking.cli("status", "--json")
    again = talking.cli("start", "--json")

    assert (up.code, up.json["ok"]) == (0, True)
    assert (stopped.code, stopped.json["standingSessions"][0]["outcome"]) == (0, "stopped")
    [service] = stopped.json["services"]
    assert service == {"name": "service", "running": False, "pid": None, "detail": "stopped", "reason": ""}
    assert (down.code, down.json["ok"]) == (1, False)
    assert (again.code, again.json["standingSessions"][0]["outcome"]) == (0, "resumed")
    assert talking.record()["harnessSessionId"] == conversation
    assert "up again" in talking.wait_reply(thread, "is up again — resumed")["text"]
    talking.workspace.wait_for_message(lambda m: is_root(m) and "resumed" in m["text"])
    talking.workspace.say("alice", "agents", "history", thread)
    assert "remember the heron" in talking.wait_reply(thread, "This conversation: ")["text"]
    assert len(talking.roots()) == 1


def test_a_graceful_end_leaves_no_process_of_the_session(talking: Product) -> None:
    """After `the-loop stop` neither the agent nor anything that it started lives."""
    talking.serve().wait_swept()
    [pid] = talking.panes().values()

    talking.cli("stop")

    assert talking.panes() == {}
    assert not alive(pid)
    assert talking.events("standing.stopped")[-1]["name"] == NAME
