"""Messages of several sessions in one turn, and those whose Enter follows in the same turn of the server."""

from datetime import timedelta
from pathlib import Path

import pytest

from core.base.errors import CoreError, StoreBroken
from core.base.failpoints import Failpoint
from core.delivery.deliverer import Deliverer, DeliveryWorker
from core.lifecycle.start import start_standing
from core.model.message import MessageState
from core.session.system import System
from tests.support.killed import run_until
from tests.support.talking import record_of, rows, talking, times
from tests.support.tmux import PATIENCE, PrivateTmux, wait_until
from tests.support.typist import Typist
from tests.support.world import ACTOR, World, waiting_message

S = MessageState
POINTS = [
    f"{effect.value}:{side}"
    for effect in (Failpoint.DELIVERY_CLAIM, Failpoint.DELIVERY_PASTE, Failpoint.DELIVERY_SUBMITTED)
    for side in ("before", "after")
]


@pytest.fixture
def brisk(world: World) -> System:
    """Give the ports with `scribe` started, of a harness that needs no moment before the Enter and tells nothing."""
    system = talking(world, "brisk")
    assert start_standing(system, "scribe", ACTOR).ok
    uid, _ = record_of(system)
    [boot] = system.inbox.with_states(uid, frozenset(MessageState))
    Deliverer(system).run(uid, boot.message.id, system.clock.now() + timedelta(seconds=PATIENCE))
    return system


def heard(world: World) -> bytes:
    """Return what the program has read."""
    path: Path = world.folder / "heard"
    return path.read_bytes() if path.exists() else b""


@pytest.mark.parametrize("point", POINTS)
def test_a_message_entered_at_once_survives_a_kill_at_every_point(brisk: System, world: World, point: str) -> None:
    """It is read once, with one Enter behind it, and its row is over."""
    ended = run_until(point, world.folder, "talking", str(world.save()), "scribe", "survive this", "40", "brisk")

    uid, _ = record_of(brisk)
    row = Deliverer(brisk).run(uid, rows(brisk)[-1].message.id, brisk.clock.now() + timedelta(seconds=PATIENCE))

    assert ended.code == -9
    assert row is not None
    assert (row.state, row.final, row.submits) == (S.SUBMITTED, True, 1)
    wait_until(lambda: b"survive this \x1b[201~\r" in heard(world), "the text was read with its Enter")
    _, *after = heard(world).split(b"survive this")
    assert after == [b" \x1b[201~\r"]


def test_no_enter_follows_while_a_dialog_may_open(brisk: System, world: World) -> None:
    """A tool call came between the decision and the paste: the text is pasted, and entered once the moment is over."""
    uid, _ = record_of(brisk)
    message = waiting_message(brisk, "scribe")
    tool = brisk.paths.session(uid) / "tool"

    def authorized(_: object) -> bool:
        """A tool call begins at the latest moment that a decision takes something from outside."""
        if not tool.exists():
            tool.touch()
        return True

    deliverer = Deliverer(brisk, authorized)
    deliverer.advance(uid)
    pasted = brisk.inbox.get(message.id)
    row = deliverer.run(uid, message.id, brisk.clock.now() + timedelta(seconds=PATIENCE))

    assert pasted is not None
    assert pasted.state is S.PASTED
    assert row is not None
    assert row.state is S.SUBMITTED
    wait_until(lambda: heard(world).endswith(message.text.encode() + b" \x1b[201~\r"), "it was entered")


def test_sessions_are_pasted_to_in_one_step(scribe: System) -> None:
    """Each takes its own message, once; none waits for the other's."""
    assert start_standing(scribe, "scribe-two", ACTOR).ok
    names = ("scribe", "scribe-two")
    messages = {name: waiting_message(scribe, name) for name in names}
    uids = {name: record_of(scribe, name)[0] for name in names}
    deliverer = Deliverer(scribe)
    wait_until(lambda: all(_idle(scribe, uid) for uid in uids.values()), "both are idle")

    outcomes = deliverer.advance_all(list(uids.values()))
    states = {name: rows(scribe, name)[-1].state for name in names}

    assert set(outcomes) == set(uids.values())
    assert set(states.values()) == {S.PASTED}
    for name in names:
        row = deliverer.run(uids[name], messages[name].id, scribe.clock.now() + timedelta(seconds=PATIENCE))
        assert row is not None
        assert row.state is S.CONFIRMED
        assert times(scribe, messages[name].text, name) == 1


def test_a_session_that_cannot_be_read_holds_up_none_beside_it(scribe: System) -> None:
    """Its trouble is told as its own, and the other's message is pasted."""
    assert start_standing(scribe, "scribe-two", ACTOR).ok
    uid, other = record_of(scribe)[0], record_of(scribe, "scribe-two")[0]
    waiting_message(scribe, "scribe")
    waiting_message(scribe, "scribe-two")
    wait_until(lambda: _idle(scribe, other), "the other is idle")
    (scribe.paths.records / "scribe.json").write_text("no record")

    outcomes = Deliverer(scribe).advance_all([uid, other])

    assert isinstance(outcomes[uid], CoreError)
    assert not isinstance(outcomes[uid], StoreBroken)
    assert rows(scribe, "scribe-two")[-1].state is S.PASTED


def test_who_has_come_since_the_latest_look_is_seen_before_a_paste(scribe: System, private: PrivateTmux) -> None:
    """A look that another has made serves while nobody is at the terminal; the server itself refuses it after that."""
    uid, _ = record_of(scribe)
    scribe.runner.survey()
    person = Typist(private, "loop-standing-scribe")
    person.press(b"\x1b[D")  # leaves nothing in the line, where it would be seen
    message = waiting_message(scribe, "scribe")
    deliverer = Deliverer(scribe)

    deliverer.advance(uid)
    refused = scribe.inbox.get(message.id)
    deliverer.advance(uid)

    row = scribe.inbox.get(message.id)
    person.close()
    assert refused is not None
    assert (refused.state, refused.attempt) == (S.PENDING, 1)
    assert row is not None
    assert row.state is S.QUEUED
    assert "typing" in row.detail


def test_a_step_is_taken_in_the_thread_that_asks_for_it(scribe: System) -> None:
    """No other thread has to wake up for a reply that came in."""
    uid, _ = record_of(scribe)
    message = waiting_message(scribe, "scribe")
    wait_until(lambda: _idle(scribe, uid), "it is idle")

    DeliveryWorker(scribe.clock, scribe.inbox, Deliverer(scribe)).at_once([uid])

    row = scribe.inbox.get(message.id)
    assert row is not None
    assert row.state is S.PASTED


def test_what_comes_during_a_step_gets_its_own_behind_it(scribe: System) -> None:
    """A session for which a step is asked while one is taken waits for no timer."""
    uid, _ = record_of(scribe)
    waiting_message(scribe, "scribe")
    asked: list[str] = []
    wait_until(lambda: _idle(scribe, uid), "it is idle")

    def authorized(_: object) -> bool:
        asked.append("by the gate")
        worker.at_once([uid])  # what another thread would do now
        return False

    worker = DeliveryWorker(scribe.clock, scribe.inbox, Deliverer(scribe, authorized))
    worker.turn()
    refused, due = rows(scribe)[-1].state, worker.turn()

    assert asked
    assert refused is S.REFUSED
    assert due > 0


def _idle(system: System, uid: str) -> bool:
    system.ingest(uid)
    activity = system.activities.get(uid)
    return activity is not None and activity.state.value == "idle"
