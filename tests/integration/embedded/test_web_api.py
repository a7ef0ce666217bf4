"""The Web API through slack_sdk's client and by hand: what real Slack refuses is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from slack_sdk import WebClient

from embedded.workspace.thread import WorkspaceThread
from tests.integration.embedded.calls import call, raw, refusal

METADATA = {"event_type": "standing_session", "event_payload": {"name": "scribe"}}


def test_auth_test_names_the_installation(workspace: WorkspaceThread, client: WebClient) -> None:
    """auth.test tells the ids a bot compares authors with, and every answer carries the token's scopes."""
    answer = client.auth_test()

    assert answer["bot_id"] == workspace.bot_id
    assert answer["user_id"] == workspace.bot_user_id
    assert answer["team_id"] == workspace.team_id
    assert "chat:write" in answer.headers["x-oauth-scopes"].split(",")


@pytest.mark.parametrize(
    ("token", "error"), [(None, "not_authed"), ("xoxb-nobody", "invalid_auth"), ("app", "not_allowed_token_type")]
)
def test_bad_tokens_are_refused(workspace: WorkspaceThread, token: str | None, error: str) -> None:
    """No token, an unknown one, and an app-level one where a bot's is due each have their own error."""
    given = workspace.app_token if token == "app" else token

    answer = call(workspace.api_url, "auth.test", given, b"{}")

    assert answer == {"ok": False, "error": error}


def test_revoked_token_is_refused(workspace: WorkspaceThread, client: WebClient) -> None:
    """Revoked is told apart from unknown."""
    workspace.set_revoked()

    assert refusal(client.auth_test) == "token_revoked"


def test_socket_needs_the_app_token(workspace: WorkspaceThread) -> None:
    """apps.connections.open takes the xapp token alone."""
    with_bot = call(workspace.api_url, "apps.connections.open", workspace.bot_token, b"{}")
    with_app = call(workspace.api_url, "apps.connections.open", workspace.app_token, b"{}")

    assert with_bot["error"] == "not_allowed_token_type"
    assert with_app["url"].startswith("ws://127.0.0.1:")


def test_unknown_method_is_named_so(workspace: WorkspaceThread) -> None:
    """A method that is not there is refused even without a token."""
    assert call(workspace.api_url, "chat.shout", None, b"{}")["error"] == "unknown_method"


@pytest.mark.parametrize(
    ("body", "kind", "error"),
    [
        (b"{", "application/json", "invalid_json"),
        (b"[1]", "application/json", "json_not_object"),
        (b"a=1", "text/plain", "invalid_post_type"),
    ],
)
def test_broken_bodies_are_refused(workspace: WorkspaceThread, body: bytes, kind: str, error: str) -> None:
    """Bodies that are no form and no JSON object do not reach the method."""
    assert call(workspace.api_url, "auth.test", workspace.bot_token, body, kind)["error"] == error


def test_forms_and_json_are_both_read(workspace: WorkspaceThread) -> None:
    """A form carries blocks and metadata as JSON text."""
    blocks = json.dumps([{"type": "divider"}]).replace('"', "%22")
    form = f"channel=agents&text=hi&blocks={blocks}&metadata={json.dumps(METADATA).replace(chr(34), '%22')}"

    answer = call(
        workspace.api_url, "chat.postMessage", workspace.bot_token, form.encode(), "application/x-www-form-urlencoded"
    )

    assert answer["message"]["blocks"][0]["type"] == "divider"
    assert answer["message"]["metadata"] == METADATA


def test_missing_scope_says_what_is_needed(workspace: WorkspaceThread, client: WebClient) -> None:
    """missing_scope tells the needed and the provided scopes."""
    workspace.set_scopes(["channels:read"])

    answer = call(workspace.api_url, "chat.postMessage", workspace.bot_token, b'{"channel": "agents", "text": "x"}')

    assert (answer["error"], answer["needed"]) == ("missing_scope", "chat:write")
    assert answer["provided"] == "channels:read"


def test_posting_needs_membership_and_an_open_channel(workspace: WorkspaceThread, client: WebClient) -> None:
    """Outside is not_in_channel, private and outside does not exist, archived is closed."""
    outside, private = workspace.add_channel("outside", ["you"]), workspace.add_channel("den", ["you"], private=True)
    closed = workspace.add_channel("closed", ["you", "the-loop"])
    workspace.archive(closed)

    errors = [refusal(_post(client, channel)) for channel in (outside, private, closed, "C0000")]

    assert errors == ["not_in_channel", "channel_not_found", "is_archived", "channel_not_found"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, "no_text"),
        ({"text": ""}, "no_text"),
        ({"text": "x", "thread_ts": "1000000000.000100"}, "thread_not_found"),
        ({"text": "x", "metadata": {"event_type": "a"}}, "invalid_metadata_format"),
        ({"text": "x", "metadata": {"event_type": "a", "event_payload": {"x": "y" * 9000}}}, "metadata_too_large"),
        ({"text": "x", "markdown_text": "y"}, "markdown_text_conflict"),
        ({"markdown_text": "y" * 12_001}, "msg_too_long"),
        ({"text": "x", "blocks": [{"type": "divider"}] * 51}, "invalid_blocks"),
        ({"text": "x", "blocks": "nonsense"}, "invalid_blocks_format"),
        ({"text": "x", "username": "someone"}, "missing_scope"),
    ],
)
def test_bad_messages_are_refused(
    workspace: WorkspaceThread, client: WebClient, arguments: dict[str, Any], error: str
) -> None:
    """What cannot be shown, or breaks a limit, is not posted."""
    body = json.dumps({"channel": "agents", **arguments}).encode()

    answer = call(workspace.api_url, "chat.postMessage", workspace.bot_token, body)

    assert answer["error"] == error
    assert workspace.messages("agents") == []


def test_long_text_is_cut_and_special_characters_escaped(client: WebClient) -> None:
    """chat.postMessage cuts at 40,000 characters, keeps mention tokens and escapes the rest."""
    long = client.chat_postMessage(channel="agents", text="x" * 40_001)
    marked = client.chat_postMessage(channel="agents", text="<@U123> a<b & c &amp; https://example.com/x.")

    assert len(long["message"]["text"]) == 40_000
    assert marked["message"]["text"] == "<@U123> a&lt;b &amp; c &amp; <https://example.com/x>."


def test_update_refuses_long_text_and_others_messages(workspace: WorkspaceThread, client: WebClient) -> None:
    """chat.update has a smaller limit than posting, and changes the bot's own messages only."""
    channel = workspace.channel_id("agents")
    own = client.chat_postMessage(channel=channel, text="mine")["ts"]
    theirs = workspace.say("alice", channel, "hers")

    too_long = refusal(lambda: client.chat_update(channel=channel, ts=own, text="x" * 4_001))
    foreign = refusal(lambda: client.chat_update(channel=channel, ts=theirs, text="x"))
    missing = refusal(lambda: client.chat_update(channel=channel, ts="1000000000.000100", text="x"))

    assert (too_long, foreign, missing) == ("msg_too_long", "cant_update_message", "message_not_found")


def test_update_without_metadata_keeps_it(workspace: WorkspaceThread, client: WebClient) -> None:
    """The metadata of a message survives an edit that names none; text without blocks takes the blocks away."""
    channel = workspace.channel_id("agents")
    divider = [{"type": "divider"}]
    ts = client.chat_postMessage(channel=channel, text="a", metadata=METADATA, blocks=divider)["ts"]

    client.chat_update(channel=channel, ts=ts, text="b")

    changed = workspace.messages("agents")[0]
    assert (changed["text"], changed["metadata"], "blocks" in changed) == ("b", METADATA, False)
    assert changed["edited"]["user"] == workspace.bot_user_id


def test_replies_are_paged_with_the_parent_first(workspace: WorkspaceThread, client: WebClient) -> None:
    """The parent opens the first page even with `oldest`; later pages begin with replies; none is lost or doubled."""
    channel = workspace.channel_id("agents")
    parent = client.chat_postMessage(channel=channel, text="root")["ts"]
    replies = [workspace.say("alice", channel, f"{number}", parent) for number in range(7)]

    pages, cursor = [], ""
    while True:
        page = client.conversations_replies(channel=channel, ts=parent, oldest=replies[1], limit=3, cursor=cursor)
        pages.append([message["ts"] for message in page["messages"]])
        cursor = page["response_metadata"]["next_cursor"]
        if not cursor:
            break

    assert pages == [[parent, replies[2], replies[3]], replies[4:7]]
    assert [float(ts) for ts in replies] == sorted({float(ts) for ts in replies})


def test_oldest_is_exclusive_unless_inclusive(workspace: WorkspaceThread, client: WebClient) -> None:
    """`inclusive` takes the boundary in."""
    channel = workspace.channel_id("agents")
    parent = client.chat_postMessage(channel=channel, text="root")["ts"]
    first, second = (workspace.say("alice", channel, text, parent) for text in "ab")

    without = client.conversations_replies(channel=channel, ts=parent, oldest=first)
    within = client.conversations_replies(channel=channel, ts=parent, oldest=first, inclusive=True)

    assert [message["ts"] for message in without["messages"]] == [parent, second]
    assert [message["ts"] for message in within["messages"]] == [parent, first, second]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"ts": "1000000000.000100"}, "thread_not_found"),
        ({"cursor": "###"}, "invalid_cursor"),
        ({"limit": 1001}, "invalid_limit"),
        ({"oldest": "yesterday"}, "invalid_ts_oldest"),
    ],
)
def test_bad_reading_is_refused(
    workspace: WorkspaceThread, client: WebClient, arguments: dict[str, Any], error: str
) -> None:
    """Unknown threads, foreign cursors and limits out of range each have their error."""
    channel = workspace.channel_id("agents")
    parent = workspace.say("alice", channel, "root")

    assert refusal(lambda: client.conversations_replies(**{"channel": channel, "ts": parent, **arguments})) == error


def test_metadata_needs_to_be_asked_for(workspace: WorkspaceThread, client: WebClient) -> None:
    """Without include_all_metadata only the event type is shown."""
    channel = workspace.channel_id("agents")
    ts = client.chat_postMessage(channel=channel, text="root", metadata=METADATA)["ts"]

    plain = client.conversations_history(channel=channel)["messages"][0]
    whole = client.conversations_replies(channel=channel, ts=ts, include_all_metadata=True)["messages"][0]

    assert plain["metadata"] == {"event_type": "standing_session"}
    assert whole["metadata"] == METADATA


def test_history_shows_parents_and_broadcasts_newest_first(workspace: WorkspaceThread, client: WebClient) -> None:
    """A reply is in the history only when it was also sent to the channel; a parent counts its replies."""
    channel = workspace.channel_id("agents")
    parent = workspace.say("you", channel, "root")
    reply = workspace.say("alice", channel, "in the thread", parent)
    loud = workspace.say("bob", channel, "for all", parent, broadcast=True)

    shown = client.conversations_history(channel=channel)["messages"]

    assert [message["ts"] for message in shown] == [loud, parent]
    assert (shown[1]["reply_count"], shown[1]["latest_reply"]) == (2, loud)
    assert reply not in [message["ts"] for message in shown]


def test_deleted_parent_with_replies_is_a_tombstone(workspace: WorkspaceThread, client: WebClient) -> None:
    """A parent that is deleted leaves a tombstone as long as it has replies; without replies its thread is gone."""
    channel = workspace.channel_id("agents")
    kept, gone = workspace.say("you", channel, "root"), workspace.say("you", channel, "lonely")
    workspace.say("alice", channel, "reply", kept)

    workspace.delete(channel, kept)
    workspace.delete(channel, gone)

    assert client.conversations_replies(channel=channel, ts=kept)["messages"][0]["subtype"] == "tombstone"
    assert refusal(lambda: client.conversations_replies(channel=channel, ts=gone)) == "thread_not_found"


def test_reactions_say_when_nothing_changes(workspace: WorkspaceThread, client: WebClient) -> None:
    """A second equal reaction, and the removal of none, are errors an idempotent caller may ignore."""
    place = {"channel": workspace.channel_id("agents"), "timestamp": workspace.say("you", "agents", "hello")}
    client.reactions_add(name="eyes", **place)

    again = refusal(lambda: client.reactions_add(name="eyes", **place))
    bad = refusal(lambda: client.reactions_add(name="not a name", **place))
    shown = client.reactions_get(channel=place["channel"], timestamp=place["timestamp"])["message"]["reactions"]
    client.reactions_remove(name="eyes", **place)
    absent = refusal(lambda: client.reactions_remove(name="eyes", **place))

    assert (again, bad, absent) == ("already_reacted", "invalid_name", "no_reaction")
    assert shown == [{"name": "eyes", "users": [workspace.bot_user_id], "count": 1}]


def test_ephemeral_needs_a_member(workspace: WorkspaceThread, client: WebClient) -> None:
    """Only members of the channel can be whispered to."""
    stranger = workspace.add_user("stranger")
    channel = workspace.channel_id("agents")

    client.chat_postEphemeral(channel=channel, user=workspace.user_id("alice"), text="psst")

    assert workspace.ephemerals("agents", "alice")[0]["text"] == "psst"
    assert (
        refusal(lambda: client.chat_postEphemeral(channel=channel, user=stranger, text="psst")) == "user_not_in_channel"
    )


def test_users_tell_where_they_belong(workspace: WorkspaceThread, client: WebClient) -> None:
    """An outsider has another team id; one without a common channel is a stranger; guests are restricted."""
    stranger, guest = workspace.add_user("far", outsider=True), workspace.add_user("guest", guest=True)

    seen = {name: client.users_info(user=workspace.user_id(name))["user"] for name in ("you", "mallory")}

    assert seen["you"]["team_id"] == workspace.team_id
    assert seen["mallory"]["team_id"] != workspace.team_id
    assert seen["mallory"]["is_stranger"] is False
    assert client.users_info(user=stranger)["user"]["is_stranger"] is True
    assert client.users_info(user=guest)["user"]["is_restricted"] is True
    assert refusal(lambda: client.users_info(user="U0")) == "user_not_found"


def test_groups_are_listed_to_who_may_read_them(workspace: WorkspaceThread, client: WebClient) -> None:
    """With id and handle; without the scope the answer names it."""
    group = workspace.do(lambda c: c.add_group("ops-team"))

    listed = client.usergroups_list()["usergroups"]
    workspace.set_scopes(["users:read"])

    assert [(entry["id"], entry["handle"]) for entry in listed] == [(group, "ops-team")]
    assert refusal(client.usergroups_list) == "missing_scope"


def test_a_clips_words_are_written_down_after_it_was_sent(workspace: WorkspaceThread, client: WebClient) -> None:
    """The file object holds their beginning, an address all of them, for who may read files."""
    ts = workspace.do(lambda c: c.clip("alice", "agents", "", written=False))
    shared = client.conversations_replies(channel=workspace.channel_id("agents"), ts=ts)["messages"][0]["files"][0]
    words = "one two three four five six seven eight"

    workspace.do(lambda c: c.write_down(shared["id"], words))

    seen = client.files_info(file=shared["id"])["file"]
    assert (shared["transcription"], "vtt" in shared) == ({"status": "processing"}, False)
    assert seen["transcription"]["preview"] == {"content": words[:30], "has_more": True}
    authorized = {"Authorization": f"Bearer {workspace.bot_token}"}
    assert words in raw(seen["vtt"], None, authorized)[1]
    assert "Sign in" in raw(seen["vtt"], None, {})[1]


def test_channels_are_listed_and_joined(workspace: WorkspaceThread, client: WebClient) -> None:
    """Private channels without the bot are not listed; a public one can be joined; info tells membership."""
    public, _ = workspace.add_channel("public", ["you"]), workspace.add_channel("den", ["you"], private=True)

    before = client.conversations_info(channel=public)["channel"]["is_member"]
    listed = client.conversations_list(types="public_channel,private_channel")["channels"]
    client.conversations_join(channel=public)

    assert [channel["name"] for channel in listed] == ["agents", "public"]
    assert before is False
    assert client.conversations_info(channel=public)["channel"]["is_member"] is True
    assert client.conversations_info(channel=workspace.channel_id("agents"))["channel"]["is_ext_shared"] is True


def test_permalink_of_a_reply_names_its_thread(workspace: WorkspaceThread, client: WebClient) -> None:
    """The link of a reply carries thread_ts and cid."""
    channel = workspace.channel_id("agents")
    parent = workspace.say("you", channel, "root")
    reply = workspace.say("you", channel, "reply", parent)

    link = client.chat_getPermalink(channel=channel, message_ts=reply)["permalink"]

    assert link.endswith(f"/archives/{channel}/p{reply.replace('.', '')}?thread_ts={parent}&cid={channel}")


def test_file_content_needs_the_token(workspace: WorkspaceThread, client: WebClient) -> None:
    """A shared file is fetched with the bot's token; without it a sign-in page comes with status 200."""
    ts = workspace.say("alice", "agents", "see this", files={"notes.txt": "a line"})
    shared = client.conversations_replies(channel=workspace.channel_id("agents"), ts=ts)["messages"][0]
    url = shared["files"][0]["url_private_download"]

    with_token = raw(url, None, {"Authorization": f"Bearer {workspace.bot_token}"})
    without = raw(url, None, {})

    assert shared["subtype"] == "file_share"
    assert with_token[:2] == (200, "a line")
    assert without[0] == 200
    assert without[2]["Content-Type"].startswith("text/html")


def _post(client: WebClient, channel: str) -> Callable[[], Any]:
    return lambda: client.chat_postMessage(channel=channel, text="x")
