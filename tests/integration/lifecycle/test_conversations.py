"""What becomes of a conversation that a start does not take up: it is named, kept, and taken up again if it can be."""

from dataclasses import replace
from pathlib import Path

import pytest

from core.base.errors import InvalidValue, UnknownSession
from core.lifecycle.create import create_standing, delete_standing
from core.lifecycle.exits import SUPERVISOR, tell_end
from core.lifecycle.history import history_of
from core.lifecycle.look import get_standing
from core.lifecycle.pause import change_conversation
from core.lifecycle.recover import reconcile
from core.lifecycle.spawn import StartOrder
from core.lifecycle.start import begin_each, start_each, start_standing
from core.lifecycle.stop import stop_standing
from core.model.message import Kind
from core.model.session import Binding, Definition, Fresh, Left, Outcome, SessionRecord
from core.session.system import System
from tests.support.simulated import simulated
from tests.support.tmux import wait_until
from tests.support.world import ACTOR, World, declaring, definition, events, kill_and_wait, outcomes, recorded
from tests.unit.store.samples import NOON


@pytest.fixture
def stopped(system: System) -> SessionRecord:
    """Give the record of a session that has a conversation and is stopped."""
    start_standing(system, "scribe", ACTOR)
    stop_standing(system, "scribe", ACTOR)
    return recorded(system, "scribe")


def pending_boots(system: System) -> list[str]:
    """Return the states of the session's boot prompts that no turn is known to have taken."""
    rows = system.inbox.unsettled(recorded(system, "scribe").uid)
    return [row.state.value for row in rows if row.message.kind is Kind.BOOT]


def test_program_that_fails_for_a_while_keeps_the_conversation(
    system: System, world: World, stopped: SessionRecord
) -> None:
    """Neither the resume nor the fresh try comes up; once the program is mended the old conversation goes on."""
    old = stopped.harness_session_id
    (world.store / "broken").touch()
    failed = start_standing(system, "scribe", ACTOR)
    again = start_standing(system, "scribe", ACTOR)
    kept = recorded(system, "scribe").harness_session_id
    (world.store / "broken").unlink()

    mended = start_standing(system, "scribe", ACTOR)

    assert [outcomes(answer)["scribe"] for answer in (failed, again)] == [Outcome.FAILED] * 2
    assert f"its conversation {old} is kept" in failed.sessions[0].detail
    assert (failed.sessions[0].harness_session_id, kept) == (old, old)
    assert all(f"the old id was {old}" in event["reason"] for event in events(system, "standing.resume_failed"))
    assert (outcomes(mended), recorded(system, "scribe").harness_session_id) == ({"scribe": Outcome.RESUMED}, old)
    assert world.log()[-1] == f"resume {old}"
    assert (recorded(system, "scribe").fresh, mended.sessions[0].detail) == (None, "")


def test_conversation_that_is_taken_up_again_gets_no_second_boot_prompt(
    system: System, world: World, stopped: SessionRecord
) -> None:
    """The boot prompt of the fresh try that failed goes with it."""
    (world.store / "broken").touch()
    start_standing(system, "scribe", ACTOR)
    (world.store / "broken").unlink()

    start_standing(system, "scribe", ACTOR)

    assert pending_boots(system) == []
    assert len(events(system, "standing.resume_failed")) == 1


def test_program_that_fails_unattended_keeps_the_conversation_and_its_thread_names_it(
    system: System, world: World, stopped: SessionRecord
) -> None:
    """Whoever brings it back unasked loses nothing either."""
    old = stopped.harness_session_id
    system.bindings.bind(Binding("slack", "T1", "C1", "1.1", stopped.uid, "scribe", system.clock.now()))
    start_standing(system, "scribe", ACTOR)
    kill_and_wait(system, system.runner.survey().panes[0].pid)
    (world.store / "broken").touch()
    order = StartOrder(SUPERVISOR, "brought back", skip_held=True, after=recorded(system, "scribe").instance_id)
    failed = start_each(system, ["scribe"], order)
    instance = recorded(system, "scribe").instance_id or ""
    tell_end(system, "scribe", instance, patient=False)
    (world.store / "broken").unlink()

    mended = start_each(system, ["scribe"], replace(order, after=instance))

    assert outcomes(failed) == {"scribe": Outcome.FAILED}
    [note] = [row.post.text for row in system.outbox.due("slack", system.clock.now()) if "has ended" in row.post.text]
    assert f"instead of {old}" in note
    assert (outcomes(mended), recorded(system, "scribe").harness_session_id) == ({"scribe": Outcome.RESUMED}, old)


def test_fresh_try_that_was_cut_short_keeps_the_conversation(
    system: System, world: World, stopped: SessionRecord
) -> None:
    """Whoever started it was killed before the fresh pane was up: reconcile clears it, and the old one is there."""
    (world.store / "broken").touch()
    start_standing(system, "scribe", ACTOR)
    begin_each(system, {"scribe": StartOrder(ACTOR, "a test", clear_holds=True)})
    wait_until(lambda: all(pane.dead for pane in system.runner.survey().panes), "the pane is dead")
    reconcile(system, ACTOR)
    (world.store / "broken").unlink()

    assert outcomes(start_standing(system, "scribe", ACTOR)) == {"scribe": Outcome.RESUMED}
    assert recorded(system, "scribe").harness_session_id == stopped.harness_session_id


def test_fresh_conversation_that_comes_up_takes_the_place_and_names_the_old_one(
    world: World, stopped: SessionRecord
) -> None:
    """Row, event, thread and the record's history have the old id and the reason."""
    old = str(stopped.harness_session_id)
    system = replace(world, slack=True).system()
    (world.store / old).unlink()

    answer = start_standing(system, "scribe", ACTOR)

    record = recorded(system, "scribe")
    assert outcomes(answer) == {"scribe": Outcome.STARTED}
    assert f"the old id was {old}" in answer.sessions[0].detail
    assert record.harness_session_id != old
    assert [(left.id, left.harness) for left in record.history] == [(old, "script")]
    assert "No conversation found" in record.history[0].reason, record.history[0].reason
    [event] = events(system, "standing.resume_failed")
    assert (event["detail"], event["level"]) == (old, "warning")
    texts = [row.post.text for row in system.outbox.due("slack", system.clock.now())]
    assert any(f"the old id was {old}" in text for text in texts)


# ---------------------------------------------------------------- a harness whose records tell of turns


@pytest.fixture
def spoken(world: World) -> tuple[System, str]:
    """Give ports whose `scribe` is the bundled agent, has had a turn and is stopped, and its conversation."""
    system = declaring(world.system(), bundled())
    start_standing(system, "scribe", ACTOR)
    have_turn(system)
    stop_standing(system, "scribe", ACTOR)
    return system, str(recorded(system, "scribe").harness_session_id)


def bundled(**changes: object) -> Definition:
    """Return the definition of a session of the bundled agent."""
    return definition("scribe", harness="bundled", **changes)


def have_turn(system: System) -> None:
    """Wait until the conversation that the session's pane is in has had a turn."""

    def had() -> bool:
        system.ingest(recorded(system, "scribe").uid)
        return recorded(system, "scribe").fresh is None

    wait_until(had, "the conversation had a turn")


def conversations(system: System) -> Path:
    """Return where the agent keeps them."""
    return system.paths.session(recorded(system, "scribe").uid) / "agent" / "conversations"


def test_conversation_whose_transcript_is_gone_is_named_with_its_place(spoken: tuple[System, str]) -> None:
    """A clean-up took it: a new conversation, and nobody has to guess why, or which the old one was."""
    system, old = spoken
    folder = conversations(system)
    (folder / f"{old}.jsonl").unlink()

    answer = start_standing(system, "scribe", ACTOR)

    said = f"its transcript is not under {folder} any more; the old id was {old}"
    [event] = events(system, "standing.resume_failed")
    assert outcomes(answer) == {"scribe": Outcome.STARTED}
    assert said in answer.sessions[0].detail
    assert event["reason"] == said
    assert [left.id for left in recorded(system, "scribe").history] == [old]
    have_turn(system)
    assert said not in get_standing(system, "scribe").detail
    assert old in (system.paths.records / "scribe.json").read_text()


def test_other_harness_is_told_with_the_conversation_that_it_cannot_take_up(
    spoken: tuple[System, str], world: World
) -> None:
    """The default, or the entry, names another program: the row says what became of the conversation."""
    _, old = spoken
    other = declaring(world.system(), definition("scribe", harness="script"))

    answer = start_standing(other, "scribe", ACTOR)

    assert f"its harness is script now, and was bundled; the old id was {old}" in answer.sessions[0].detail
    assert [(left.id, left.harness) for left in recorded(other, "scribe").history] == [(old, "bundled")]


def test_change_that_is_taken_back_before_a_turn_loses_nothing(spoken: tuple[System, str], world: World) -> None:
    """Another harness that never came up leaves the conversation where it was."""
    system, old = spoken
    (world.store / "broken").touch()
    other = declaring(world.system(), definition("scribe", harness="script"))
    failed = start_standing(other, "scribe", ACTOR)

    back = start_standing(system, "scribe", ACTOR)

    assert (outcomes(failed), outcomes(back)) == ({"scribe": Outcome.FAILED}, {"scribe": Outcome.RESUMED})
    assert f"its conversation {old} is kept" in failed.sessions[0].detail
    assert recorded(system, "scribe").harness_session_id == old


def test_resuming_that_is_switched_off_is_told_as_the_reason(spoken: tuple[System, str]) -> None:
    """routing.tmux.resumeOnRespawn false begins anew each time, and says so."""
    system, old = spoken
    routing = system.settings.routing
    never = routing._replace(tmux=routing.tmux._replace(resume_on_respawn=False))

    answer = start_standing(replace(system, settings=system.settings._replace(routing=never)), "scribe", ACTOR)

    assert f"routing.tmux.resumeOnRespawn is false; the old id was {old}" in answer.sessions[0].detail


def test_conversation_that_never_began_is_replaced_without_a_word(system: System, world: World) -> None:
    """Its program never came up, so nothing was said and nothing is lost."""
    (world.store / "broken").touch()
    start_standing(system, "scribe", ACTOR)
    (world.store / "broken").unlink()

    answer = start_standing(system, "scribe", ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.STARTED}
    assert (answer.sessions[0].detail, recorded(system, "scribe").history) == ("", ())
    assert events(system, "standing.resume_failed") == []


def test_first_turn_that_went_well_makes_the_conversation_the_sessions(tmp_path: Path) -> None:
    """Told by the hook at its end; a turn that ended in an error of the model's side changes nothing."""
    world = simulated(tmp_path)
    left = Left("old", "bundled", "it ended", NOON)
    session = world.session(harness_session_id="old", fresh=Fresh("new", "old"), history=(left,))
    pane = world.tmux.panes[session.instance_id or ""]
    pane.begin("hello")
    pane.fail("server_error")
    world.system.ingest(session.uid)
    after_error = recorded(world.system, "scribe")
    pane.begin("hello again")

    world.finish()

    assert (after_error.harness_session_id, after_error.fresh) == ("old", session.fresh)
    record = recorded(world.system, "scribe")
    assert (record.harness_session_id, record.fresh) == ("new", None)


def test_new_conversation_on_request_keeps_the_old_one_for_whoever_asks_for_it(system: System, world: World) -> None:
    """The running program is ended; the old conversation is listed and taken up by its id, another is refused."""
    start_standing(system, "scribe", ACTOR)
    old = recorded(system, "scribe").harness_session_id or ""

    fresh = change_conversation(system, "scribe", ACTOR, "")
    new = recorded(system, "scribe").conversation
    with pytest.raises(InvalidValue):
        change_conversation(system, "scribe", ACTOR, "../elsewhere")
    back = change_conversation(system, "scribe", ACTOR, old)

    assert [outcomes(fresh)["scribe"], outcomes(back)["scribe"]] == [Outcome.STARTED, Outcome.RESUMED]
    assert (new != old, world.log()[-1]) == (True, f"resume {old}")
    told = history_of(system.settings, system.records, system.events, "scribe").to_json()
    assert (told["conversation"], [left["id"] for left in told["earlier"]]) == (old, [new])
    assert ACTOR in told["earlier"][0]["reason"]


def test_deleted_session_is_listed_with_what_makes_it_again(system: System) -> None:
    """The commands name its folder and its conversation; a name that nobody had is unknown."""
    create_standing(system, definition("writer"), ACTOR)
    record = recorded(system, "writer")
    delete_standing(system, "writer", ACTOR)

    [gone] = history_of(system.settings, system.records, system.events, "writer").deleted

    assert (gone.conversation, gone.harness) == (record.harness_session_id, "script")
    assert f"start writer --conversation {record.harness_session_id}" in gone.remedy
    create_standing(system, definition("writer"), ACTOR, start=False)
    again = change_conversation(system, "writer", ACTOR, gone.conversation)
    assert outcomes(again) == {"writer": Outcome.RESUMED}
    with pytest.raises(UnknownSession):
        history_of(system.settings, system.records, system.events, "nobody")
