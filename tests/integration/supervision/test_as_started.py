"""What the service brings back is what was started, also by a configuration that is newer than the service's."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.lifecycle.look import get_standing
from core.lifecycle.start import start_standing
from core.model.session import HoldKind, Outcome
from core.session.system import System
from tests.integration.supervision.conftest import Supervised, back, crash, restarting, with_sessions
from tests.support.talking import settings_of
from tests.support.tmux import PrivateTmux, wait_until
from tests.support.world import ACTOR, World, events, outcomes, recorded

ENDS: dict[str, Callable[[System, PrivateTmux], object]] = {
    "a crash": lambda system, _: crash(system),
    "a lost server": lambda _, private: private.tmux("kill-server"),
}


@pytest.fixture
def newer(world: World) -> Iterator[System]:
    """Give the ports of a command that reads the file as it is now: its default is another harness."""
    system = restarting(world.system(settings_of(world, "mute")))
    yield system
    system.close()


@pytest.fixture
def unaware(world: World) -> Iterator[System]:
    """Give the ports of a service whose configuration knows nothing of that harness."""
    system = restarting(world.system(settings_of(world)._replace(harnesses={})))
    yield system
    system.close()


@pytest.mark.parametrize("end", ENDS)
def test_a_session_comes_back_as_the_program_that_was_started(
    system: System, newer: System, private: PrivateTmux, end: str
) -> None:
    """The service's own default, and its older entry of the session, are not what the record says is in use."""
    entry = newer.settings.standing.sessions[0]
    newer = with_sessions(newer, replace(entry, description="newer"))
    start_standing(newer, "scribe", ACTOR)
    before = recorded(newer, "scribe")
    service = Supervised(restarting(system)).start()

    ENDS[end](newer, private)
    wait_until(lambda: back(newer, before), "it is back")
    service.stop()

    after = recorded(newer, "scribe")
    assert (after.harness_in_use, after.definition) == ("mute", before.definition)


@pytest.mark.parametrize("end", ENDS)
def test_a_program_that_the_service_does_not_know_is_not_replaced_by_another(
    unaware: System, newer: System, private: PrivateTmux, end: str
) -> None:
    """The session is held at once, with the reason and the remedy, and none of the hour's restarts is used up."""
    start_standing(newer, "scribe", ACTOR)
    before = recorded(newer, "scribe")
    service = Supervised(unaware).start()

    ENDS[end](newer, private)
    wait_until(lambda: recorded(newer, "scribe").hold or back(newer, before), "it is held, or back")
    wait_until(lambda: not newer.exit_ledger.due(), "nothing is due any more")
    service.stop()

    row = get_standing(newer, "scribe")
    assert recorded(newer, "scribe").instance_id == before.instance_id
    assert row.hold is not None
    assert row.hold.kind is HoldKind.FAILED
    assert "'mute' is unknown to the running service's configuration" in row.hold.reason
    assert "`the-loop restart`" in row.hold.reason
    assert len(events(newer, "standing.held")) == 1
    assert newer.exit_ledger.restarts(before.uid, datetime.now(UTC) - timedelta(hours=1)) == ()
    again = start_standing(newer, "scribe", ACTOR)
    assert outcomes(again) == {"scribe": Outcome.STARTED}
    assert recorded(newer, "scribe").harness_in_use == "mute"
