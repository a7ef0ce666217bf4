"""A process that is killed while the gate keeps a tick out leaves what the next one goes on from."""

from collections.abc import Callable

import pytest

from core.base.failpoints import Failpoint
from core.lifecycle.exits import tell_end
from core.model.loop import Held, RunState
from core.model.message import MessageState
from core.model.session import Hold, HoldKind, LastExit
from tests.integration.lifecycle.machine import Killed, crashing
from tests.support.simulated import Simulation
from tests.support.world import events


def busy(simulation: Simulation) -> None:
    """Let a turn run."""
    simulation.tmux.panes["i-scribe"].begin("something long")
    simulation.system.ingest("s-scribe")


def paused(simulation: Simulation) -> None:
    """Mark the session as paused."""
    simulation.change(hold=Hold(HoldKind.PAUSED, "cli:ann", "", simulation.clock.now()))


def crashed(simulation: Simulation) -> None:
    """Let the agent crash, and the end be told."""
    pane = simulation.tmux.panes["i-scribe"]
    pane.dead, pane.exit = True, LastExit(None, 9)
    assert tell_end(simulation.system, "scribe", "i-scribe", patient=False)


SITUATIONS: dict[str, tuple[Callable[[Simulation], None], tuple[int, int, Held | None, MessageState]]] = {
    "deferred": (busy, (1, 0, None, MessageState.QUEUED)),
    "held": (paused, (0, 0, Held.PAUSED, MessageState.CANCELLED)),
    "failed": (crashed, (0, 1, None, MessageState.FAILED)),
}


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_the_gates_word_is_carried_out_once(simulation: Simulation, situation: str, side: str) -> None:
    """Tick, run and loop move together, or none of them does."""
    bring_about, expected = SITUATIONS[situation]
    loop = simulation.loop()
    bring_about(simulation)
    simulation.clock.pause(301)
    simulation.scheduler.turn()
    [run] = simulation.system.loops.open_runs()

    with pytest.raises(Killed), crashing(f"{Failpoint.LOOP_GATE.value}:{side}"):
        simulation.deliver()
    again = simulation.restarted()
    again.deliver()

    after, row = again.now(loop), again.system.inbox.get(run.message_id)
    assert row is not None
    assert (after.deferrals, after.failures, after.held, row.state) == expected
    told = len(events(simulation.system, f"loop.{situation}"))
    assert told == 1
    over = [run.state for run in again.system.loops.open_runs()]
    assert over == ([RunState.SENT] if situation == "deferred" else [])


def test_a_settled_turn_and_its_loop_move_together(simulation: Simulation) -> None:
    """The report that ends a turn is taken in with what it settles, or not at all."""
    loop = simulation.dynamic()
    simulation.pass_time(minutes=6)
    simulation.tmux.panes["i-scribe"].finish()
    record = simulation.change()
    real = simulation.system.loops.change

    def killed(*_: object, **__: object) -> None:
        raise Killed

    simulation.system.loops.change = killed  # type: ignore[method-assign]
    with pytest.raises(Killed):
        simulation.system.ingest(record.uid)
    simulation.system.loops.change = real  # type: ignore[method-assign]
    between = simulation.now(loop)
    activity = simulation.system.activities.get(record.uid)
    simulation.restarted().system.ingest(record.uid)

    assert between.ended_at is None
    assert activity is not None
    assert activity.state.value == "busy"
    assert simulation.now(loop).ended_at is not None
