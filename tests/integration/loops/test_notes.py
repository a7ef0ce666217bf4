"""Every end of a loop, and every hold that needs a person, is one note in the thread of its session."""

from collections.abc import Callable

import pytest

from core.config.settings import DeclaredLoop
from core.lifecycle.exits import tell_end
from core.lifecycle.recover import remove_session
from core.loops.verbs import Asker, carry_out, digest_of, stop_loop
from core.model.loop import OPEN, Held, Loop, LoopStatus
from core.model.message import MessageState
from core.model.posts import NewPost, OutboundKind, PostState
from core.model.reasons import Because, Reason
from core.model.session import Binding, LastExit, Phase
from tests.support.simulated import Simulation

AGENT, ANN = Asker("agent:scribe", "s-scribe"), Asker("cli:ann")
BUILDS = DeclaredLoop("builds", "look at the build", interval="5m")
NINE_DAYS = 9 * 24 * 3600.0
Ended = Callable[[Simulation], Loop]


@pytest.fixture(autouse=True)
def thread(simulation: Simulation) -> None:
    """Give the session a thread."""
    now = simulation.clock.now()
    simulation.system.bindings.bind(Binding("slack", "T1", "C1", "1.1", "s-scribe", "scribe", now))


def notes(simulation: Simulation) -> list[NewPost]:
    """Return all that the thread is still to be told of loops, and take it for posted."""
    outbox, found = simulation.system.outbox, []
    while rows := outbox.due("slack", simulation.clock.now()):
        for row in rows:
            found.append(row.post)
            outbox.advance(outbox.advance(row, PostState.SENDING), PostState.SENT, ts="1.2")
    return [post for post in found if post.key.startswith("loop-")]


def crash(simulation: Simulation) -> None:
    """Let the session's program die, and the end be told."""
    pane = simulation.tmux.panes["i-scribe"]
    pane.dead, pane.exit = True, LastExit(None, 9)
    assert tell_end(simulation.system, "scribe", "i-scribe", patient=False)


# ---------------------------------------------------------------- what ends a loop


def too_old(simulation: Simulation) -> Loop:
    """Let its age come while it fires: it is given one last run."""
    loop = simulation.loop()
    simulation.clock.pause(NINE_DAYS)
    simulation.turn()
    return loop


def too_old_while_paused(simulation: Simulation) -> Loop:
    """Let its age come while nothing fires."""
    loop = simulation.loop()
    simulation.system.loops.change(loop, status=LoopStatus.PAUSED)
    simulation.clock.pause(NINE_DAYS)
    simulation.turn()
    return loop


def too_old_in_a_crashed_session(simulation: Simulation) -> Loop:
    """Let its last run fail."""
    loop = simulation.loop()
    crash(simulation)
    simulation.clock.pause(NINE_DAYS)
    simulation.turn()
    return loop


def stopped_by_a_person(simulation: Simulation) -> Loop:
    """Stop it by hand, and again."""
    loop = simulation.loop()
    stop_loop(simulation.system, ANN, loop.id, "enough")
    stop_loop(simulation.system, ANN, loop.id, "enough of it")
    return loop


def stopped_by_its_agent(simulation: Simulation) -> Loop:
    """Stop it within its second turn."""
    loop = simulation.loop()
    simulation.pass_time(minutes=11, finish=["scribe"])
    stop_loop(simulation.system, AGENT, loop.id, "the build is done")
    return loop


def undeclared(simulation: Simulation) -> Loop:
    """Take its entry out of the configuration."""
    loop = simulation.loop(declared="builds", digest=digest_of(BUILDS))
    carry_out(simulation.system, simulation.system.settings, simulation.change())
    return loop


def declared_anew(simulation: Simulation) -> Loop:
    """Change its entry."""
    loop = simulation.loop(declared="builds", digest=digest_of(BUILDS))
    settings = simulation.system.settings
    standing = settings.standing._replace(loops={"scribe": (BUILDS._replace(interval="10m"),)})
    carry_out(simulation.system, settings._replace(standing=standing), simulation.change())
    return loop


def found_in_a_deletion(simulation: Simulation) -> Loop:
    """Let it come due while its session is being deleted."""
    loop = simulation.loop()
    simulation.change(phase=Phase.DELETING)
    simulation.pass_time(minutes=5)
    return loop


def run_as_often_as_asked(simulation: Simulation) -> Loop:
    """Let it run twice of two times."""
    loop = simulation.loop(max_runs=2)
    simulation.pass_time(minutes=20, finish=["scribe"])
    return loop


def kept_alive_and_run_once(simulation: Simulation) -> Loop:
    """Let a keep-alive loop run once of one time."""
    loop = simulation.loop(keep_alive=True, max_runs=1)
    simulation.pass_time(minutes=20, finish=["scribe"])
    return loop


def without_a_next_run(simulation: Simulation) -> Loop:
    """Let the turn of a loop without a cadence end, and name no next run."""
    loop = simulation.dynamic()
    simulation.pass_time(minutes=6)
    simulation.finish()
    return loop


def restarted_without_a_next_run(simulation: Simulation) -> Loop:
    """Let the turn that was to name the next run end with its instance."""
    loop = simulation.dynamic()
    simulation.pass_time(minutes=6)
    simulation.respawned(simulation.change())
    simulation.turn()
    return loop


def its_run_cancelled(simulation: Simulation) -> Loop:
    """Take the tick of a loop without a cadence out of the queue."""
    loop = simulation.dynamic()
    simulation.tmux.panes["i-scribe"].begin("something long")
    simulation.system.ingest("s-scribe")
    simulation.pass_time(minutes=6)
    [row] = simulation.system.inbox.unsettled("s-scribe")
    simulation.system.inbox.advance(row, MessageState.CANCELLED, Because(Reason.CANCELLED_BY, {"actor": "cli:ann"}))
    simulation.turn()
    return loop


@pytest.mark.parametrize(
    ("end", "told"),
    [
        (too_old, "has ended: it expired after 7d; it has run once."),
        (too_old_while_paused, "has ended: it expired after 7d; it has never run."),
        (too_old_in_a_crashed_session, "has ended: it expired after 7d; it has never run."),
        (stopped_by_a_person, "was stopped by cli:ann: enough; it has never run."),
        (stopped_by_its_agent, "was stopped by agent:scribe: the build is done; it has run 2 times."),
        (undeclared, "was stopped by config: its entry was removed from the configuration; it has never run."),
        (
            declared_anew,
            "was stopped by config: its entry in the configuration was changed, and another loop takes its place; "
            "it has never run.",
        ),
        (found_in_a_deletion, "has ended: its session was deleted; it has never run."),
        (run_as_often_as_asked, "has ended: it has run 2 times, as asked."),
        (kept_alive_and_run_once, "has ended: it has run once, as asked."),
        (without_a_next_run, "has ended: its turn ended without schedule_next_run; it has run once."),
        (restarted_without_a_next_run, "has ended: restarted without a next run; it has run once."),
        (its_run_cancelled, "has ended: its run was not delivered: cancelled by cli:ann; it has never run."),
    ],
)
def test_the_end_of_a_loop_is_one_note_in_its_sessions_thread(simulation: Simulation, end: Ended, told: str) -> None:
    """It names the loop, why it ended and how often it has run; what is looked at again adds none."""
    loop = end(simulation)
    simulation.turn()

    [note] = notes(simulation)

    assert simulation.now(loop).status not in OPEN
    assert note.text == f'Loop `{loop.id}` ("look at the build") {told}'
    assert (note.kind, note.channel_kind, note.uid, note.name) == (OutboundKind.NOTE, "slack", "s-scribe", "scribe")
    assert (note.channel, note.thread) == ("", "")  # wherever the session's thread is when it is posted


def test_a_deletion_commits_the_note_before_it_closes_the_thread(simulation: Simulation) -> None:
    """What of it was not posted by then is dropped with the session's other posts: the closing note stands for it."""
    loop = simulation.loop()
    record = simulation.change(phase=Phase.DELETING)

    remove_session(simulation.system, record, "cli:ann")

    note = simulation.system.outbox.get(f"p-loop-{loop.id}-stopped")
    assert note is not None
    assert note.post.text.endswith("has ended: its session was deleted; it has never run.")
    assert (note.state, note.detail) == (PostState.FAILED, "the session was deleted")
    [closing] = simulation.system.outbox.due("slack", simulation.clock.now())
    assert (closing.post.kind, closing.post.thread) == (OutboundKind.CLOSING, "1.1")


def test_a_hold_for_failures_is_one_note_that_says_how_it_goes_on(simulation: Simulation) -> None:
    """Four failures are told to nobody, the fifth once."""
    loop = simulation.loop()
    crash(simulation)

    simulation.pass_time(step=20, minutes=40)

    assert simulation.now(loop).held is Held.FAILURES
    [note] = notes(simulation)
    assert note.text.startswith(
        f'Loop `{loop.id}` ("look at the build") is blocked: it failed 5 times in a row: the session'
    )
    assert f"the-loop loop resume {loop.id}` lets it go on" in note.text
    assert (note.kind, note.uid) == (OutboundKind.NOTE, "s-scribe")
