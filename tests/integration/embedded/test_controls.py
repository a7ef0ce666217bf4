"""What people and other bots do, and what an app hears of it."""

from __future__ import annotations

from typing import Any

import pytest

from embedded.workspace.model import DEFAULT, ControlError
from embedded.workspace.thread import WorkspaceThread


def test_kinds_of_replies_have_their_shapes(workspace: WorkspaceThread) -> None:
    """Broadcasts carry their parent, files their description, /me messages their subtype."""
    parent = workspace.say("you", "agents", "root")

    said = {
        "thread_broadcast": workspace.say("alice", "agents", "all", parent, broadcast=True),
        "file_share": workspace.say("alice", "agents", "", parent, files={"a.txt": "x"}),
        "me_message": workspace.say("alice", "agents", "waves", parent, me=True),
    }

    events = {subtype: _event(workspace, ts) for subtype, ts in said.items()}
    assert {subtype: event["subtype"] for subtype, event in events.items()} == {key: key for key in said}
    assert events["thread_broadcast"]["root"]["ts"] == parent
    assert events["file_share"]["files"][0]["name"] == "a.txt"
    assert all(event["thread_ts"] == parent for event in events.values())


def test_a_forwarded_message_stands_in_an_attachment(workspace: WorkspaceThread) -> None:
    """With its author, place, words and files; the message's own text is the comment, or nothing."""
    there = workspace.say("bob", "agents", "the log", files={"db.log": "full"})

    ts = workspace.do(lambda c: c.forward("alice", "agents", there, "agents"))

    event = _event(workspace, ts)
    [shared] = event["attachments"]
    assert (event["text"], "blocks" in event, event["user"]) == ("", False, workspace.user_id("alice"))
    assert (shared["is_share"], shared["is_msg_unfurl"], shared["text"], shared["ts"]) == (True, True, "the log", there)
    assert (shared["author_id"], shared["channel_id"]) == (workspace.user_id("bob"), workspace.channel_id("agents"))
    assert shared["files"][0]["url_private"].startswith("http://127.0.0.1:")
    assert shared["message_blocks"][0]["message"]["blocks"][0]["type"] == "rich_text"


def test_a_link_to_a_message_unfolds_without_an_edit(workspace: WorkspaceThread) -> None:
    """The server changes the message by itself, a moment after it was sent."""
    there, ts = workspace.say("bob", "agents", "the words"), workspace.say("alice", "agents", "see the link")

    workspace.do(lambda c: c.quote("agents", ts, "agents", there))

    change = _events(workspace)[-1]
    assert (change["subtype"], change["message"]["text"], "edited" in change["message"]) == (
        "message_changed", "see the link", False
    )  # fmt: skip
    assert change["message"]["attachments"][0]["text"] == "the words"
    assert "is_share" not in change["message"]["attachments"][0]


def test_mentions_of_channels_and_groups_have_no_label(workspace: WorkspaceThread) -> None:
    """An app that wants their names asks for them."""
    group = workspace.do(lambda c: c.add_group("ops-team"))

    ts = workspace.say("alice", "agents", "@ops-team in #agents")

    event = _event(workspace, ts)
    assert event["text"] == f"<!subteam^{group}> in <#{workspace.channel_id('agents')}|>"
    kinds = [element["type"] for element in event["blocks"][0]["elements"][0]["elements"]]
    assert kinds == ["usergroup", "text", "channel"]


def test_edits_and_deletions_are_hidden_events(workspace: WorkspaceThread) -> None:
    """They carry the message inside, with a ts of their own; a link preview changes no text."""
    ts = workspace.say("alice", "agents", "before")

    workspace.edit("agents", ts, "after")
    workspace.unfurl("agents", ts)
    workspace.delete("agents", ts)

    edited, unfurled, deleted = _events(workspace)[1:]
    assert (edited["subtype"], edited["hidden"], edited["message"]["text"]) == ("message_changed", True, "after")
    assert (edited["previous_message"]["text"], edited["ts"] != ts) == ("before", True)
    assert unfurled["message"]["text"] == unfurled["previous_message"]["text"]
    assert unfurled["message"]["edited"] == unfurled["previous_message"]["edited"]
    assert (deleted["subtype"], deleted["deleted_ts"]) == ("message_deleted", ts)


def test_bots_of_every_kind_are_marked(workspace: WorkspaceThread) -> None:
    """A modern bot has a user and a bot_id, a classic one no user, an app acting for a person that person's id."""
    ts = {
        style: workspace.say_as_bot("deploybot", "agents", style, style=style, user="alice")
        for style in ("modern", "classic", "user_token")
    }

    events = {style: _event(workspace, at) for style, at in ts.items()}

    assert all(event["bot_id"] for event in events.values())
    assert ("subtype" in events["modern"], events["classic"]["subtype"]) == (False, "bot_message")
    assert "user" not in events["classic"]
    assert events["user_token"]["user"] == workspace.user_id("alice")


def test_outsider_carries_the_own_team(workspace: WorkspaceThread) -> None:
    """A message from another organization names that team; the wrapper speaks of the installation."""
    _event(workspace, workspace.say("mallory", "agents", "hi"))

    payload = workspace.do(lambda c: c.sent_events())[0]

    assert payload["event"]["user_team"] == payload["event"]["source_team"] != workspace.team_id
    assert payload["is_ext_shared_channel"] is True
    assert payload["team_id"] == payload["authorizations"][0]["team_id"] == workspace.team_id


def test_outsider_has_no_slash_commands(workspace: WorkspaceThread) -> None:
    """Commands are for members of the installing workspace."""
    outcome = workspace.command("mallory", "agents", "/the-loop status")

    assert outcome.error == "not_allowed"
    assert workspace.envelopes("slash_commands") == []


def test_command_without_a_socket_fails_at_once(workspace: WorkspaceThread) -> None:
    """Nobody is there to take it: dispatch_failed, shown to the caller."""
    outcome = workspace.command("you", "agents", "/the-loop status")

    assert outcome.error == "dispatch_failed"
    assert workspace.ephemerals("agents", "you")[0]["user"] == "USLACKBOT"


def test_kicked_bot_hears_nothing_more(workspace: WorkspaceThread) -> None:
    """Only members get a channel's events."""
    workspace.kick("the-loop", "agents")
    before = len(_events(workspace))

    workspace.say("alice", "agents", "alone at last")

    assert len(_events(workspace)) == before


def test_nobody_writes_where_they_are_not(workspace: WorkspaceThread) -> None:
    """Controls that Slack's own client would refuse are errors that name the place."""
    workspace.add_channel("quiet", ["alice"])

    with pytest.raises(ControlError, match="not a member of #quiet"):
        workspace.say("you", "quiet", "x")
    with pytest.raises(ControlError, match="thread_not_found"):
        workspace.say("alice", "quiet", "x", "1000000000.000100")
    with pytest.raises(ControlError, match="no user 'nobody'; there are you"):
        workspace.say("nobody", "quiet", "x")


def test_waiting_within_a_wait_is_refused_at_once(workspace: WorkspaceThread) -> None:
    """A predicate that calls the blocking methods would wait for itself; it is told to use the controls."""
    with pytest.raises(RuntimeError, match="use the controls"):
        workspace.wait_for(lambda c: workspace.messages("agents") or None)


def test_held_events_come_in_the_order_asked_for(workspace: WorkspaceThread) -> None:
    """Events can be kept back and released the other way round, since Slack promises no order."""
    workspace.hold_events()
    for text in "abc":
        workspace.say("alice", "agents", text)

    released = workspace.release_events(newest_first=True)

    assert released == 3
    assert [event["text"] for event in _events(workspace)] == ["a", "b", "c"]


def test_mention_arrives_as_two_events() -> None:
    """An app that subscribed to both hears a message and an app_mention: other event_id, same ts."""
    with WorkspaceThread(manifest=_manifest("message.channels", "app_mention")) as workspace:
        ts = workspace.say("alice", "agents", "hey @the-loop")
        payloads = workspace.do(lambda c: c.sent_events())

    assert [payload["event"]["type"] for payload in payloads] == ["message", "app_mention"]
    assert {payload["event"]["ts"] for payload in payloads} == {ts}
    assert len({payload["event_id"] for payload in payloads}) == 2
    assert payloads[1]["event"]["client_msg_id"] == payloads[0]["event"]["client_msg_id"]


def test_channel_events_are_told_to_those_who_asked() -> None:
    """Memberships, archiving, sharing and reactions come as events of their own, and only when subscribed."""
    kinds = (
        "member_joined_channel", "member_left_channel", "channel_left", "channel_archive", "channel_unarchive",
        "channel_unshared", "reaction_added", "reaction_removed",
    )  # fmt: skip
    with WorkspaceThread(manifest=_manifest(*kinds)) as workspace:
        workspace.add_user("carol")
        ts = workspace.say("alice", "agents", "hello")
        workspace.join("carol", "agents")
        workspace.kick("carol", "agents")
        workspace.react("bob", "agents", ts, "eyes")
        workspace.do(lambda c: c.unreact("bob", "agents", ts, "eyes"))
        workspace.archive("agents")
        workspace.archive("agents", False)
        workspace.share("agents", False)
        workspace.kick("the-loop", "agents")
        heard = [payload["event"]["type"] for payload in workspace.do(lambda c: c.sent_events())]

    assert sorted(heard) == sorted(kinds)


def test_missing_scope_silences_what_was_subscribed(workspace: WorkspaceThread) -> None:
    """Without channels:history there are no messages, without commands no slash command."""
    workspace.set_scopes(["chat:write"])

    workspace.say("alice", "agents", "hello")
    outcome = workspace.command("you", "agents", "/the-loop status")

    assert _events(workspace) == []
    assert outcome.error == "invalid_command"


def test_reply_count_looks_like_a_message_and_is_none(workspace: WorkspaceThread) -> None:
    """The event that counts replies has a nested message and no text or user of its own."""
    parent = workspace.say("you", "agents", "root")
    workspace.say("alice", "agents", "reply", parent)

    workspace.do(lambda c: c.replied("agents", parent))

    event = _events(workspace)[-1]
    assert (event["type"], event["message"]["reply_count"]) == ("message", 1)
    assert not {"text", "user", "subtype"} & set(event)


def _manifest(*events: str) -> dict[str, Any]:
    scopes = {"bot": ["channels:history", "channels:read", "reactions:read", "app_mentions:read"]}
    settings = {"event_subscriptions": {"bot_events": list(events)}, "socket_mode_enabled": True}
    return {**DEFAULT, "oauth_config": {"scopes": scopes}, "settings": settings}


def _events(workspace: WorkspaceThread) -> list[dict[str, Any]]:
    return [payload["event"] for payload in workspace.do(lambda c: c.sent_events())]


def _event(workspace: WorkspaceThread, ts: str) -> dict[str, Any]:
    return next(event for event in _events(workspace) if event["ts"] == ts)
