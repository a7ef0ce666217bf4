"""create, delete and restart."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import InvalidValue, NameTaken, RecordUnreadable, Refused, UnknownSession
from core.lifecycle.create import create_standing, delete_standing
from core.lifecycle.everything import start_all, stop_all
from core.lifecycle.look import get_standing
from core.lifecycle.pause import restart_standing
from core.lifecycle.recover import reconcile
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.message import MessageState
from core.model.posts import OutboundKind
from core.model.session import Binding, Hold, HoldKind, Live, Outcome, Phase, Status
from core.session.system import System
from tests.support.tmux import PrivateTmux
from tests.support.world import ACTOR, World, declaring, definition, events, outcomes, recorded, waiting_message

# ---------------------------------------------------------------- create


def test_created_session_is_what_its_record_says(system: System) -> None:
    """The record carries the whole definition, since nothing else does."""
    wanted = definition("extra", description="odd jobs", auto_start=False)

    answer = create_standing(system, wanted, ACTOR)

    assert outcomes(answer) == {"extra": Outcome.STARTED}
    assert recorded(system, "extra").definition == wanted
    assert (answer.sessions[0].declared, answer.sessions[0].phase) == (False, Phase.SETTLED)


def test_created_session_survives_a_stop_and_start_of_everything(system: System) -> None:
    """What the lifecycle stops it brings back, declared or created."""
    create_standing(system, definition("extra"), ACTOR)

    stop_all(system, ACTOR)
    answer = start_all(system, ACTOR)

    assert outcomes(answer)["extra"] is Outcome.RESUMED


def test_session_can_be_recorded_without_a_start(system: System) -> None:
    """`--no-start` leaves a record that never ran."""
    answer = create_standing(system, definition("extra"), ACTOR, start=False)

    record = recorded(system, "extra")
    assert outcomes(answer) == {"extra": Outcome.NOT_RUNNING}
    assert (record.phase, record.status, record.instance_id) == (Phase.SETTLED, Status.STOPPED, None)


@pytest.mark.parametrize("broken", ["missing folder", "program that ends at once", "foreign session"])
def test_creation_that_fails_leaves_nothing(system: System, world: World, private: PrivateTmux, broken: str) -> None:
    """Record, folder and pane are gone, the name is free, and the row says why."""
    wanted = definition("extra")
    if broken == "missing folder":
        wanted = replace(wanted, cwd="/no/such/folder")
    elif broken == "foreign session":
        private.reading(private.runner(), target="loop-standing-extra")
    else:
        (world.store / "broken").touch()

    before = system.runner.survey().panes
    answer = create_standing(system, wanted, ACTOR)

    assert outcomes(answer) == {"extra": Outcome.FAILED}
    assert answer.sessions[0].detail
    assert system.records.read("extra") is None
    sessions = system.paths.local / "sessions"
    assert not sessions.exists() or list(sessions.iterdir()) == []
    assert system.runner.survey().panes == before
    assert [event["name"] for event in events(system, "standing.create_failed")] == ["extra"]


def test_program_that_ends_at_once_is_told_with_its_last_output(system: System, world: World) -> None:
    """The row says how it ended and what it printed, of which nothing is taken for tmux's own; the record stays."""
    (world.store / "broken").write_text("Pane is dead: no more panes\n")

    answer = start_standing(system, "scribe", ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.FAILED}
    assert "cannot start: broken / Pane is dead: no more panes)" in answer.sessions[0].detail
    assert recorded(system, "scribe").phase is Phase.SETTLED


def test_creation_that_failed_is_to_be_created_again(system: System) -> None:
    """Nothing is left that could be started, so the row does not say so."""
    answer = create_standing(system, replace(definition("extra"), harness="missing"), ACTOR)

    detail = answer.sessions[0].detail
    assert detail.endswith("nothing of it was kept: solve that problem, then create it again")
    assert "start" not in detail


def test_name_that_runs_is_told_how_to_be_spoken_to(system: System) -> None:
    """Whoever creates what runs already wants to speak to it."""
    create_standing(system, definition("extra"), ACTOR)
    start_standing(system, "scribe", ACTOR)

    for name in ("extra", "scribe"):
        with pytest.raises(NameTaken, match="runs") as caught:
            create_standing(system, definition(name), ACTOR)
        assert f"the-loop standing say {name}" in caught.value.remedy


def test_session_that_asks_for_a_thread_is_told_why_it_gets_none(system: System) -> None:
    """With channels.slack disabled it starts, and the row names the key; one that wants no thread hears nothing."""
    created = create_standing(system, definition("extra", slack=True), ACTOR)
    declared = start_standing(declaring(system, definition("scribe", slack=True)), "scribe", ACTOR)
    silent = create_standing(system, definition("silent"), ACTOR)

    for answer in (created, declared):
        assert answer.ok
        assert "no thread, because channels.slack is disabled" in answer.sessions[0].detail
    assert silent.sessions[0].detail == ""


@pytest.mark.parametrize(
    "changes", [{"name": "Bad Name"}, {"cwd": "here"}, {"prompt": None, "prompt_file": "brief.md"}]
)
def test_bad_definitions_are_refused_before_anything_is_written(system: System, changes: dict[str, str | None]) -> None:
    """A bad name, and paths that say nothing without the folder of whoever typed them."""
    wanted = replace(definition("extra"), **changes)  # type: ignore[arg-type]  # the keys are the definition's

    with pytest.raises(InvalidValue):
        create_standing(system, wanted, ACTOR)

    assert system.records.all() == ()


# ---------------------------------------------------------------- delete


def test_deleted_session_leaves_a_closing_note_and_a_free_name(system: System) -> None:
    """Its thread is closed and unbound, its queue cancelled, and a new session of that name inherits nothing."""
    create_standing(system, definition("extra"), ACTOR)
    first = recorded(system, "extra")
    message = waiting_message(system, "extra")
    system.bindings.bind(Binding("slack", "T1", "C1", "1.1", first.uid, "extra", system.clock.now()))

    answer = delete_standing(system, "extra", ACTOR)

    [post] = [row.post for row in system.outbox.due("slack", system.clock.now())]
    row = system.inbox.get(message.id)
    assert row is not None
    assert outcomes(answer) == {"extra": Outcome.DELETED}
    assert (post.kind, post.channel, post.thread) == (OutboundKind.CLOSING, "C1", "1.1")
    assert row.state is MessageState.CANCELLED
    assert system.bindings.of_session(first.uid, "slack") is None
    assert system.runner.survey().panes == ()
    assert not system.paths.session(first.uid).exists()
    with pytest.raises(UnknownSession):
        get_standing(system, "extra")

    create_standing(system, definition("extra"), ACTOR)
    assert recorded(system, "extra").uid != first.uid


def test_deletion_that_tmux_does_not_answer_is_finished_by_reconcile(world: World, private: PrivateTmux) -> None:
    """The name stays taken until all is gone."""
    create_standing(world.system(), definition("extra"), ACTOR)
    system = replace(world, command_seconds=0.5).system()

    with private.frozen():
        answer = delete_standing(system, "extra", ACTOR)
        meanwhile = recorded(system, "extra")
    reconcile(world.system(), ACTOR)

    assert outcomes(answer) == {"extra": Outcome.UNCONFIRMED}
    assert meanwhile.phase is Phase.DELETING
    assert system.records.read("extra") is None
    assert world.system().runner.survey().panes == ()


@pytest.mark.parametrize("tagged", [False, True])
def test_name_that_somebody_else_holds_is_not_free(system: System, private: PrivateTmux, tagged: bool) -> None:
    """A tmux session of a person's, or an agent of ours that no record knows: it lives on, and the deletion waits."""
    create_standing(system, definition("extra"), ACTOR)
    stop_standing(system, "extra", ACTOR)
    if tagged:
        pane, _ = private.reading(private.runner(), target="loop-standing-extra")
        pid = pane.pid
    else:
        private.tmux("new-session", "-d", "-s", "loop-standing-extra", "cat")
        pid = int(private.tmux("list-panes", "-t", "=loop-standing-extra:", "-F", "#{pane_pid}"))

    answer = delete_standing(system, "extra", ACTOR)
    again = delete_standing(system, "extra", ACTOR)
    [left] = [found for found in reconcile(system, ACTOR) if found.name == "extra"]
    swept = start_all(system, ACTOR)

    assert (outcomes(answer), outcomes(again)) == ({"extra": Outcome.FAILED}, {"extra": Outcome.FAILED})
    assert (answer.sessions[0].phase, answer.sessions[0].live) == (Phase.DELETING, Live.FOREIGN)
    assert "its name stays taken" in answer.sessions[0].detail
    assert "kill-session" in answer.sessions[0].detail
    assert (left.after, left.passing) == (Phase.DELETING, True)
    assert outcomes(swept)["extra"] is Outcome.FAILED
    assert system.processes.alive(pid)
    assert len(events(system, "standing.stop_failed")) == 2
    private.tmux("kill-session", "-t", "=loop-standing-extra:")
    reconcile(system, ACTOR)
    assert system.records.read("extra") is None
    assert len(events(system, "standing.deleted")) == 1


def test_deletion_of_a_session_that_never_ran_asks_tmux_too(world: World, private: PrivateTmux) -> None:
    """Whether its name is free nobody knows while tmux does not answer."""
    create_standing(world.system(), definition("extra"), ACTOR, start=False)
    start_standing(world.system(), "scribe", ACTOR)
    system = replace(world, command_seconds=0.5).system()

    with private.frozen():
        answer = delete_standing(system, "extra", ACTOR)

    assert outcomes(answer) == {"extra": Outcome.UNCONFIRMED}
    assert recorded(system, "extra").phase is Phase.DELETING
    reconcile(world.system(), ACTOR)
    assert system.records.read("extra") is None


def test_unreadable_record_is_not_deleted(system: System) -> None:
    """Nobody removes what nobody could read."""
    create_standing(system, definition("extra"), ACTOR)
    path = system.paths.records / "extra.json"
    path.write_text("[]")

    with pytest.raises(RecordUnreadable):
        delete_standing(system, "extra", ACTOR)

    assert path.read_text() == "[]"


# ---------------------------------------------------------------- restart


def test_restart_resumes_the_conversation_and_keeps_the_queue(system: System, world: World) -> None:
    """A graceful end, the same conversation, another instance, the same generation."""
    start_standing(system, "scribe", ACTOR)
    first = recorded(system, "scribe")
    message = waiting_message(system, "scribe")

    answer = restart_standing(system, "scribe", ACTOR)

    again = recorded(system, "scribe")
    row = system.inbox.get(message.id)
    assert row is not None
    assert outcomes(answer) == {"scribe": Outcome.RESUMED}
    assert (again.harness_session_id, again.generation, again.hold) == (first.harness_session_id, 1, None)
    assert again.instance_id != first.instance_id
    assert row.state is MessageState.PENDING
    assert world.log()[-2:] == [f"term {first.harness_session_id}", f"resume {first.harness_session_id}"]


def test_restart_of_a_stopped_session_names_start(system: System) -> None:
    """What a person stopped only a start by name brings back."""
    start_standing(system, "scribe", ACTOR)
    stop_standing(system, "scribe", ACTOR)

    with pytest.raises(Refused, match="standing start scribe"):
        restart_standing(system, "scribe", ACTOR)

    assert get_standing(system, "scribe").live is Live.ABSENT


def test_restart_keeps_a_pause(system: System) -> None:
    """A paused session comes up again, and stays paused."""
    start_standing(system, "scribe", ACTOR)
    hold = Hold(HoldKind.PAUSED, ACTOR, "", system.clock.now())
    system.records.write(replace(recorded(system, "scribe"), hold=hold))

    answer = restart_standing(system, "scribe", ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.RESUMED}
    assert recorded(system, "scribe").hold == hold


def test_restart_of_an_unknown_session_is_a_lookup_error(system: System) -> None:
    """There is nothing to restart."""
    with pytest.raises(UnknownSession):
        restart_standing(system, "nobody", ACTOR)


def test_a_folder_whose_name_is_no_text_is_refused(system: System, tmp_path: Path) -> None:
    """A name that is not UTF-8 could be written down nowhere: nothing is recorded."""
    odd = tmp_path / os.fsdecode(b"odd-\xff")
    odd.mkdir()

    with pytest.raises(InvalidValue, match="UTF-8"):
        create_standing(system, definition("made", cwd=str(odd)), ACTOR)

    assert system.records.read("made") is None


@pytest.mark.parametrize("changes", [{"prompt": "\udcff"}, {"description": "\udcff"}, {"harness_args": ("\udcff",)}])
def test_words_that_are_no_text_are_refused(system: System, changes: dict[str, Any]) -> None:
    """No program takes them and no database keeps them: nothing is recorded."""
    with pytest.raises(InvalidValue, match="UTF-8"):
        create_standing(system, replace(definition("made"), **changes), ACTOR)

    assert system.records.read("made") is None
