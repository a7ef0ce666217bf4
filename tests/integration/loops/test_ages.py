"""Ordinary loops grow old: one last run, or none where nothing fires, and always a word about it."""

from datetime import timedelta
from pathlib import Path

from core.config.settings import LoopSettings
from core.model.loop import Held, LoopStatus
from core.model.session import Hold, HoldKind
from tests.support.simulated import Simulation, settings_of, simulated
from tests.support.world import events


def test_one_that_is_paused_ends_without_a_fire(simulation: Simulation) -> None:
    """With the event, when its age comes."""
    loop = simulation.loop()
    simulation.system.loops.change(loop, status=LoopStatus.PAUSED)

    simulation.pass_time(step=3600, days=7)

    after = simulation.now(loop)
    assert (after.status, after.reason, after.run_count) == (LoopStatus.STOPPED, "it expired after 7d", 0)
    assert simulation.prompts() == []
    assert len(events(simulation.system, "loop.expired")) == 1


def test_one_whose_session_is_held_ends_without_a_fire(simulation: Simulation) -> None:
    """The session stays as it is."""
    loop = simulation.loop()
    simulation.change(hold=Hold(HoldKind.PAUSED, "cli:ann", "", simulation.clock.now()))

    simulation.pass_time(step=3600, days=6)
    held = simulation.now(loop)
    simulation.pass_time(step=3600, days=1)

    assert held.held is Held.PAUSED
    assert simulation.now(loop).status is LoopStatus.STOPPED
    assert simulation.prompts() == []


def test_one_that_is_paused_and_kept_alive_stays(simulation: Simulation) -> None:
    """Only its agent, an operator or its number of runs ends it."""
    loop = simulation.loop(keep_alive=True)
    simulation.system.loops.change(loop, status=LoopStatus.PAUSED)

    simulation.pass_time(step=6 * 3600, days=30)

    assert simulation.now(loop).status is LoopStatus.PAUSED


def test_an_age_of_nothing_is_no_age(tmp_path: Path) -> None:
    """maxAgeDays: 0."""
    settings = settings_of(tmp_path / "state")._replace(loops=LoopSettings(max_age_days=0))
    simulation = simulated(tmp_path / "state", settings=settings)
    simulation.session()
    loop = simulation.loop(interval=timedelta(days=1), next_run_at=simulation.clock.now() + timedelta(days=1))

    simulation.pass_time(step=6 * 3600, days=20, finish=["scribe"])

    after = simulation.now(loop)
    simulation.system.close()
    assert (after.status, after.run_count) == (LoopStatus.ACTIVE, 20)


def test_the_last_run_of_one_that_slept_past_its_age_is_still_given(simulation: Simulation) -> None:
    """The service was down when the age came: at the first due slot after it."""
    loop = simulation.loop()
    simulation.clock.pause(9 * 24 * 3600)

    simulation.turn()

    assert simulation.now(loop).status is LoopStatus.STOPPED
    assert simulation.now(loop).run_count == 1
    assert "last run: it is too old" in simulation.prompts()[0]
