"""What is done for several sessions is done together: nobody's grace, and no silence of tmux, is waited for in turn."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from core.lifecycle.everything import start_all
from core.lifecycle.recover import reconcile
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.rows import Answer
from core.model.session import HoldKind, LastExit, Outcome, Phase, Status
from core.session.system import System
from tests.support.tmux import PATIENCE, Counted, PrivateTmux, alive, wait_until
from tests.support.world import ACTOR, World, outcomes, recorded

ROOT = Path(__file__).parents[3]
NAMES = ("scribe", "scribe-two", "third")


@pytest.fixture
def world(world: World) -> World:
    """Give a world of three sessions whose agents may take their time to end."""
    return replace(world, declared=NAMES, grace_seconds=PATIENCE)


@pytest.fixture
def started(world: World) -> System:
    """Give its ports with all three up, each of which ends only once all were told to."""
    system = world.system()
    assert start_standing(system, None, ACTOR).ok
    (world.store / "together").write_text(str(len(NAMES)))
    return system


def told(world: World) -> int:
    """Return how many agents were told to end."""
    return sum(line.startswith("term ") for line in world.log())


def test_a_stop_of_all_asks_all_before_it_waits(started: System) -> None:
    """Each of these agents ends once every one was asked; none is killed while others have not been told."""
    answer = stop_standing(started, None, ACTOR)

    assert set(outcomes(answer).values()) == {Outcome.STOPPED}
    assert [recorded(started, name).last_exit for name in NAMES] == [LastExit(143, None)] * 3
    assert started.runner.survey().panes == ()


def test_stops_that_were_cut_short_are_finished_together(started: System) -> None:
    """Whoever comes after three stops that were killed ends all three at once."""
    for name in NAMES:
        started.records.write(replace(recorded(started, name), phase=Phase.STOPPING, status=Status.STOPPED))

    done = reconcile(started, ACTOR)

    assert [one.after for one in done] == [Phase.SETTLED] * 3
    assert [recorded(started, name).last_exit for name in NAMES] == [LastExit(143, None)] * 3


@pytest.mark.parametrize("start", [start_all, lambda system, actor: start_standing(system, None, actor)])
def test_starts_clear_what_is_left_together(world: World, start: Callable[[System, str], Answer]) -> None:
    """What outlived its tmux server is ended together before any new agent comes up."""
    system = world.system()
    (world.store / "clinging").touch()
    assert start_standing(system, None, ACTOR).ok
    (world.store / "together").write_text(str(len(NAMES)))
    survey = system.runner.survey()
    assert survey.server is not None
    os.kill(survey.server, signal.SIGKILL)
    wait_until(lambda: not alive(survey.server or 0), "the server is gone")

    answer = start(system, ACTOR)

    assert set(outcomes(answer).values()) == {Outcome.RESUMED}
    assert sum(line.startswith("ended ") for line in world.log()) == len(NAMES)
    assert [pane.pid for pane in survey.panes if alive(pane.pid)] == []


def test_a_stop_marks_and_signals_without_waiting_for_tmux(world: World, private: PrivateTmux) -> None:
    """With a frozen tmux the marks are there and the agents are told at once, and Ctrl-C leaves both as they are."""
    world = replace(world, command_seconds=PATIENCE * 3)
    system = world.system()
    assert start_standing(system, None, ACTOR).ok
    pids = [pane.pid for pane in system.runner.survey().panes]
    command = [sys.executable, "-m", "tests.support.world", str(world.save()), "stop", "scribe"]

    with private.frozen():
        stopping = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: recorded(system, "scribe").phase is Phase.STOPPING, "it is marked")
            wait_until(lambda: told(world) == 1, "it is told to end")
            wait_until(lambda: sum(map(alive, pids)) == len(NAMES) - 1, "it has ended")
            stopping.send_signal(signal.SIGINT)
            code = stopping.wait(PATIENCE)
        finally:
            stopping.kill()
            stopping.wait()
        record = recorded(system, "scribe")

    assert code != 0
    assert record.hold is not None
    assert (record.hold.kind, record.phase, record.generation) == (HoldKind.STOPPED, Phase.STOPPING, 2)
    reconcile(system, ACTOR)
    assert recorded(system, "scribe").phase is Phase.SETTLED


@pytest.mark.parametrize(("verb", "questions"), [("stop", 2), ("start", 1), ("start-all", 1), ("reconcile", 1)])
def test_a_silent_tmux_is_asked_for_all_at_once(
    world: World, private: PrivateTmux, tmp_path: Path, verb: str, questions: int
) -> None:
    """However many sessions there are: its deadline is waited out once, and each row says so."""
    start_standing(world.system(), None, ACTOR)
    counted = Counted(tmp_path / "counted")
    world = replace(world, command_seconds=1.0, grace_seconds=1.0)
    command = [sys.executable, "-m", "tests.support.world", str(world.save()), verb]

    with private.frozen():
        done = subprocess.run(
            command,
            cwd=ROOT,
            capture_output=True,
            text=True,
            env={**os.environ, **counted.environ(os.environ)},
            check=False,
        )

    assert done.stderr == ""
    assert 0 < counted.questions() <= questions
    assert done.stdout.count('"unconfirmed"') == (0 if verb == "reconcile" else len(NAMES))
