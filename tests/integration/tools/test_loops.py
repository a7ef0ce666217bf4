"""Loops by an agent's tools: its own, and no other session's."""

from typing import Any

import pytest

from tests.integration.tools.conftest import OTHER, Desk, called, error_of
from tests.integration.tools.test_calls import DOORS, Door
from tests.support.product import NAME
from tests.support.tmux import wait_until


@pytest.mark.parametrize("door", DOORS)
async def test_a_loop_is_made_steered_and_ended(desk: Desk, door: Door) -> None:
    """Each answer has the loop, the session's loops and a sentence; each change has an event that names the agent."""
    async with door(desk) as session:
        made = await called(session, "create_loop", instruction="Look.", interval="5m", keep_alive=True, max_runs=9)
        loop = made.structured_content["loop"]
        steps = [await called(session, name, id=loop["id"], reason="because") for name in ("pause_loop", "resume_loop")]
        listed = await called(session, "list_loops")
        ended = await called(session, "stop_loop", id=loop["id"], reason="done")

    assert (loop["session"], loop["interval"], loop["keepAlive"], loop["maxRuns"]) == (NAME, "5m", True, 9)
    assert loop["createdBy"] == f"agent:{NAME}"
    assert [step.structured_content["loop"]["status"] for step in steps] == ["paused", "active"]
    assert [each["id"] for each in listed.structured_content["loops"]] == [loop["id"]]
    assert ended.structured_content["loop"]["reason"] == "done"
    told = desk.product.events("loop.created", "loop.paused", "loop.resumed", "loop.stopped")
    assert [event["event"] for event in told] == ["loop.created", "loop.paused", "loop.resumed", "loop.stopped"]
    assert {event["actor"] for event in told} == {f"agent:{NAME}"}


async def test_naming_the_next_run_is_told(desk: Desk) -> None:
    """Whoever reads the events sees who brought a run forward or put it off, and why."""
    async with desk.stdio() as session:
        own = await called(session, "create_loop", instruction="Look.")
        await called(session, "schedule_next_run", id=own.structured_content["loop"]["id"], delay="1h", reason="calm")
        every = await called(session, "create_loop", instruction="Look.", interval="1h")
        await called(session, "pause_loop", id=own.structured_content["loop"]["id"])
        await called(session, "run_loop_now", id=every.structured_content["loop"]["id"], reason="urgent")

    told = desk.product.events("loop.scheduled")
    assert [(event["actor"], event["reason"]) for event in told] == [
        (f"agent:{NAME}", "calm"),
        (f"agent:{NAME}", "urgent"),
    ]
    assert told[1]["detail"].endswith(": now")


async def test_no_other_sessions_loop_exists_to_an_agent(both: Desk) -> None:
    """It is neither listed nor found, and nothing happens to it."""
    made = both.product.cli("loop", "create", OTHER, "--instruction", "Look.", "--interval", "5m", "--json").json[
        "loop"
    ]
    async with both.stdio() as session:
        listed = await called(session, "list_loops")
        refused = [
            await called(session, name, id=made["id"])
            for name in ("stop_loop", "pause_loop", "resume_loop", "run_loop_now")
        ]
        refused.append(await called(session, "schedule_next_run", id=made["id"], delay=60, reason="mine"))

    assert listed.structured_content["loops"] == []
    assert {error_of(result) for result in refused} == {"unknown_loop"}
    [kept] = both.product.cli("loop", "list", OTHER, "--json").json["loops"]
    assert kept == made


async def test_what_is_no_loop_is_refused_with_the_rule(desk: Desk) -> None:
    """The bounds are those of `the-loop loop`, and a sixth loop is one too many."""
    wrong: list[dict[str, Any]] = [
        {"instruction": ""},
        {"instruction": "x" * 4_001},
        {"instruction": "Look.", "interval": "1s"},
        {"instruction": "Look.", "interval": "soon"},
        {"instruction": "Look.", "interval": "5m", "cron": "* * * * *"},
        {"instruction": "Look.", "keep_alive": True},
        {"instruction": "Look.", "interval": "5m", "max_runs": 0},
        {"instruction": "Look.", "interval": "5m", "max_runs": 10**300},
    ]
    async with desk.stdio() as session:
        refused = [await called(session, "create_loop", **arguments) for arguments in wrong]
        made = [await called(session, "create_loop", instruction="Look.", interval="1h") for _ in range(6)]

    assert {error_of(result) for result in refused} == {"invalid_value"}
    assert [error_of(result) for result in made] == ["", "", "", "", "", "too_many_loops"]


async def test_a_tick_names_the_tools_that_the_agent_has(desk: Desk) -> None:
    """It is told to stop its loop by the tool, not by a command."""
    async with desk.stdio() as session:
        made = await called(session, "create_loop", instruction="Look about you.", interval="30s")
        await called(session, "run_loop_now", id=made.structured_content["loop"]["id"])

    wait_until(lambda: any("Look about you." in text for text in desk.product.taken()), "the tick is taken")
    [tick] = [text for text in desk.product.taken() if "Look about you." in text]
    assert "the tool stop_loop" in tick
    assert "the-loop loop stop" not in tick
