"""The real Bolt app against the workspace, over Socket Mode."""

from __future__ import annotations

import queue
from typing import Any

import pytest
from slack_bolt.app.async_app import AsyncApp

from embedded.workspace.thread import WorkspaceThread
from tests.integration.embedded.bolt import BoltBot

BUTTON = {"type": "button", "text": {"type": "plain_text", "text": "Go"}, "action_id": "go", "value": "g1"}
ACTIONS = [{"type": "actions", "block_id": "row", "elements": [BUTTON]}]


def test_message_in_a_thread_is_heard_and_acknowledged(workspace: WorkspaceThread, bolt: BoltBot) -> None:
    """A person's reply reaches the listener with Slack's members, and its envelope is acknowledged."""
    bolt.start()
    parent = workspace.say_as_bot("the-loop", "agents", "session")

    ts = workspace.say("alice", "agents", "carry on", parent)
    event = bolt.next_event()

    assert (event["text"], event["ts"], event["thread_ts"]) == ("carry on", ts, parent)
    assert event["user"] == workspace.user_id("alice")
    assert event["parent_user_id"] == workspace.bot_user_id
    assert event["channel_type"] == "channel"
    assert event["client_msg_id"]
    assert event["blocks"][0]["type"] == "rich_text"
    workspace.wait_for(lambda c: all(entry["acknowledged"] for entry in c.envelopes("events_api")))


def test_slash_command_is_answered_to_its_caller_alone(workspace: WorkspaceThread, bolt: BoltBot) -> None:
    """The acknowledgement's text becomes an ephemeral message; nothing is posted."""

    def configure(app: AsyncApp) -> None:
        @app.command("/the-loop")
        async def answer(ack: Any, command: dict[str, Any]) -> None:
            await ack(f"you said {command['text']} in {command['channel_name']}")

    bolt.start(configure)

    outcome = workspace.command("you", "agents", "/the-loop status now")

    assert outcome.acknowledged
    assert [note["text"] for note in workspace.ephemerals("agents", "you")] == ["you said status now in agents"]
    assert workspace.ephemerals("agents", "alice") == []
    assert workspace.messages("agents") == []


def test_button_reaches_its_listener_which_may_change_the_message(workspace: WorkspaceThread, bolt: BoltBot) -> None:
    """A click carries user, container and value; chat.update with text alone takes the buttons away."""
    clicks: list[dict[str, Any]] = []

    def configure(app: AsyncApp) -> None:
        @app.action("go")
        async def clicked(ack: Any, body: dict[str, Any], client: Any) -> None:
            await ack()
            clicks.append(body)
            place = {"channel": body["channel"]["id"], "ts": body["container"]["message_ts"]}
            await client.chat_update(**place, text="gone")

    bolt.start(configure)
    message = bolt.app.client.chat_postMessage(channel="agents", text="choose", blocks=ACTIONS)
    ts = str(bolt.run(message)["ts"])

    outcome = workspace.press("mallory", "agents", ts, "go")
    changed = workspace.wait_for_message(lambda seen: seen["ts"] == ts and seen["text"] == "gone")

    assert outcome.acknowledged
    assert clicks[0]["user"]["id"] == workspace.user_id("mallory")
    assert clicks[0]["user"]["team_id"] != workspace.team_id
    assert clicks[0]["actions"][0]["value"] == "g1"
    assert "blocks" not in changed


def test_response_url_answers_five_times(workspace: WorkspaceThread, bolt: BoltBot) -> None:
    """respond() posts through the response URL, which is used up after five posts."""
    statuses: queue.Queue[int] = queue.Queue()

    def configure(app: AsyncApp) -> None:
        @app.command("/the-loop")
        async def answer(ack: Any, respond: Any) -> None:
            await ack()
            for number in range(6):
                statuses.put((await respond(f"part {number}")).status_code)

    bolt.start(configure)

    workspace.command("you", "agents", "/the-loop help")
    seen = [statuses.get(timeout=10) for _ in range(6)]

    assert seen == [200] * 5 + [404]
    assert len(workspace.ephemerals("agents", "you")) == 5


def test_answers_may_be_for_all_or_replace_what_is_there(workspace: WorkspaceThread, bolt: BoltBot) -> None:
    """An acknowledgement can speak to the channel; respond() can replace or delete the message with the button."""

    def configure(app: AsyncApp) -> None:
        @app.command("/the-loop")
        async def answer(ack: Any) -> None:
            await ack(text="for all", response_type="in_channel", blocks=ACTIONS)

        @app.action("go")
        async def clicked(ack: Any, respond: Any, body: dict[str, Any]) -> None:
            await ack()
            if body["message"]["text"] == "for all":
                await respond(text="replaced", blocks=ACTIONS, replace_original=True)
            else:
                await respond(delete_original=True)

    bolt.start(configure)

    workspace.command("you", "agents", "/the-loop status")
    ts = workspace.wait_for_message(lambda message: message["text"] == "for all")["ts"]
    workspace.press("alice", "agents", ts, "go")
    workspace.wait_for_message(lambda message: message["text"] == "replaced" and message["ts"] == ts)
    workspace.press("alice", "agents", ts, "go", "g1")

    assert workspace.wait_for(lambda c: not c.messages("agents") or None)
    assert workspace.ephemerals("agents", "you") == []


def test_command_of_a_listener_that_never_acknowledges_times_out(workspace: WorkspaceThread, bolt: BoltBot) -> None:
    """Without an acknowledgement in time the caller sees operation_timeout, and nothing is sent again."""
    bolt.start()

    outcome = workspace.command("you", "agents", "/the-loop status")

    assert outcome.error == "operation_timeout"
    assert "operation_timeout" in workspace.ephemerals("agents", "you")[0]["text"]
    assert len(workspace.envelopes("slash_commands")) == 1


@pytest.mark.parametrize("how", ["close", "fin", "rst", "silence"])
def test_bolt_comes_back_after_its_socket_broke(workspace: WorkspaceThread, bolt: BoltBot, how: str) -> None:
    """However a socket ends, a new one is opened with a new ticket and events flow again."""
    bolt.start()

    workspace.break_sockets(how)
    workspace.wait_for(lambda c: c.sockets_opened() >= 2)
    workspace.wait_for_connections(1)
    ts = workspace.say("bob", "agents", "anybody?")

    assert bolt.next_event()["ts"] == ts


def test_refresh_request_leads_to_a_new_socket(workspace: WorkspaceThread, bolt: BoltBot) -> None:
    """refresh_requested ends the socket; the app opens another and hears the next message."""
    bolt.start()

    workspace.disconnect("refresh_requested")
    workspace.wait_for(lambda c: c.sockets_opened() >= 2)
    workspace.wait_for_connections(1)
    ts = workspace.say("bob", "agents", "after the refresh")

    assert bolt.next_event()["ts"] == ts
