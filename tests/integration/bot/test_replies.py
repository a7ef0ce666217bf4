"""Replies on their way from a thread to core's door, over real Socket Mode."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from core.model.channel import BoundThread
from embedded.workspace.thread import WorkspaceThread
from tests.integration.bot.served import QUICK, Door, Served, post_of
from tests.support.tmux import PATIENCE


def test_a_reply_reaches_core_as_it_was_typed(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """Code, URLs and special characters arrive unchanged, with the author's id, name and team."""
    root = served.thread()
    typed = "run `a < b && c > d` on https://example.com/?a=1&b=2 <now> @bob"

    ts = workspace.say("alice", "agents", typed, root)

    reply = door.wait(lambda seen: next((reply for reply in seen.replies if reply.ts == ts), None))
    assert reply.text == typed
    assert (reply.channel_kind, reply.shape, reply.is_bot, reply.is_self) == ("slack", "plain", False, False)
    assert (reply.team, reply.channel, reply.thread) == (workspace.team_id, workspace.channel_id("agents"), root)
    assert (reply.author, reply.author_name) == (workspace.user_id("alice"), "alice")
    assert reply.author_team == workspace.team_id


def test_nothing_is_acknowledged_before_it_is_committed(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """Slack hears of a reply's arrival when it is on the disk, not before."""
    root = served.thread()
    door.gate.clear()

    workspace.say("alice", "agents", "hold on", root)
    pending = workspace.wait_for(lambda c: [entry for entry in c.envelopes() if "hold on" in str(entry)])
    before = pending[-1]["acknowledged"]
    door.gate.set()

    assert before is False
    workspace.wait_for(lambda c: any("hold on" in str(entry) and entry["acknowledged"] for entry in c.envelopes()))
    assert door.replies[-1].text == "hold on"


def test_a_slow_commit_keeps_no_command_waiting(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """Slash commands do not stand in the line of the replies."""
    root = served.thread()
    door.gate.clear()
    workspace.say("alice", "agents", "slow", root)

    outcome = workspace.command("alice", "agents", "/the-loop help")

    assert outcome.acknowledged


def test_two_hundred_replies_keep_their_order_in_few_commits(door: Door) -> None:
    """What arrives during a commit is handed over in one next one, in the order in which it came."""
    with WorkspaceThread(ack_seconds=20) as workspace, Served(workspace, door) as served:
        door.wait_until_up()
        root = served.thread()
        workspace.hold_events()
        sent = {workspace.say("alice", "agents", f"number {number}", root) for number in range(200)}
        door.gate.clear()

        workspace.release_events()
        workspace.wait_for(lambda c: len(c.envelopes()) > len(sent) or None)
        door.gate.set()
        replies = door.wait_for_replies(200)

        arrived = [entry["payload"]["event"]["ts"] for entry in workspace.envelopes("events_api")]
    assert [reply.ts for reply in replies] == [ts for ts in arrived if ts in sent]
    assert len(replies) == 200
    assert len(door.batches) <= 20


def test_a_fault_of_core_ends_serving_with_that_fault(workspace: WorkspaceThread, door: Door) -> None:
    """What is not a broken store is a bug, and the service must hear of it, at once: nobody waits for the reply."""
    with Served(workspace, door, pace=replace(QUICK, end=10 * PATIENCE)) as served:
        door.wait_until_up()
        root = served.thread()
        door.bug = RuntimeError("a bug")

        workspace.say("alice", "agents", "hello", root)

        with pytest.raises(RuntimeError, match="a bug"):
            served.ended()


def test_what_cannot_be_stored_is_sent_again(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """A commit that fails is not acknowledged; Slack repeats the reply, and the repetition is taken."""
    root = served.thread()
    door.broken = True
    ts = workspace.say("alice", "agents", "once more", root)
    workspace.wait_for(lambda c: any(entry.get("retry_attempt", 0) > 0 for entry in c.envelopes()))

    door.broken = False

    reply = door.wait(lambda seen: next((reply for reply in seen.replies if reply.ts == ts), None))
    assert reply.text == "once more"


def test_a_repeated_delivery_is_handed_over_again(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """A retry is never dropped for being one: core tells duplicates by team, channel and ts."""
    root = served.thread()
    ts = workspace.say("alice", "agents", "twice", root)
    door.wait(lambda seen: any(reply.ts == ts for reply in seen.replies))

    workspace.redeliver(ts, attempt=1, reason="timeout")

    door.wait(lambda seen: [reply.ts for reply in seen.replies].count(ts) == 2)
    assert len({(reply.team, reply.channel, reply.ts) for reply in door.replies if reply.ts == ts}) == 1


def test_bots_outsiders_and_the_bot_itself_are_told_apart(
    workspace: WorkspaceThread, door: Door, served: Served
) -> None:
    """What core needs for its refusals is there: bot, own, and the author's team."""
    root = served.thread()
    classic = workspace.say_as_bot("deploybot", "agents", "classic", root, style="classic")
    modern = workspace.say_as_bot("deploybot", "agents", "modern", root)
    puppet = workspace.say_as_bot("deploybot", "agents", "as alice", root, style="user_token", user="alice")
    outsider = workspace.say("mallory", "agents", "let me in", root)
    own = served.channel.post(post_of("an answer", id="p-2"), workspace.channel_id("agents"), root).ts

    door.wait(lambda seen: {classic, modern, puppet, outsider, own} <= {reply.ts for reply in seen.replies})

    by_ts = {reply.ts: reply for reply in door.replies}
    assert [by_ts[ts].is_bot for ts in (classic, modern, puppet, outsider, own)] == [True, True, True, False, True]
    assert [by_ts[ts].is_self for ts in (classic, modern, puppet, outsider, own)] == [False, False, False, False, True]
    assert by_ts[outsider].author_team not in ("", workspace.team_id)


def test_an_author_who_cannot_be_looked_up_has_no_team(workspace: WorkspaceThread, door: Door) -> None:
    """Whether somebody is a guest, or left, only Slack knows; without its answer the reply comes last, of no team."""
    workspace.fault("users.info", "error", 50, code="fatal_error")
    with Served(workspace, door) as served:
        door.wait_until_up()
        root = served.thread()

        ts = workspace.say("alice", "agents", "who am I", root)

        reply = door.wait(lambda seen: next((reply for reply in seen.replies if reply.ts == ts), None))
    assert reply.author_team == ""
    attempts = [e["retry_attempt"] for e in workspace.envelopes("events_api") if e["payload"]["event"]["ts"] == ts]
    assert attempts == [0, 1, 2, 3]


@pytest.mark.parametrize("event", [None, [], 7, "message", {}])
def test_an_event_that_is_none_is_acknowledged(
    workspace: WorkspaceThread, door: Door, served: Served, event: Any
) -> None:
    """Four deliveries of it would help nobody."""
    payload = {"type": "event_callback", "event": event}

    answer = workspace.do_async(lambda c: c._room.sockets.request(workspace.app_id, "events_api", payload))

    assert answer == {}
    assert door.replies == []


def test_edits_deletions_and_other_events_are_acknowledged(
    workspace: WorkspaceThread, door: Door, served: Served
) -> None:
    """Nothing that Slack sends stays unacknowledged; replies reach core, and what was done to them, and no more."""
    root = served.thread()
    ts = workspace.say("alice", "agents", "first", root)
    door.wait(lambda seen: any(reply.ts == ts for reply in seen.replies))
    workspace.edit("agents", ts, "second")
    workspace.unfurl("agents", ts)
    workspace.delete("agents", ts)
    workspace.do(lambda c: c.replied("agents", root))
    workspace.say("alice", "agents", "not in a thread")
    last = workspace.say("alice", "agents", "done", root)

    door.wait(lambda seen: any(reply.ts == last for reply in seen.replies))

    workspace.wait_for(lambda c: all(entry["acknowledged"] for entry in c.envelopes()))
    assert [reply.text for reply in door.replies] == ["first", "done"]
    assert [(change.reply.ts, change.reply.text, change.deleted) for change in door.changes] == [
        (ts, "second", False),
        (ts, "second", True),
    ]


def test_events_nobody_waits_for_are_acknowledged(workspace: WorkspaceThread, door: Door) -> None:
    """An app that subscribes to more than this version knows still acknowledges all of it."""
    manifest = {
        "display_information": {"name": "the-loop"},
        "oauth_config": {"scopes": {"bot": ["chat:write", "channels:history", "channels:read", "users:read"]}},
        "settings": {
            "event_subscriptions": {"bot_events": ["app_mention", "member_joined_channel", "reaction_added"]},
            "socket_mode_enabled": True,
        },
    }
    app = workspace.add_app(manifest)
    workspace.join(app["bot_user_id"], "agents")
    tokens = {"THE_LOOP_SLACK_BOT_TOKEN": app["bot_token"], "THE_LOOP_SLACK_APP_TOKEN": app["app_token"]}

    with Served(workspace, door, tokens=tokens):
        door.wait_until_up()
        workspace.join(workspace.add_user("carol"), "agents")
        ts = workspace.say("alice", "agents", "@the-loop are you there")
        workspace.react("alice", "agents", ts, "eyes")

        workspace.wait_for(lambda c: len(c.envelopes()) >= 2 and all(e["acknowledged"] for e in c.envelopes()))


def test_whoever_was_seen_is_known_while_slack_does_not_answer(
    workspace: WorkspaceThread, door: Door, served: Served
) -> None:
    """People on the list are looked up once; after that a silent users.info costs nobody a reply."""
    root = served.thread()
    first = workspace.say("alice", "agents", "first", root)
    door.wait(lambda seen: any(reply.ts == first for reply in seen.replies))
    workspace.fault("users.info", "slow", 5, seconds=600)

    ts = workspace.say("alice", "agents", "quickly", root)

    reply = door.wait(lambda seen: next((reply for reply in seen.replies if reply.ts == ts), None))
    assert reply.author_team == workspace.team_id
    assert reply.author_name == "alice"


def test_private_channels_are_heard_too(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """Their messages come by a subscription of their own."""
    private = workspace.add_channel("secret", ["alice", "the-loop"], private=True)
    root = served.channel.post(post_of("scribe is up"), private, "").ts

    ts = workspace.say("alice", "secret", "psst", root)

    reply = door.wait(lambda seen: next((reply for reply in seen.replies if reply.ts == ts), None))
    assert (reply.channel, reply.text) == (private, "psst")


def test_other_shapes_arrive_under_their_names(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """Files, /me and replies that were also sent to the channel are replies."""
    root = served.thread()
    sent = {
        workspace.say("alice", "agents", "see this", root, files={"notes.txt": "a file"}): "file_share",
        workspace.say("alice", "agents", "waves", root, me=True): "me_message",
        workspace.say("alice", "agents", "for all", root, broadcast=True): "thread_broadcast",
    }

    door.wait_for_replies(3)

    assert {reply.ts: reply.shape for reply in door.replies} == sent


def test_a_forwarded_message_arrives_with_its_words_and_origin(
    workspace: WorkspaceThread, door: Door, served: Served
) -> None:
    """With a comment and without one, its code letter by letter, and people and channels by their names."""
    root, channel = served.thread(), workspace.channel_id("agents")
    workspace.do(lambda c: c.add_channel("ops", ["bob", "alice"]))
    there = workspace.say("bob", "ops", "ask @alice in #ops about ```x = **y**```")

    workspace.do(lambda c: c.forward("alice", "ops", there, channel, "please look", root))
    workspace.do(lambda c: c.forward("alice", "ops", there, channel, "", root))

    commented, bare = door.wait_for_replies(2)
    assert (commented.text, bare.text) == ("please look", "")
    assert commented.quoted == bare.quoted
    origin, *lines = commented.quoted.splitlines()
    assert origin.startswith("(forwarded: a message of Bob Okafor in #ops, ")
    assert f"/archives/{workspace.channel_id('ops')}/p{there.replace('.', '')}" in origin
    assert lines == ["> ask @alice in #ops about ", "> ```", "> x = **y**", "> ```"]


def test_a_quote_that_slack_adds_later_is_told_as_one(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """A link to a message unfolds a moment after the message was sent; a page's preview is nothing."""
    root = served.thread()
    there = workspace.say("bob", "agents", "the words")
    ts = workspace.say("alice", "agents", "see https://loopback.slack.com/archives/C1/p1", root)
    door.wait_for_replies(1)

    workspace.unfurl("agents", ts)
    workspace.do(lambda c: c.quote("agents", ts, "agents", there))

    [change] = door.wait(lambda seen: seen.changes or None)
    assert (change.only_quotes, change.deleted, change.reply.ts) == (True, False, ts)
    assert change.reply.quoted.endswith("\n> the words")


def test_channels_and_groups_have_their_names(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """Their mentions come without a label; what the bot may not see keeps its id."""
    root = served.thread()
    workspace.do(lambda c: c.add_group("ops-team"))
    hidden = workspace.add_channel("hidden", ["alice"], private=True)

    workspace.say("alice", "agents", "ask @ops-team in #agents and #hidden", root)

    [reply] = door.wait_for_replies(1)
    assert reply.text == f"ask @ops-team in #agents and #{hidden}"


def test_without_the_scope_a_group_keeps_its_id(workspace: WorkspaceThread, door: Door, served: Served) -> None:
    """An app that was installed by an earlier manifest goes on."""
    root, group = served.thread(), workspace.do(lambda c: c.add_group("ops-team"))
    scopes = ["chat:write", "commands", "channels:history", "channels:read", "groups:history", "users:read"]
    workspace.set_scopes(scopes)

    workspace.say("alice", "agents", "ask @ops-team", root)

    [reply] = door.wait_for_replies(1)
    assert reply.text == f"ask @{group}"


def test_a_reply_that_is_sent_again_waits_until_its_thread_was_read(
    workspace: WorkspaceThread, door: Door, served: Served
) -> None:
    """Others that were sent when it was may still be on their way; one that comes at once waits for nothing."""
    root = served.thread()
    at_once = workspace.say("alice", "agents", "at once", root)
    door.wait_for_replies(1)
    swept = len(door.sweeps)
    door.bound.append(BoundThread("scribe", workspace.channel_id("agents"), root, at_once, shared=True))
    workspace.lose_events(1)

    again = workspace.say("alice", "agents", "again", root)
    door.wait(lambda seen: len(seen.sweeps) > swept)

    first = {reply.ts: reply.unordered for reply in reversed(door.replies) if reply.text != "scribe is up"}
    assert first == {at_once: False, again: True}
