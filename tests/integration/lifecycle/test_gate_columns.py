"""The gate's columns for each hold, in a real pane: what a say, a reply, a notice and the sweep come to."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from core.base.errors import NotRunning
from core.base.names import new_marker, new_message_id
from core.delivery.deliverer import Deliverer
from core.lifecycle.everything import start_all
from core.lifecycle.look import get_standing
from core.lifecycle.pause import pause_standing
from core.lifecycle.start import start_standing
from core.lifecycle.stop import stop_standing
from core.model.activity import ActivityState
from core.model.gate import HoldState
from core.model.message import Kind, MessageState, NewMessage, ReplyAddress
from core.model.posts import OutboundKind
from core.model.session import Hold, HoldKind, Live, Outcome, Phase
from core.session.folder import set_hold_file
from core.session.system import System
from tests.integration.lifecycle.held import tell, turns, wait_for
from tests.support.tmux import wait_until
from tests.support.world import ACTOR, World, outcomes, recorded

S, H = MessageState, HoldState


@pytest.fixture
def world(world: World) -> World:
    """Give a world whose agent is the bundled one."""
    return replace(world, harness="bundled", declared=("scribe",))


def _failed(system: System) -> None:
    """Hold the session as the supervisor does once its budget is spent, with its program gone."""
    stop_standing(system, "scribe", ACTOR)
    hold = Hold(HoldKind.FAILED, "supervisor", "crashed 6 times", system.clock.now())
    system.records.write(replace(recorded(system, "scribe"), hold=hold))


def _deleting(system: System) -> None:
    """Leave a deletion that was cut short after its mark, its program alive."""
    record = recorded(system, "scribe")
    set_hold_file(system.paths, record.uid)
    system.records.write(replace(record, phase=Phase.DELETING, generation=record.generation + 1))


HOLDS: dict[HoldState, Callable[[System], object]] = {
    H.NONE: lambda system: None,
    H.PAUSED: lambda system: pause_standing(system, "scribe", ACTOR),
    H.STOPPED: lambda system: stop_standing(system, "scribe", ACTOR),
    H.FAILED: _failed,
    H.DELETING: _deleting,
}


@pytest.fixture(params=HOLDS, ids=lambda hold: hold.value)
def held(system: System, request: pytest.FixtureRequest) -> tuple[System, HoldState]:
    """Give the ports with `scribe` started, its boot turn over, and then held."""
    assert start_standing(system, "scribe", ACTOR).ok
    wait_for(system, ActivityState.IDLE)
    HOLDS[request.param](system)
    return system, request.param


def wake(system: System, kind: Kind) -> tuple[MessageState, bool]:
    """Commit a message of the kind, deliver, and return its state and whether its thread got a note."""
    record, now, ident = recorded(system, "scribe"), system.clock.now(), new_message_id()
    address = ReplyAddress("slack", "T1", "C1", "1.1", "2.2") if kind is Kind.REPLY else None
    message = NewMessage(
        ident, f"test:{ident}", record.uid, "scribe", record.generation, kind, "cli:ann", "ann", "cli", new_marker(),
        "a wake of this kind", False, int(now.timestamp() * 1e6), now, address,
    )  # fmt: skip
    system.inbox.add([message])
    deliverer = Deliverer(system, lambda _: True)

    def moved() -> bool:
        deliverer.advance(record.uid)
        row = system.inbox.get(ident)
        return row is not None and row.state in (S.CONFIRMED, S.QUEUED, S.REFUSED, S.CANCELLED)

    wait_until(moved, "it came to a rest")
    row = system.inbox.get(ident)
    assert row is not None
    posts = [found.post for found in system.outbox.due("slack", now + timedelta(days=365))]
    return row.state, any(post.kind is OutboundKind.NOTE for post in posts)


def turns_after(system: System, expected: int) -> int:
    """Return how many turns there were, once there are as many: a hook confirms a text before the file has it."""
    wait_until(lambda: len(turns(system)) >= expected, f"{expected} turns")
    return len(turns(system))


def test_say(held: tuple[System, HoldState]) -> None:
    """Delivered, queued under a pause, refused else."""
    system, hold = held
    before = len(turns(system))

    try:
        state = tell(system, "do this")
    except NotRunning:
        state = S.REFUSED

    expected = {H.NONE: S.CONFIRMED, H.PAUSED: S.QUEUED}
    assert state is expected.get(hold, S.REFUSED)
    assert turns_after(system, before + (hold is H.NONE)) == before + (hold is H.NONE)


def test_reply(held: tuple[System, HoldState]) -> None:
    """As a say, and its thread is told; of a session that is being deleted it is not."""
    system, hold = held
    before = len(turns(system))

    seen = wake(system, Kind.REPLY)

    expected = {H.NONE: (S.CONFIRMED, False), H.PAUSED: (S.QUEUED, True), H.DELETING: (S.REFUSED, False)}
    assert seen == expected.get(hold, (S.REFUSED, True))
    assert turns_after(system, before + (hold is H.NONE)) == before + (hold is H.NONE)


def test_notice(held: tuple[System, HoldState]) -> None:
    """Delivered, queued under a pause; under every other hold it wakes nobody."""
    system, hold = held
    before = len(turns(system))

    state, noted = wake(system, Kind.NOTICE)

    expected = {H.NONE: S.CONFIRMED, H.PAUSED: S.QUEUED}
    assert (state, noted) == (expected.get(hold, S.CANCELLED), False)
    assert turns_after(system, before + (hold is H.NONE)) == before + (hold is H.NONE)


def test_sweep(held: tuple[System, HoldState]) -> None:
    """A boot adopts what lives, ends and starts nothing that is held, and finishes a deletion."""
    system, hold = held
    pane = [pane.pid for pane in system.runner.survey().panes]

    swept = start_all(system, "supervisor")

    expected = {H.NONE: Outcome.ALREADY_RUNNING, H.DELETING: Outcome.STARTED}
    assert outcomes(swept) == {"scribe": expected.get(hold, Outcome.HELD)}
    live = get_standing(system, "scribe").live
    assert live is (Live.ABSENT if hold in (H.STOPPED, H.FAILED) else Live.LIVE)
    if hold in (H.NONE, H.PAUSED):
        assert [pane.pid for pane in system.runner.survey().panes] == pane
