"""The boot's sweep and the one health answer."""

import os
import sqlite3
from dataclasses import replace
from datetime import timedelta

import pytest

from core.config.loading import FILE, HEADER
from core.config.settings import Standing
from core.lifecycle.common import start_takes
from core.lifecycle.create import create_standing
from core.lifecycle.everything import start_all, status_all, stop_all
from core.lifecycle.exits import plan_for_keep_alive, tell_server_lost
from core.lifecycle.look import get_standing
from core.lifecycle.recover import reconcile
from core.lifecycle.spawn import Opened, StartOrder
from core.lifecycle.start import begin_each, finish_all, start_standing
from core.lifecycle.stop import stop_standing
from core.lifecycle.supervise import Restarts
from core.model.activity import ActivityState
from core.model.rows import ServiceRow
from core.model.session import Definition, Hold, HoldKind, Live, Outcome, Phase, Restart, SessionRecord, Status
from core.session.sessions import restart_due
from core.session.system import System
from tests.support.tmux import PrivateTmux, wait_until
from tests.support.world import (
    ACTOR,
    World,
    declaring,
    definition,
    events,
    kill_and_wait,
    outcomes,
    recorded,
    starter_ended,
)
from tests.unit.store.samples import a_message


def test_boot_starts_what_is_declared_with_auto_start(system: System) -> None:
    """The others are reported, and left down."""
    by_hand = definition("by-hand", auto_start=False)

    answer = start_all(declaring(system, by_hand, definition("always")), ACTOR)

    assert outcomes(answer) == {"always": Outcome.STARTED, "by-hand": Outcome.NOT_RUNNING}
    assert answer.ok


def demonstrating(system: System) -> System:
    """Return the ports with a demo's configuration, which declares `guide` alone."""
    demo = declaring(system, definition("guide"))
    source = demo.settings.state_root.parent / FILE
    source.write_text(HEADER)
    return replace(demo, settings=demo.settings._replace(source=source))


def test_a_demo_starts_what_it_declares_alone(system: System) -> None:
    """Its folder may hold records of sessions that somebody made there: they are left down, and that is well."""
    start_standing(declaring(system, definition("guide"), definition("made")), "made", ACTOR)
    stop_all(system, ACTOR)
    demo = demonstrating(system)

    answer = start_all(demo, ACTOR)
    status = status_all(demo, [ServiceRow("service", True, 1, "")])

    assert outcomes(answer) == {"guide": Outcome.STARTED, "made": Outcome.NOT_RUNNING}
    assert status.ok


def test_a_demo_brings_nothing_else_back_whatever_its_state_says(system: System) -> None:
    """A restart that was cut short, a crash, a lost server, a keep-alive: nobody asked for that session by its name."""
    made = replace(definition("made"), restart=Restart.ON_FAILURE)
    start_standing(declaring(system, definition("guide"), made), "made", ACTOR)
    stop_all(system, ACTOR)
    record = recorded(system, "made")
    system.records.write(replace(record, phase=Phase.STOPPING, status=Status.RUNNING))
    demo = demonstrating(system)

    answer = start_all(demo, ACTOR)
    told = tell_server_lost(demo, [recorded(demo, "made")], "it has gone", bring_back=True)
    kept = plan_for_keep_alive(demo, recorded(demo, "made"))
    planned = demo.exit_ledger.due()
    demo.exit_ledger.plan(record.instance_id or "", demo.clock.now())
    due = restart_due(demo.settings, demo.exit_ledger, demo.loops, recorded(demo, "made"))
    Restarts(demo).turn({record.instance_id or "": recorded(demo, "made")})
    everything = start_standing(demo, None, ACTOR)
    by_name = start_standing(demo, "made", ACTOR)

    assert outcomes(answer) == {"guide": Outcome.STARTED, "made": Outcome.NOT_RUNNING}
    assert (told, kept, due, planned) == (False, False, False, ())
    assert demo.exit_ledger.due() == ()
    assert outcomes(everything) == {"guide": Outcome.ALREADY_RUNNING, "made": Outcome.NOT_RUNNING}
    assert outcomes(by_name) == {"made": Outcome.RESUMED}


def test_boot_adopts_what_lives_and_respawns_nothing(system: System) -> None:
    """A service that restarts finds its panes as they were."""
    start_all(system, ACTOR)
    before = system.runner.survey().panes

    answer = start_all(system, ACTOR)

    assert set(outcomes(answer).values()) == {Outcome.ALREADY_RUNNING}
    assert system.runner.survey().panes == before
    assert len(events(system, "standing.adopted")) == 2


def test_boot_resumes_what_a_reboot_took(system: System, private: PrivateTmux) -> None:
    """With the tmux server gone every conversation goes on where it was."""
    start_all(system, ACTOR)
    before = recorded(system, "scribe")
    private.tmux("kill-server")

    answer = start_all(system, ACTOR)

    assert set(outcomes(answer).values()) == {Outcome.RESUMED}
    assert recorded(system, "scribe").harness_session_id == before.harness_session_id


def test_boot_brings_back_what_the_lifecycle_stopped_and_not_what_a_person_did(system: System) -> None:
    """`the-loop stop` sets no mark; `standing stop NAME` sets one that no sweep weakens."""
    start_all(system, ACTOR)
    stop_standing(system, "scribe", ACTOR)
    stop_all(system, ACTOR)

    answer = start_all(system, ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.HELD, "scribe-two": Outcome.RESUMED}
    assert recorded(system, "scribe").hold is not None
    assert get_standing(system, "scribe").live is Live.ABSENT


def not_enabled(system: System, *sessions: Definition) -> System:
    """Return the ports with a configuration that declares these, or what was declared, and is not enabled."""
    declared = sessions or system.settings.standing.sessions
    return replace(system, settings=system.settings._replace(standing=Standing(False, declared)))


def test_boot_starts_no_declared_session_while_it_is_not_enabled(system: System) -> None:
    """`standingSessions.enabled: false` is for verbs by name, and the row names the key and the verb."""
    answer = start_all(not_enabled(system), ACTOR)

    assert set(outcomes(answer).values()) == {Outcome.NOT_RUNNING}
    assert all("standingSessions.enabled is false" in row.detail for row in answer.sessions)
    assert f"the-loop standing start {answer.sessions[0].name}" in answer.sessions[0].detail


def test_boot_brings_back_what_was_created_whatever_is_said_of_the_declared_ones(system: System) -> None:
    """The starter file says `enabled: false` of the sessions below it; `create` asked for this one by its autoStart."""
    system = not_enabled(system, definition("scribe"))
    create_standing(system, definition("extra"), ACTOR)
    create_standing(system, definition("by-hand", auto_start=False), ACTOR)
    stop_all(system, ACTOR)
    down = status_all(system, ())

    answer = start_all(system, ACTOR)

    assert not down.ok
    assert outcomes(answer) == {
        "by-hand": Outcome.NOT_RUNNING,
        "extra": Outcome.RESUMED,
        "scribe": Outcome.NOT_RUNNING,
    }
    assert "its autoStart is false" in answer.sessions[0].detail
    assert status_all(system, ()).ok


def test_session_whose_entry_was_removed_is_not_taken_for_a_created_one(system: System) -> None:
    """It was one of those that `enabled` speaks of."""
    start_standing(system, "scribe", ACTOR)
    system = not_enabled(system, definition("another"))
    stop_all(system, ACTOR)

    assert outcomes(start_all(system, ACTOR))["scribe"] is Outcome.NOT_RUNNING


def test_boot_ends_what_runs_under_a_stop_mark(system: System) -> None:
    """However it came to live: under a stopped mark nothing runs."""
    start_standing(system, "scribe", ACTOR)
    hold = Hold(HoldKind.STOPPED, ACTOR, "", system.clock.now())
    system.records.write(replace(recorded(system, "scribe"), hold=hold))

    answer = start_all(system, ACTOR)

    assert outcomes(answer)["scribe"] is Outcome.HELD
    assert get_standing(system, "scribe").live is Live.ABSENT


def test_boot_leaves_a_paused_session_as_it_is(system: System) -> None:
    """Alive it is adopted, gone it is not started, and it stays paused."""
    start_standing(system, "scribe", ACTOR)
    hold = Hold(HoldKind.PAUSED, ACTOR, "", system.clock.now())
    system.records.write(replace(recorded(system, "scribe"), hold=hold))

    alive = start_all(system, ACTOR)
    kill_and_wait(system, system.runner.survey().of_target("loop-standing-scribe")[0].pid)
    dead = start_all(system, ACTOR)

    assert outcomes(alive)["scribe"] is outcomes(dead)["scribe"] is Outcome.HELD
    assert get_standing(system, "scribe").live is Live.DEAD


def test_start_by_name_keeps_a_pause(system: System) -> None:
    """It is brought up, and stays paused: only a resume lifts that."""
    hold = Hold(HoldKind.PAUSED, ACTOR, "", system.clock.now())
    system.records.write(SessionRecord("scribe", "s-1", definition("scribe"), system.clock.now(), hold=hold))

    answer = start_standing(system, "scribe", ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.STARTED}
    assert recorded(system, "scribe").hold == hold
    assert (system.paths.session("s-1") / "hold").exists()


def test_silent_tmux_leaves_everything_as_it_is(world: World, private: PrivateTmux) -> None:
    """No mark, no phase, no pane is changed; the rows say that nobody knows."""
    start_all(world.system(), ACTOR)
    system = replace(world, command_seconds=0.5).system()
    before = [recorded(system, name) for name in ("scribe", "scribe-two")]

    with private.frozen():
        answer = start_all(system, ACTOR)

    assert set(outcomes(answer).values()) == {Outcome.UNCONFIRMED}
    assert {row.live for row in answer.sessions} == {Live.UNKNOWN}
    assert [recorded(system, name) for name in ("scribe", "scribe-two")] == before


def test_foreign_session_is_a_failed_row(system: System, private: PrivateTmux) -> None:
    """Others start all the same."""
    private.reading(private.runner(), target="loop-standing-scribe")

    answer = start_all(system, ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.FAILED, "scribe-two": Outcome.STARTED}
    assert "attach-session -r" in answer.sessions[0].detail


@pytest.mark.parametrize(("deaf", "state"), [(True, ActivityState.STARTING), (False, ActivityState.UNKNOWN)])
def test_a_start_that_was_cut_short_is_adopted_as_it_stands(
    system: System, world: World, deaf: bool, state: ActivityState
) -> None:
    """Alive is not reading: a harness that cannot say so counts as reading once its screen shows it."""
    if deaf:
        (world.store / "deaf").touch()
    opened = begin_each(system, {"scribe": StartOrder(ACTOR, "a test")})["scribe"]
    assert isinstance(opened, Opened)
    instance = opened.context.instance
    wait_until(lambda: deaf or "READY" in system.runner.screen(instance, 50), "its screen shows that it reads")
    starter_ended(system)

    reconcile(system, ACTOR)

    activity = system.activities.get(opened.record.uid)
    assert recorded(system, "scribe").phase is Phase.SETTLED
    assert activity is not None
    assert activity.state is state


# ---------------------------------------------------------------- status


def test_status_is_well_only_if_what_a_boot_starts_runs(system: System) -> None:
    """Down is not well, running is, and held by a person is."""
    down = status_all(system, ()).ok
    start_all(system, ACTOR)
    running = status_all(system, ()).ok
    stop_standing(system, "scribe", ACTOR)
    held = status_all(system, ()).ok

    assert (down, running, held) == (False, True, True)


def test_status_is_not_well_with_a_dead_session_a_failed_one_or_a_service_down(system: System) -> None:
    """Each of them alone is enough."""
    start_all(system, ACTOR)
    service_down = status_all(system, (ServiceRow("service", False, None, ""),)).ok
    hold = Hold(HoldKind.FAILED, "supervisor", "crashed", system.clock.now())
    system.records.write(replace(recorded(system, "scribe"), hold=hold))
    failed = status_all(system, ()).ok
    system.records.write(replace(recorded(system, "scribe"), hold=None))
    os.kill(system.runner.survey().panes[0].pid, 9)
    kill_and_wait(system, system.runner.survey().panes[1].pid)
    dead = status_all(system, ()).ok

    assert (service_down, failed, dead) == (False, False, False)


def test_status_is_not_well_with_a_damaged_database(system: System) -> None:
    """The sessions live, and nobody can tell what waits: it has a row of its own, and the exit code tells."""
    start_all(system, ACTOR)
    system.close()
    system.paths.database.write_bytes(b"no database" * 1000)

    report = status_all(system, ())

    assert not report.ok
    assert [row["name"] for row in report.to_json()["services"]] == ["database"]


def test_status_is_not_well_with_a_row_that_nobody_understands(system: System) -> None:
    """A message that is passed over for ever is somebody's trouble: it is named, with the command that removes it."""
    start_all(system, ACTOR)
    message = a_message(1, uid=recorded(system, "scribe").uid)
    system.inbox.add([message])
    assert status_all(system, ()).ok
    with sqlite3.connect(system.paths.database) as connection:
        connection.execute("UPDATE inbox SET state = 'limbo' WHERE id = ?", (message.id,))

    report = status_all(system, ())

    assert not report.ok
    [database] = report.services
    assert "'limbo'" in database.detail
    assert "DELETE FROM inbox" in database.detail


def test_status_does_not_count_what_no_boot_starts(system: System) -> None:
    """A session by hand is reported, and its being down is nobody's trouble."""
    report = status_all(declaring(system, definition("by-hand", auto_start=False)), ())

    assert report.ok
    assert [row["name"] for row in report.to_json()["standingSessions"]] == ["by-hand"]


def test_record_of_an_interrupted_start_is_recovered_by_the_sweep(system: System) -> None:
    """A phase that nobody is at work on is finished before the gate is asked."""
    start_standing(system, "scribe", ACTOR)
    system.records.write(replace(recorded(system, "scribe"), phase=Phase.STARTING))
    starter_ended(system)

    start_all(system, ACTOR)

    assert recorded(system, "scribe").phase is Phase.SETTLED


def test_a_session_that_another_process_starts_is_left_to_it(system: System) -> None:
    """It lets its lock go while the harness comes up, and tells itself how that went."""
    opened = begin_each(system, {"scribe": StartOrder("cli:bob", "a test")})["scribe"]
    assert isinstance(opened, Opened)

    [answer] = [row for row in start_all(system, ACTOR).sessions if row.name == "scribe"]
    meanwhile = recorded(system, "scribe").phase
    told = finish_all(system, {"scribe": opened})["scribe"]

    assert (answer.outcome, meanwhile) == (Outcome.ALREADY_RUNNING, Phase.STARTING)
    assert (told.outcome, recorded(system, "scribe").phase) == (Outcome.STARTED, Phase.SETTLED)
    assert [event["actor"] for event in events(system, "standing.started") if event["name"] == "scribe"] == ["cli:bob"]


def test_a_start_that_its_process_has_given_up_is_adopted(system: System) -> None:
    """It lives, and nothing came of the start for longer than one takes."""
    opened = begin_each(system, {"scribe": StartOrder(ACTOR, "a test")})["scribe"]
    assert isinstance(opened, Opened)
    begun = system.clock.now() - start_takes(system.settings) - timedelta(seconds=1)
    system.records.write(replace(recorded(system, "scribe"), started_at=begun))

    reconcile(system, ACTOR)

    assert recorded(system, "scribe").phase is Phase.SETTLED
