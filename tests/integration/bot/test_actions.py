"""Buttons, over real Socket Mode."""

from __future__ import annotations

from bot.buttons import PREFIX
from core.base.values import replace
from core.model.asking import Button, Press
from core.model.posts import OutboundKind
from embedded.workspace.thread import WorkspaceThread
from tests.integration.bot.served import Door, Refusal, Served, post_of


def test_a_press_of_somebody_on_no_list_is_refused_once_and_told(
    workspace: WorkspaceThread, door: Door, served: Served
) -> None:
    """Core decides nothing of it, but an audit finds who pressed which button."""
    root, agents = served.thread(), workspace.channel_id("agents")
    button = Button(Press.CANCEL, "m-1", "Cancel")
    note = replace(post_of("it waits", id="p-2", kind=OutboundKind.NOTE), buttons=(button,))
    ts = served.channel.post(note, agents, root).ts

    workspace.press("bob", "agents", ts, f"{PREFIX}{button.action}", button.target)

    seen = workspace.wait_for_ephemeral("bob", lambda message: bool(message["text"]))
    assert "not on the list" in seen["text"]
    assert door.presses == []
    assert door.refused == [Refusal("slack", workspace.user_id("bob"), button.action)]
