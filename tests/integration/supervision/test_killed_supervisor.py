"""kill -9 of the service before and after each effect of its supervisor; the next service comes to the same end."""

import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest

from core.base.failpoints import Failpoint
from core.lifecycle.look import get_standing
from core.model.session import HoldKind, Live, Status
from core.session.system import System
from tests.integration.supervision.conftest import crash, notes, up
from tests.support.killed import run_until
from tests.support.supervising import Stepped, watched_system
from tests.support.tmux import wait_until
from tests.support.world import World, events, recorded

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Scenario:
    """What there is to supervise, which effects that has, and what it comes to."""

    prepare: Callable[[System], None]
    effects: tuple[Failpoint, ...]
    over: Callable[[System], bool]
    check: Callable[[System], None]


def crashed(system: System) -> None:
    """`scribe` is up, and crashes."""
    up(system, "scribe")
    crash(system)


def crashed_too_often(system: System) -> None:
    """It crashes, and the hour has had its restarts."""
    up(system, "scribe")
    for minute in range(5):
        system.exit_ledger.count_restart(recorded(system, "scribe").uid, datetime.now(UTC) - timedelta(minutes=minute))
    crash(system)


def idle(system: System) -> None:
    """`sleeper` has nothing to do."""
    up(system, "sleeper")


def cannot_start(system: System) -> None:
    """It crashes, and its folder is gone."""
    crashed_too_often(system)
    record = recorded(system, "scribe")
    system.exit_ledger.tell(record.instance_id or "", record.uid, datetime.now(UTC), datetime.now(UTC))
    (system.paths.root.parent / "cwd").rmdir()


def is_back(system: System) -> bool:
    """Return whether it runs again."""
    return get_standing(system, "scribe").live is Live.LIVE and recorded(system, "scribe").phase.value == "settled"


def check_back(system: System) -> None:
    """One pane, one note, and no restart that was not counted."""
    assert len(system.runner.survey().panes) == 1
    assert len(notes(system, "has ended")) == 1
    assert 1 <= len(system.exit_ledger.restarts(recorded(system, "scribe").uid, datetime.now(UTC) - HOUR)) <= 2
    assert 1 <= len(events(system, "standing.exited")) <= 2


def check_held(system: System) -> None:
    """The mark, its file, one note that names it, and the events."""
    record = recorded(system, "scribe")
    assert record.hold is not None
    assert record.hold.kind is HoldKind.FAILED
    assert (system.paths.session(record.uid) / "hold").exists()
    assert len(notes(system, "held as failed")) == 1
    assert 1 <= len(events(system, "standing.held")) <= 2
    assert system.exit_ledger.due() == ()


def check_collected(system: System) -> None:
    """Announced, told, audited, stopped, unheld."""
    record = recorded(system, "sleeper")
    assert (record.status, record.hold, record.phase.value) == (Status.STOPPED, None, "settled")
    assert len(notes(system, "will be stopped at", "sleeper")) == 1
    assert len(notes(system, "is stopped", "sleeper")) == 1
    assert 1 <= len(events(system, "standing.collected")) <= 2
    assert not events(system, "standing.exited")


def check_down(system: System) -> None:
    """It stays down, and the thread is told why."""
    assert system.exit_ledger.due() == ()
    assert len(notes(system, "was not restarted")) == 1


SCENARIOS = {
    "crash": Scenario(
        crashed,
        (Failpoint.WATCH_RECORD, Failpoint.WATCH_TELL, Failpoint.WATCH_COUNT, Failpoint.WATCH_PUT_OFF),
        is_back,
        check_back,
    ),
    "too often": Scenario(
        crashed_too_often,
        (Failpoint.WATCH_HOLD, Failpoint.WATCH_RECORD, Failpoint.WATCH_TELL),
        lambda system: recorded(system, "scribe").hold is not None and bool(notes(system, "held as failed")),
        check_held,
    ),
    "idle": Scenario(
        idle,
        (Failpoint.WATCH_ANNOUNCE, Failpoint.WATCH_TELL),
        lambda system: (
            get_standing(system, "sleeper").live is Live.ABSENT and bool(notes(system, "is stopped", "sleeper"))
        ),
        check_collected,
    ),
    "cannot start": Scenario(
        cannot_start,
        (Failpoint.WATCH_COUNT, Failpoint.WATCH_PUT_OFF),
        lambda system: bool(notes(system, "was not restarted")),
        check_down,
    ),
}
POINTS = [
    pytest.param(scenario, effect, side, id=f"{label}-{effect.value}:{side}")
    for label, scenario in SCENARIOS.items()
    for effect in scenario.effects
    for side in ("before", "after")
]


def test_every_effect_of_the_supervisor_is_walked() -> None:
    """An effect that no scenario has would never be crashed."""
    walked = {effect for scenario in SCENARIOS.values() for effect in scenario.effects}

    assert walked == {effect for effect in Failpoint if effect.value.startswith("watch.")}


@pytest.mark.parametrize(("scenario", "effect", "side"), POINTS)
def test_a_killed_service_is_taken_up_where_it_was(
    world: World, scenario: Scenario, effect: Failpoint, side: str
) -> None:
    """Never two panes, two notes or a lost end; what was decided is done."""
    world = replace(world, declared=())
    system = watched_system(world)
    scenario.prepare(system)

    kill_at(world, f"{effect.value}:{side}")
    next_service = Stepped(system)
    wait_until(lambda: _stepped(next_service, system, scenario), "the next service finishes it")

    scenario.check(system)
    next_service.step()
    scenario.check(system)
    system.close()


def _stepped(service: Stepped, system: System, scenario: Scenario) -> bool:
    # An attempt whose outcome nobody recorded is made again after a minute, which no test waits for.
    for end in system.exit_ledger.due():
        system.exit_ledger.put_off(end.instance, datetime.now(UTC))
    service.step()
    return scenario.over(system)


def kill_at(world: World, point: str) -> None:
    """Run a service that kills itself there."""
    ended = run_until(point, world.folder, "supervising", str(world.save()), "50")
    assert ended.code == -signal.SIGKILL, ended.output
