"""When a start says that its program reads."""

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from core.base.clock import Deadline
from core.harness.gemini.adapter import GeminiHarness
from core.lifecycle.spawn import Opened
from core.lifecycle.start import FirstDialogs, Looks, Seen
from tests.support.simulated import Simulation, simulated

INPUT = f"{'─' * 40}\n > Type your message or @path/to/file\n{'▀' * 40}\n"


class Processes:
    """All live."""

    def alive(self, pid: int) -> bool:
        """Return that it does."""
        return True


@pytest.fixture
def simulation(tmp_path: Path) -> Simulation:
    """A the-loop with one session, whose program has said that it reads."""
    simulation = simulated(tmp_path / "state")
    system = replace(simulation.system, processes=cast(Any, Processes()))
    return replace(simulation, system=system)


def seen(simulation: Simulation, *, boot_early: bool, seconds: float = 10) -> Seen | None:
    """Return what a start sees of a Gemini CLI in the session's pane."""
    system, record = simulation.system, simulation.system.records.read("scribe")
    assert record is not None
    harness = GeminiHarness({"HOME": "/nowhere"})
    harness.traits = replace(harness.traits, boot_early=boot_early)
    given = {"record": record, "harness": harness, "deadline": Deadline(simulation.clock, seconds)}
    context = type("Context", (), {"instance": record.instance_id, "spool": system.paths.spool_of("i-scribe")})
    opened = cast(Opened, type("One", (), {**given, "context": context, "pane": type("Pane", (), {"pid": 1})}))
    return Looks(system, [opened], FirstDialogs(system)).at(opened)


def test_a_boot_hook_that_comes_early_is_believed_once_the_screen_agrees(simulation: Simulation) -> None:
    """What is typed before that is lost, or waits without a service for ever; after its time it is believed anyway."""
    simulation.session()
    pane = simulation.tmux.panes["i-scribe"]
    pane.shown = "loading the conversation"
    early, late = seen(simulation, boot_early=True), seen(simulation, boot_early=True, seconds=0)
    pane.shown = INPUT

    assert (early, late, seen(simulation, boot_early=True)) == (None, Seen.READY, Seen.READY)


def test_any_other_boot_hook_is_believed_at_once(simulation: Simulation) -> None:
    """Its screen is not looked at."""
    simulation.session()
    simulation.tmux.panes["i-scribe"].shown = "loading"

    assert seen(simulation, boot_early=False) is Seen.READY
