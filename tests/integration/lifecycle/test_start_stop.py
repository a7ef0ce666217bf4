"""Start, stop and list, over real tmux."""

import os

from core.lifecycle.look import get_standing, list_standing
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.session import HoldKind, Live, Outcome, Phase, Status
from core.session.system import System
from tests.support.tmux import PrivateTmux, wait_until
from tests.support.world import ACTOR, World


def test_start_opens_one_pane_with_a_fresh_conversation(system: System, world: World) -> None:
    """A first start gives the agent its boot prompt and settles the record."""
    answer = start_standing(system, "scribe", ACTOR)

    [row] = answer.sessions
    record = system.records.read("scribe")
    assert record is not None
    assert (row.outcome, row.live, row.running, answer.ok) == (Outcome.STARTED, Live.LIVE, True, True)
    assert (record.phase, record.status) == (Phase.SETTLED, Status.RUNNING)
    assert world.log() == [f"start {record.harness_session_id}"]
    assert "look after the tests" in (world.store / str(record.harness_session_id)).read_text()


def test_second_start_touches_nothing(system: System, world: World) -> None:
    """A session that runs is told as already running, and keeps its pane."""
    start_standing(system, "scribe", ACTOR)
    before = system.runner.survey().panes

    answer = start_standing(system, "scribe", ACTOR)

    assert [row.outcome for row in answer.sessions] == [Outcome.ALREADY_RUNNING]
    assert system.runner.survey().panes == before


def test_stop_is_graceful_and_holds_and_start_resumes(system: System, world: World) -> None:
    """SIGTERM reaches the agent, the mark stands, and the next start by name resumes the same conversation."""
    start_standing(system, "scribe", ACTOR)
    first = system.records.read("scribe")
    assert first is not None

    stopped = stop_standing(system, "scribe", ACTOR, "enough for today")

    record = system.records.read("scribe")
    assert record is not None
    assert record.hold is not None
    assert [row.outcome for row in stopped.sessions] == [Outcome.STOPPED]
    assert (record.hold.kind, record.hold.by, record.generation) == (HoldKind.STOPPED, ACTOR, first.generation + 1)
    assert system.runner.survey().panes == ()
    assert world.log()[-1] == f"term {first.harness_session_id}"

    resumed = start_standing(system, "scribe", ACTOR)

    again = system.records.read("scribe")
    assert again is not None
    assert [row.outcome for row in resumed.sessions] == [Outcome.RESUMED]
    assert (again.harness_session_id, again.hold) == (first.harness_session_id, None)
    assert world.log()[-1] == f"resume {first.harness_session_id}"


def test_list_shows_declared_sessions_before_any_start(system: System) -> None:
    """A declared session that never ran has a row without a record."""
    rows = list_standing(system)

    assert [(row.name, row.declared, row.live, row.uid) for row in rows] == [
        ("scribe", True, Live.ABSENT, None),
        ("scribe-two", True, Live.ABSENT, None),
    ]


def test_secret_is_not_in_the_panes_environment(world: World, private: PrivateTmux) -> None:
    """A variable that a channel's key names does not reach the agent."""
    os.environ["SECRET_OF_TESTS"] = "xoxb-never"
    try:
        system = world.system()
        start_standing(system, "scribe", ACTOR)
    finally:
        del os.environ["SECRET_OF_TESTS"]

    [pane] = system.runner.survey().panes
    with open(f"/proc/{pane.pid}/environ", "rb") as environ:
        seen = environ.read()
    assert b"xoxb-never" not in seen
    assert b"THE_LOOP_INSTANCE=" in seen


def test_killed_agent_is_dead_in_the_list(system: System) -> None:
    """A program that was killed leaves a dead pane, which the row tells."""
    start_standing(system, "scribe", ACTOR)
    [pane] = system.runner.survey().panes

    os.kill(pane.pid, 9)

    wait_until(lambda: get_standing(system, "scribe").live is Live.DEAD, "the row says dead")
