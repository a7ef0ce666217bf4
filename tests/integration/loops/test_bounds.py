"""What an agent's own loops may cost: how often it prompts itself, and how much it reads of them."""

from datetime import timedelta

import pytest

from core.base.errors import Refused
from core.loops.verbs import (
    LOOPS_AN_HOUR,
    Asker,
    create_loop,
    list_loops,
    pause_loop,
    resume_loop,
    run_loop_now,
    stop_loop,
)
from core.model.loop import LoopRequest, LoopStatus
from tests.support.simulated import Simulation

AGENT, ANN = Asker("agent:scribe", "s-scribe"), Asker("cli:ann")
LEAST = timedelta(seconds=30)  #: loops.minInterval as it is by default


def a_second(simulation: Simulation) -> None:
    """Let what is due go in, and its turn end within a second."""
    simulation.turn()
    simulation.clock.pause(1)
    simulation.finish()
    simulation.turn()


def test_an_agent_brings_its_next_run_no_closer_than_the_least_interval(simulation: Simulation) -> None:
    """However often it says so; an operator has a run at once."""
    loop = create_loop(simulation.system, AGENT, "", LoopRequest("look", interval="5m")).loop
    assert loop is not None
    for _ in range(60):
        answer = run_loop_now(simulation.system, AGENT, loop.id)
        a_second(simulation)
    own = simulation.now(loop).run_count

    run_loop_now(simulation.system, ANN, loop.id)
    a_second(simulation)

    assert own in (2, 3)
    assert f"{loop.id} is due at " in answer.said
    assert "30s after its last run, which is the minimum (loops.minInterval)" in answer.said
    assert simulation.now(loop).run_count == own + 1


def test_new_loops_of_an_agent_prompt_it_no_more_often(simulation: Simulation) -> None:
    """Each would run at once, and end with its turn: the first does, the next after the least interval."""
    for _ in range(60):
        if len(
            list_loops(simulation.system.settings, simulation.system.records, simulation.system.loops, AGENT).loops
        ) == 0 or not _open(simulation):
            create_loop(simulation.system, AGENT, "", LoopRequest("look"))
        a_second(simulation)

    assert len(simulation.prompts()) in (2, 3)


def test_a_pause_in_its_turn_brings_no_run_closer(simulation: Simulation) -> None:
    """One without a cadence is due when it is resumed, but not at once."""
    loop = create_loop(simulation.system, AGENT, "", LoopRequest("look")).loop
    assert loop is not None
    simulation.turn()
    ran = simulation.now(loop).last_run_at
    pause_loop(simulation.system, AGENT, loop.id)

    resume_loop(simulation.system, AGENT, loop.id)

    assert ran is not None
    assert simulation.now(loop).next_run_at == ran + LEAST


def test_an_answer_has_the_open_loops_and_the_latest_ends(simulation: Simulation) -> None:
    """An agent reads each answer: one that has made many pays for ten of those that are over."""
    for number in range(15):
        ended = create_loop(simulation.system, AGENT, "", LoopRequest(f"look at {number}", interval="5m")).loop
        assert ended is not None
        simulation.clock.pause(1)
        answer = stop_loop(simulation.system, AGENT, ended.id)
    kept = create_loop(simulation.system, AGENT, "", LoopRequest("keep", interval="5m")).loop

    listed = list_loops(simulation.system.settings, simulation.system.records, simulation.system.loops, AGENT)

    assert kept is not None
    assert [loop.instruction for loop in listed.loops] == ["keep", *(f"look at {number}" for number in range(5, 15))]
    assert len(answer.loops) == 10
    assert answer.loops[-1] == answer.loop


def test_an_agent_makes_so_many_loops_an_hour(simulation: Simulation) -> None:
    """Each end is told in its thread: it could fill that, as with posts. An operator's are not counted."""
    for _ in range(LOOPS_AN_HOUR):
        made = create_loop(simulation.system, AGENT, "", LoopRequest("look", interval="5m")).loop
        assert made is not None
        stop_loop(simulation.system, AGENT, made.id)

    with pytest.raises(Refused, match="has made 20 loops within the last hour"):
        create_loop(simulation.system, AGENT, "", LoopRequest("look", interval="5m"))
    assert create_loop(simulation.system, ANN, "scribe", LoopRequest("look", interval="5m")).loop is not None
    simulation.clock.pause(3601)
    assert create_loop(simulation.system, AGENT, "", LoopRequest("look", interval="5m")).loop is not None


def _open(simulation: Simulation) -> bool:
    loops = list_loops(simulation.system.settings, simulation.system.records, simulation.system.loops, AGENT).loops
    return any(loop.status is LoopStatus.ACTIVE for loop in loops)
