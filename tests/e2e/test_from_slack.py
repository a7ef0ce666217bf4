"""What is started from Slack: a mention becomes a session in its thread, answers, and is there once after a kill."""

from tests.support.product import Product
from tests.support.tmux import wait_until


def test_a_mention_becomes_a_session_that_answers_in_its_thread(talking: Product) -> None:
    """From the operator's template; after a kill of the service a second sight of the message starts nothing."""
    workspace = talking.workspace
    template = {"name": "fix", "channel": workspace.channel_id("agents"), "root": str(talking.folder), "role": "member"}
    talking.configure(channels={"slack": talking.slack_block(templates=[template])})
    serving = talking.serve().wait_swept()

    ts = workspace.say("alice", "agents", "@the-loop reply with MENDED")

    [made] = talking.wait_event("standing.created")
    name = made["name"]
    announced = talking.wait_reply(ts, f"`{name}`")
    workspace.say("alice", "agents", "are you there?", ts)
    wait_until(lambda: any("are you there?" in text for text in talking.taken(name)), "its thread is the session's")
    serving.kill()
    talking.serve().wait_swept()
    workspace.redeliver(ts, 1, "timeout")
    wait_until(lambda: name in talking.panes(), "the session lives on")

    assert name.startswith("fix-")
    assert [text for text in talking.taken(name) if "reply with MENDED" in text]
    assert announced["thread_ts"] == ts
    assert [event["name"] for event in talking.events("standing.created")] == [name]
