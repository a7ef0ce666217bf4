"""resume where no service runs: what can go in goes in, and what waits for more holds nobody up."""

import time
from dataclasses import replace

import pytest

from core.base.names import new_marker, new_message_id
from core.lifecycle.interrupt import interrupt_standing
from core.lifecycle.pause import pause_standing, resume_standing
from core.lifecycle.start import start_standing
from core.model.activity import ActivityState
from core.model.message import Kind, MessageState, NewMessage, ReplyAddress
from core.model.reasons import Because, Reason
from core.session.system import System
from tests.integration.lifecycle.held import begin_job, deliver_until, end_job, notices, tell, turns, wait_for
from tests.support.talking import rows, times
from tests.support.tmux import wait_until
from tests.support.world import ACTOR, World, recorded

S = MessageState
LATE = Because(Reason.CONFIRM, {"late": "written long ago"})
_LONG = 15.0  #: seconds: half of what a resume takes at most, and many times what it takes where nothing can go in
WAITS = "no service is running, and 1 still waits"


@pytest.fixture
def world(world: World) -> World:
    """Give a world whose agent is the bundled one."""
    return replace(world, harness="bundled", declared=("scribe",))


@pytest.fixture
def paused(system: System) -> System:
    """Give the ports with a paused `scribe`."""
    assert start_standing(system, "scribe", ACTOR).ok
    wait_for(system, ActivityState.IDLE)
    pause_standing(system, "scribe", ACTOR)
    return system


def resumed(system: System) -> tuple[str, float]:
    """Resume, and return what was said of the messages and how many seconds it took."""
    began = time.monotonic()
    answer = resume_standing(system, "scribe", ACTOR)
    return answer.sessions[0].detail, time.monotonic() - began


def reply(system: System, because: Because) -> NewMessage:
    """Commit a reply from a thread, which waits for what `because` says, and return it."""
    record, now, ident = recorded(system, "scribe"), system.clock.now(), new_message_id()
    address = ReplyAddress("slack", "T1", "C1", "1.1", f"{now.timestamp():.6f}")
    message = NewMessage(
        ident, f"slack:{ident}", record.uid, "scribe", record.generation, Kind.REPLY, "slack:U1", "alice", "slack",
        new_marker(), "a reply", False, int(now.timestamp() * 1e6), now, address,
    )  # fmt: skip
    system.inbox.add([message])
    row = system.inbox.get(ident)
    assert row is not None
    system.inbox.advance(row, S.QUEUED, because)
    return message


def test_a_notice_behind_a_turn_that_runs_waits_and_holds_no_resume_up(system: System) -> None:
    """That is said at once, also where it was so before; the notice goes in once the turn is over."""
    assert start_standing(system, "scribe", ACTOR).ok
    wait_for(system, ActivityState.IDLE)
    job = begin_job(system)
    pause_standing(system, "scribe", ACTOR)
    tell(system, "sleep 60")
    end_job(job)
    wait_until(lambda: notices(system), "the notice is kept")

    first, _ = resumed(system)
    pause_standing(system, "scribe", ACTOR)
    second, took = resumed(system)

    assert (first, second) == (f"2 messages waited; {WAITS}", f"1 message waited; {WAITS}")
    assert took < _LONG
    assert [row.state for row in notices(system)] == [S.QUEUED]
    assert "<task-notification>" not in turns(system)[-1]
    interrupt_standing(system, "scribe", ACTOR)
    deliver_until(system, lambda: notices(system)[0].state is S.CONFIRMED, "the notice went in")
    assert times(system, "<task-notification>") == 1


@pytest.mark.parametrize("because", [LATE, Because(Reason.FETCHING), Because(Reason.NEEDS_SERVICE)])
def test_a_reply_that_only_others_can_let_in_holds_no_resume_up(paused: System, because: Because) -> None:
    """A person must say so, or a service: it waits on, and the answer says that."""
    message = reply(paused, because)

    said, took = resumed(paused)

    row = paused.inbox.get(message.id)
    assert row is not None
    assert (said, row.state, row.because) == (f"1 message waited; {WAITS}", S.QUEUED, because)
    assert took < _LONG


def test_what_a_person_must_confirm_first_keeps_nothing_behind_it(paused: System) -> None:
    """What was said after it goes in, and is told as gone in."""
    reply(paused, LATE)
    tell(paused, "said later")

    said, took = resumed(paused)

    assert said == f"2 messages waited; {WAITS}"
    assert took < _LONG
    assert times(paused, "said later") == 1
    assert [row.state for row in rows(paused)] == [S.QUEUED, S.CONFIRMED]
