"""Posting, editing and finding, against a workspace that can fail in every way."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from bot.channel import SlackChannel
from core.base.errors import ChannelError
from core.model.channel import Posted
from core.model.posts import Mark, OutboundKind
from embedded.workspace.model import Json
from embedded.workspace.thread import WorkspaceThread
from tests.integration.bot.served import channel_on, post_of


@pytest.fixture
def channel(workspace: WorkspaceThread) -> SlackChannel:
    """The channel; nothing of it needs a connection."""
    return channel_on(workspace)


@pytest.fixture
def agents(workspace: WorkspaceThread) -> str:
    """The id of #agents."""
    return workspace.channel_id("agents")


def forging(workspace: WorkspaceThread) -> SlackChannel:
    """Return the channel of another app in #agents, which writes what we write."""
    forger = workspace.add_app(
        {
            "display_information": {"name": "forger"},
            "oauth_config": {"scopes": {"bot": ["chat:write"]}},
            "settings": {"socket_mode_enabled": True},
        }
    )
    workspace.join(forger["bot_user_id"], "agents")
    tokens = {"THE_LOOP_SLACK_BOT_TOKEN": forger["bot_token"], "THE_LOOP_SLACK_APP_TOKEN": forger["app_token"]}
    return channel_on(workspace, tokens)


def test_a_root_a_reply_and_an_edit(workspace: WorkspaceThread, channel: SlackChannel, agents: str) -> None:
    """What is posted is where it was put, carries its id, and can be edited."""
    root = channel.post(post_of("standing:scribe is up"), agents, "")
    reply = channel.post(post_of("done", id="p-2", kind=OutboundKind.ANSWER), agents, root.ts)
    channel.update(post_of("standing:scribe is down", id="p-3", kind=OutboundKind.ROOT_UPDATE), agents, root.ts)

    top, below = workspace.messages("agents")
    assert root == Posted(workspace.team_id, agents, top["ts"])
    assert (reply.ts, below["thread_ts"], below["text"]) == (below["ts"], root.ts, "done")
    assert top["text"] == "standing:scribe is down"
    payload = {"id": "p-2", "kind": "answer", "ref": "standing:scribe", "uid": "s-1"}
    assert below["metadata"] == {"event_type": "the_loop_post", "event_payload": payload}


def test_times_of_ours_are_shown_to_each_reader_as_their_own(
    workspace: WorkspaceThread, channel: SlackChannel, agents: str
) -> None:
    """In a note, and where a request tells how it ended; never in code, nor in what an agent wrote or asks for."""
    at = "2026-12-01 01:38:12 UTC"
    date = f"<!date^1796089092^{{time_secs}} ({{date_short_pretty}})|{at}>"

    channel.post(post_of(f"back at {at}, `{at}`", kind=OutboundKind.NOTE), agents, "")
    channel.post(post_of(f"`run {at}`\n{at}\n**Allowed** by alice, {at}.", kind=OutboundKind.REQUEST), agents, "")
    channel.post(post_of(f"done at {at}", kind=OutboundKind.ANSWER), agents, "")

    note, request, answer = (message["text"] for message in workspace.messages("agents"))
    assert note == f"back at {date}, `{at}`"
    assert request == f"`run {at}`\n{at}\n*Allowed* by alice, {date}."
    assert answer == f"done at {at}"


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
    forging(workspace).post(post_of("mine", id="p-9"), agents, "")

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


def test_an_answer_is_rendered_and_a_note_is_not(
    workspace: WorkspaceThread, channel: SlackChannel, agents: str
) -> None:
    """Agents write Markdown; what we say ourselves is sent as it is."""
    channel.post(post_of("**done** in `a*b`", id="p-1", kind=OutboundKind.ANSWER), agents, "")
    channel.post(post_of("**not** rendered", id="p-2", kind=OutboundKind.NOTE), agents, "")

    assert [message["text"] for message in workspace.messages("agents")] == ["*done* in `a*b`", "**not** rendered"]


def test_nothing_that_is_posted_holds_a_secret(workspace: WorkspaceThread, channel: SlackChannel, agents: str) -> None:
    """Texts, edits and files, by value and by look."""
    secrets = f"{workspace.bot_token} ghp_{'Ab3' * 12}"
    root = channel.post(post_of(secrets), agents, "").ts
    channel.update(post_of(f"{secrets} again", id="p-2"), agents, root)
    channel.post(post_of(secrets, id="p-3", kind=OutboundKind.FILE), agents, root)

    assert workspace.messages("agents")[0]["text"] == "[redacted] [redacted] again"
    assert file_of(workspace, workspace.replies("agents", root)[0]) == "[redacted] [redacted]"


def test_a_file_stands_in_the_thread_and_is_found_by_its_name(
    workspace: WorkspaceThread, channel: SlackChannel, agents: str
) -> None:
    """Its message has no metadata and no time stamp that anybody told us."""
    root = channel.post(post_of("root", id="p-0"), agents, "").ts
    text = "# All of it\n" + "wörter " * 10_000

    posted = channel.post(post_of(text, id="p-7-2", kind=OutboundKind.FILE), agents, root)

    [message] = workspace.replies("agents", root)
    assert posted == Posted(workspace.team_id, agents, "")
    assert file_of(workspace, message) == text
    assert message["subtype"] == "file_share"
    assert re.fullmatch(r"scribe-\d{4}-\d\d-\d\d-\d{4}-[0-9a-f]{8}\.md", message["files"][0]["name"])
    assert channel.find("p-7-2", agents, root) == Posted(workspace.team_id, agents, message["ts"])


@pytest.mark.parametrize("method", ["files.getUploadURLExternal", "files.completeUploadExternal"])
@pytest.mark.parametrize("kind", ["lost", "http", "ratelimited"])
def test_an_upload_that_fails_is_tried_again_and_never_doubled(
    workspace: WorkspaceThread, channel: SlackChannel, agents: str, method: str, kind: str
) -> None:
    """Until the last call nothing can be seen; after it the file is looked for."""
    root = channel.post(post_of("root", id="p-0"), agents, "").ts
    post = post_of("text", id="p-7-2", kind=OutboundKind.FILE)
    workspace.fault(method, kind)

    error = _failure(lambda: channel.post(post, agents, root))
    if channel.find(post.id, agents, root) is None:
        channel.post(post, agents, root)

    assert error.transient
    assert len(workspace.replies("agents", root)) == 1


def test_reactions_are_idempotent(workspace: WorkspaceThread, channel: SlackChannel, agents: str) -> None:
    """What is so already is well; the latest stands alone."""
    ts = workspace.say("alice", "agents", "hello")
    for _ in range(2):
        channel.react(agents, ts, Mark.TAKEN, [])
    for _ in range(2):
        channel.react(agents, ts, Mark.DONE, [Mark.TAKEN, Mark.UNKNOWN])

    assert workspace.reactions("agents", ts) == {"white_check_mark": [workspace.bot_user_id]}


def test_a_reaction_without_its_scope_says_so(workspace: WorkspaceThread, channel: SlackChannel, agents: str) -> None:
    """Core then stops asking."""
    ts = workspace.say("alice", "agents", "hello")
    workspace.set_scopes(["chat:write"])

    error = _failure(lambda: channel.react(agents, ts, Mark.TAKEN, []))

    assert (error.reason, error.transient) == (ChannelError.NOT_ALLOWED, False)


def test_the_status_is_shown_until_something_is_posted(
    workspace: WorkspaceThread, channel: SlackChannel, agents: str
) -> None:
    """Or until it is taken away."""
    root = channel.post(post_of("root", id="p-0"), agents, "").ts
    seen = []
    for act in (
        lambda: channel.status(agents, root, "is working…"),
        lambda: channel.post(post_of("done", id="p-1"), agents, root),
        lambda: channel.status(agents, root, "is working…"),
        lambda: channel.status(agents, root, ""),
    ):
        act()
        seen.append(workspace.status("agents", root))

    assert seen == ["is working…", "", "is working…", ""]


@pytest.mark.parametrize("code", ["missing_scope", "unknown_method"])
def test_without_a_status_nothing_is_shown_and_one_line_logged(
    workspace: WorkspaceThread, channel: SlackChannel, agents: str, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Sessions go on without it."""
    root = channel.post(post_of("root", id="p-0"), agents, "").ts
    workspace.fault("assistant.threads.setStatus", "error", code=code)

    for _ in range(3):
        channel.status(agents, root, "is working…")

    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 1
    assert workspace.status("agents", root) == ""


def test_a_status_that_fails_once_is_shown_the_next_time(
    workspace: WorkspaceThread, channel: SlackChannel, agents: str
) -> None:
    """Trouble of the moment switches nothing off."""
    root = channel.post(post_of("root", id="p-0"), agents, "").ts
    workspace.fault("assistant.threads.setStatus", "http")

    for _ in range(2):
        channel.status(agents, root, "is working…")

    assert workspace.status("agents", root) == "is working…"


def test_a_place_that_is_gone_has_its_reason(workspace: WorkspaceThread, channel: SlackChannel, agents: str) -> None:
    """By which core parts the session from its thread."""
    root = channel.post(post_of("root", id="p-0"), agents, "").ts
    seen = []
    workspace.delete("agents", root)
    seen.append(_failure(lambda: channel.update(post_of("x"), agents, root)).reason)
    seen.append(_failure(lambda: channel.post(post_of("x"), agents, root)).reason)
    workspace.kick("the-loop", "agents")
    seen.append(_failure(lambda: channel.post(post_of("x"), agents, "")).reason)
    workspace.archive("agents")
    seen.append(_failure(lambda: channel.post(post_of("x"), agents, "")).reason)

    assert seen == [
        ChannelError.THREAD_GONE,
        ChannelError.THREAD_GONE,
        ChannelError.NOT_MEMBER,
        ChannelError.CHANNEL_GONE,
    ]


def test_a_whisper_is_seen_by_one_person_alone(workspace: WorkspaceThread) -> None:
    """In the thread, with nothing in it that pings; the channel has no such message."""
    channel, agents = channel_on(workspace), workspace.channel_id("agents")
    root = channel.post(post_of("up"), agents, "")
    note = replace(post_of("`U1`: <!channel>", id="p-w", kind=OutboundKind.WHISPER), only_for=workspace.user_id("bob"))

    posted = channel.post(note, agents, root.ts)

    [seen] = workspace.ephemerals("agents", "bob")
    assert (seen["text"], seen["thread_ts"], seen["ts"]) == ("`U1`: &lt;!channel&gt;", root.ts, posted.ts)
    assert [message["text"] for message in workspace.messages("agents")] == ["up"]


def test_a_whisper_to_who_has_left_is_refused_for_good(workspace: WorkspaceThread) -> None:
    """It is not tried again."""
    channel, agents = channel_on(workspace), workspace.channel_id("agents")
    away = workspace.add_user("away")

    with pytest.raises(ChannelError) as caught:
        channel.post(replace(post_of("x", kind=OutboundKind.WHISPER), only_for=away), agents, "")

    assert not caught.value.transient
    assert "not in the channel" in caught.value.message


@pytest.mark.parametrize(
    ("verbosity", "unwanted"),
    [
        (
            "quiet",
            {OutboundKind.ASKED, OutboundKind.ANSWER, OutboundKind.PART, OutboundKind.FILE, OutboundKind.PROGRESS},
        ),
        ("normal", {OutboundKind.PROGRESS}),
        ("verbose", set()),
    ],
)
def test_verbosity_leaves_kinds_out(workspace: WorkspaceThread, verbosity: str, unwanted: set[OutboundKind]) -> None:
    """The key `channels.slack.verbosity`."""
    channel = channel_on(workspace, verbosity=verbosity)

    assert {kind for kind in OutboundKind if not channel.wants(kind)} == unwanted


def file_of(workspace: WorkspaceThread, message: Json) -> str:
    """Return the content of a message's first file."""
    return workspace.do(lambda controls: controls.file_text(message["files"][0]["id"]))


def test_of_a_thread_only_the_bots_own_posts_are_ours(
    workspace: WorkspaceThread, channel: SlackChannel, agents: str
) -> None:
    """Who copies our text or our metadata has posted nothing of ours; its last message is whoever's it is."""
    root = channel.post(post_of("standing:scribe is up", id="p-0"), agents, "")
    channel.post(post_of("done", id="p-1", kind=OutboundKind.ANSWER), agents, root.ts)
    forging(workspace).post(post_of("closed", id="p-closing-s-1", kind=OutboundKind.CLOSING), agents, root.ts)
    workspace.say("bob", "agents", "standing:scribe is up", root.ts)

    seen = channel.read_thread(agents, root.ts)

    assert (seen.team, seen.thread) == (workspace.team_id, root.ts)
    assert seen.latest == workspace.replies("agents", root.ts)[-1]["ts"]
    assert [(post.post_id, post.kind, post.ref, post.uid) for post in seen.posts] == [
        ("p-0", "root", "standing:scribe", "s-1"),
        ("p-1", "answer", "standing:scribe", "s-1"),
    ]


def test_a_root_of_another_app_is_none_of_ours(workspace: WorkspaceThread, channel: SlackChannel, agents: str) -> None:
    """Its metadata names our session; its author does not."""
    root = forging(workspace).post(post_of("standing:scribe is up", id="p-0"), agents, "")

    assert channel.read_thread(agents, root.ts).posts == ()


@pytest.mark.parametrize("answered", [True, False], ids=["with replies", "without"])
def test_a_thread_whose_root_was_deleted_has_none(
    workspace: WorkspaceThread, channel: SlackChannel, agents: str, answered: bool
) -> None:
    """Slack keeps a tombstone above replies, and says that there is no such thread where none are left."""
    root = channel.post(post_of("standing:scribe is up", id="p-0"), agents, "")
    if answered:
        channel.post(post_of("done", id="p-1", kind=OutboundKind.ANSWER), agents, root.ts)
    workspace.delete("agents", root.ts)

    if answered:
        assert [post.post_id for post in channel.read_thread(agents, root.ts).posts] == ["p-1"]
    else:
        error = _failure(lambda: channel.read_thread(agents, root.ts))
        assert (error.reason, error.transient) == (ChannelError.THREAD_GONE, False)


@pytest.mark.parametrize("kind", [OutboundKind.ROOT, OutboundKind.BOOT, OutboundKind.NOTE])
def test_people_are_called_by_their_names(
    workspace: WorkspaceThread, channel: SlackChannel, agents: str, kind: OutboundKind
) -> None:
    """What we say of somebody names them, a guest too, whatever they call themselves: it pings nobody."""
    odd = workspace.add_user("<!channel> *eve*")
    alice, bob = workspace.user_id("alice"), workspace.user_id("bob")
    text = f"`scribe` is stopped by slack:{alice} (started by slack:{workspace.team_id}:{bob}), then by slack:{odd}."

    root = channel.post(post_of(text, kind=kind), agents, "")
    posted = workspace.messages("agents")[0]["text"]
    channel.update(post_of(text, kind=OutboundKind.ROOT_UPDATE), agents, root.ts)

    assert posted == "`scribe` is stopped by alice (started by bob), then by channel eve."
    assert workspace.messages("agents")[0]["text"] == posted


def test_an_id_in_an_agents_answer_stays_one(workspace: WorkspaceThread, channel: SlackChannel, agents: str) -> None:
    """Its words are not ours to change."""
    text = f"events.jsonl says slack:{workspace.user_id('alice')}"

    channel.post(post_of(text, kind=OutboundKind.ANSWER), agents, "")

    assert workspace.messages("agents")[0]["text"] == text


def test_somebody_whom_slack_does_not_name_keeps_the_id(
    workspace: WorkspaceThread, channel: SlackChannel, agents: str
) -> None:
    """The post does not wait for it, and nobody is called by a guess."""
    workspace.fault("users.info", "error", 1)
    text = f"`scribe` is stopped by slack:{workspace.user_id('alice')}"

    channel.post(post_of(text), agents, "")

    assert workspace.messages("agents")[0]["text"] == text
