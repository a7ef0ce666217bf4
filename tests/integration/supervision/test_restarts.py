"""A crashed session is brought back within its budget; a lost tmux server brings everything back once."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.delivery.saying import say
from core.delivery.snapshot import Looker
from core.lifecycle.look import get_standing
from core.lifecycle.pause import pause_standing
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.lifecycle.supervise import Restarts
from core.model.gate import Action, Observed, Wake
from core.model.message import MessageState
from core.model.posts import OutboundKind
from core.model.reasons import Reason
from core.model.session import Hold, HoldKind, Outcome, SessionRecord
from core.session.system import System
from tests.integration.delivery.conftest import settle
from tests.integration.supervision.conftest import Supervised, back, crash, notes, pid_of, restarting, up
from tests.support.talking import taken, times
from tests.support.tmux import PrivateTmux, alive, wait_until
from tests.support.world import ACTOR, World, definition, events, recorded, waiting_message


@contextmanager
def supervising(system: System) -> Iterator[Supervised]:
    """Run a service for the block."""
    service = Supervised(system).start()
    try:
        yield service
    finally:
        service.stop()


def test_a_crashed_session_comes_back_with_its_conversation(system: System) -> None:
    """A second later, resumed, by the supervisor; one note that said so."""
    system = up(restarting(system))
    before = recorded(system, "scribe")
    with supervising(system):
        crash(system)

        wait_until(lambda: back(system, before), "it is back")

    after = recorded(system, "scribe")
    assert after.harness_session_id == before.harness_session_id
    [note] = notes(system, "has ended")
    assert "restart 1 of 5 within an hour" in note
    wait_until(lambda: events(system, "standing.restarted"), "the restart is told")
    [resumed] = [event for event in events(system, "standing.resumed") if event["actor"] == "supervisor"]
    assert "signal 9" in resumed["reason"]


def test_without_the_policy_nothing_comes_back(system: System) -> None:
    """The default leaves a crash to people."""
    up(system)
    with supervising(system) as service:
        crash(system)
        wait_until(lambda: events(system, "standing.exited"), "the end is told")
        service.supervisor.turn()

    assert system.exit_ledger.due() == ()


def test_who_leaves_by_a_command_is_not_brought_back(system: System, private: PrivateTmux) -> None:
    """`/exit` restarts nothing."""
    system = up(restarting(system))
    with supervising(system):
        private.tmux("send-keys", "-t", "=loop-standing-scribe:", "/exit", "Enter")
        wait_until(lambda: events(system, "standing.exited"), "the end is told")

    assert system.exit_ledger.due() == ()


def test_the_budget_ends_in_a_hold_that_a_start_by_name_clears(system: System) -> None:
    """One note and one event say that it is held; then it is started again by a person."""
    system = up(restarting(system, per_hour=1))
    with supervising(system):
        before = recorded(system, "scribe")
        crash(system)
        wait_until(lambda: back(system, before), "it is back")
        settle(system)

        crash(system)
        wait_until(lambda: recorded(system, "scribe").hold, "it is held")

    hold = recorded(system, "scribe").hold
    assert hold is not None
    assert (hold.kind, hold.by) == (HoldKind.FAILED, "supervisor")
    wait_until(lambda: events(system, "standing.held"), "the hold is told")
    assert len(events(system, "standing.held")) == 1
    assert len(notes(system, "held as failed")) == 1
    assert len(notes(system, "is held as failed: ", kind=OutboundKind.ROOT_UPDATE)) == 1
    assert len(notes(system, "has ended")) == 2
    assert start_standing(system, "scribe", ACTOR).sessions[0].outcome is Outcome.RESUMED
    assert recorded(system, "scribe").hold is None


def test_the_budget_survives_the_service(system: System) -> None:
    """What an earlier service has used up is used up."""
    system = up(restarting(system, per_hour=2))
    uid = recorded(system, "scribe").uid
    for minutes in (10, 20):
        system.exit_ledger.count_restart(uid, datetime.now(UTC) - timedelta(minutes=minutes))
    with supervising(system):
        crash(system)
        wait_until(lambda: recorded(system, "scribe").hold, "it is held")


def test_messages_wait_for_the_restart_and_go_in_after_it(system: System) -> None:
    """Nobody is refused because an agent crashed a second ago."""
    system = up(restarting(system))
    before = recorded(system, "scribe")
    crash(system)
    said = say(system, "scribe", "are you back?", actor=ACTOR, wait=0.2)
    with supervising(system):
        wait_until(lambda: back(system, before), "it is back")
        settle(system)
        later = say(system, "scribe", "and now?", actor=ACTOR)

    assert said.state is MessageState.QUEUED
    assert later.state is MessageState.CONFIRMED
    assert times(system, "and now?") == 1
    assert [text.split("] ")[1].strip() for text in taken(system)[-2:]] == ["are you back?", "and now?"]


def test_a_session_that_will_not_come_back_refuses(system: System) -> None:
    """Once its end was looked into, messages are refused with the start command."""
    up(system)
    crash(system)
    record = recorded(system, "scribe")
    looker = Looker(system, lambda _: True)

    decision = looker.gate(Wake.SAY, looker.see("scribe", record), "scribe", record)

    assert decision.action is Action.REFUSE
    assert "the-loop standing start scribe" in decision.remedy


def test_a_session_whose_end_nobody_looked_into_yet_queues(system: System) -> None:
    """Between the crash and the supervisor's word nobody is refused."""
    system = up(restarting(system))
    crash(system)
    record = recorded(system, "scribe")
    looker = Looker(system, lambda _: True)
    sight = looker.see("scribe", record)

    decision = looker.gate(Wake.REPLY, sight, "scribe", record)

    assert sight.observed is Observed.DEAD
    assert decision.action is Action.QUEUE


STOPS: dict[str, Callable[[System], object]] = {
    "by name": lambda system: stop_standing(system, "scribe", ACTOR),
    "all": lambda system: stop_standing(system, None, ACTOR),
    "pause": lambda system: pause_standing(system, "scribe", ACTOR),
}


@pytest.mark.parametrize("stop", STOPS)
def test_whoever_stops_a_session_that_is_due_wins(system: System, stop: str) -> None:
    """The restart was planned, and is dropped."""
    system = up(restarting(system))
    record = recorded(system, "scribe")
    crash(system)
    now = system.clock.now()
    assert system.exit_ledger.tell(record.instance_id or "", record.uid, now, now, counted=True)

    STOPS[stop](system)
    Restarts(system).turn({record.instance_id or "": recorded(system, "scribe")})

    assert recorded(system, "scribe").instance_id == record.instance_id
    assert system.exit_ledger.due() == ()
    assert system.exit_ledger.restarts(record.uid, now - timedelta(hours=1)) == ()


def test_a_stop_between_the_look_and_the_lock_wins(system: System) -> None:
    """The record that the supervisor has read is not the one that counts."""
    system = up(restarting(system))
    stale = recorded(system, "scribe")
    crash(system)
    now = system.clock.now()
    system.exit_ledger.tell(stale.instance_id or "", stale.uid, now, now, counted=True)
    stop_standing(system, None, ACTOR)

    Restarts(system).turn({stale.instance_id or "": stale})

    assert recorded(system, "scribe").instance_id == stale.instance_id
    assert recorded(system, "scribe").status.value == "stopped"


def test_a_start_that_cannot_be_is_tried_again_and_given_up(system: System, world: World) -> None:
    """A folder that is gone uses the budget up like any crash, and the note says what was wrong."""
    folder = world.folder / "short-lived"
    folder.mkdir()
    system = restarting(system, per_hour=1)
    session = replace(system.settings.standing.sessions[0], cwd=str(folder))
    system = up(
        replace(
            system, settings=system.settings._replace(standing=system.settings.standing._replace(sessions=(session,)))
        )
    )
    with supervising(system):
        crash(system)
        folder.rmdir()
        wait_until(lambda: recorded(system, "scribe").hold, "it is held")

    wait_until(lambda: notes(system, "was not restarted"), "the note is committed")
    [note] = notes(system, "was not restarted")
    assert "does not exist" in note


def test_a_lost_server_is_one_event_and_everything_comes_back_once(system: System, private: PrivateTmux) -> None:
    """No death, no crash, no note; each conversation resumes, whatever its policy; what is held stays down."""
    names = ("scribe", "second", "third")
    system = restarting(system, names=names[:2])
    sessions = (*system.settings.standing.sessions, definition("third"), definition("held"), definition("paused"))
    system = replace(
        system, settings=system.settings._replace(standing=system.settings.standing._replace(sessions=sessions))
    )
    up(system, *names, "held", "paused")
    stop_standing(system, "held", ACTOR)
    pause_standing(system, "paused", ACTOR)
    before = {name: recorded(system, name) for name in names}
    with supervising(system):
        private.tmux("kill-server")

        wait_until(lambda: all(back(system, record) for record in before.values()), "all are back")

    for name, record in before.items():
        assert recorded(system, name).harness_session_id == record.harness_session_id
        assert system.exit_ledger.restarts(record.uid, datetime.now(UTC) - timedelta(hours=1)) == ()
        assert not notes(system, "has ended", name)
    [lost] = events(system, "standing.tmux_lost")
    assert "4 of the sessions" in lost["detail"]
    assert len(events(system, "standing.tmux_back")) == 1
    assert not events(system, "standing.exited")
    assert [event["name"] for event in events(system, "standing.resumed")].count("scribe") == 1
    assert {pane.target for pane in system.runner.survey().panes} == {f"loop-standing-{name}" for name in names}


def test_a_restart_of_the_machine_is_nobodys_crash(system: System, private: PrivateTmux) -> None:
    """The boot's sweep resumes what it starts, as one event, and no budget is used."""
    from core.lifecycle.everything import start_all

    names = ("scribe", "second")
    system = up(restarting(system, names=names), *names)
    pids = [pid_of(system, name) for name in names]
    private.tmux("kill-server")
    wait_until(lambda: not any(alive(pid) for pid in pids), "all is gone")
    swept = threading.Event()
    service = Supervised(system, swept).start()
    service.observer.survey()

    answer = start_all(system, "supervisor")
    swept.set()
    service.observer.survey()
    service.supervisor.turn()
    service.stop()

    assert [row.outcome for row in answer.sessions] == [Outcome.RESUMED, Outcome.RESUMED]
    assert len(events(system, "standing.tmux_lost")) == len(events(system, "standing.tmux_back")) == 1
    assert not events(system, "standing.exited")
    for name in names:
        assert not system.exit_ledger.restarts(recorded(system, name).uid, datetime.now(UTC) - timedelta(hours=1))


def test_nothing_is_done_while_tmux_is_silent(system: System, private: PrivateTmux) -> None:
    """A planned restart waits, and is made once tmux answers."""
    system = up(restarting(system))
    before = recorded(system, "scribe")
    crash(system)
    now = system.clock.now()
    system.exit_ledger.tell(before.instance_id or "", before.uid, now, now)
    restarts = Restarts(system)
    records = {before.instance_id or "": before}

    with private.frozen():
        restarts.turn(records)
        unchanged = recorded(system, "scribe").instance_id == before.instance_id
    waits = system.exit_ledger.due()

    assert unchanged
    assert len(waits) == 1
    system.exit_ledger.put_off(before.instance_id or "", now)
    restarts.turn(records)
    wait_until(lambda: _came_up(restarts, records), "it is up")
    assert back(system, before)


def _came_up(restarts: Restarts, records: dict[str, SessionRecord]) -> bool:
    restarts.turn(records)
    return not restarts.under_way


def test_a_failed_hold_is_refused_like_a_stop(system: System) -> None:
    """The note of a message names the crash and the start command."""
    up(system)
    crash(system)
    record = recorded(system, "scribe")
    with system.locks.hold("scribe", "test", 1):
        hold = Hold(HoldKind.FAILED, "supervisor", "too often", datetime.now(UTC))
        system.records.write(replace(record, hold=hold))

    row = get_standing(system, "scribe")
    message = waiting_message(system, "scribe")
    looker = Looker(system, lambda _: True)
    held = recorded(system, "scribe")
    decision = looker.gate(Wake.REPLY, looker.see("scribe", held), "scribe", held)

    assert row.hold is not None
    assert decision.action is Action.REFUSE
    assert decision.because.reason is Reason.FAILED
    assert message.name == "scribe"


def test_a_signal_that_the_agent_handles_is_a_crash_too(system: System) -> None:
    """SIGTERM from a stranger ends it with a status that is not 0."""
    system = up(restarting(system))
    before = recorded(system, "scribe")
    with supervising(system):
        crash(system, number=signal.SIGTERM)
        wait_until(lambda: back(system, before), "it is back")

    assert Path(system.paths.session(before.uid) / "last-output").exists()
