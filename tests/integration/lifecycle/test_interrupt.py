"""interrupt: the harness's own key, and the harness's own word about what it did."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from core.base.errors import NotRunning, Refused
from core.delivery.permission_requests import ENDED, LEFT, mark_rejected, went_on
from core.delivery.permission_requests import settle as settle_request
from core.delivery.snapshot import ask_again
from core.lifecycle.interrupt import interrupt_standing
from core.lifecycle.look import get_standing
from core.lifecycle.pause import pause_standing
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.activity import ActivityState
from core.model.asking import MAIN, Request, RequestKind, RequestState
from core.model.harness import StatusProbe
from core.model.message import MessageState
from core.model.observing import second_guess
from core.model.pane import interrupted_at
from core.model.rows import Answer
from core.model.session import Live, Outcome
from core.session.system import System
from tests.integration.lifecycle.held import activity, begin_job, deliver_until, pane_pid, tell, turns, wait_for, work
from tests.support.talking import record_of, rows, taken, times
from tests.support.tmux import PrivateTmux, wait_until
from tests.support.world import ACTOR, World, events, outcomes, recorded

TARGET = "=loop-standing-scribe:"
S = MessageState


@pytest.fixture
def world(world: World) -> World:
    """Give a world whose agent is the bundled one."""
    return replace(world, harness="bundled", declared=("scribe",))


@pytest.fixture
def scribe(system: System) -> Iterator[System]:
    """Give the ports with `scribe` started and its boot turn over."""
    assert start_standing(system, "scribe", ACTOR).ok
    wait_for(system, ActivityState.IDLE)
    yield system
    system.close()


def interrupt(system: System) -> Outcome | None:
    """Interrupt `scribe` and return the outcome."""
    return outcomes(interrupt_standing(system, "scribe", ACTOR))["scribe"]


def test_a_turn_is_ended_and_the_session_lives(scribe: System) -> None:
    """No hook tells of it; the list says idle at once, not busy for ever."""
    work(scribe)

    outcome = interrupt(scribe)

    row = get_standing(scribe, "scribe")
    assert outcome is Outcome.INTERRUPTED
    assert (row.live, row.activity) == (Live.LIVE, ActivityState.IDLE)
    assert events(scribe, "standing.interrupted")[0]["actor"] == ACTOR
    assert tell(scribe, "and now this") is S.CONFIRMED


@pytest.mark.parametrize("verb", [interrupt_standing, partial(pause_standing, hard=True)], ids=["interrupt", "pause"])
def test_a_turn_that_has_just_begun_is_ended(scribe: System, verb: Callable[[System, str, str], Answer]) -> None:
    """Its hook tells of it before its status file does, which says then what was so before."""
    status = scribe.paths.session(record_of(scribe)[0]) / "agent" / "sessions" / f"{pane_pid(scribe)}.json"
    before, at = status.read_bytes(), status.stat().st_mtime_ns
    work(scribe)
    wait_until(lambda: "busy" in status.read_text(), "the status file follows")
    status.write_bytes(before)
    os.utime(status, ns=(at, at))

    answer = verb(scribe, "scribe", ACTOR)

    assert answer.sessions[0].detail == "its turn ended"
    assert (answer.ok, activity(scribe)) == (True, ActivityState.IDLE)


def asks(system: System, kind: RequestKind, key: str) -> Request:
    """Store what the thread shows of an open dialog of `scribe`."""
    uid, instance = record_of(system)
    now = system.clock.now()
    request = Request(key, key, uid, "scribe", instance, MAIN, kind, now, now + timedelta(hours=1), tool="Bash")
    assert system.requests.add(request)
    return request


@pytest.mark.parametrize("verb", ["interrupt", "pause --hard"])
def test_whoever_rejects_a_dialog_by_a_command_is_named(scribe: System, private: PrivateTmux, verb: str) -> None:
    """It was not answered at the terminal, and what the agent asks of people by a command goes on."""
    tell(scribe, "ask permission")
    wait_for(scribe, ActivityState.PERMISSION)
    shown, question = asks(scribe, RequestKind.PERMISSION, "r-1"), asks(scribe, RequestKind.ASK, "r-2")

    if verb == "interrupt":
        interrupt(scribe)
    else:
        pause_standing(scribe, "scribe", ACTOR, hard=True)

    after = scribe.requests.get(shown.id)
    assert after is not None
    assert (after.state, after.reason) == (RequestState.GONE, f"rejected by {ACTOR}")
    assert scribe.requests.get(question.id) == question


def test_who_has_rejected_a_dialog_is_told_whoever_notices_first(scribe: System) -> None:
    """Its hook may have gone before the command has seen the end of the turn."""
    request = asks(scribe, RequestKind.PERMISSION, "r-1")
    record = scribe.records.read("scribe")
    assert record is not None

    mark_rejected(scribe, record, ACTOR)
    over = settle_request(scribe, request, RequestState.GONE, LEFT)

    assert over is not None
    assert over.reason == f"rejected by {ACTOR}"


@pytest.mark.parametrize(
    ("by", "reason"),
    [
        ("", "answered or rejected at the terminal"),
        (ACTOR, f"rejected by {ACTOR}, or answered at the terminal: it is not known which"),
    ],
    ids=["nobody", "interrupt"],
)
def test_what_became_of_a_background_agents_dialog_is_not_claimed(scribe: System, by: str, reason: str) -> None:
    """It goes on also if Escape has rejected its dialog, and no hook tells of that."""
    request = replace(asks(scribe, RequestKind.PERMISSION, "r-1"), id="r-2", key="r-2", agent="a-7")
    assert scribe.requests.add(request)
    record = recorded(scribe, "scribe")

    mark_rejected(scribe, record, by)
    went_on(scribe, record, "a-7", scribe.clock.now() + timedelta(seconds=1), everything=False)

    over = scribe.requests.get("r-2")
    assert over is not None
    assert (over.state, over.reason) == (RequestState.GONE, reason)


def test_a_session_that_ends_is_told_as_that(scribe: System) -> None:
    """Whoever had pressed a key before."""
    request = asks(scribe, RequestKind.PERMISSION, "r-1")
    record = recorded(scribe, "scribe")

    mark_rejected(scribe, record, ACTOR)
    went_on(scribe, record, MAIN, scribe.clock.now(), everything=True)

    over = scribe.requests.get(request.id)
    assert over is not None
    assert over.reason == ENDED


def test_a_key_without_effect_has_rejected_nothing(scribe: System) -> None:
    """Who answers at the terminal later is no longer taken for whoever pressed it."""
    request = asks(scribe, RequestKind.PERMISSION, "r-1")
    record = scribe.records.read("scribe")
    assert record is not None

    mark_rejected(scribe, record, ACTOR)
    mark_rejected(scribe, record, "")

    assert scribe.requests.get(request.id) == request


def test_a_shell_that_outlives_its_turn_by_a_moment_is_asked_about_again(scribe: System) -> None:
    """The status file calls it a background task, and no hook has told of one: a later look finds it gone."""
    work(scribe)
    uid, instance = record_of(scribe)
    running = scribe.activities.get(uid)
    assert running is not None
    interrupt(scribe)
    lingers = second_guess(running, StatusProbe(ActivityState.BUSY, turn_over=True), scribe.clock.now())
    scribe.activities.put(lingers)

    pane = scribe.runner.survey().of_instance(instance)
    wait_until(lambda: ask_again(scribe, recorded(scribe, "scribe"), pane), "it is asked about", seconds=5)

    row = get_standing(scribe, "scribe")
    assert (row.activity, lingers.between_turns) == (ActivityState.IDLE, True)
    assert tell(scribe, "and now this") is S.CONFIRMED


def test_a_dialog_is_rejected_and_the_answer_says_so(scribe: System, private: PrivateTmux) -> None:
    """What it asked for is not done, and the marker that keeps messages back is gone."""
    tell(scribe, "ask permission")
    wait_for(scribe, ActivityState.PERMISSION)
    wait_until(lambda: "Escape: none" in private.tmux("capture-pane", "-p", "-t", TARGET), "the dialog shows")

    answer = interrupt_standing(scribe, "scribe", ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.INTERRUPTED}
    assert "dialog was rejected" in answer.sessions[0].detail
    assert not (scribe.paths.session(record_of(scribe)[0]) / "asking").exists()
    assert activity(scribe) is ActivityState.IDLE
    assert tell(scribe, "go on") is S.CONFIRMED


def test_an_idle_session_is_refused(scribe: System) -> None:
    """An Escape there would be a key for nobody."""
    with pytest.raises(Refused, match="no turn is running"):
        interrupt_standing(scribe, "scribe", ACTOR)

    assert not events(scribe, "standing.interrupted")


def test_background_tasks_alone_are_no_turn(scribe: System) -> None:
    """They are not what an interruption ends."""
    begin_job(scribe)

    with pytest.raises(Refused, match="no turn is running"):
        interrupt_standing(scribe, "scribe", ACTOR)


def test_a_harness_without_such_a_key_is_refused(world: World) -> None:
    """The remedy is its terminal."""
    system = replace(world, harness="script").system()
    world.store.mkdir(exist_ok=True)
    assert start_standing(system, "scribe", ACTOR).ok

    with pytest.raises(Refused, match="attach scribe --write"):
        interrupt_standing(system, "scribe", ACTOR)


def test_a_stopped_session_is_refused_with_the_start_command(scribe: System) -> None:
    """Nothing runs that could be interrupted."""
    stop_standing(scribe, "scribe", ACTOR)

    with pytest.raises(NotRunning, match="`the-loop standing start scribe`"):
        interrupt_standing(scribe, "scribe", ACTOR)


def test_what_its_queue_holds_goes_on(scribe: System) -> None:
    """Only the turn is ended; the next begins with what waited, once."""
    work(scribe)
    assert tell(scribe, "the next thing") is S.ACCEPTED

    outcome = interrupt(scribe)

    assert outcome is Outcome.INTERRUPTED
    assert times(scribe, "the next thing") == 1
    deliver_until(scribe, lambda: [row.state for row in rows(scribe)] == [S.CONFIRMED] * 2, "the record is read")
    wait_for(scribe, ActivityState.IDLE)


def test_the_key_leaves_its_moment_on_the_pane(scribe: System) -> None:
    """Whoever delivers next, in whichever process, knows that the input line is in doubt."""
    work(scribe)
    before = scribe.clock.now()

    interrupt(scribe)

    pane = scribe.runner.survey().of_instance(record_of(scribe)[1])
    assert pane is not None
    at = interrupted_at(pane.receipts)
    assert at is not None
    assert before <= at <= scribe.clock.now()


def test_a_prompt_that_the_key_put_back_is_not_glued_to_the_next_message(scribe: System, private: PrivateTmux) -> None:
    """Claude Code puts it into the input line where no token had come; here it is typed there, as it would stand."""
    work(scribe)
    private.tmux("send-keys", "-t", TARGET, "-l", "the prompt that came back")
    interrupt(scribe)
    shown = "> the prompt that came back"
    wait_until(lambda: shown in private.tmux("capture-pane", "-p", "-t", TARGET), "it stands there")

    state = tell(scribe, "a message of its own")

    assert state is S.CONFIRMED
    assert times(scribe, "a message of its own") == 1
    assert not any("came back" in text for text in turns(scribe))
    assert taken(scribe)[-1].startswith("[ann via cli #")


def test_a_silent_tmux_is_unconfirmed(scribe: System, world: World, private: PrivateTmux) -> None:
    """Whether the key was written is not known, and once tmux goes on it refuses it."""
    quick = replace(world, command_seconds=0.5).system()
    work(scribe)

    with private.frozen():
        answer = interrupt_standing(quick, "scribe", ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.UNCONFIRMED}


@pytest.mark.parametrize("verb", [interrupt_standing, partial(pause_standing, hard=True)], ids=["interrupt", "pause"])
def test_a_record_that_cannot_be_read_keeps_no_turn_running(
    scribe: System, verb: Callable[[System, str, str], Answer]
) -> None:
    """The status file tells that it is over."""
    work(scribe)
    record = recorded(scribe, "scribe")
    [path] = scribe.paths.session(record.uid).rglob(f"{record.harness_session_id}.jsonl")
    os.truncate(path, 2 << 30)  # a hole, which takes no room: more than is read at all

    answer = verb(scribe, "scribe", ACTOR)

    assert (answer.ok, answer.sessions[0].detail, activity(scribe)) == (True, "its turn ended", ActivityState.IDLE)


def test_a_turn_that_was_ended_in_the_terminal_is_seen_without_a_service(scribe: System, private: PrivateTmux) -> None:
    """No hook tells of Escape, and nobody but the command that lists sessions looks."""
    work(scribe)
    before = get_standing(scribe, "scribe").activity

    private.tmux("send-keys", "-t", TARGET, "Escape")

    wait_until(lambda: get_standing(scribe, "scribe").activity is ActivityState.IDLE, "it is seen", seconds=10)
    row = get_standing(scribe, "scribe")
    assert (before, row.activity) == (ActivityState.BUSY, ActivityState.IDLE)
