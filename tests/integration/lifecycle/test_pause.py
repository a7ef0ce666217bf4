"""pause and resume: a mark that survives whatever happens, under which nothing starts and nothing is lost."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.base.errors import NotRunning, Refused, UnknownSession
from core.lifecycle.everything import start_all, stop_all
from core.lifecycle.look import get_standing
from core.lifecycle.pause import pause_standing, restart_standing, resume_standing
from core.lifecycle.recover import reconcile
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.activity import ActivityState
from core.model.message import MessageState
from core.model.reasons import Reason
from core.model.session import HoldKind, Live, Outcome
from core.model.texts import text
from core.session.system import System
from tests.integration.lifecycle.held import (
    activity,
    begin_job,
    deliver,
    deliver_until,
    end_job,
    kill,
    notices,
    tell,
    turns,
    wait_for,
    work,
)
from tests.support.talking import record_of, rows, taken, times
from tests.support.tmux import PrivateTmux, wait_until
from tests.support.world import ACTOR, World, events, outcomes, recorded

S = MessageState
TARGET = "=loop-standing-scribe:"


@pytest.fixture
def world(world: World) -> World:
    """Give a world whose agent is the bundled one."""
    world = replace(world, harness="bundled", declared=("scribe",))
    world.save()
    return world


@pytest.fixture
def scribe(system: System) -> System:
    """Give the ports with `scribe` started and its boot turn over."""
    assert start_standing(system, "scribe", ACTOR).ok
    wait_for(system, ActivityState.IDLE)
    return system


def pause(system: System, *, hard: bool = False) -> Outcome | None:
    """Pause `scribe` and return the outcome."""
    return outcomes(pause_standing(system, "scribe", ACTOR, "lunch", hard=hard))["scribe"]


def notice_kept(system: System) -> None:
    """Pause `scribe` and let a background job of its end: its notice is kept."""
    job = begin_job(system)
    pause(system)
    end_job(job)
    wait_until(lambda: notices(system), "the notice is kept")


def blocks_again(system: System) -> int:
    """Return how often a notice of `scribe` was blocked that was kept already."""
    notices(system)
    return sum("kept already" in event["reason"] for event in events(system, "standing.suppressed"))


def resume(system: System) -> Outcome | None:
    """Resume `scribe` and return the outcome."""
    return outcomes(resume_standing(system, "scribe", ACTOR))["scribe"]


# ---------------------------------------------------------------- the mark


def test_pause_marks_the_record_and_blocks_the_hook(scribe: System) -> None:
    """Who, why, how and when stand in the record; the file stands as long as the mark does."""
    outcome = pause(scribe)

    record = recorded(scribe, "scribe")
    assert outcome is Outcome.PAUSED
    assert record.hold is not None
    assert (record.hold.kind, record.hold.by, record.hold.reason) == (HoldKind.PAUSED, ACTOR, "lunch")
    assert (record.hold.policy, record.generation) == ("soft", 1)
    assert (scribe.paths.session(record.uid) / "hold").exists()
    assert events(scribe, "standing.paused")[0]["detail"] == "soft"


def test_a_second_pause_changes_nothing_but_that_hard_follows_soft(scribe: System) -> None:
    """A mark is never weakened, nor made anew."""
    pause(scribe)
    first = recorded(scribe, "scribe").hold
    pause(scribe)
    again = recorded(scribe, "scribe").hold
    pause(scribe, hard=True)
    harder = recorded(scribe, "scribe").hold
    pause(scribe)
    last = recorded(scribe, "scribe").hold

    assert first == again
    assert harder is not None
    assert (harder.policy, last) == ("hard", harder)


def test_resume_clears_the_mark_and_the_file(scribe: System) -> None:
    """What follows goes in as before."""
    pause(scribe)

    outcome = resume(scribe)

    record = recorded(scribe, "scribe")
    assert (outcome, record.hold) == (Outcome.UNPAUSED, None)
    assert not (scribe.paths.session(record.uid) / "hold").exists()
    assert tell(scribe, "hello again") is S.CONFIRMED


def test_resume_of_a_session_that_is_not_paused_says_so(scribe: System) -> None:
    """It is no failure."""
    answer = resume_standing(scribe, "scribe", ACTOR)

    assert (outcomes(answer), answer.ok) == ({"scribe": Outcome.NOT_PAUSED}, True)


@pytest.mark.parametrize("verb", [pause_standing, resume_standing])
def test_a_stopped_session_is_refused_with_the_start_command(
    scribe: System, verb: Callable[[System, str, str], object]
) -> None:
    """There is no turn to hold back, and the stop mark says more."""
    stop_standing(scribe, "scribe", ACTOR)

    with pytest.raises(NotRunning, match="the session was stopped; start it: `the-loop standing start scribe`"):
        verb(scribe, "scribe", ACTOR)

    hold = recorded(scribe, "scribe").hold
    assert hold is not None
    assert hold.kind is HoldKind.STOPPED


def test_unknown_and_never_started_ones_are_refused(system: System) -> None:
    """A name that nobody knows, and one that never ran."""
    with pytest.raises(UnknownSession):
        pause_standing(system, "nobody", ACTOR)
    with pytest.raises(NotRunning, match="never started"):
        pause_standing(system, "scribe", ACTOR)


def test_a_hard_pause_is_refused_where_no_key_ends_a_turn(world: World) -> None:
    """It says so before anything is marked."""
    system = replace(world, harness="script").system()
    world.store.mkdir(exist_ok=True)
    assert start_standing(system, "scribe", ACTOR).ok

    with pytest.raises(Refused, match="no key is known that ends a turn of script"):
        pause_standing(system, "scribe", ACTOR, hard=True)

    assert recorded(system, "scribe").hold is None


# ---------------------------------------------------------------- the turn


def test_a_soft_pause_lets_the_turn_end_by_itself(scribe: System, private: PrivateTmux) -> None:
    """The answer is given, and then it is silent."""
    tell(scribe, "ask permission")  # a turn that ends when the test says so
    wait_for(scribe, ActivityState.PERMISSION)
    wait_until(lambda: "Escape: none" in private.tmux("capture-pane", "-p", "-t", TARGET), "the dialog shows")

    pause(scribe)
    private.tmux("send-keys", "-t", TARGET, "Enter")

    wait_until(lambda: "I was allowed to" in private.tmux("capture-pane", "-p", "-t", TARGET), "the answer is given")
    wait_for(scribe, ActivityState.IDLE)
    assert not events(scribe, "standing.interrupted")
    assert not [event for event in events(scribe, "standing.suppressed") if event["reason"] == "the session is held"]


def test_a_hard_pause_interrupts_the_turn(scribe: System) -> None:
    """It is over by the harness's own word, and the session lives."""
    work(scribe)

    answer = pause_standing(scribe, "scribe", ACTOR, hard=True)

    assert outcomes(answer) == {"scribe": Outcome.PAUSED}
    assert answer.sessions[0].detail == "its turn ended"
    assert activity(scribe) is ActivityState.IDLE
    assert get_standing(scribe, "scribe").live is Live.LIVE


def test_a_hard_pause_of_an_idle_session_says_that_no_turn_ran(scribe: System) -> None:
    """The mark is what was wanted."""
    answer = pause_standing(scribe, "scribe", ACTOR, hard=True)

    assert outcomes(answer) == {"scribe": Outcome.PAUSED}
    assert answer.sessions[0].detail == "no turn was running"


def test_what_the_harness_had_queued_starts_no_turn_and_is_not_lost(scribe: System) -> None:
    """The turn-start hook gives it back to our queue, where it is before what comes later."""
    work(scribe)
    assert tell(scribe, "second") is S.ACCEPTED
    assert tell(scribe, "third") is S.ACCEPTED

    pause(scribe, hard=True)

    wait_until(
        lambda: [row.state for row in rows(scribe)[1:]] == [S.PENDING, S.PENDING] or activity(scribe) is None,
        "it is given back",
    )
    assert tell(scribe, "fourth") is S.QUEUED
    assert not any("second" in text or "third" in text for text in turns(scribe))

    resume(scribe)

    assert times(scribe, "fourth") == 1
    texts = [text.split("] ", 1)[1].strip() for text in taken(scribe)[2:]]
    assert texts == ["second", "third", "fourth"]


def test_a_queue_is_not_taken_back_into_text_that_somebody_left(scribe: System, private: PrivateTmux) -> None:
    """The key would join both, and the line is emptied behind it: the pause says what is left, and the text stands."""
    work(scribe)
    assert tell(scribe, "second") is S.ACCEPTED
    private.tmux("send-keys", "-t", TARGET, "-l", "half a thought")
    wait_until(lambda: "> half a thought" in private.tmux("capture-pane", "-p", "-t", TARGET), "it is typed")

    answer = pause_standing(scribe, "scribe", ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.UNCONFIRMED}
    assert "half-typed" in answer.sessions[0].detail
    assert "> half a thought" in private.tmux("capture-pane", "-p", "-t", TARGET)
    assert [row.state for row in rows(scribe)[1:]] == [S.ACCEPTED]


# ---------------------------------------------------------------- the queue


def test_what_is_said_under_a_pause_waits_and_goes_in_in_order(scribe: System) -> None:
    """Each says how many are before it; the resume takes them in without a service."""
    pause(scribe)
    states = [tell(scribe, f"number {number}") for number in range(3)]
    waiting = [row.detail for row in rows(scribe)]

    outcome = resume(scribe)

    assert states == [S.QUEUED] * 3
    assert waiting == [
        "the session is paused",
        "the session is paused; 1 message is ahead",
        "the session is paused; 2 messages are ahead",
    ]
    assert outcome is Outcome.UNPAUSED
    assert [row.state for row in rows(scribe)] == [S.CONFIRMED] * 3
    assert times(scribe, "number 2") == 1
    assert [text.split("number ")[1].strip() for text in taken(scribe)[1:]] == ["0", "1", "2"]


def test_a_full_queue_refuses_with_the_limit(scribe: System) -> None:
    """It is bounded, and says by what."""
    system = replace(
        scribe, settings=scribe.settings._replace(limits=scribe.settings.limits._replace(queued_per_session=1))
    )
    pause(system)
    tell(system, "one")

    with pytest.raises(Refused, match=r"limits.queuedPerSession is 1"):
        tell(system, "two")


# ---------------------------------------------------------------- what it survives


def test_it_survives_a_dead_agent_and_a_start_by_name(scribe: System) -> None:
    """The session comes back paused, with what waits; resuming it while it is dead is refused, so that nothing is."""
    pause(scribe)
    tell(scribe, "after all that")
    kill(scribe)

    with pytest.raises(NotRunning, match="stays paused"):
        resume_standing(scribe, "scribe", ACTOR)
    answer = start_standing(scribe, "scribe", ACTOR)
    deliver(scribe)

    hold = recorded(scribe, "scribe").hold
    assert outcomes(answer) == {"scribe": Outcome.RESUMED}
    assert hold is not None
    assert (hold.kind, rows(scribe)[0].state) == (HoldKind.PAUSED, S.QUEUED)
    assert resume(scribe) is Outcome.UNPAUSED
    assert times(scribe, "after all that") == 1


def test_it_survives_a_restart(scribe: System) -> None:
    """Queue and pause are kept."""
    pause(scribe)
    tell(scribe, "kept words")

    answer = restart_standing(scribe, "scribe", ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.RESUMED}
    assert recorded(scribe, "scribe").hold is not None
    assert resume(scribe) is Outcome.UNPAUSED
    assert times(scribe, "kept words") == 1


def test_it_survives_the_end_of_everything(scribe: System, private: PrivateTmux) -> None:
    """`the-loop stop`, a reboot, and a boot's sweep, which starts nothing that is held."""
    pause(scribe)
    tell(scribe, "kept words")

    stop_all(scribe, ACTOR)
    private.close()
    swept = start_all(scribe, "supervisor")
    by_name = start_standing(scribe, "scribe", ACTOR)

    assert outcomes(swept) == {"scribe": Outcome.HELD}
    assert outcomes(by_name) == {"scribe": Outcome.RESUMED}
    assert recorded(scribe, "scribe").hold is not None
    assert resume(scribe) is Outcome.UNPAUSED
    assert times(scribe, "kept words") == 1


def test_a_conversation_that_begins_under_a_pause_waits_with_its_boot_prompt(scribe: System) -> None:
    """The conversation is lost: the fresh one gets its directive first, once it is resumed."""
    pause(scribe)
    tell(scribe, "then this")
    stop_all(scribe, ACTOR)
    record = recorded(scribe, "scribe")
    scribe.records.write(replace(record, harness_session_id=None))

    answer = start_standing(scribe, "scribe", ACTOR)

    assert outcomes(answer) == {"scribe": Outcome.STARTED}
    assert turns(scribe) == []
    assert resume(scribe) is Outcome.UNPAUSED
    assert times(scribe, "then this") == 1
    assert "You are the standing session" in taken(scribe)[0]


def test_reconcile_rewrites_the_file_that_goes_with_the_mark(scribe: System) -> None:
    """Whoever removed it, the mark is the truth."""
    pause(scribe)
    file = scribe.paths.session(record_of(scribe)[0]) / "hold"
    file.unlink()

    reconcile(scribe, ACTOR)

    assert file.exists()


def test_a_stale_file_keeps_no_message_from_its_turn(scribe: System) -> None:
    """A pause that died before its mark held nothing back for good."""
    (scribe.paths.session(record_of(scribe)[0]) / "hold").touch()

    state = tell(scribe, "not held")

    assert state is S.CONFIRMED


def test_the_reason_of_a_pause_is_kept_as_words_for_people(scribe: System) -> None:
    """Without what a terminal acts on, and without halves of surrogate pairs."""
    pause_standing(scribe, "scribe", ACTOR, "\udcff\x1b]0;lunch\x07")

    hold = recorded(scribe, "scribe").hold
    assert hold is not None
    assert hold.reason == "]0;lunch"


def test_a_silent_tmux_leaves_the_mark_alone(scribe: System, world: World, private: PrivateTmux) -> None:
    """A pause is kept and said to be unconfirmed where it was to interrupt; a resume waits for tmux."""
    quick = replace(world, command_seconds=0.5).system()
    work(scribe)

    with private.frozen():
        paused = pause_standing(quick, "scribe", ACTOR, hard=True)
        resumed = resume_standing(quick, "scribe", ACTOR)

    assert outcomes(paused) == outcomes(resumed) == {"scribe": Outcome.UNCONFIRMED}
    assert recorded(scribe, "scribe").hold is not None


# ---------------------------------------------------------------- what is born inside


def test_a_background_job_that_ends_under_a_pause_waits_as_a_notice(scribe: System) -> None:
    """It starts no turn; once it is resumed it is told, in its place."""
    job = begin_job(scribe)
    pause(scribe)
    tell(scribe, "what came first")
    before = len(turns(scribe))
    end_job(job)
    wait_until(lambda: notices(scribe), "the notice is kept")
    [kept] = notices(scribe)

    resume(scribe)  # takes in what came first; the notice may have to wait for the end of its turn

    assert kept.state in (S.PENDING, S.QUEUED)
    deliver_until(scribe, lambda: notices(scribe)[0].state is S.CONFIRMED, "the notice went in")
    assert times(scribe, "<task-notification>") == 1
    first, second = turns(scribe)[before:]
    assert "what came first" in first
    assert "<task-notification>" in second


def test_a_notice_is_kept_once_however_often_the_harness_brings_it(scribe: System) -> None:
    """A blocked one comes back at each start of the conversation; it is known by its task."""
    notice_kept(scribe)

    restart_standing(scribe, "scribe", ACTOR)
    wait_until(lambda: blocks_again(scribe) == 1, "it was blocked again")
    restart_standing(scribe, "scribe", ACTOR)
    wait_until(lambda: blocks_again(scribe) == 2, "it was blocked once more")

    assert len(notices(scribe)) == 1


def test_a_notice_too_many_is_refused_with_the_limit(scribe: System, world: World) -> None:
    """The queue is bounded for what is born inside as well; the harness brings it again at its next resume."""
    limits = scribe.settings.limits._replace(queued_per_session=1)
    system = world.system(world.settings()._replace(limits=limits))
    job = begin_job(system)
    pause(system)
    tell(system, "takes the only place")

    end_job(job)
    wait_until(lambda: notices(system), "the notice is kept")

    [row] = notices(system)
    assert row.state is S.REFUSED
    assert "limits.queuedPerSession is 1" in row.detail


def test_a_repeat_of_a_notice_that_was_delivered_is_let_through_and_posts_nothing(scribe: System) -> None:
    """The harness tells it at the next start, once; the thread has had the answer."""
    notice_kept(scribe)
    resume(scribe)
    wait_until(lambda: notices(scribe)[0].state is S.CONFIRMED, "it was delivered")
    wait_for(scribe, ActivityState.IDLE)
    before = len(turns(scribe))

    restart_standing(scribe, "scribe", ACTOR)

    wait_until(lambda: len(turns(scribe)) == before + 1, "the harness repeats it")
    wait_for(scribe, ActivityState.IDLE)
    said = [event["reason"] for event in events(scribe, "standing.suppressed")]
    assert "the harness repeats a notice that was already delivered" in said
    restart_standing(scribe, "scribe", ACTOR)
    tell(scribe, "after that")
    assert times(scribe, "after that") == 1
    assert "after that" in turns(scribe)[before + 1]


def test_a_task_that_a_stop_ended_is_told_at_the_next_start_and_posts_nothing(scribe: System) -> None:
    """The harness begins a turn for it by itself; it is let through, and nobody waits for its answer."""
    begin_job(scribe)
    stop_standing(scribe, "scribe", ACTOR)

    start_standing(scribe, "scribe", ACTOR)

    wait_until(lambda: "<task-notification>" in turns(scribe)[-1], "the harness tells it")
    wait_for(scribe, ActivityState.IDLE)
    assert text(Reason.LEFT_OVER) in [event["reason"] for event in events(scribe, "standing.suppressed")]


def test_what_a_person_types_under_a_pause_is_never_blocked(scribe: System, private: PrivateTmux) -> None:
    """The terminal is theirs."""
    pause(scribe)

    private.tmux("send-keys", "-t", TARGET, "typed by hand", "Enter")

    assert times(scribe, "typed by hand") == 1


def test_background_jobs_go_on_under_a_hard_pause(scribe: System) -> None:
    """Only the turn is interrupted."""
    begin_job(scribe)
    work(scribe)

    pause(scribe, hard=True)

    row = get_standing(scribe, "scribe")
    assert len(row.pending_tasks) == 1
    assert row.activity is ActivityState.BUSY
