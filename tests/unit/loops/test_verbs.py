"""What people and agents may do with loops."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from core.base.errors import InvalidValue, OtherSession, Refused, UnknownLoop, UnknownSession
from core.base.values import replace
from core.loops.verbs import (
    Asker,
    LoopAnswer,
    TooManyLoops,
    bounds_of,
    create_loop,
    list_loops,
    new_loop,
    pause_loop,
    resume_loop,
    run_loop_now,
    schedule_next_run,
    stop_loop,
)
from core.model.loop import Held, Loop, LoopRequest, LoopRun, LoopStatus, RunState, run_key, understood
from core.model.message import Kind, MessageState
from core.model.session import Definition, Hold, HoldKind, Phase, Status
from core.process.presence import ServiceLock
from core.session.system import System
from tests.unit.loops.conftest import a_session
from tests.unit.store.samples import NOON, StandingClock, a_message

SCRIBE, OTHER, ANN = Asker("agent:scribe", "s-scribe"), Asker("agent:other", "s-other"), Asker("cli:ann")
EVERY = LoopRequest("look at the migration", interval="5m")
MINUTE = timedelta(minutes=1)


def _made(system: System, asked: LoopRequest = EVERY) -> Loop:
    loop = create_loop(system, SCRIBE, "", asked).loop
    assert loop is not None
    return loop


def _now(system: System, loop: Loop) -> Loop:
    found = system.loops.get(loop.id)
    assert found is not None
    return found


def _events(system: System, loop: Loop) -> list[dict[str, Any]]:
    lines = system.paths.events.read_text().splitlines()
    return [event for event in map(json.loads, lines) if loop.id in (event.get("detail") or "")]


def _notes(system: System) -> list[str]:
    return [row.post.text for row in system.outbox.due("slack", NOON + timedelta(days=1))]


def _waiting(system: System, loop: Loop, clock: StandingClock) -> LoopRun:
    """Claim the loop's next run, and commit its tick."""
    clock.moment = loop.next_run_at or clock.moment
    ((_, run),) = system.loops.claim(clock.moment, "one", clock.moment + MINUTE, 1)
    tick = a_message(7, id="m-tick", key=run_key(run.id), run=run.id, kind=Kind.TICK)
    system.inbox.add([tick])
    sent = system.loops.move_run(run, state=RunState.SENT, message_id="m-tick")
    assert sent is not None
    return sent


# ---------------------------------------------------------------- create


def test_a_loop_is_made_and_told(system: System) -> None:
    """The answer has the loop with its fixed keys, the session's loops and a sentence; the log has an event."""
    answer = create_loop(system, SCRIBE, "", LoopRequest(" check it\r\n", interval="1.5h", keep_alive=True, max_runs=3))
    told = answer.to_json()

    assert answer.loop is not None
    assert told["loop"] == {
        "id": answer.loop.id,
        "session": "scribe",
        "declared": None,
        "mode": "interval",
        "instruction": "check it",
        "interval": "1h30m",
        "cron": None,
        "timeZone": None,
        "keepAlive": True,
        "maxRuns": 3,
        "status": "active",
        "held": None,
        "runCount": 0,
        "lastRunAt": None,
        "lastResult": None,
        "lastError": None,
        "nextRunAt": "2026-05-04T13:30:00.123456Z",
        "reason": None,
        "createdBy": "agent:scribe",
        "createdAt": "2026-05-04T12:00:00.123456Z",
    }
    assert told["loops"] == [told["loop"]]
    assert told["said"].startswith(f"{answer.loop.id} runs every 1h30m, first at 2026-05-04 13:30:00 UTC")
    assert [event["event"] for event in _events(system, answer.loop)] == ["loop.created"]


def test_answers_say_what_keeps_a_loop_from_firing(system: System) -> None:
    """No service, or a session that is not there, with the command that ends it; nothing is promised meanwhile."""
    unserved = create_loop(system, SCRIBE, "", LoopRequest("look", interval="5m", max_runs=1))
    record = system.records.read("scribe")
    assert record is not None
    assert unserved.loop is not None
    system.records.write(replace(record, hold=Hold(HoldKind.STOPPED, "cli:ann", "", NOON)))
    stopped = run_loop_now(system, SCRIBE, unserved.loop.id)
    system.records.write(replace(record, status=Status.STOPPED))
    never = create_loop(system, SCRIBE, "", LoopRequest("look", interval="5m"))
    system.records.write(replace(record, hold=Hold(HoldKind.PAUSED, "cli:ann", "", NOON)))
    lock = ServiceLock(system.paths.service_lock)
    lock.take()
    paused = create_loop(system, SCRIBE, "", LoopRequest("look", interval="5m"))
    lock.release()

    assert "after one run or after" in unserved.said
    assert unserved.said.endswith("; no service is running, and only a service fires loops: `the-loop start`")
    assert "but its session is stopped: it waits for `the-loop standing start scribe`; no service" in stopped.said
    assert "but its session is not running: it waits for `the-loop standing start scribe`; no service" in never.said
    assert paused.said.endswith(", but its session is paused: it waits for `the-loop standing resume scribe`")


def test_a_declared_loop_that_has_ended_is_changed_in_its_entry(system: System) -> None:
    """A new one by hand would not be it."""
    record = system.records.read("scribe")
    assert record is not None
    spec = understood(LoopRequest("look", interval="5m"), bounds_of(system.settings), NOON)
    loop = new_loop(record, spec, "config", system.clock.now(), "builds", "d")
    system.loops.add(loop, 5)
    stop_loop(system, SCRIBE, loop.id)

    with pytest.raises(Refused, match="change its entry in the configuration"):
        resume_loop(system, SCRIBE, loop.id)
    assert (
        list_loops(system.settings, system.records, system.loops, SCRIBE).to_json()["loops"][0]["declared"] == "builds"
    )


def test_keep_alive_without_an_interval_is_rejected(system: System) -> None:
    """A future whose heartbeat depends on an agent that remembers it each turn is none."""
    with pytest.raises(InvalidValue, match="keep-alive loop needs an interval or a cron expression"):
        create_loop(system, SCRIBE, "", LoopRequest("look", keep_alive=True))
    assert list_loops(system.settings, system.records, system.loops, SCRIBE).loops == ()


def test_keep_alive_goes_with_a_cron_expression(system: System) -> None:
    """It is a cadence as an interval is; the loop runs in its zone."""
    loop = _made(system, LoopRequest("look", cron="0 9 * * *", time_zone="Europe/Berlin", keep_alive=True))

    assert loop.keep_alive
    assert loop.next_run_at is not None
    assert (loop.next_run_at - timedelta(seconds=30)).strftime("%H:%M") <= "07:00"


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (LoopRequest("  \n"), "instruction is empty"),
        (LoopRequest("\x1b\x07"), "instruction is empty"),
        (LoopRequest("x" * 4001), "4,001 characters"),
        (LoopRequest("x", interval="5m", cron="* * * * *"), "two cadences"),
        (LoopRequest("x", interval="5m", time_zone="UTC"), "without a cron expression"),
        (LoopRequest("x", interval="soon"), "'soon'"),
        (LoopRequest("x", interval="5s"), "out of bounds"),
        (LoopRequest("x", cron="0 0 30 2 *"), "never comes true"),
        (LoopRequest("x", cron="* * * * *", time_zone="Mars/Olympus"), "IANA"),
        (LoopRequest("x", interval="5m", max_runs=0), "at most 0 times"),
    ],
)
def test_what_cannot_be_a_loop_is_refused(system: System, asked: LoopRequest, why: str) -> None:
    """With what was given and the rule; nothing is stored."""
    with pytest.raises(InvalidValue, match=why):
        create_loop(system, SCRIBE, "", asked)
    assert list_loops(system.settings, system.records, system.loops, SCRIBE).loops == ()


def test_an_instruction_of_four_thousand_characters_is_whole(system: System) -> None:
    """Control characters do not count, since they go."""
    assert len(_made(system, LoopRequest("x" * 4000 + "\x00\x00", interval="5m")).instruction) == 4000


def test_a_session_has_so_many_open_loops_and_no_more(system: System) -> None:
    """The refusal names the key and the way out; a loop that is stopped makes room."""
    loops = [_made(system) for _ in range(5)]
    with pytest.raises(TooManyLoops, match=r"5 open loops.*loops\.maxOpenPerSession.*stop one"):
        _made(system)

    stop_loop(system, SCRIBE, loops[0].id)

    assert _made(system).status is LoopStatus.ACTIVE


def test_a_dynamic_loop_runs_at_once(system: System) -> None:
    """It says what ends it."""
    answer = create_loop(system, SCRIBE, "", LoopRequest("look"))

    assert answer.loop is not None
    assert answer.loop.next_run_at == NOON
    assert "when one of its turns schedules no next run" in answer.said


def test_a_session_that_is_being_deleted_gets_no_loop(system: System) -> None:
    """It would end at once."""
    system.records.write(replace(a_session("scribe"), phase=Phase.DELETING))

    with pytest.raises(Refused, match="being deleted"):
        create_loop(system, ANN, "scribe", EVERY)


def test_an_operator_names_a_session_that_is_there(system: System) -> None:
    """No name, an unknown one, and the name of a session are three answers."""
    with pytest.raises(InvalidValue, match="no session is named"):
        create_loop(system, ANN, "", EVERY)
    with pytest.raises(UnknownSession):
        create_loop(system, ANN, "nobody", EVERY)
    made = create_loop(system, ANN, "other", EVERY).loop
    assert made is not None
    assert (made.name, made.created_by) == ("other", "cli:ann")


# ---------------------------------------------------------------- whose loop it is


def test_an_agent_has_the_loops_of_its_own_session_alone(system: System) -> None:
    """To it no other loop exists, and no other session is its own."""
    loop = _made(system)

    for verb in (stop_loop, pause_loop, resume_loop, run_loop_now):
        with pytest.raises(UnknownLoop, match="no loop has the id"):
            verb(system, OTHER, loop.id)
    with pytest.raises(UnknownLoop):
        schedule_next_run(system, OTHER, loop.id, "5m")
    with pytest.raises(OtherSession, match="only the loops of its own session"):
        list_loops(system.settings, system.records, system.loops, OTHER, "scribe")
    with pytest.raises(OtherSession, match="only the loops of its own session"):
        create_loop(system, OTHER, "scribe", EVERY)
    assert list_loops(system.settings, system.records, system.loops, OTHER).loops == ()
    assert [
        found.id for found in list_loops(system.settings, system.records, system.loops, SCRIBE, "scribe").loops
    ] == [loop.id]


def test_an_operator_sees_the_open_loops_of_all(system: System) -> None:
    """With a name also those that have ended."""
    kept, ended = _made(system), _made(system)
    other = create_loop(system, ANN, "other", EVERY).loop
    stop_loop(system, SCRIBE, ended.id)
    assert other is not None

    assert {loop.id for loop in list_loops(system.settings, system.records, system.loops, ANN).loops} == {
        kept.id,
        other.id,
    }
    answer = list_loops(system.settings, system.records, system.loops, ANN, "scribe")
    assert [loop.id for loop in answer.loops] == [kept.id, ended.id]
    assert (answer.loop, answer.said) == (None, "1 open loop")


def test_a_session_that_was_never_started_has_no_loops(system: System) -> None:
    """A name that nobody knows is an error."""
    with pytest.raises(UnknownSession):
        list_loops(system.settings, system.records, system.loops, ANN, "nobody")


# ---------------------------------------------------------------- stop


def test_a_stopped_loop_stays_stopped_and_its_thread_is_told_once(system: System, clock: StandingClock) -> None:
    """Its reason is kept, what waits of it is cancelled, and stopping it again changes nothing."""
    loop = _made(system)
    run = _waiting(system, loop, clock)

    answer = stop_loop(system, SCRIBE, loop.id, "the migration\nis done")
    again = stop_loop(system, SCRIBE, loop.id, "another reason")

    stopped, row = _now(system, loop), system.inbox.get("m-tick")
    assert (stopped.status, stopped.reason, stopped.next_run_at) == (LoopStatus.STOPPED, "the migration is done", None)
    assert stopped.ended_at == clock.moment
    assert row is not None
    assert (row.state, row.detail) == (MessageState.CANCELLED, "its loop was stopped")
    over = system.loops.run(run.id)
    assert over is not None
    assert (over.state, over.outcome) == (RunState.OVER, "cancelled")
    assert answer.said == f"{loop.id} is stopped: the migration is done"
    assert again.said == f"{loop.id} had ended before: it is stopped (the migration is done)"
    assert _notes(system) == [
        f'Loop `{loop.id}` ("look at the migration") was stopped by agent:scribe: the migration is done; '
        "it has never run."
    ]
    events = [(event["event"], event["actor"], event.get("reason")) for event in _events(system, loop)]
    assert events[1:] == [("loop.stopped", "agent:scribe", "the migration is done")]


def test_a_loop_that_its_own_turn_stops_leaves_no_open_run(system: System, clock: StandingClock) -> None:
    """The turn took the tick: that counts as a run that was delivered."""
    loop = _made(system)
    waiting = _waiting(system, loop, clock)
    run = system.loops.move_run(waiting, state=RunState.TAKEN, taken_at=clock.moment, outcome="delivered")
    assert run is not None

    stop_loop(system, SCRIBE, loop.id, "done")

    over = system.loops.run(run.id)
    assert over is not None
    assert (over.state, over.outcome) == (RunState.OVER, "delivered")


def test_a_tick_that_is_on_its_way_is_left_to_settle(system: System, clock: StandingClock) -> None:
    """It may be in the pane already: its row tells how the run went."""
    loop = _made(system)
    run = _waiting(system, loop, clock)
    row = system.inbox.get("m-tick")
    assert row is not None
    system.inbox.advance(row, MessageState.CLAIMED, attempt=1)

    stop_loop(system, ANN, loop.id)

    assert system.loops.open_runs() == (run,)


def test_a_session_without_a_thread_is_told_nothing(system: System) -> None:
    """The event log has it all the same."""
    system.records.write(replace(a_session("scribe"), definition=Definition("scribe")))
    loop = _made(system)

    stop_loop(system, ANN, loop.id)

    assert _notes(system) == []
    assert _events(system, loop)[-1]["reason"] == "stopped by cli:ann"


def test_a_loop_that_nobody_knows_cannot_be_stopped(system: System) -> None:
    """The answer says where ids are shown."""
    with pytest.raises(UnknownLoop, match=r"loop_zzzzzz.*the-loop loop list"):
        stop_loop(system, ANN, "loop_zzzzzz")


# ---------------------------------------------------------------- pause, resume, run


def test_pause_and_resume_are_idempotent_and_say_so(system: System, clock: StandingClock) -> None:
    """A paused one is not claimed; what was due meanwhile is not caught up."""
    loop = _made(system)
    _waiting(system, loop, clock)

    paused, again = pause_loop(system, SCRIBE, loop.id, "a break"), pause_loop(system, SCRIBE, loop.id)
    clock.moment += timedelta(hours=3)
    claimed = system.loops.claim(clock.moment, "one", clock.moment + MINUTE, 9)
    resumed, more = resume_loop(system, SCRIBE, loop.id), resume_loop(system, SCRIBE, loop.id)

    assert "is paused; " in paused.said
    assert "was paused before" in again.said
    assert claimed == ()
    row = system.inbox.get("m-tick")
    assert row is not None
    assert row.state is MessageState.CANCELLED
    assert "goes on, next at 2026-05-04 15:10:00 UTC" in resumed.said
    assert "was not paused" in more.said
    assert _now(system, loop).next_run_at == clock.moment + 5 * MINUTE
    assert [event["event"] for event in _events(system, loop)] == ["loop.created", "loop.paused", "loop.resumed"]
    assert _notes(system) == []


def test_a_dynamic_loop_that_was_paused_in_its_turn_is_due_when_it_is_resumed(system: System) -> None:
    """Nobody planned its next run, and whoever resumes it wants one."""
    loop = _made(system, LoopRequest("look"))
    system.loops.change(loop, next_run_at=None)
    pause_loop(system, SCRIBE, loop.id)

    resume_loop(system, SCRIBE, loop.id)

    assert _now(system, loop).next_run_at == NOON


@pytest.mark.parametrize("verb", [resume_loop, run_loop_now])
def test_failures_hold_a_loop_until_somebody_says_so(system: System, verb: Any) -> None:
    """Resume re-arms it, run makes it due; its failures are forgotten."""
    loop = _made(system)
    system.loops.change(loop, held=Held.FAILURES, failures=5)

    answer = verb(system, ANN, loop.id)

    assert (answer.loop.held, answer.loop.failures) == (None, 0)
    assert answer.loop.next_run_at == (NOON if verb is run_loop_now else NOON + 5 * MINUTE)


@pytest.mark.parametrize("verb", [resume_loop, run_loop_now])
def test_a_hold_of_the_session_is_nothing_that_a_loops_verb_ends(system: System, verb: Any) -> None:
    """The answer says what keeps the loop from firing."""
    loop = _made(system)
    system.loops.change(loop, held=Held.STOPPED)

    answer = verb(system, ANN, loop.id)

    assert answer.loop.held is Held.STOPPED
    assert "but it is blocked (stopped)" in answer.said


def test_a_loop_is_made_due_at_once(system: System, clock: StandingClock) -> None:
    """Once: while a run is under way no other is added."""
    loop = _made(system)

    due = run_loop_now(system, ANN, loop.id)
    _waiting(system, _now(system, loop), clock)
    again = run_loop_now(system, ANN, loop.id)

    assert due.loop is not None
    assert due.loop.next_run_at == NOON
    assert "is due now" in due.said
    assert "a run under way" in again.said
    assert again.loop == due.loop


def test_a_paused_loop_is_not_run(system: System) -> None:
    """The refusal names resume."""
    loop = _made(system)
    pause_loop(system, SCRIBE, loop.id)

    with pytest.raises(Refused, match=rf"is paused; resume it first: `the-loop loop resume {loop.id}`"):
        run_loop_now(system, ANN, loop.id)


def test_what_has_ended_takes_no_more_verbs(system: System) -> None:
    """Each refusal says how it ended."""
    loop = _made(system)
    stop_loop(system, ANN, loop.id, "enough")

    for verb in (pause_loop, resume_loop, run_loop_now):
        with pytest.raises(Refused, match=r"it is stopped \(enough\)"):
            verb(system, ANN, loop.id)


# ---------------------------------------------------------------- schedule


def test_an_agent_names_its_next_run(system: System) -> None:
    """A span or seconds, with a reason."""
    loop = _made(system, LoopRequest("look"))

    answer = schedule_next_run(system, SCRIBE, loop.id, "10 minutes", "the build takes long")

    assert answer.loop is not None
    assert (answer.loop.next_run_at, answer.loop.reason) == (NOON + 10 * MINUTE, "the build takes long")
    assert answer.said.startswith(f"{loop.id} runs again in 10m, at 2026-05-04 12:10:00 UTC")
    assert schedule_next_run(system, SCRIBE, loop.id, 90).said.startswith(f"{loop.id} runs again in 1m30s")


@pytest.mark.parametrize(("delay", "seconds"), [(1, 30), ("30 days", 604_800)])
def test_a_delay_out_of_bounds_is_brought_within_and_said(system: System, delay: str | int, seconds: int) -> None:
    """What was asked for, and what is allowed."""
    loop = _made(system, LoopRequest("look"))

    answer = schedule_next_run(system, SCRIBE, loop.id, delay)

    assert answer.loop is not None
    assert answer.loop.next_run_at == NOON + timedelta(seconds=seconds)
    assert f"({delay} was asked for, and 30s to 7d is allowed)" in answer.said


def test_a_loop_with_a_cadence_is_not_scheduled(system: System) -> None:
    """The refusal names it."""
    loop = _made(system)

    with pytest.raises(Refused, match="runs every 5m by itself"):
        schedule_next_run(system, SCRIBE, loop.id, "10m")


# ---------------------------------------------------------------- who fires it


@pytest.mark.parametrize("served", [False, True])
@pytest.mark.parametrize("verb", ["create", "resume", "run", "schedule"])
def test_a_run_to_come_is_not_promised_without_a_service(system: System, verb: str, served: bool) -> None:
    """Nothing else fires loops: whoever planned one is told what starts that."""
    holder = ServiceLock(system.paths.service_lock)
    if served:
        holder.take()

    if verb == "create":
        said = create_loop(system, ANN, "scribe", EVERY).said
    else:
        asked, step = STEPS[verb]
        loop = _made(system, asked)
        if verb == "resume":
            pause_loop(system, ANN, loop.id)
        said = step(system, ANN, loop.id, "").said

    holder.release()
    assert ("no service is running, and only a service fires loops: `the-loop start`" in said) is not served


# ---------------------------------------------------------------- reasons

FORGED = "late\x1b[31m\n2026-05-04T12:00:00Z  standing.stopped  info  other\ud800"
STEPS: dict[str, tuple[LoopRequest, Callable[[System, Asker, str, str], LoopAnswer]]] = {
    "stop": (EVERY, stop_loop),
    "pause": (EVERY, pause_loop),
    "resume": (EVERY, resume_loop),
    "run": (EVERY, run_loop_now),
    "schedule": (LoopRequest("look"), lambda *said: schedule_next_run(said[0], said[1], said[2], "10m", said[3])),
}


def _stepped(system: System, verb: str, reason: str) -> tuple[Loop, dict[str, Any]]:
    """Take the step with that reason; return the loop and the event that tells of it."""
    asked, step = STEPS[verb]
    loop = _made(system, asked)
    if verb == "resume":
        pause_loop(system, ANN, loop.id)
    step(system, ANN, loop.id, reason)
    return _now(system, loop), _events(system, loop)[-1]


@pytest.mark.parametrize("verb", STEPS)
def test_a_reason_is_kept_and_told_as_one_plain_line(system: System, verb: str) -> None:
    """Whoever reads the events as lines sees no line that its writer made up, and none without end."""
    loop, event = _stepped(system, verb, FORGED)
    _, long = _stepped(system, verb, "r" * 100_000)

    assert loop.reason == "late[31m 2026-05-04T12:00:00Z standing.stopped info other"
    assert event["reason"] == loop.reason
    assert len(long["reason"]) == 500


@pytest.mark.parametrize("verb", STEPS)
def test_a_reason_without_any_text_is_none(system: System, verb: str) -> None:
    """The step is what was asked for: it is not refused for what goes with it."""
    loop, event = _stepped(system, verb, "\x1b\u202e\ud800")

    assert loop.reason in ("", "stopped by cli:ann", "paused by cli:ann")
    assert (event.get("reason") or "") == loop.reason


def test_a_loop_survives_a_restart(system: System) -> None:
    """What another process reads is what was made, keep-alive and all."""
    from core.service.wiring import build_system

    loop = _made(system, LoopRequest("look", interval="5m", keep_alive=True))

    later = build_system(system.settings, {})
    try:
        assert later.loops.get(loop.id) == loop
        assert later.loops.holds_open("s-scribe")
    finally:
        later.close()
