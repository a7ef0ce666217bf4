"""Dialogs of which no hook tells: the harness's second source decides whether an Enter may be written."""

import json
import os
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from core.chat.inbound import Inbound, NullMirror
from core.delivery.deliverer import Deliverer
from core.delivery.saying import say
from core.model.activity import ActivityState
from core.model.asking import Request, RequestKind
from core.model.channel import IncomingReply
from core.model.message import MessageState
from core.model.pane import Receipt
from core.model.posts import Mark
from core.model.reasons import Reason
from core.model.session import Binding
from core.service.watching import ObserverWorker
from core.session.system import System
from tests.integration.delivery.conftest import open_dialog
from tests.support.chat import HOME, TEAM, Chat
from tests.support.talking import record_of, rows, taken, times
from tests.support.tmux import PATIENCE, PrivateTmux, wait_until
from tests.support.world import ACTOR

S = MessageState
TARGET = "=loop-standing-scribe:"


def survey(system: System) -> list[str | None]:
    """Let the observer look once, and return whose deliveries it woke."""
    woken: list[str | None] = []
    ObserverWorker(system, woken.append).survey()
    return woken


def forget_the_dialog(system: System) -> None:
    """Let the session count as idle, as if no hook had told of its dialog."""
    system.ingest(record_of(system)[0])
    before = system.activities.get(record_of(system)[0])
    assert before is not None
    system.activities.put(replace(before, state=ActivityState.IDLE))


def status_file(system: System, private: PrivateTmux) -> Path:
    """Return the agent's status file."""
    pid = private.tmux("display-message", "-p", "-t", TARGET, "#{pane_pid}").strip()
    return system.paths.session(record_of(system)[0]) / "agent" / "sessions" / f"{pid}.json"


def age(path: Path, seconds: float) -> None:
    """Let the file be so old."""
    os.utime(path, (time.time() - seconds,) * 2)


def test_a_dialog_without_a_marker_gets_no_enter(scribe: System, private: PrivateTmux) -> None:
    """The status file says that it waits: the message is queued, and goes in once the person has answered."""
    open_dialog(scribe, private).unlink()
    forget_the_dialog(scribe)

    said = say(scribe, "scribe", "not an answer", actor=ACTOR, wait=2)

    assert said.state is S.QUEUED
    assert "Escape: none" in private.tmux("capture-pane", "-p", "-t", TARGET)
    assert not any("not an answer" in text for text in taken(scribe))
    private.tmux("send-keys", "-t", TARGET, "Enter")
    deliverer = Deliverer(scribe)
    wait_until(lambda: (deliverer.advance(record_of(scribe)[0]), rows(scribe)[-1].state)[1] is S.CONFIRMED, "it is in")
    assert times(scribe, "not an answer") == 1


def test_a_dialog_that_a_person_opens_after_the_paste_gets_no_enter(scribe: System, private: PrivateTmux) -> None:
    """The second source is asked last, right before the Enter is written."""
    uid, _ = record_of(scribe)
    deliverer = Deliverer(scribe)
    say(scribe, "scribe", "in between", actor=ACTOR, wait=0)
    deliverer.advance(uid)
    status = status_file(scribe, private)
    idle = status.read_text()
    status.write_text(json.dumps({**json.loads(idle), "status": "waiting", "waitingFor": "dialog open"}))

    for _ in range(3):
        deliverer.advance(uid)
    during = rows(scribe)[0].state
    status.write_text(idle)

    assert during is S.PASTED
    deliverer.run(uid, rows(scribe)[0].message.id, scribe.clock.now() + _seconds(PATIENCE))
    assert times(scribe, "in between") == 1


def test_a_marker_is_dropped_once_the_harness_says_that_it_waits_for_nobody(scribe: System) -> None:
    """Escape at a dialog of a background agent fires no hook; the queue is freed and woken."""
    uid, _ = record_of(scribe)
    marker = scribe.paths.session(uid) / "asking"
    marker.touch()
    age(marker, 6)

    woken = survey(scribe)

    assert not marker.exists()
    assert woken == [uid]


def test_a_marker_from_the_future_counts_from_its_first_sight(scribe: System) -> None:
    """The clock was set back: the marker stands for as long as any other, and goes then."""
    marker = scribe.paths.session(record_of(scribe)[0]) / "asking"
    marker.touch()
    age(marker, -86400)

    survey(scribe)

    assert marker.stat().st_mtime <= time.time()


def test_a_fresh_marker_stays(scribe: System) -> None:
    """The reporter writes it before the harness shows the dialog, and tells its status after."""
    marker = scribe.paths.session(record_of(scribe)[0]) / "asking"
    marker.touch()

    survey(scribe)

    assert marker.exists()


@pytest.mark.parametrize("known", [True, False], ids=["waiting", "unknown"])
def test_a_marker_stays_while_its_dialog_may_be_open(scribe: System, private: PrivateTmux, known: bool) -> None:
    """Whatever its age: the harness says that it waits, or nobody can tell."""
    marker = open_dialog(scribe, private)
    age(marker, 600)
    if not known:
        status_file(scribe, private).unlink()

    survey(scribe)

    assert marker.exists()


def test_an_escape_at_a_dialog_frees_the_queue(scribe: System, private: PrivateTmux) -> None:
    """The session is idle again by its second source, and what waited is delivered."""
    uid, _ = record_of(scribe)
    marker = open_dialog(scribe, private)
    said = say(scribe, "scribe", "after the no", actor=ACTOR, wait=1)
    private.tmux("send-keys", "-t", TARGET, "Escape")
    _wait_status(scribe, private, "idle")
    age(marker, 6)

    survey(scribe)

    activity = scribe.activities.get(uid)
    assert activity is not None
    assert (activity.state, marker.exists()) == (ActivityState.IDLE, False)
    Deliverer(scribe).run(uid, said.message_id, scribe.clock.now() + _seconds(PATIENCE))
    assert times(scribe, "after the no") == 1


def write_status(system: System, private: PrivateTmux, status: str, seconds: float) -> None:
    """Let the harness have told this so many seconds ago."""
    path = status_file(system, private)
    path.write_text(json.dumps({**json.loads(path.read_text()), "status": status}))
    age(path, seconds)


def test_a_dialog_answered_at_the_terminal_is_over_while_its_tool_runs(scribe: System, private: PrivateTmux) -> None:
    """The harness has said since that it is at work, and no longer that it waits."""
    uid, _ = record_of(scribe)
    marker = open_dialog(scribe, private)
    age(marker, 2)
    write_status(scribe, private, "busy", 1)

    woken = survey(scribe)

    activity = scribe.activities.get(uid)
    assert activity is not None
    assert (activity.state, marker.exists()) == (ActivityState.BUSY, False)
    assert uid in woken


def test_a_word_from_before_the_dialog_ends_nothing(scribe: System, private: PrivateTmux) -> None:
    """The harness was at work when the dialog opened, and has not told of it yet."""
    marker = open_dialog(scribe, private)
    age(marker, 2)
    write_status(scribe, private, "busy", 3)

    survey(scribe)

    assert marker.exists()


@pytest.mark.parametrize("asks", [True, False], ids=["its hook waits", "its hook gave up"])
def test_the_dialog_of_a_background_agent_is_not_ended_by_the_main_turn(
    scribe: System, private: PrivateTmux, asks: bool
) -> None:
    """Claude Code 2.1.197 calls itself busy while that agent's hook waits, and shows its dialog once it gave up."""
    uid, instance = record_of(scribe)
    marker = scribe.paths.session(uid) / "asking"
    marker.write_text("\n+a1b2\n")
    if asks:
        now = scribe.clock.now()
        asked = Request("r-1", "1-2-Asked", uid, "scribe", instance, "a1b2", RequestKind.PERMISSION, now, now)
        scribe.requests.add(asked)
    age(marker, 40)
    write_status(scribe, private, "busy", 39)

    survey(scribe)

    assert marker.exists() is asks


def test_a_report_that_comes_after_the_end_of_its_dialog_is_found_out(scribe: System, private: PrivateTmux) -> None:
    """Its marker went with the dialog, so nothing else could tell that nobody asks."""
    uid, _ = record_of(scribe)
    before = scribe.activities.get(uid)
    assert before is not None
    then = scribe.clock.now() - _seconds(1)
    scribe.activities.put(replace(before, state=ActivityState.PERMISSION, since=then, last_report_at=then))

    survey(scribe)

    after = scribe.activities.get(uid)
    assert after is not None
    assert after.state is ActivityState.IDLE


def test_a_dialog_that_was_left_is_found_out_without_a_service(scribe: System, private: PrivateTmux) -> None:
    """Nobody observes; whoever says something asks the second source, and the message goes in."""
    marker = open_dialog(scribe, private)
    private.tmux("send-keys", "-t", TARGET, "Escape")
    _wait_status(scribe, private, "idle")
    age(marker, 2)
    age(status_file(scribe, private), 1)

    said = say(scribe, "scribe", "after the no", actor=ACTOR)

    assert (said.state, marker.exists()) == (S.CONFIRMED, False)
    assert times(scribe, "after the no") == 1


def test_an_open_dialog_is_looked_at_between_surveys(scribe: System, private: PrivateTmux) -> None:
    """Without tmux, and for as long as it is open."""
    uid, _ = record_of(scribe)
    woken: list[str | None] = []
    worker = ObserverWorker(scribe, woken.append)
    marker = open_dialog(scribe, private)
    worker.survey()
    age(marker, 2)
    open_before = worker.look_at_dialogs()
    write_status(scribe, private, "busy", 1)

    worker.look_at_dialogs()
    open_after = worker.look_at_dialogs()

    assert (open_before, open_after) == (True, False)
    assert uid in woken


def test_a_turn_that_was_cut_off_leaves_an_input_line_to_be_emptied(scribe: System, private: PrivateTmux) -> None:
    """A harness may put the text of a turn ended by Escape back into its input line (Claude Code 2.1.197 does)."""
    uid, instance = record_of(scribe)
    say(scribe, "scribe", "sleep 30", actor=ACTOR)
    _wait_status(scribe, private, "busy")
    private.tmux("send-keys", "-t", TARGET, "Escape")
    _wait_status(scribe, private, "idle")
    private.tmux("send-keys", "-l", "-t", TARGET, "sleep 30")
    _grow_silent(scribe, uid)

    survey(scribe)

    activity = scribe.activities.get(uid)
    assert activity is not None
    assert (activity.state, activity.reason) == (ActivityState.IDLE, Reason.CUT_OFF)
    assert say(scribe, "scribe", "alone", actor=ACTOR).state is S.CONFIRMED
    pane = scribe.runner.survey().of_instance(instance)
    assert pane is not None
    assert Receipt.CLEARED in pane.receipts
    assert times(scribe, "alone") == 1
    assert not any("sleep" in text for text in taken(scribe) if "alone" in text)


def test_a_turn_that_was_cut_off_is_marked_before_another_can_begin(scribe: System, private: PrivateTmux) -> None:
    """Its end without its harness's word, and that its message came to nothing, are stored together."""
    uid, _ = record_of(scribe)
    scribe.bindings.bind(Binding("slack", TEAM, HOME, "1699.0", uid, "scribe", scribe.clock.now()))
    written = IncomingReply("slack", TEAM, HOME, "1699.0", "1700.1", "U1", "alice", TEAM, False, False, "plain",
                            "sleep 30")  # fmt: skip
    Inbound(scribe, Chat().authorized, NullMirror()).receive([written])
    deliverer = Deliverer(scribe, lambda _: True)

    def is_taken() -> bool:
        deliverer.advance(uid)
        return rows(scribe)[-1].state is S.CONFIRMED

    wait_until(is_taken, "its turn runs")
    _wait_status(scribe, private, "busy")
    private.tmux("send-keys", "-t", TARGET, "Escape")
    _wait_status(scribe, private, "idle")
    _grow_silent(scribe, uid)

    survey(scribe)

    [row] = scribe.marks.changed("slack", scribe.clock.now() - _seconds(300))
    assert row.mark is Mark.REFUSED


def test_a_message_right_after_an_escape_is_sent_alone(scribe: System, private: PrivateTmux) -> None:
    """The second source was written after the turn began, and says that none runs: nobody waits for the observer."""
    uid, _ = record_of(scribe)
    say(scribe, "scribe", "sleep 30", actor=ACTOR)
    _wait_status(scribe, private, "busy")
    private.tmux("send-keys", "-t", TARGET, "Escape")
    _wait_status(scribe, private, "idle")
    private.tmux("send-keys", "-l", "-t", TARGET, "left behind")
    believed = scribe.activities.get(uid)

    said = say(scribe, "scribe", "alone", actor=ACTOR)

    assert believed is not None
    assert (believed.state, said.state) == (ActivityState.BUSY, S.CONFIRMED)
    assert times(scribe, "alone") == 1
    assert not any("left behind" in text for text in taken(scribe))


def _grow_silent(system: System, uid: str) -> None:
    """Let the last word of the harness be older than a minute."""
    system.ingest(uid)
    before = system.activities.get(uid)
    assert before is not None
    old = system.clock.now() - _seconds(60)
    system.activities.put(replace(before, since=old, last_report_at=old, turn_started_at=old))


def _wait_status(system: System, private: PrivateTmux, status: str) -> None:
    path = status_file(system, private)
    wait_until(lambda: json.loads(path.read_text())["status"] == status, f"it is {status}")


def _seconds(count: float) -> timedelta:
    return timedelta(seconds=count)
