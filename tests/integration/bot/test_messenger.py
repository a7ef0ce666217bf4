"""Posting, editing and finding, against a workspace that can fail in every way."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bot.channel import SlackChannel
from bot.workspace.thread import WorkspaceThread
from core.errors import ChannelError
from core.ports import OutboundKind, Posted
from tests.integration.bot.served import channel_on, post_of


@pytest.fixture
def channel(workspace: WorkspaceThread) -> SlackChannel:
    """The channel; nothing of it needs a connection."""
    return channel_on(workspace)


@pytest.fixture
def agents(workspace: WorkspaceThread) -> str:
    """The id of #agents."""
    return workspace.channel_id("agents")


def test_a_root_a_reply_and_an_edit(workspace: WorkspaceThread, channel: SlackChannel, agents: str) -> None:
    """What is posted is where it was put, carries its id, and can be edited."""
    root = channel.post(post_of("standing:scribe is up"), agents, "")
    reply = channel.post(post_of("done", id="p-2", kind=OutboundKind.ANSWER), agents, root.ts)
    channel.update(post_of("standing:scribe is down", id="p-3", kind=OutboundKind.ROOT_UPDATE), agents, root.ts)

    top, below = workspace.messages("agents")
    assert root == Posted(workspace.team_id, agents, top["ts"])
    assert (reply.ts, below["thread_ts"], below["text"]) == (below["ts"], root.ts, "done")
    assert top["text"] == "standing:scribe is down"
    payload = {"id": "p-2", "kind": "answer", "ref": "standing:scribe"}
    assert below["metadata"] == {"event_type": "the_loop_post", "event_payload": payload}


def test_relayed_text_pings_nobody(workspace: WorkspaceThread, channel: SlackChannel, agents: str) -> None:
    """Mentions, links and entities in a text stay the characters that they are."""
    text = f"<!channel> <@{workspace.user_id('bob')}> if a < b && c > d &amp; <https://example.com|here>"

    channel.post(post_of(text), agents, "")

    wire = workspace.messages("agents")[0]["text"]
    assert "<!channel>" not in wire
    assert "<@" not in wire
    assert wire.startswith("&lt;!channel&gt; &lt;@")
    assert "b &amp;&amp; c &gt; d &amp;amp; " in wire


def test_a_text_too_long_for_slack_says_what_is_missing(
    workspace: WorkspaceThread, channel: SlackChannel, agents: str
) -> None:
    """Slack would cut it silently; ours counts what is left out."""
    channel.post(post_of("<" * 100_000), agents, "")

    wire = workspace.messages("agents")[0]["text"]
    kept = wire.count("&lt;")
    assert len(wire) <= 38_000
    assert f"[… {100_000 - kept:,} more characters are left out here" in wire


@pytest.mark.parametrize("in_thread", [True, False])
def test_a_post_is_found_by_its_id(
    workspace: WorkspaceThread, channel: SlackChannel, agents: str, in_thread: bool
) -> None:
    """After an unclear failure the post is looked up, beyond the first page too."""
    root = channel.post(post_of("root", id="p-0"), agents, "").ts if in_thread else ""
    posts = [channel.post(post_of(f"{n}", id=f"p-{n}"), agents, root) for n in range(1, 4)]
    for n in range(210):
        workspace.say("bob", "agents", f"chatter {n}", root or None)
    last = channel.post(post_of("last", id="p-last"), agents, root)

    assert channel.find("p-2", agents, root) == posts[1]
    assert channel.find("p-last", agents, root) == last
    assert channel.find("p-nowhere", agents, root) is None


def test_another_apps_copy_of_our_metadata_is_not_ours(
    workspace: WorkspaceThread, channel: SlackChannel, agents: str
) -> None:
    """Anybody can write the metadata, so only the bot's own messages count."""
    forger = workspace.add_app(
        {
            "display_information": {"name": "forger"},
            "oauth_config": {"scopes": {"bot": ["chat:write"]}},
            "settings": {"socket_mode_enabled": True},
        }
    )
    workspace.join(forger["bot_user_id"], "agents")
    tokens = {"THE_LOOP_SLACK_BOT_TOKEN": forger["bot_token"], "THE_LOOP_SLACK_APP_TOKEN": forger["app_token"]}
    channel_on(workspace, tokens).post(post_of("mine", id="p-9"), agents, "")

    assert channel.find("p-9", agents, "") is None


def test_a_lost_answer_is_unclear_and_the_post_is_found(
    workspace: WorkspaceThread, channel: SlackChannel, agents: str
) -> None:
    """The call may have been carried out; here it was, once, and is found."""
    workspace.fault("chat.postMessage", "lost")

    error = _failure(lambda: channel.post(post_of("once", id="p-5"), agents, ""))

    assert (error.transient, error.unclear) == (True, True)
    assert channel.find("p-5", agents, "") is not None
    assert [message["text"] for message in workspace.messages("agents")] == ["once"]


def test_a_pause_that_slack_asks_for_is_told(workspace: WorkspaceThread, channel: SlackChannel, agents: str) -> None:
    """429 carries the seconds to wait, and nothing was posted."""
    workspace.fault("chat.postMessage", "ratelimited", seconds=7)

    error = _failure(lambda: channel.post(post_of("later"), agents, ""))

    assert (error.transient, error.unclear, error.retry_after) == (True, False, 7.0)
    assert workspace.messages("agents") == []


@pytest.mark.parametrize(("kind", "code"), [("http", ""), ("error", "internal_error"), ("error", "fatal_error")])
def test_slacks_own_trouble_is_transient_and_unclear(
    workspace: WorkspaceThread, channel: SlackChannel, agents: str, kind: str, code: str
) -> None:
    """Server errors may have partly succeeded."""
    workspace.fault("chat.postMessage", kind, code=code)

    error = _failure(lambda: channel.post(post_of("later"), agents, ""))

    assert (error.transient, error.unclear) == (True, True)


def test_a_bot_outside_the_channel_says_how_to_invite_it(
    workspace: WorkspaceThread, channel: SlackChannel, agents: str
) -> None:
    """The remedy is the line to type."""
    workspace.kick("the-loop", "agents")

    error = _failure(lambda: channel.post(post_of("hello"), agents, ""))

    assert (error.transient, error.unclear) == (False, False)
    assert "/invite @the-loop" in error.remedy


def test_permanent_refusals_name_their_reason(workspace: WorkspaceThread, channel: SlackChannel, agents: str) -> None:
    """Archived channel, unknown channel, missing scope, revoked token: none of them is tried again."""
    seen = {}
    seen["no such channel"] = _failure(lambda: channel.post(post_of("x"), "C0000000000", ""))
    workspace.archive("agents")
    seen["archived"] = _failure(lambda: channel.post(post_of("x"), agents, ""))
    workspace.archive("agents", False)
    workspace.set_scopes(["users:read"])
    seen["lacks a scope 'chat:write'"] = _failure(lambda: channel.post(post_of("x"), agents, ""))
    workspace.set_revoked()
    seen["revoked"] = _failure(lambda: channel.post(post_of("x"), agents, ""))

    assert [error.transient for error in seen.values()] == [False] * 4
    assert [words for words, error in seen.items() if words not in error.message] == []
    assert all(error.remedy for error in seen.values())


def test_nobody_listening_means_nothing_was_sent(workspace: WorkspaceThread) -> None:
    """A refused connection is transient, and certainly not carried out."""
    channel = channel_on(workspace, apiUrl="http://127.0.0.1:9/api/")

    error = _failure(lambda: channel.post(post_of("x"), "C0000000000", ""))

    assert (error.transient, error.unclear) == (True, False)
    assert workspace.bot_token not in str(error)


def test_posting_without_a_token_names_the_variable(workspace: WorkspaceThread, agents: str) -> None:
    """The outbox learns that waiting does not help."""
    channel = channel_on(workspace, {"THE_LOOP_SLACK_BOT_TOKEN": ""})

    error = _failure(lambda: channel.post(post_of("x"), agents, ""))

    assert not error.transient
    assert "THE_LOOP_SLACK_BOT_TOKEN" in error.message


def _failure(call: Callable[[], object]) -> ChannelError:
    with pytest.raises(ChannelError) as caught:
        call()
    return caught.value
