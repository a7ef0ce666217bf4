"""The app's own page: the Home tab and direct messages, over real Bolt, by Socket Mode and by HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from core.base.errors import TmuxSilent
from core.model.asking import Button, Press
from core.model.channel import Waiting
from embedded.workspace.thread import WorkspaceThread
from tests.integration.bot.served import QUICK, SECRET, Door, Refusal, Served
from tests.integration.bot.test_commands import ROWS
from tests.integration.bot.test_http import VARIABLES, send
from tests.support.tmux import PATIENCE

ALLOW = Button(Press.ALLOW, "q-1", "Allow", style="primary")


@pytest.fixture
def quick(workspace: WorkspaceThread, door: Door) -> Iterator[Served]:
    """The channel, which looks often whether a Home tab has changed; alice may steer."""
    with Served(workspace, door, pace=replace(QUICK, home=0.05)) as running:
        door.wait_until_up()
        yield running


def shown(workspace: WorkspaceThread, user: str, text: str) -> dict[str, Any]:
    """Return the Home tab once it shows the text."""
    return workspace.wait_for(
        lambda controls: (view := controls.home(user)) and (view if text in json.dumps(view) else None),
        describe=lambda controls: controls.home(user),
    )


def test_a_member_sees_what_waits_first_and_answers_it_there(
    workspace: WorkspaceThread, door: Door, quick: Served
) -> None:
    """The press is that of the post in the thread, so core judges it in the same way; then the page is made anew."""
    place, root = workspace.channel_id("agents"), quick.thread()
    door.sessions = list(ROWS)
    door.questions = [Waiting("scribe", "may I run <make>?", (ALLOW,), place, root, "1795959999.000100")]
    workspace.do(lambda controls: controls.open_home("alice"))
    view = shown(workspace, "alice", "may I run &lt;make&gt;?")
    text = json.dumps(view)
    assert text.index("Waiting for an answer") < text.index("Sessions") < text.index("digger")

    door.questions = []
    failed = workspace.do_async(lambda controls: controls.press_view("alice", view["id"], "the_loop_allow", "q-1"))

    assert failed is None
    press = door.wait(lambda door: door.presses[0] if door.presses else None)
    assert (press.action, press.target, press.channel, press.thread, press.ts) == (
        "allow", "q-1", place, root, "1795959999.000100"
    )  # fmt: skip
    workspace.wait_for(lambda controls: "Waiting" not in json.dumps(controls.home("alice")) or None)


def test_it_is_published_again_only_where_it_has_changed(workspace: WorkspaceThread, door: Door, quick: Served) -> None:
    """The list is looked at again and again, and Slack is called once a change."""
    door.sessions = list(ROWS)
    workspace.do(lambda controls: controls.open_home("alice"))
    first = shown(workspace, "alice", "scribe")
    looked = len(door.lookers)
    door.wait(lambda door: len(door.lookers) > looked + 3)
    assert shown(workspace, "alice", "scribe")["hash"] == first["hash"]

    door.sessions = [{**ROWS[0], "activity": "busy"}]

    assert shown(workspace, "alice", "busy")["hash"] != first["hash"]


def test_no_secret_stands_on_it(workspace: WorkspaceThread, door: Door, quick: Served) -> None:
    """Neither one of a question, nor one of the list, nor one of why there is no list."""
    place, root = workspace.channel_id("agents"), quick.thread()
    door.sessions = [{**ROWS[0], "activity": f"at {SECRET}"}]
    door.questions = [Waiting("scribe", f"may I use {SECRET}?", (ALLOW,), place, root, root)]
    workspace.do(lambda controls: controls.open_home("alice"))
    listed = shown(workspace, "alice", "may I use [redacted]?")
    door.rows_error = TmuxSilent(f"tmux did not answer {SECRET}", "look at it")

    failed = shown(workspace, "alice", "could not be listed")

    assert SECRET not in json.dumps([listed, failed])
    assert "at [redacted]" in json.dumps(listed)


@pytest.mark.parametrize("who", ["bob", "mallory"])
def test_everybody_else_sees_a_neutral_page(workspace: WorkspaceThread, door: Door, quick: Served, who: str) -> None:
    """A member of the workspace who is on no list, and one of another organization."""
    door.sessions = list(ROWS)

    workspace.do(lambda controls: controls.open_home(who))

    view = shown(workspace, who, "You are not on it")
    assert "scribe" not in json.dumps(view)
    assert door.lookers == []


def test_a_member_asks_for_the_status_directly(workspace: WorkspaceThread, door: Door, quick: Served) -> None:
    """And gets it there, once, however often Slack sends the message."""
    door.sessions = list(ROWS)
    place = workspace.do(lambda controls: controls.direct("alice"))

    ts = workspace.say("alice", place, "status")
    answer = workspace.wait_for_message(lambda message: "sessions running" in message["text"], channel=place)
    workspace.redeliver(ts, 1, "timeout")
    workspace.say("alice", place, "what can you do?")

    helped = workspace.wait_for_message(lambda message: "Here you can write" in message["text"], channel=place)
    assert "*scribe* idle" in json.dumps(answer)
    assert "/the-loop status" in json.dumps(helped)
    mine = [message for message in workspace.messages(place) if message.get("bot_id")]
    assert [message["ts"] for message in mine] == [answer["ts"], helped["ts"]]
    assert door.replies == []


def test_a_stranger_is_answered_once_and_nothing_is_kept(workspace: WorkspaceThread, door: Door, quick: Served) -> None:
    """They learn their member id; core is told who it was, without a word of theirs."""
    place = workspace.do(lambda controls: controls.direct("bob"))

    workspace.say("bob", place, "my password is hunter2")
    workspace.wait_for_message(lambda message: "not on the list" in message["text"], channel=place)
    workspace.say("bob", place, "hello?")
    workspace.say("alice", workspace.do(lambda controls: controls.direct("alice")), "help")
    workspace.wait_for_message(
        lambda message: "Here you can write" in message["text"],
        channel=workspace.do(lambda controls: controls.direct("alice")),
    )

    assert len([message for message in workspace.messages(place) if message.get("bot_id")]) == 1
    assert door.refused == [Refusal("slack", workspace.user_id("bob"), "direct message")]
    assert "hunter2" not in repr(vars(door))


def test_over_http_both_arrive_as_well(workspace: WorkspaceThread, door: Door) -> None:
    """As events, signed."""
    door.sessions = list(ROWS)
    alice = workspace.user_id("alice")
    place = workspace.do(lambda controls: controls.direct("alice"))
    with Served(workspace, door, tokens=VARIABLES, read={"mode": "http"}) as http:
        door.wait_until_up()
        for event in (
            {"type": "app_home_opened", "user": alice, "tab": "home", "channel": place},
            {"type": "message", "channel_type": "im", "user": alice, "text": "status", "ts": "1795959999.000100",
             "channel": place, "team": workspace.team_id},
        ):  # fmt: skip
            payload = {"type": "event_callback", "event_id": "Ev1", "team_id": workspace.team_id, "event": event}
            assert send(http, json.dumps(payload).encode()).status == 200

        shown(workspace, "alice", "scribe")
        workspace.wait_for_message(lambda message: "sessions running" in message["text"], PATIENCE, channel=place)
