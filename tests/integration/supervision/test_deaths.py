"""An end that nobody asked for is told once, by the watch on its process, with how and with the last output."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from core.base.files import private_folder
from core.config.settings import HarnessDeclaration
from core.delivery.deliverer import Deliverer
from core.delivery.saying import say
from core.lifecycle.look import get_standing
from core.lifecycle.pause import restart_standing
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.session import HoldKind, LastExit, Live, Status
from core.session.folder import output_path
from core.session.system import System
from tests.integration.delivery.conftest import settle
from tests.integration.supervision.conftest import Supervised, notes, pid_of, up
from tests.support.talking import record_of, settings_of
from tests.support.tmux import PrivateTmux, wait_until
from tests.support.world import ACTOR, World, events, recorded


@pytest.fixture
def supervised(system: System, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervised]:
    """Give a service around `scribe`, which is up and has a thread; it looks at the panes where something tells it to.

    What it tells of an end it has from the watch on the process, then: no look that is due anyway comes in time.
    """
    monkeypatch.setattr("core.service.watching._SURVEY_SECONDS", 3600.0)
    service = Supervised(up(system)).start()
    yield service
    service.stop()


def test_a_killed_agent_is_told_at_once(system: System, supervised: Supervised) -> None:
    """One event with the signal, one note with the start command, the exit in the record."""
    pid = pid_of(system)

    os.kill(pid, signal.SIGKILL)

    wait_until(lambda: events(system, "standing.exited"), "the end is told")
    wait_until(lambda: notes(system, "has ended"), "the note is committed")
    supervised.observer.survey()
    [event] = events(system, "standing.exited")
    assert event["reason"] == "it crashed"
    assert event["detail"] == "signal 9"
    [note] = notes(system, "has ended")
    assert "signal 9" in note
    assert "`the-loop standing start scribe`" in note
    assert recorded(system, "scribe").last_exit == LastExit(None, 9)
    assert recorded(system, "scribe").status is Status.RUNNING


def test_a_program_that_ends_as_it_starts_is_told_once_its_start_has_failed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended while its start was under way: whoever sees that looks again in a moment, and not at its next look.

    What waited for the start says from then on what it waits for, each of it.
    """
    monkeypatch.setattr("core.service.watching._SURVEY_SECONDS", 3600.0)
    settings = settings_of(world, "brief")
    program = f"while ! test -e {world.folder / 'seen'}; do sleep 0.05; done; exit 3"
    brief = HarnessDeclaration("brief", ("/bin/sh", "-c", program))._replace(ready="READY")
    system = world.system(settings._replace(harnesses={**settings.harnesses, "brief": brief}))
    private_folder(system.paths.local)
    service = Supervised(system).start()
    try:
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(start_standing, system, "scribe", ACTOR)
            wait_until(lambda: _watched(service, system), "it is watched")
            for words in ("one", "two"):
                say(system, "scribe", words, actor=ACTOR, wait=0)
            uid, deliverer = record_of(system)[0], Deliverer(system)
            deliverer.advance(uid)
            before = {row.detail for row in system.inbox.unsettled(uid)}
            (world.folder / "seen").touch()
        wait_until(lambda: events(system, "standing.exited"), "the end is told")
        deliverer.advance(uid)
        after = [row.detail for row in system.inbox.unsettled(uid)]
    finally:
        service.stop()
        system.close()

    [event] = events(system, "standing.exited")
    assert not answer.result().ok
    assert (event["reason"], event["detail"]) == ("it crashed", "exit 3")
    assert before == {"the session is still starting"}
    assert after == ["the session's program has ended"] * 3  # the boot prompt is one of them


def _watched(service: Supervised, system: System) -> bool:
    """Look, and tell whether the pane that is there is watched."""
    service.observer.survey()
    return any(service.observer.watches(pane.tag) for pane in system.runner.survey().panes if pane.tag)


def test_its_last_output_is_kept(system: System, supervised: Supervised) -> None:
    """It is there before anybody clears the dead pane."""
    say(system, "scribe", "these are my last words", actor=ACTOR)
    settle(system)

    os.kill(pid_of(system), signal.SIGKILL)

    wait_until(lambda: events(system, "standing.exited"), "the end is told")
    assert "these are my last words" in output_path(system.paths, record_of(system)[0]).read_text()


def test_a_row_says_how_it_ended(system: System, supervised: Supervised) -> None:
    """Nothing is left of activity and tasks, and nobody has to look into a log."""
    say(system, "scribe", "background 60", actor=ACTOR)
    wait_until(lambda: get_standing(system, "scribe").pending_tasks, "the task is listed")

    os.kill(pid_of(system), signal.SIGKILL)

    wait_until(lambda: events(system, "standing.exited"), "the end is told")
    row = get_standing(system, "scribe")
    assert (row.live, row.activity, row.pending_tasks) == (Live.DEAD, None, ())
    assert "its program has ended: signal 9" in row.detail
    assert len(events(system, "job.started")) == len(events(system, "job.finished")) == 1


def test_an_exit_by_a_person_is_no_crash(system: System, supervised: Supervised, private: PrivateTmux) -> None:
    """`/exit` is told, and that somebody wanted it."""
    private.tmux("send-keys", "-t", "=loop-standing-scribe:", "/exit", "Enter")

    wait_until(lambda: events(system, "standing.exited"), "the end is told")
    [event] = events(system, "standing.exited")
    assert event["reason"] == "a person left it"
    assert event["detail"] == "exit 0"
    wait_until(lambda: notes(system, "has ended"), "its thread is told")
    assert len(notes(system, "has ended")) == 1


def test_an_exit_status_is_told(system: System, supervised: Supervised) -> None:
    """SIGTERM by a stranger ends the agent with a status of its own."""
    os.kill(pid_of(system), signal.SIGTERM)

    wait_until(lambda: events(system, "standing.exited"), "the end is told")
    assert recorded(system, "scribe").last_exit == LastExit(143, None)
    assert events(system, "standing.exited")[0]["reason"] == "it crashed"


def test_a_pane_that_is_taken_away_is_an_end_too(system: System, supervised: Supervised, private: PrivateTmux) -> None:
    """Nobody can tell how, and that is what is said. The server lives on, as it does under the service's own client."""
    private.tmux("new-session", "-d", "-s", "another", "sleep 600")
    supervised.observer.survey()
    private.tmux("kill-session", "-t", "=loop-standing-scribe:")

    wait_until(lambda: events(system, "standing.exited"), "the end is told")
    [event] = events(system, "standing.exited")
    assert event["detail"] == "it is not known how"
    assert not events(system, "standing.tmux_lost")


@pytest.mark.parametrize("by_name", [True, False])
def test_a_stop_is_nobodys_death(system: System, supervised: Supervised, by_name: bool) -> None:
    """What a verb ends is told by the verb alone."""
    assert stop_standing(system, "scribe" if by_name else None, ACTOR).ok
    supervised.observer.survey()

    assert not events(system, "standing.exited")
    assert not notes(system, "has ended")
    wait_until(lambda: supervised.observer.watching() == 0, "nothing is watched")


def test_a_restart_is_nobodys_death(system: System, supervised: Supervised) -> None:
    """Its window between end and start is not taken for a crash, however often it is looked at."""
    for _ in range(3):
        assert restart_standing(system, "scribe", ACTOR).ok
    wait_until(lambda: supervised.observer.watches(recorded(system, "scribe").instance_id or ""), "it is adopted")

    assert not events(system, "standing.exited")
    wait_until(lambda: supervised.observer.watching() == 1, "it is watched once")


def test_an_end_while_no_service_ran_is_told_by_the_next(system: System) -> None:
    """The pane kept the exit; a second service tells it no second time."""
    up(system)
    os.kill(pid_of(system), signal.SIGKILL)

    for _ in range(2):
        service = Supervised(system).start()
        wait_until(lambda: events(system, "standing.exited"), "the end is told")
        service.observer.survey()
        service.stop()

    assert len(events(system, "standing.exited")) == 1
    assert len(notes(system, "has ended")) == 1


def test_a_start_tells_of_the_end_that_nobody_saw(system: System) -> None:
    """Without any service the event is there, and the thread hears that the session is up again instead."""
    up(system)
    os.kill(pid_of(system), signal.SIGKILL)
    wait_until(lambda: get_standing(system, "scribe").live is Live.DEAD, "the pane is dead")

    assert start_standing(system, "scribe", ACTOR).ok

    assert len(events(system, "standing.exited")) == 1
    assert not notes(system, "has ended")


def test_a_broken_database_keeps_no_death_secret(system: System, supervised: Supervised) -> None:
    """The event comes all the same, and once."""
    pid, instance = pid_of(system), recorded(system, "scribe").instance_id
    wal = system.paths.database.with_name("the-loop.db-wal")
    system.paths.database.write_bytes(b"this is no database" * 4096)
    wal.write_bytes(b"nor is this" * 4096)

    os.kill(pid, signal.SIGKILL)

    wait_until(lambda: events(system, "standing.exited"), "the end is told")
    [event] = events(system, "standing.exited")
    assert event["instance"] == instance


def test_a_paused_session_that_dies_is_told_and_stays_paused(system: System, supervised: Supervised) -> None:
    """The mark is nobody's to clear."""
    from core.lifecycle.pause import pause_standing

    pause_standing(system, "scribe", ACTOR)
    os.kill(pid_of(system), signal.SIGKILL)

    wait_until(lambda: events(system, "standing.exited"), "the end is told")
    record = recorded(system, "scribe")
    assert record.hold is not None
    assert record.hold.kind is HoldKind.PAUSED
    assert replace(record, hold=None).last_exit == LastExit(None, 9)
