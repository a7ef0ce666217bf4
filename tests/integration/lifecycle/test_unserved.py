"""What a start says where no service runs, and something of the session needs one."""

from dataclasses import replace
from datetime import timedelta

import pytest

from core.base.files import private_folder
from core.lifecycle.create import create_standing
from core.lifecycle.start import start_standing
from core.model.session import Idle, Outcome, Restart
from core.process.presence import ServiceLock
from core.session.system import System
from tests.support.world import ACTOR, World, definition


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"slack": True}, "its thread"),
        ({"restart": Restart.ON_FAILURE}, "its restart"),
        ({"idle": Idle(timedelta(hours=1))}, "its idle.stopAfter"),
    ],
    ids=["thread", "restart", "idle"],
)
def test_what_needs_a_service_is_named_with_the_command(world: World, changes: dict[str, object], named: str) -> None:
    """The session is up; that its thread or restart waits is said, by create and by start."""
    system = replace(world, slack=True).system()
    wanted = definition("extra", **changes)

    created = create_standing(system, wanted, ACTOR)
    again = start_standing(system, "extra", ACTOR)

    assert [row.outcome for row in (*created.sessions, *again.sessions)] == [Outcome.STARTED, Outcome.ALREADY_RUNNING]
    for row in (*created.sessions, *again.sessions):
        assert named in row.detail
        assert "start`" in row.detail


def test_declared_loops_wait_for_a_service(world: World) -> None:
    """The service makes and runs them."""
    system = replace(world, loops=True).system()

    started = start_standing(system, "scribe", ACTOR)

    assert "its loops" in started.sessions[0].detail


def test_a_session_that_needs_none_says_nothing_of_it(system: System) -> None:
    """One that is only spoken to at the terminal is whole without a service."""
    created = create_standing(system, definition("extra"), ACTOR)

    assert "service" not in created.sessions[0].detail


def test_where_a_service_runs_nothing_is_missing(system: System) -> None:
    """What is kept by it needs no word."""
    private_folder(system.paths.local)
    lock = ServiceLock(system.paths.service_lock)
    lock.take()
    try:
        created = create_standing(system, definition("extra", restart=Restart.ON_FAILURE), ACTOR)
    finally:
        lock.release()

    assert "service" not in created.sessions[0].detail
