"""kill -9 before and after each effect of the verbs; then reconcile, then the verb again."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from core.base.errors import NameTaken, Refused, UnknownSession
from core.base.failpoints import Failpoint
from core.lifecycle.look import get_standing
from core.lifecycle.recover import reconcile
from core.lifecycle.start import start_standing
from core.model.activity import ActivityState
from core.model.message import MessageState
from core.model.posts import OutboundKind
from core.model.session import Binding, HoldKind, Live, Outcome, Phase, SessionRecord
from core.session.system import System
from tests.integration.lifecycle.held import tell, wait_for, work
from tests.support.killed import run_until
from tests.support.tmux import wait_until
from tests.support.world import ACTOR, VERBS, World, check_consistent, waiting_message

SPAWNING = (
    Failpoint.START_MARK,
    Failpoint.START_FOLDER,
    Failpoint.START_UNHOLD,
    Failpoint.START_PREPARE,
    Failpoint.START_LAUNCHER,
    Failpoint.START_BOOT,
    Failpoint.START_SPAWN,
    Failpoint.START_ANNOUNCE,
    Failpoint.START_READY,
    Failpoint.START_SETTLE,
)
ENDING = (Failpoint.END_OUTPUT, Failpoint.END_TREE, Failpoint.END_PANE)
STOPPING = (Failpoint.STOP_HOLD, Failpoint.STOP_MARK, *ENDING, Failpoint.STOP_SETTLE)
DELETING = (
    Failpoint.DELETE_HOLD,
    Failpoint.DELETE_MARK,
    *ENDING,
    Failpoint.DELETE_CANCEL,
    Failpoint.DELETE_UNBIND,
    Failpoint.DELETE_FORGET,
    Failpoint.DELETE_FILES,
    Failpoint.DELETE_RECORD,
)

PAUSING = (Failpoint.PAUSE_HOLD, Failpoint.PAUSE_MARK)
TAKING_BACK = (Failpoint.TAKE_BACK_KEY, Failpoint.TAKE_BACK_CLEAR)
INTERRUPTING = (Failpoint.INTERRUPT_KEY, Failpoint.INTERRUPT_SETTLE)


@dataclass(frozen=True)
class Scenario:
    """One verb, on which session, what is there before it, and which effects it has."""

    verb: str
    name: str
    effects: tuple[Failpoint, ...]
    #: nothing | running | dead | busy | queued: busy, with a message in its own queue | paused: with one that waits
    before: str = "nothing"
    harness: str = "script"


SCENARIOS = {
    "start": Scenario("start", "scribe", (*SPAWNING, Failpoint.START_LOOPS)),
    "start over a dead pane": Scenario("start", "scribe", ENDING, "dead"),
    "stop": Scenario("stop", "scribe", (*STOPPING, Failpoint.STOP_CANCEL, Failpoint.STOP_ANNOUNCE), "running"),
    "restart": Scenario("restart", "scribe", (*STOPPING, Failpoint.STOP_UNBLOCK), "running"),
    "create": Scenario("create", "extra", (Failpoint.CREATE_MARK, *SPAWNING)),
    "delete": Scenario("delete", "extra", DELETING, "running"),
    "pause": Scenario("pause", "scribe", PAUSING, "running"),
    "pause a busy one hard": Scenario("pause-hard", "scribe", (*PAUSING, *INTERRUPTING), "busy", "bundled"),
    "pause one with a queue": Scenario("pause", "scribe", TAKING_BACK, "queued", "bundled"),
    "resume": Scenario("resume", "scribe", (Failpoint.RESUME_MARK, Failpoint.RESUME_UNBLOCK), "paused"),
    "interrupt": Scenario("interrupt", "scribe", INTERRUPTING, "busy", "bundled"),
    "announce": Scenario("announce", "scribe", (Failpoint.ANNOUNCE, Failpoint.ANNOUNCE_RECORD), "running"),
    "cancel": Scenario("cancel", "scribe", (Failpoint.QUEUE_CANCEL,), "paused"),
}
PATIENT = World.command_seconds  #: seconds that a tmux call has where nothing waits for its end
POINTS = [
    pytest.param(scenario, effect, side, id=f"{label}-{effect.value}:{side}")
    for label, scenario in SCENARIOS.items()
    for effect in scenario.effects
    for side in ("before", "after")
]


@pytest.fixture
def world(world: World) -> World:
    """Give a world with threads, and tmux calls that have little time: reconcile waits for a late spawn that long.

    What comes before the crash and after the reconcile has the usual time: a busy machine needs it.
    """
    world = replace(world, slack=True, loops=True, command_seconds=2.0, declared=("scribe",))
    world.save()
    return world


def test_every_effect_of_the_verbs_is_walked() -> None:
    """An effect that no scenario has would never be crashed; those of workers are walked elsewhere."""
    walked = {effect for scenario in SCENARIOS.values() for effect in scenario.effects}

    workers = ("delivery.", "watch.", "loop.", "keep.", "rebind.", "dialog.", "live.", "task.", "fleet.")
    assert walked == {effect for effect in Failpoint if not effect.value.startswith(workers)}


@pytest.mark.parametrize(("scenario", "effect", "side"), POINTS)
def test_crash_leaves_nothing_that_reconcile_and_a_retry_do_not_mend(
    world: World, scenario: Scenario, effect: Failpoint, side: str
) -> None:
    """Never two panes, no mark weakened, no half session, and the verb done again comes to its end."""
    world = replace(world, harness=scenario.harness)
    world.save()
    system, patient = world.system(), replace(world, command_seconds=PATIENT).system()
    prepare(patient, scenario)

    crash(world, scenario, f"{effect.value}:{side}")
    marked = system.records.read(scenario.name)
    reconcile(system, ACTOR)

    check_mended(system, scenario, marked)
    reconcile(system, ACTOR)
    check_mended(system, scenario, marked)

    RETRIES[scenario.verb](patient, scenario.name)
    check_consistent(system, scenario.name)


# ---------------------------------------------------------------- steps


def prepare(system: System, scenario: Scenario) -> None:
    """Bring about what the scenario starts from."""
    if scenario.before == "nothing":
        return
    begin = "create" if scenario.name == "extra" else "start"
    begun = VERBS[begin](system, scenario.name)
    assert begun is not None
    assert begun.ok, begun.to_json()
    record = system.records.read(scenario.name)
    assert record is not None
    system.bindings.bind(Binding("slack", "T1", "C1", f"{record.uid}.1", record.uid, record.name, system.clock.now()))
    if scenario.before in ("busy", "queued"):
        wait_for(system, ActivityState.IDLE)
        work(system)
    if scenario.before == "queued":
        assert tell(system, "the next thing") is MessageState.ACCEPTED
    if scenario.before == "paused":
        VERBS["pause"](system, scenario.name)
        waiting_message(system, scenario.name)
    if scenario.before == "dead":
        [pane] = system.runner.survey().panes
        os.kill(pane.pid, signal.SIGKILL)
        wait_until(lambda: get_standing(system, scenario.name).live is Live.DEAD, "the pane is dead")


def crash(world: World, scenario: Scenario, point: str) -> None:
    """Run the verb in a process of its own that is killed at the point."""
    ended = run_until(point, world.folder, "world", str(world.folder / "world.json"), scenario.verb, scenario.name)
    assert ended.code == -signal.SIGKILL, f"{point} was not passed: {ended.output}"


def check_mended(system: System, scenario: Scenario, marked: SessionRecord | None) -> None:
    """Assert what reconcile promises for the phase in which the crash left the record."""
    check_consistent(system, scenario.name)
    record = system.records.read(scenario.name)
    live = get_standing(system, scenario.name).live if record or scenario.name == "scribe" else Live.ABSENT
    if marked is not None and marked.hold is not None:
        assert record is not None
        assert (record.hold, record.generation) == (marked.hold, marked.generation)
    if marked is not None and marked.phase is Phase.DELETING:
        assert record is None
        assert system.bindings.of_session(marked.uid, "slack") is None
        assert not system.paths.session(marked.uid).exists()
    if marked is not None and marked.phase is Phase.CREATING:
        assert (record is None) == (live is not Live.LIVE)
        assert record is not None or not system.paths.session(marked.uid).exists()


# ---------------------------------------------------------------- the verb again


def retry_start(system: System, name: str) -> None:
    """Starting again comes to one running session that was announced once."""
    [row] = start_standing(system, name, ACTOR).sessions
    assert row.outcome in (Outcome.STARTED, Outcome.RESUMED, Outcome.ALREADY_RUNNING)
    assert row.live is Live.LIVE
    roots = [post for post in system.outbox.due("slack", system.clock.now()) if post.post.kind is OutboundKind.ROOT]
    assert len(roots) == 1


def retry_stop(system: System, name: str) -> None:
    """Stopping again leaves it held, with one generation more than it ran with."""
    answer = VERBS["stop"](system, name)
    record = system.records.read(name)
    assert answer is not None
    assert answer.ok
    assert record is not None
    assert record.hold is not None
    assert (record.hold.kind, record.generation) == (HoldKind.STOPPED, 2)


def retry_restart(system: System, name: str) -> None:
    """Restarting again comes to a session that resumed its conversation, and to no hold."""
    before = system.records.read(name)
    answer = VERBS["restart"](system, name)
    record = system.records.read(name)
    assert answer is not None
    assert before is not None
    assert record is not None
    assert [row.outcome for row in answer.sessions] == [Outcome.RESUMED]
    assert (record.harness_session_id, record.hold, record.generation) == (before.harness_session_id, None, 1)


def retry_create(system: System, name: str) -> None:
    """Creating again is refused where the crash left a running session, and makes it where it left none."""
    try:
        answer = VERBS["create"](system, name)
    except NameTaken:
        assert get_standing(system, name).live is Live.LIVE
        return
    assert answer is not None
    assert [row.outcome for row in answer.sessions] == [Outcome.STARTED]


def retry_delete(system: System, name: str) -> None:
    """Deleting again finds nothing, or deletes what the crash left untouched; then the name is free."""
    try:
        answer = VERBS["delete"](system, name)
    except UnknownSession:
        answer = None
    assert answer is None or [row.outcome for row in answer.sessions] == [Outcome.DELETED]
    assert system.records.read(name) is None


def retry_pause(system: System, name: str) -> None:
    """Pausing again comes to one mark that is no weaker, and to its file."""
    before = system.records.read(name)
    answer = VERBS["pause"](system, name)
    record = system.records.read(name)
    assert answer is not None
    assert before is not None
    assert record is not None
    assert [row.outcome for row in answer.sessions] == [Outcome.PAUSED]
    assert record.hold is not None
    assert before.hold in (None, record.hold)


def retry_pause_hard(system: System, name: str) -> None:
    """Pausing hard again ends the turn that the crash left running, and starts none."""
    answer = VERBS["pause-hard"](system, name)
    record = system.records.read(name)
    assert answer is not None
    assert record is not None
    assert [row.outcome for row in answer.sessions] == [Outcome.PAUSED]
    assert record.hold is not None
    assert record.hold.policy == "hard"


def retry_resume(system: System, name: str) -> None:
    """Resuming again leaves no mark, and what waited goes in."""
    answer = VERBS["resume"](system, name)
    record = system.records.read(name)
    assert answer is not None
    assert answer.ok
    assert record is not None
    assert record.hold is None


def retry_interrupt(system: System, name: str) -> None:
    """Interrupting again ends the turn, or finds that it is over."""
    try:
        answer = VERBS["interrupt"](system, name)
    except Refused:
        answer = None
    assert answer is None or [row.outcome for row in answer.sessions] == [Outcome.INTERRUPTED]


def retry_cancel(system: System, name: str) -> None:
    """Cancelling again leaves nothing that waits."""
    record = system.records.read(name)
    assert record is not None
    if system.inbox.unsettled(record.uid):
        VERBS["cancel"](system, name)
    assert system.inbox.unsettled(record.uid) == ()


def retry_announce(system: System, name: str) -> None:
    """Announcing again commits it, and leaves the thread bound."""
    answer = VERBS["announce"](system, name)
    record = system.records.read(name)
    assert answer is not None
    assert record is not None
    assert [row.outcome for row in answer.sessions] == [Outcome.WAITING]
    assert system.bindings.of_session(record.uid, "slack") is not None


RETRIES: dict[str, Callable[[System, str], None]] = {
    "start": retry_start,
    "stop": retry_stop,
    "restart": retry_restart,
    "create": retry_create,
    "delete": retry_delete,
    "pause": retry_pause,
    "pause-hard": retry_pause_hard,
    "resume": retry_resume,
    "interrupt": retry_interrupt,
    "announce": retry_announce,
    "cancel": retry_cancel,
}
