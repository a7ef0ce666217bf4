"""Messages that are written while they are shown, through slack_sdk's client: what Slack refuses is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from slack_sdk import WebClient
from slack_sdk.web import SlackResponse

from embedded.workspace.thread import WorkspaceThread
from tests.integration.embedded.calls import refusal

METADATA = {"event_type": "the_loop_post", "event_payload": {"id": "p-1"}}
Place = dict[str, Any]


def task(task_id: str = "t1", status: str = "in_progress", title: str = "Bash", **more: str) -> dict[str, Any]:
    """Return the chunk of a task."""
    return {"type": "task_update", "id": task_id, "title": title, "status": status, **more}


def said(text: str) -> dict[str, Any]:
    """Return the chunk of a text."""
    return {"type": "markdown_text", "text": text}


@pytest.fixture
def place(workspace: WorkspaceThread) -> Place:
    """Where a stream goes: a thread of alice's, and alice as its reader."""
    ts = workspace.say("alice", "agents", "please")
    return {
        "channel": workspace.channel_id("agents"),
        "thread_ts": ts,
        "recipient_user_id": workspace.user_id("alice"),
        "recipient_team_id": workspace.team_id,
    }


@pytest.fixture
def begin(client: WebClient, place: Place) -> Callable[..., Place]:
    """Start a stream and return what names its message."""

    def start(**more: Any) -> Place:
        answer: SlackResponse = client.chat_startStream(**place, **more)
        return {"channel": answer["channel"], "ts": answer["ts"]}

    return start


def blocks_of(workspace: WorkspaceThread, ts: str) -> list[dict[str, Any]]:
    """Return a message's blocks without the ids that the workspace fills in."""
    found = next(message for message in workspace.messages("agents") if message["ts"] == ts)
    return [{key: value for key, value in block.items() if key != "block_id"} for block in found["blocks"]]


def test_a_turn_is_shown_as_it_runs(workspace: WorkspaceThread, client: WebClient, begin: Callable[..., Place]) -> None:
    """A plan with its tasks, then the text as it grows; metadata comes with the end."""
    stream = begin(task_display_mode="plan", chunks=[{"type": "plan_update", "title": "0 of 1"}, task(details="make")])
    client.chat_appendStream(**stream, chunks=[task(status="complete", title="Bash, done", output="ok"), said("Do")])
    client.chat_appendStream(**stream, chunks=[said("ne")])
    client.chat_stopStream(**stream, chunks=[said(".")], metadata=METADATA)

    plan, text = blocks_of(workspace, stream["ts"])
    [shown] = plan["tasks"]
    message = workspace.messages("agents")[-1]
    assert (plan["type"], plan["title"], shown["title"], shown["status"]) == (
        "plan",
        "0 of 1",
        "Bash, done",
        "complete",
    )
    assert shown["details"]["elements"][0]["elements"][0]["text"] == "make"
    assert text == {"type": "markdown", "text": "Done."}
    assert (message["text"], message["metadata"]) == ("Done.", METADATA)


def test_tasks_stand_between_texts_in_a_timeline(
    workspace: WorkspaceThread, client: WebClient, begin: Callable[..., Place]
) -> None:
    """Without a display mode each task is a card where it came."""
    stream = begin(chunks=[said("first"), task()])
    client.chat_appendStream(**stream, chunks=[said("second"), task(details="more")])

    assert [block["type"] for block in blocks_of(workspace, stream["ts"])] == ["markdown", "task_card", "markdown"]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"channel": "C0NOWHERE"}, "channel_not_found"),
        ({"thread_ts": "1700000000.000001"}, "thread_not_found"),
        ({"recipient_user_id": None}, "missing_recipient_user_id"),
        ({"recipient_team_id": None}, "missing_recipient_team_id"),
        ({"recipient_user_id": "U0NOBODY"}, "user_not_found"),
        ({"task_display_mode": "boxes"}, "invalid_arguments"),
        ({"chunks": [{"type": "shout"}]}, "invalid_chunks"),
        ({"chunks": [task(status="stuck")]}, "invalid_chunks"),
        ({"chunks": [task(title="x" * 257)]}, "invalid_chunks"),
        ({"chunks": [said("x" * 12_001)]}, "invalid_chunks"),
        ({"chunks": [said("x" * 11_001)]}, "msg_too_long"),
        ({"markdown_text": "x" * 12_001}, "msg_too_long"),
        ({"markdown_text": "a", "chunks": [said("b")]}, "cannot_provide_both_markdown_text_and_chunks"),
    ],
)
def test_what_cannot_begin(
    workspace: WorkspaceThread, client: WebClient, place: Place, change: dict[str, Any], error: str
) -> None:
    """Each refusal has Slack's name, and nothing is posted."""
    before = len(workspace.messages("agents"))

    assert refusal(lambda: client.chat_startStream(**{**place, **change})) == error
    assert len(workspace.messages("agents")) == before


def test_a_stream_stays_with_what_it_began_with(client: WebClient, begin: Callable[..., Place]) -> None:
    """Chunks after chunks, texts after texts; an append brings one of them."""
    chunks, text = begin(chunks=[task()]), begin(markdown_text="a")

    assert refusal(lambda: client.chat_appendStream(**chunks, markdown_text="a")) == "streaming_mode_mismatch"
    assert refusal(lambda: client.chat_stopStream(**text, chunks=[task()])) == "streaming_mode_mismatch"
    assert refusal(lambda: client.chat_appendStream(**chunks)) == "markdown_text_or_chunks_required"


def test_what_is_refused_writes_nothing(
    workspace: WorkspaceThread, client: WebClient, begin: Callable[..., Place]
) -> None:
    """The text before it stands, and it can be written on."""
    stream = begin(chunks=[said("x" * 9_000)])

    error = refusal(lambda: client.chat_appendStream(**stream, chunks=[task("t9"), said("y" * 2_001)]))
    client.chat_stopStream(**stream, chunks=[said("end")])

    assert error == "msg_too_long"
    assert blocks_of(workspace, stream["ts"]) == [{"type": "markdown", "text": "x" * 9_000 + "end"}]


def test_an_open_stream_is_neither_edited_nor_deleted(client: WebClient, begin: Callable[..., Place]) -> None:
    """Once it is stopped it can be deleted like any message, and is not written to any more."""
    stream = begin(chunks=[said("a")])

    errors = [refusal(lambda: client.chat_update(**stream, text="b")), refusal(lambda: client.chat_delete(**stream))]
    client.chat_stopStream(**stream)
    errors.append(refusal(lambda: client.chat_appendStream(**stream, chunks=[said("b")])))
    errors.append(refusal(lambda: client.chat_stopStream(**stream)))
    client.chat_delete(**stream)

    over = "message_not_in_streaming_state"
    assert errors == ["streaming_state_conflict", "cant_delete_message", over, over]


def test_a_stream_has_five_minutes(workspace: WorkspaceThread, client: WebClient, begin: Callable[..., Place]) -> None:
    """Then it is as it is, and can only be deleted."""
    stream = begin(chunks=[said("a")])

    ended = workspace.expire_streams()

    assert ended == 1
    assert refusal(lambda: client.chat_stopStream(**stream)) == "message_not_in_streaming_state"
    assert client.chat_delete(**stream)["ok"]


def test_only_ones_own_stream_is_written(
    workspace: WorkspaceThread, client: WebClient, begin: Callable[..., Place]
) -> None:
    """Messages of people and of other apps are not ours to write."""
    ts = workspace.say("alice", "agents", "mine")

    error = refusal(lambda: client.chat_appendStream(**{**begin(chunks=[said("a")]), "ts": ts}, chunks=[said("b")]))
    gone = refusal(lambda: client.chat_stopStream(channel=workspace.channel_id("agents"), ts="1700000000.000001"))

    assert (error, gone) == ("message_not_owned_by_app", "message_not_found")
