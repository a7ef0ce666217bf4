"""Mentions of the bot that are tasks, over real Bolt: which are handed to core, as what, and when Slack is answered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from core.model.asking import Role
from core.model.channel import Template
from embedded.workspace.thread import WorkspaceThread
from tests.integration.bot.served import Door, Served
from tests.integration.bot.test_http import VARIABLES, send


def template(workspace: WorkspaceThread) -> dict[str, Any]:
    """Return a template of the channel #agents."""
    found: dict[str, Any] = {"name": "fix", "channel": workspace.channel_id("agents"), "root": "/srv/work"}
    return found | {"worktree": True, "lifetime": "8h", "prompt": "mend it", "harness": "codex"}


@pytest.fixture
def mentioned(workspace: WorkspaceThread, door: Door) -> Iterator[Served]:
    """The channel, connected; alice is listed, and #agents has a template."""
    with Served(workspace, door, templates=[template(workspace)]) as running:
        door.wait_until_up()
        yield running


def test_a_mention_with_a_task_reaches_core_once_with_the_operators_template(
    workspace: WorkspaceThread, door: Door, mentioned: Served
) -> None:
    """The text is the task without the mention; what runs and where is the template's."""
    ts = workspace.say("alice", "agents", "@the-loop run /bin/sh in /etc, please")

    task = door.wait(lambda door: door.tasks[0] if door.tasks else None)

    message = task.message
    assert (message.text, message.ts, message.thread) == ("run /bin/sh in /etc, please", ts, ts)
    assert (message.author, message.author_team) == (workspace.user_id("alice"), workspace.team_id)
    assert task.template == Template("fix", "codex", "/srv/work", True, "mend it", 28800.0, Role.OPERATOR)
    assert door.replies == []


def test_what_cannot_be_stored_is_sent_again_by_slack(
    workspace: WorkspaceThread, door: Door, mentioned: Served
) -> None:
    """It is acknowledged only when it is on the disk."""
    door.broken = True
    workspace.say("alice", "agents", "@the-loop once more")
    workspace.wait_for(
        lambda controls: any(not entry["acknowledged"] for entry in controls.envelopes("events_api")) or None
    )

    door.broken = False

    assert door.wait(lambda door: len(door.tasks) or None) == 1


def test_what_its_author_does_to_a_mention_reaches_core(
    workspace: WorkspaceThread, door: Door, mentioned: Served
) -> None:
    """An edit, as the task reads now, and a deletion: its thread is the message itself."""
    ts = workspace.say("alice", "agents", "@the-loop mend the old one")
    door.wait(lambda door: door.tasks or None)

    workspace.edit("agents", ts, "@the-loop mend the new one")
    door.wait(lambda door: door.changes or None)
    workspace.delete("agents", ts)
    door.wait(lambda door: len(door.changes) > 1)

    edited, deleted = door.changes
    assert (edited.reply.text, edited.reply.ts, edited.reply.thread) == ("mend the new one", ts, ts)
    assert (edited.deleted, deleted.deleted, deleted.reply.thread) == (False, True, ts)


def test_only_a_mention_at_the_top_of_a_configured_channel_is_a_task(
    workspace: WorkspaceThread, door: Door, mentioned: Served
) -> None:
    """Not one in a thread, one elsewhere, or a message without a mention."""
    elsewhere = workspace.add_channel("elsewhere", ["alice", "the-loop"])
    root = workspace.say("alice", "agents", "just talk")
    workspace.say("alice", "agents", "@the-loop in a thread", root)
    workspace.say("alice", elsewhere, "@the-loop elsewhere")
    workspace.say("alice", "agents", "@the-loop the last one")

    door.wait(lambda door: door.tasks or None)

    assert [task.message.text for task in door.tasks] == ["the last one"]


def test_bots_and_strangers_come_as_what_they_are(workspace: WorkspaceThread, door: Door, mentioned: Served) -> None:
    """Core refuses them: a bot, a member on no list, one of another organization."""
    workspace.say_as_bot("deploybot", "agents", f"<@{workspace.bot_user_id}> deploy")
    workspace.say("bob", "agents", "@the-loop for bob")
    workspace.say("mallory", "agents", "@the-loop for mallory")

    door.wait(lambda door: len(door.tasks) == 3)

    seen = {task.message.author: task.message for task in door.tasks}
    assert [one.is_bot for one in seen.values()].count(True) == 1
    assert seen[workspace.user_id("bob")].unlisted
    assert seen[workspace.user_id("mallory")].author_team != workspace.team_id


def test_over_http_a_mention_is_answered_once_it_is_stored(workspace: WorkspaceThread, door: Door) -> None:
    """503 asks Slack to send it again."""
    event = {"type": "app_mention", "user": workspace.user_id("alice"), "ts": "1795959999.000100"}
    event |= {"channel": workspace.channel_id("agents"), "team": workspace.team_id, "user_team": workspace.team_id}
    event |= {"text": f"<@{workspace.bot_user_id}> by HTTP"}
    payload = {"type": "event_callback", "event_id": "Ev1", "team_id": workspace.team_id, "event": event}
    with Served(workspace, door, tokens=VARIABLES, read={"mode": "http"}, templates=[template(workspace)]) as http:
        door.wait_until_up()
        door.broken = True
        refused = send(http, json.dumps(payload).encode())
        door.broken = False
        taken = send(http, json.dumps({**payload, "event_id": "Ev2"}).encode())

    assert (refused.status, taken.status) == (503, 200)
    assert [task.message.text for task in door.tasks] == ["by HTTP"]
