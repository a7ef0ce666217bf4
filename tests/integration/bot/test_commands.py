"""The slash command, over real Socket Mode and response URLs."""

from __future__ import annotations

import pytest

from bot.workspace.thread import WorkspaceThread
from core.errors import TmuxSilent
from tests.integration.bot.served import Door, Served

ROWS = [
    {"name": "scribe", "running": True, "activity": "idle", "queued": 2, "harness": "claude", "cwd": "/srv/<a>"},
    {"name": "digger", "running": False, "status": "stopped", "hold": {"kind": "stopped", "by": "cli:ann"}},
]


def test_status_is_answered_to_the_caller_alone(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """An allowed member sees each session with its state, and nobody else sees the answer."""
    door.sessions = list(ROWS)

    outcome = workspace.command("alice", "agents", "/the-loop status")

    seen = workspace.wait_for_ephemeral("alice", lambda message: "sessions running" in message["text"])
    assert outcome.acknowledged
    shown = str(seen["blocks"])
    assert "*scribe* idle, 2 queued" in shown
    assert "*digger* stopped" in shown
    assert workspace.ephemerals("agents", "bob") == []


def test_list_tells_more(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """The list carries harness and folder, with special characters that stay text."""
    door.sessions = list(ROWS)

    workspace.command("alice", "agents", "/the-loop list")

    seen = workspace.wait_for_ephemeral("alice", lambda message: "sessions running" in message["text"])
    assert "harness claude, in /srv/&lt;a&gt;" in str(seen["blocks"])


def test_fifty_sessions_fit_one_answer(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """Slack refuses what is too long, so the answer keeps within its limits."""
    door.sessions = [{**ROWS[0], "name": f"session-{n}", "description": "d" * 300} for n in range(50)]

    workspace.command("alice", "agents", "/the-loop list")

    seen = workspace.wait_for_ephemeral("alice", lambda message: "sessions running" in message["text"])
    assert "more: `/opt/the-loop standing list`" in str(seen["blocks"])


def test_an_unknown_verb_is_answered_with_the_known_ones(
    workspace: WorkspaceThread, door: Door, served: Served
) -> None:
    """A typing error is named and followed by help."""
    workspace.command("alice", "agents", "/the-loop stauts")

    seen = workspace.wait_for_ephemeral("alice", lambda message: "Commands" in message["text"])
    assert "There is no command `/the-loop stauts`" in str(seen["blocks"])


def test_members_who_are_not_allowed_learn_nothing(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """A refusal is short, and carries no session's name."""
    door.sessions = list(ROWS)

    outcome = workspace.command("bob", "agents", "/the-loop status")

    seen = workspace.wait_for_ephemeral("bob", lambda message: "not on the list" in message["text"])
    assert outcome.acknowledged
    assert "scribe" not in str(seen)


def test_sessions_that_cannot_be_listed_are_said(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """A failure of core is the answer, with its remedy."""
    door.rows_error = TmuxSilent("tmux did not answer within 5 s", "look at it with `tmux ls`")

    workspace.command("alice", "agents", "/the-loop status")

    seen = workspace.wait_for_ephemeral("alice", lambda message: "could not be listed" in message["text"])
    assert "tmux did not answer" in seen["text"]


def test_loops_are_shown_of_all_sessions_or_of_one(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """Without a name they are counted; with one core is asked for them."""
    door.sessions = [{**ROWS[0], "loops": 2}]

    workspace.command("alice", "agents", "/the-loop loops")
    workspace.wait_for_ephemeral("alice", lambda message: message["text"] == "2 open loops")
    workspace.command("alice", "agents", "/the-loop loops scribe")

    workspace.wait_for_ephemeral("alice", lambda message: message["text"] == "loops done")
    assert [(order.verb, order.name) for order in door.orders] == [("loops", "scribe")]


@pytest.mark.parametrize("verb", ["say", "screen", "pause", "resume", "interrupt"])
def test_each_verb_of_members_reaches_core(workspace: WorkspaceThread, door: Door, served: Served, verb: str) -> None:
    """With the session's name, the rest of the words where it takes any, and the answer for the caller alone."""
    words = " do it, please" if verb == "say" else ""

    workspace.command("alice", "agents", f"/the-loop {verb} scribe{words}")

    workspace.wait_for_ephemeral("alice", lambda message: message["text"] == f"{verb} done")
    [order] = door.orders
    assert (order.verb, order.name, order.text.strip()) == (verb, "scribe", words.strip())


@pytest.mark.parametrize("verb", ["start", "stop", "restart"])
def test_verbs_of_operators_are_refused_to_members(
    workspace: WorkspaceThread, door: Door, served: Served, verb: str
) -> None:
    """Nothing of them reaches core."""
    workspace.command("alice", "agents", f"/the-loop {verb} scribe")

    workspace.wait_for_ephemeral("alice", lambda message: "for the operators" in message["text"])
    assert door.orders == []


def test_help_names_every_verb_of_the_caller(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """A member is not told of what operators may."""
    workspace.command("alice", "agents", "/the-loop help")

    seen = workspace.wait_for_ephemeral("alice", lambda message: message["text"].startswith("Commands: "))
    named = seen["text"].removeprefix("Commands: ").split(", ")
    assert {"status", "list", "say", "screen", "pause", "resume", "interrupt", "help"} <= set(named)
    assert {"start", "stop", "restart"}.isdisjoint(named)
