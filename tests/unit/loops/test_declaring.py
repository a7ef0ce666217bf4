"""The loops that the configuration declares."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.base.values import replace
from core.config.settings import DeclaredLoop, Settings
from core.lifecycle.supervise import Drift
from core.loops.verbs import CHANGED, REMOVED, Asker, carry_out, carry_out_first, create_loop, pause_loop, stop_loop
from core.model.loop import Loop, LoopRequest, LoopStatus
from core.model.session import Phase
from core.session.system import System
from tests.unit.loops.conftest import a_session
from tests.unit.store.samples import NOON, StandingClock

ANN = Asker("cli:ann")
BUILDS = DeclaredLoop("builds", "look at the builds", interval="5m")
MORNING = DeclaredLoop("morning", "good morning", cron="0 9 * * *", time_zone="Europe/Berlin", keep_alive=True)


def _declaring(system: System, *entries: DeclaredLoop) -> Settings:
    settings = system.settings
    return settings._replace(standing=settings.standing._replace(loops={"scribe": entries} if entries else {}))


def _carried_out(system: System, *entries: DeclaredLoop) -> tuple[Loop, ...]:
    """Carry these entries out and return the session's loops."""
    carry_out(system, _declaring(system, *entries), a_session("scribe"))
    return system.loops.of_session("s-scribe")


def _events(system: System, kind: str) -> list[dict[str, Any]]:
    lines = system.paths.events.read_text().splitlines() if system.paths.events.exists() else []
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def test_an_entry_becomes_a_loop_of_its_session(system: System) -> None:
    """Once, however often it is carried out; sessions that declare none have none."""
    loops = _carried_out(system, BUILDS, MORNING)
    again = _carried_out(system, BUILDS, MORNING)

    assert again == loops
    by_name = {loop.declared: loop for loop in loops}
    assert set(by_name) == {"builds", "morning"}
    builds, morning = by_name["builds"], by_name["morning"]
    assert (builds.created_by, builds.instruction, builds.interval) == (
        "config",
        BUILDS.instruction,
        timedelta(minutes=5),
    )
    assert (morning.cron, morning.time_zone, morning.keep_alive) == ("0 9 * * *", "Europe/Berlin", True)
    assert builds.next_run_at is not None
    assert NOON + timedelta(minutes=5) <= builds.next_run_at < NOON + timedelta(minutes=5.5)
    assert len(_events(system, "loop.created")) == 2
    assert system.loops.of_session("s-other") == ()


def test_a_changed_entry_is_another_loop(system: System) -> None:
    """The first ends with its reason, and the runs of the second are counted anew."""
    (first,) = _carried_out(system, BUILDS)
    system.loops.change(first, run_count=3)

    second, ended = _carried_out(system, BUILDS._replace(interval="10m"))

    assert (ended.id, ended.status, ended.reason) == (first.id, LoopStatus.STOPPED, CHANGED)
    assert (second.interval, second.run_count) == (timedelta(minutes=10), 0)


def test_a_removed_entry_ends_its_loop_and_comes_back_as_another(system: System) -> None:
    """Also where a session's whole entry goes."""
    (first,) = _carried_out(system, BUILDS)

    (ended,) = _carried_out(system)
    second, _ = _carried_out(system, BUILDS)

    assert (ended.status, ended.reason) == (LoopStatus.STOPPED, REMOVED)
    assert second.id != first.id
    assert second.status is LoopStatus.ACTIVE


def test_a_loop_that_was_stopped_stays_so_until_its_entry_changes(system: System) -> None:
    """Nobody's stop is undone by a round of the service."""
    (loop,) = _carried_out(system, BUILDS)
    stop_loop(system, ANN, loop.id)

    assert [found.status for found in _carried_out(system, BUILDS)] == [LoopStatus.STOPPED]
    assert [found.status for found in _carried_out(system, BUILDS._replace(max_runs=3))] == [
        LoopStatus.ACTIVE,
        LoopStatus.STOPPED,
    ]


def test_a_loop_that_was_stopped_and_whose_entry_went_is_made_anew_when_it_returns(system: System) -> None:
    """Taking an entry out and putting it back is a change."""
    (loop,) = _carried_out(system, BUILDS)
    stop_loop(system, ANN, loop.id)
    _carried_out(system)

    assert [found.status for found in _carried_out(system, BUILDS)] == [LoopStatus.ACTIVE, LoopStatus.STOPPED]


def test_a_stop_outlasts_the_pruning_of_old_loops(system: System, clock: StandingClock) -> None:
    """The stopped loop is what tells that its entry was carried out."""
    (loop,) = _carried_out(system, BUILDS)
    stop_loop(system, ANN, loop.id)
    clock.moment += timedelta(days=100)

    system.loops.prune(clock.moment)

    assert [found.id for found in _carried_out(system, BUILDS)] == [loop.id]


def test_a_paused_loop_stays_paused(system: System) -> None:
    """Its entry is as it was."""
    (loop,) = _carried_out(system, BUILDS)
    pause_loop(system, ANN, loop.id)

    assert [found.status for found in _carried_out(system, BUILDS)] == [LoopStatus.PAUSED]


def test_a_loop_without_room_waits_and_is_told_of_once(system: System) -> None:
    """It is made as soon as another one ends."""
    made = [create_loop(system, ANN, "scribe", LoopRequest("x", interval="5m")).loop for _ in range(5)]
    _carried_out(system, BUILDS)
    loops = _carried_out(system, BUILDS)
    assert made[0] is not None
    assert {loop.declared for loop in loops} == {""}
    [event] = _events(system, "loop.failed")
    full = "its session already has loops.maxOpenPerSession (5) open loops"
    assert event["reason"] == f"its declared loop builds could not be made: {full}"

    stop_loop(system, ANN, made[0].id)

    assert {loop.declared for loop in _carried_out(system, BUILDS)} == {"", "builds"}


def test_an_entry_that_has_become_impossible_is_told_of(system: System) -> None:
    """The others are made all the same."""
    gone = MORNING._replace(time_zone="Mars/Olympus")

    loops = _carried_out(system, gone, BUILDS)

    assert [loop.declared for loop in loops] == ["builds"]
    [event] = _events(system, "loop.failed")
    assert "its declared loop morning could not be made: the time zone 'Mars/Olympus' is not known" in event["reason"]


def test_a_session_that_is_being_deleted_gets_none(system: System) -> None:
    """Its loops end with it."""
    carry_out(system, _declaring(system, BUILDS), replace(a_session("scribe"), phase=Phase.DELETING))

    assert system.loops.of_session("s-scribe") == ()


def test_a_first_start_makes_them_and_a_later_one_changes_none(system: System) -> None:
    """Whoever starts a session may have read an older configuration than the service."""
    first = replace(system, settings=_declaring(system, BUILDS))
    carry_out_first(first, a_session("scribe"))
    loops = system.loops.of_session("s-scribe")

    carry_out_first(replace(system, settings=_declaring(system, MORNING)), a_session("scribe"))

    assert [loop.declared for loop in loops] == ["builds"]
    assert system.loops.of_session("s-scribe") == loops


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Give a configuration file; what stands in it is the test's to say."""
    path = tmp_path / "cli-config.yaml"
    path.write_text("first")
    return path


def test_the_service_sees_to_a_change_of_the_file(system: System, file: Path) -> None:
    """At the second look, when it is whole for certain."""
    now = [_declaring(system, BUILDS)]
    drift = Drift(replace(system, settings=now[0]._replace(source=file)), lambda: now[0])
    drift.turn()
    assert [loop.declared for loop in system.loops.all_open()] == ["builds"]

    now[0] = _declaring(system, MORNING)
    file.write_text("another")
    drift.turn()
    assert [loop.declared for loop in system.loops.all_open()] == ["builds"]
    drift.turn()

    assert [loop.declared for loop in system.loops.all_open()] == ["morning"]


def test_a_file_that_is_gone_for_a_moment_ends_no_loop(system: System, file: Path) -> None:
    """An editor that replaces it leaves none, or an empty one, in between."""
    now = [_declaring(system, BUILDS)]
    drift = Drift(replace(system, settings=now[0]._replace(source=file)), lambda: now[0])
    drift.turn()
    before = system.loops.all_open()

    for text in (None, ""):
        file.unlink() if text is None else file.write_text(text)
        now[0] = _declaring(system)
        drift.turn()
        file.write_text("first again")
        now[0] = _declaring(system, BUILDS)
        drift.turn()
        drift.turn()

    assert system.loops.all_open() == before
