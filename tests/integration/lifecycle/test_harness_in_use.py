"""A session runs the harness that it was started with, whatever the configuration's default is by now."""

from dataclasses import replace

from core.delivery.deliverer import Deliverer, waits_long
from core.lifecycle.announce import blind_program
from core.lifecycle.look import get_standing
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.message import MessageState
from core.model.session import Outcome
from core.session.sessions import traits_of
from core.session.system import System
from tests.support.world import ACTOR, World, outcomes, recorded, waiting_message


def test_row_shows_what_runs(world: World, system: System) -> None:
    """The default has changed, or cannot be read any more: the row names the program in the pane."""
    start_standing(system, "scribe", ACTOR)

    later = replace(world, harness="missing").system()

    assert recorded(later, "scribe").harness_in_use == "script"
    assert get_standing(later, "scribe").harness == "script"


def test_next_start_takes_the_new_default_and_no_conversation_of_the_old(world: World, system: System) -> None:
    """What one harness has said is nothing that another can take up."""
    start_standing(system, "scribe", ACTOR)
    before = recorded(system, "scribe").harness_session_id
    later = replace(world, harness="bundled").system()
    stop_standing(later, "scribe", ACTOR)

    started = start_standing(later, "scribe", ACTOR)

    assert outcomes(started) == {"scribe": Outcome.STARTED}
    assert started.sessions[0].harness == "bundled"
    assert recorded(later, "scribe").harness_session_id != before
    stop_standing(later, "scribe", ACTOR)


def test_what_a_session_can_do_is_what_its_program_can(world: World, system: System) -> None:
    """Its traits, and whether it reports anything, are those of the program that runs, not of the default by now."""
    start_standing(system, "scribe", ACTOR)

    later = replace(world, harness="bundled").system()
    record = recorded(later, "scribe")

    assert traits_of(later.settings, later.harnesses, record) == later.harnesses.get("script").traits
    assert traits_of(later.settings, later.harnesses, record) != later.harnesses.get("bundled").traits
    assert blind_program(later.settings, later.harnesses, record) == "script"


def test_message_for_a_program_that_the_service_does_not_know_waits_and_says_why(world: World, system: System) -> None:
    """Its key came into the configuration after the service had begun: a restart of that takes it over."""
    start_standing(system, "scribe", ACTOR)
    earlier = world.system(world.settings()._replace(harnesses={}))
    message = waiting_message(system, "scribe")

    due = Deliverer(earlier).advance(recorded(system, "scribe").uid)

    row = system.inbox.get(message.id)
    assert row is not None
    assert due is not None
    assert row.state is MessageState.QUEUED
    assert waits_long(row)
    assert "still uses the configuration of " in row.detail
    assert "there is no harness 'script'" in row.detail
    assert row.detail.endswith("`the-loop restart` applies the current file")
