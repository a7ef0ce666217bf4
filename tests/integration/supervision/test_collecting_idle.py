"""An idle session is announced, then stopped; whatever uses it keeps it."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest

from core.delivery.saying import say
from core.lifecycle.everything import status_all
from core.lifecycle.look import get_standing
from core.lifecycle.pause import pause_standing
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.lifecycle.supervise import Collector
from core.model.message import MessageState
from core.model.posts import OutboundKind
from core.model.session import Idle, Outcome, Status
from core.session.system import System
from tests.integration.delivery.conftest import open_dialog, settle
from tests.integration.supervision.conftest import notes, pid_of, up, with_sessions
from tests.support.clocks import MovedClock
from tests.support.tmux import PrivateTmux, alive, wait_until
from tests.support.world import ACTOR, definition, events, recorded, waiting_message

HOUR = timedelta(hours=1)
ANNOUNCED = "will be stopped at"


@pytest.fixture
def clock() -> MovedClock:
    """Give a clock that a test moves."""
    return MovedClock()


@pytest.fixture
def idle(system: System, clock: MovedClock) -> System:
    """Give the world's ports with `scribe` up, idle, and to be stopped after an hour of that."""
    declared = replace(definition("scribe"), idle=Idle(HOUR))
    return up(replace(with_sessions(system, declared), clock=clock))


def look(system: System) -> None:
    """Let the collector look once."""
    Collector(system).turn([recorded(system, "scribe")], system.runner.survey())


def running(system: System) -> bool:
    """Return whether the session lives."""
    return get_standing(system, "scribe").running is True


def test_it_is_announced_and_then_stopped_with_its_conversation(idle: System, clock: MovedClock) -> None:
    """The thread and the row say when; the end is graceful, audited and without a hold."""
    before, pid = recorded(idle, "scribe"), pid_of(idle)
    look(idle)
    quiet = notes(idle, "")

    clock.move(minutes=56)
    look(idle)
    announced = get_standing(idle, "scribe").detail
    look(idle)
    clock.move(minutes=5)
    look(idle)

    assert quiet == []
    assert "unless a message comes before that" in announced
    assert len(notes(idle, ANNOUNCED)) == 1
    assert not alive(pid)
    after = recorded(idle, "scribe")
    assert (after.status, after.hold, after.generation) == (Status.STOPPED, None, before.generation)
    [event] = events(idle, "standing.collected")
    assert event["actor"] == "collector"
    assert "idle since" in event["reason"]
    assert len(notes(idle, "is stopped")) == 1
    assert len(notes(idle, "`scribe` is down. The next `the-loop start`", kind=OutboundKind.ROOT_UPDATE)) == 1
    assert start_standing(idle, "scribe", ACTOR).sessions[0].outcome is Outcome.RESUMED
    assert recorded(idle, "scribe").harness_session_id == before.harness_session_id


def test_one_that_was_stopped_for_idleness_is_well(idle: System, clock: MovedClock) -> None:
    """It sleeps because it was told to: status is well and says what wakes it; another stop is none."""
    well = [status_all(idle, ()).ok]
    clock.move(minutes=56)
    look(idle)
    clock.move(minutes=5)
    look(idle)

    asleep = status_all(idle, ())

    start_standing(idle, "scribe", ACTOR)
    settle(idle)
    clock.move(minutes=56)
    look(idle)
    stop_standing(idle, None, ACTOR)
    stopped = status_all(idle, ())
    assert well == [True]
    assert asleep.ok
    assert "idle.stopAfter" in asleep.sessions[0].detail
    assert "the-loop standing start scribe" in asleep.sessions[0].detail
    assert not stopped.ok
    assert "idle.stopAfter" not in stopped.sessions[0].detail


def test_any_message_keeps_it(idle: System, clock: MovedClock) -> None:
    """A turn begins a new idleness, which is announced anew when its time comes."""
    clock.move(minutes=56)
    look(idle)
    assert say(idle, "scribe", "stay", actor=ACTOR).state is MessageState.CONFIRMED
    settle(idle)

    clock.move(minutes=5)
    look(idle)
    kept = running(idle)
    clock.move(minutes=59)
    look(idle)

    assert kept
    assert running(idle)
    assert len(notes(idle, ANNOUNCED)) == 2


def test_a_service_that_was_away_announces_first(idle: System, clock: MovedClock) -> None:
    """However late it is, the grace is given."""
    clock.move(days=3)

    look(idle)
    kept = running(idle)
    clock.move(minutes=6)
    look(idle)

    assert kept
    assert not running(idle)


@contextmanager
def busy(system: System, private: PrivateTmux) -> Iterator[None]:
    """A turn runs."""
    say(system, "scribe", "sleep 60", actor=ACTOR)
    yield


@contextmanager
def asking(system: System, private: PrivateTmux) -> Iterator[None]:
    """A dialog is open."""
    open_dialog(system, private)
    system.ingest(recorded(system, "scribe").uid)
    yield


@contextmanager
def pending(system: System, private: PrivateTmux) -> Iterator[None]:
    """A background task goes on, and the turn is over."""
    say(system, "scribe", "background 60", actor=ACTOR)
    wait_until(lambda: get_standing(system, "scribe").pending_tasks, "the task is listed")
    yield


@contextmanager
def watched(system: System, private: PrivateTmux) -> Iterator[None]:
    """Somebody looks at its terminal, and cannot type."""
    argv = ["script", "-qfc", f"{' '.join(private.server.command)} attach -r -t =loop-standing-scribe:", "/dev/null"]
    viewer = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env={**private.environ, "TERM": "xterm"}
    )
    try:
        wait_until(lambda: system.runner.survey().viewed, "somebody looks")
        yield
    finally:
        viewer.kill()
        viewer.wait(10)
        viewer.stdin.close()  # type: ignore[union-attr]


@contextmanager
def queued(system: System, private: PrivateTmux) -> Iterator[None]:
    """A message waits."""
    waiting_message(system, "scribe")
    yield


@contextmanager
def paused(system: System, private: PrivateTmux) -> Iterator[None]:
    """A person holds it."""
    pause_standing(system, "scribe", ACTOR)
    yield


@contextmanager
def unread(system: System, private: PrivateTmux) -> Iterator[None]:
    """A report of its harness is not taken in yet."""
    instance = recorded(system, "scribe").instance_id or ""
    (system.paths.spool_of(instance) / "1795962562881003000-1-Stop.json").write_text("{}")
    yield


USES: dict[str, Callable[[System, PrivateTmux], object]] = {
    use.__name__: use for use in (busy, asking, pending, watched, queued, paused, unread)
}


@pytest.mark.parametrize("use", USES)
def test_what_is_in_use_is_never_taken(idle: System, clock: MovedClock, private: PrivateTmux, use: str) -> None:
    """Not announced, and, where the use began after the announcement, not stopped."""
    pid = pid_of(idle)
    clock.move(minutes=56)
    look(idle)
    with ExitStack() as stack:
        stack.enter_context(USES[use](idle, private))  # type: ignore[arg-type]
        clock.move(days=2)
        look(idle)
        look(idle)

        assert alive(pid)
        assert not events(idle, "standing.collected")


def test_it_is_looked_at_again_under_the_lock(idle: System, clock: MovedClock, private: PrivateTmux) -> None:
    """A message that came after the look keeps the session."""
    clock.move(minutes=56)
    look(idle)
    clock.move(minutes=5)
    record, survey = recorded(idle, "scribe"), idle.runner.survey()
    collector = Collector(idle)
    decided = collector.decide(record, survey)
    waiting_message(idle, "scribe")

    collector.collect([record])

    assert type(decided).__name__ == "Collect"
    assert running(idle)
    assert not events(idle, "standing.collected")


def test_its_thread_is_told_once_its_end_is_known(idle: System, clock: MovedClock) -> None:
    """A collector killed in the middle has told nothing yet; once the stop is finished the next one tells it, once."""
    clock.move(minutes=56)
    look(idle)
    clock.move(minutes=5)
    kept = Collector(idle)._kept_by(recorded(idle, "scribe"), idle.runner.survey())  # as far as it came
    early = notes(idle, "is stopped")

    stop_standing(idle, None, ACTOR)
    look(idle)
    look(idle)

    assert (kept, early) == ("", [])
    assert len(notes(idle, "is stopped")) == 1


def test_a_silent_tmux_takes_nobody(idle: System, clock: MovedClock, private: PrivateTmux) -> None:
    """What cannot be asked is in use."""
    clock.move(minutes=56)
    look(idle)
    clock.move(minutes=5)
    survey = idle.runner.survey()
    with private.frozen():
        Collector(idle).turn([recorded(idle, "scribe")], survey)

    assert running(idle)
    assert recorded(idle, "scribe").status is Status.RUNNING


def test_without_the_key_nobody_is_ever_taken(system: System, clock: MovedClock) -> None:
    """The default keeps sessions for ever."""
    system = up(replace(system, clock=clock))
    clock.move(days=400)

    look(system)
    look(system)

    assert running(system)
    assert not notes(system, "")
