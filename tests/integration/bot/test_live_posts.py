"""Live posts of the Slack channel, against a workspace that streams messages as Slack does."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.channel import SlackChannel
from core.base.errors import ChannelError
from core.model.live import LiveRow, LiveShown, LiveState, LiveStep, StepState
from core.model.posts import OutboundKind
from embedded.workspace.thread import WorkspaceThread
from tests.integration.bot.served import channel_on, post_of

T0 = datetime(2026, 12, 1, tzinfo=UTC)
RUNS = LiveShown("1 step", (LiveStep("tool-1", "Bash make", StepState.RUNNING),))
DONE = LiveShown("", (LiveStep("tool-1", "Bash make", StepState.DONE),))
NOTHING = LiveShown()


@pytest.fixture
def channel(workspace: WorkspaceThread) -> SlackChannel:
    """The channel; nothing of it needs a connection."""
    return channel_on(workspace)


@pytest.fixture
def row(workspace: WorkspaceThread, channel: SlackChannel) -> LiveRow:
    """A live post that alice is to read, in the thread of an announcement."""
    agents = workspace.channel_id("agents")
    thread = channel.post(post_of("standing:scribe is up"), agents, "").ts
    reader = workspace.user_id("alice")
    return LiveRow(
        "l-1", "s-1", "i-1-1", "slack", agents, thread, reader, "", LiveState.OPENING, T0, 0, RUNS, ""
    )  # fmt: skip


def begun(channel: SlackChannel, row: LiveRow) -> LiveRow:
    """Begin it, and return the row as it is then."""
    return replace(row, ts=channel.begin_live(row).ts)


def shown(workspace: WorkspaceThread) -> list[dict[str, Any]]:
    """Return the last message's blocks."""
    return list(workspace.messages("agents")[-1]["blocks"])


def test_a_turn_in_one_message(workspace: WorkspaceThread, channel: SlackChannel, row: LiveRow) -> None:
    """A plan block with its tasks, the text below it, and the post's id, by which it is found."""
    live = begun(channel, row)
    channel.add_live(live, DONE, "**First** line\n")
    ended = channel.end_live(live, post_of("", id="p-7", kind=OutboundKind.ANSWER), NOTHING, "last <!channel> line")

    plan, text = shown(workspace)
    [task] = plan["tasks"]
    assert (plan["title"], task["title"], task["status"]) == ("1 step", "Bash make", "complete")
    assert text["text"].startswith("**First** line\nlast")
    assert workspace.messages("agents")[-1]["metadata"]["event_payload"]["id"] == "p-7"
    assert channel.find("p-7", row.channel, row.thread) == ended
    assert ended.ts == live.ts


def test_it_is_found_by_its_tasks(workspace: WorkspaceThread, channel: SlackChannel, row: LiveRow) -> None:
    """While it runs it has no id of a post."""
    live = begun(channel, row)

    found = channel.find_live(row)

    assert found is not None
    assert found.ts == live.ts
    assert channel.find_live(replace(row, id="l-2")) is None


@pytest.mark.parametrize("state", ["open", "ended", "out of time", "gone"])
def test_it_is_removed_wherever_it_stands(
    workspace: WorkspaceThread, channel: SlackChannel, row: LiveRow, state: str
) -> None:
    """Slack deletes no message that is being written; what is gone already is well."""
    live = begun(channel, row)
    if state == "ended":
        channel.end_live(live, None, NOTHING, "")
    if state == "out of time":
        workspace.expire_streams()
    if state == "gone":
        channel.remove_live(live)

    channel.remove_live(live)

    assert [message["ts"] for message in workspace.messages("agents")] == [row.thread]


def test_what_is_out_of_time_takes_no_more(workspace: WorkspaceThread, channel: SlackChannel, row: LiveRow) -> None:
    """That is no passing trouble: the answer is posted by itself."""
    live = begun(channel, row)
    workspace.expire_streams()

    with pytest.raises(ChannelError, match="not being written any more") as refused:
        channel.end_live(live, post_of("", id="p-7", kind=OutboundKind.ANSWER), NOTHING, "text")

    assert (refused.value.transient, refused.value.unclear) == (False, False)


@pytest.mark.parametrize("code", ["unknown_method", "missing_scope", "not_allowed_token_type"])
def test_a_workspace_without_streams_is_told_apart(
    workspace: WorkspaceThread, channel: SlackChannel, row: LiveRow, code: str
) -> None:
    """It is not asked again until the next start, and the check tells it."""
    workspace.fault("chat.startStream", "error", code=code)

    with pytest.raises(ChannelError) as refused:
        channel.begin_live(row)

    assert refused.value.reason == ChannelError.NOT_ALLOWED


def test_a_reader_of_another_organization(workspace: WorkspaceThread, channel: SlackChannel, row: LiveRow) -> None:
    """Is named with their own team, as the list of those who may steer does."""
    mallory = workspace.do(lambda controls: controls.user("mallory"))
    live = begun(channel, replace(row, reader=f"{mallory.team_id}:{mallory.id}"))

    assert live.ts


@pytest.mark.parametrize(
    ("settings", "live"),
    [({}, True), ({"stream": False}, False), ({"verbosity": "quiet"}, False), ({"verbosity": "verbose"}, False)],
)
def test_turns_are_shown_as_the_configuration_says(
    workspace: WorkspaceThread, settings: dict[str, Any], live: bool
) -> None:
    """In verbosity normal, unless it is switched off; verbose has the steps of every turn."""
    assert channel_on(workspace, **settings).live() is live
