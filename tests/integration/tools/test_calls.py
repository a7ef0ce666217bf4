"""What the tools do, by either door: HTTP, and the program that a harness runs."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.tools.conftest import OTHER, Desk, called, error_of
from tests.support.product import NAME

if TYPE_CHECKING:
    from mcp import ClientSession

Door = Callable[[Desk], "AbstractAsyncContextManager[ClientSession]"]
DOORS = [pytest.param(Desk.http, id="http"), pytest.param(Desk.stdio, id="stdio")]
TOOLS = {"list_standing_sessions", "get_standing_session", "say_to_standing_session", "post", "ask"}


@pytest.mark.parametrize("door", DOORS)
async def test_no_tool_starts_or_ends_anything(shared: Desk, door: Door) -> None:
    """The list is exactly what an agent may do; each says what it takes and what comes back."""
    async with door(shared) as session:
        listed = (await session.list_tools()).tools

    names = {tool.name for tool in listed}
    assert names >= TOOLS
    assert not {name for name in names if {"start", "create_s", "delete", "restart"} & {*name.split("_standing")}}
    assert all(tool.description and tool.input_schema["additionalProperties"] is False for tool in listed)


@pytest.mark.parametrize("door", DOORS)
async def test_an_agent_sees_the_sessions(shared: Desk, door: Door) -> None:
    """The rows are those of `standing list`, and it is told which one it is; text and structure say the same."""
    rows = shared.product.cli("standing", "list", "--json").json

    async with door(shared) as session:
        listed = await called(session, "list_standing_sessions")
        got = await called(session, "get_standing_session", name=NAME)

    assert (listed.is_error, listed.structured_content["you"]) == (False, NAME)
    assert [row["uid"] for row in listed.structured_content["sessions"]] == [row["uid"] for row in rows]
    assert got.structured_content["session"]["live"] == "live"
    assert f'"you": "{NAME}"' in str(listed.content[0])


@pytest.mark.parametrize("door", DOORS)
async def test_what_one_says_to_another_is_framed_and_told(shared: Desk, door: Door) -> None:
    """It arrives with the sender's name, and an event says who acted."""
    text = f"I need the keys of {secrets.token_hex(4)}"
    async with door(shared) as session:
        said = await called(session, "say_to_standing_session", name=OTHER, text=text)

    assert (said.structured_content["state"], said.structured_content["delivered"]) == ("confirmed", True)
    assert shared.product.times(text, OTHER) == 1
    [taken] = [each for each in shared.product.taken(OTHER) if text in each]
    assert taken.startswith(f"[agent {NAME} #")
    assert shared.product.events("standing.said")[-1]["actor"] == f"agent:{NAME}"


HOSTILE: list[tuple[str, dict[str, Any], str]] = [
    ("get_standing_session", {"name": "nobody"}, "unknown_session"),
    ("get_standing_session", {"name": "../../etc/passwd"}, "invalid_value"),
    ("get_standing_session", {"name": "a\x00b"}, "invalid_value"),
    ("get_standing_session", {"name": 7}, "invalid_value"),
    ("get_standing_session", {}, "invalid_value"),
    ("get_standing_session", {"name": NAME, "force": True}, "invalid_value"),
    ("say_to_standing_session", {"name": NAME, "text": "me again"}, "invalid_value"),
    ("say_to_standing_session", {"name": OTHER, "text": "\x00\x1b"}, "invalid_value"),
    ("say_to_standing_session", {"name": OTHER, "text": "x", "wait": -1}, "invalid_value"),
    ("say_to_standing_session", {"name": OTHER, "text": "x", "wait": 10**400}, "invalid_value"),
    ("say_to_standing_session", {"name": OTHER, "text": "x", "wait": True}, "invalid_value"),
    ("say_to_standing_session", {"name": OTHER, "text": "x" * 200_000}, "invalid_value"),
    ("post", {"text": "no thread"}, "refused"),
    ("post", {"files": ["a\x00b"]}, "refused"),
    ("post", {"files": "a"}, "invalid_value"),
    ("ask", {"question": "Why?", "options": [1]}, "invalid_value"),
    ("stop_standing_session", {"name": NAME}, "unknown_tool"),
]


@pytest.mark.parametrize("door", DOORS)
async def test_what_cannot_be_done_is_an_answer_with_a_remedy(shared: Desk, door: Door) -> None:
    """Whatever is sent, the call fails by itself, and the next one works."""
    async with door(shared) as session:
        failed = [await called(session, name, **arguments) for name, arguments, _ in HOSTILE]
        after = await called(session, "get_standing_session", name=NAME)

    assert [error_of(result) for result in failed] == [code for _, _, code in HOSTILE]
    assert all(result.structured_content["error"]["remedy"] for result in failed)
    assert not after.is_error


async def test_more_than_the_service_reads_is_refused_by_the_door(shared: Desk) -> None:
    """Two megabytes reach nobody, and the door stays open."""
    async with shared.stdio() as session:
        huge = await called(session, "get_standing_session", name="x" * 2_000_000)
        after = await called(session, "list_standing_sessions")

    assert error_of(huge) == "invalid_value"
    assert not after.is_error


@pytest.mark.parametrize("door", DOORS)
async def test_a_post_stands_in_the_thread(threaded: Desk, door: Door) -> None:
    """The text, and a file out of the agent's folder; what leads out of the folder is refused."""
    text = f"half way to {secrets.token_hex(4)}"
    (threaded.product.folder / "work" / "plan.md").write_text("# Plan\n")
    async with door(threaded) as session:
        posted = await called(session, "post", text=f"{text} ghp_{'Ab3' * 12}", files=["plan.md"])
        outside = await called(session, "post", files=["../cli-config.yaml"])

    thread = threaded.product.root()
    assert posted.structured_content["postId"].startswith("p-post-")
    assert posted.structured_content["said"].startswith("1 value was redacted")
    assert "[redacted]" in threaded.product.wait_reply(thread, text)["text"]
    assert threaded.product.wait_event("channel.posted")
    assert error_of(outside) == "not_permitted"
    assert threaded.product.events("standing.posted")[-1]["actor"] == f"agent:{NAME}"


@pytest.mark.parametrize("door", DOORS)
async def test_a_question_waits_for_its_answer(threaded: Desk, door: Door) -> None:
    """A reply in the thread is the answer, and it is told whose it is."""
    import anyio

    thread, found, question = threaded.product.root(), [], f"Which colour of {secrets.token_hex(4)}?"

    async def ask() -> None:
        found.append(await called(session, "ask", question=question, options=["red", "blue"]))

    async with door(threaded) as session, anyio.create_task_group() as group:
        group.start_soon(ask)
        await anyio.to_thread.run_sync(lambda: threaded.product.wait_reply(thread, question))
        threaded.product.workspace.say("alice", "agents", "green, please", thread)

    [answer] = found
    assert (answer.structured_content["answer"], answer.is_error) == ("green, please", False)
    assert threaded.product.events("standing.asked")[-1]["actor"] == f"agent:{NAME}"
