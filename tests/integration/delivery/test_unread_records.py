"""What a harness has received, where its conversation's record cannot be read, or tells nothing of it."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from core.delivery.evidence import give_back
from core.delivery.saying import say
from core.model.activity import ActivityState
from core.model.message import InboxRow, MessageState
from core.model.reasons import Reason
from core.model.session import Hold, HoldKind
from embedded.agent.conversation import Conversation
from tests.support.simulated import Simulation, simulated
from tests.support.world import ACTOR, events
from tests.unit.store.samples import NOON

S = MessageState


@pytest.fixture
def simulation(tmp_path: Path) -> Iterator[Simulation]:
    """Give a simulation that begins at noon, with a session `scribe` that is idle."""
    simulation = simulated(tmp_path / "state")
    simulation.session()
    yield simulation
    simulation.system.close()


def received(simulation: Simulation, text: str = "count them") -> tuple[str, Conversation]:
    """Say something that a hook alone tells of; return the message's id, and the record that tells nothing yet."""
    pane = simulation.tmux.panes["i-scribe"]
    record, pane.record = pane.record, None
    assert record is not None
    message = say(simulation.system, "scribe", text, actor=ACTOR, wait=0).message_id
    simulation.deliver()
    assert row_of(simulation, message).state is S.ACCEPTED
    return message, record


def row_of(simulation: Simulation, message: str) -> InboxRow:
    """Return the message as it stands."""
    simulation.system.ingest("s-scribe")
    row = simulation.system.inbox.get(message)
    assert row is not None
    return row


def is_unreadable(record: Conversation) -> None:
    """Let a folder stand where the record is looked for: nobody can read it, whoever asks."""
    record.path.parent.mkdir(parents=True, exist_ok=True)
    record.path.mkdir()


def look(simulation: Simulation, **later: float) -> None:
    """Let the delivery look as often as it asks for, after that time."""
    simulation.clock.moment += timedelta(**later)
    for _ in range(5):
        due = simulation.deliverer.advance("s-scribe")
        simulation.clock.pause(max(0.0, (due - simulation.clock.now()).total_seconds()) if due else 1.0)


def test_what_an_idle_harness_received_is_unknown_where_its_record_cannot_be_read(simulation: Simulation) -> None:
    """The row, its event and its sender are told which record that is."""
    message, record = received(simulation)
    is_unreadable(record)
    simulation.finish()

    look(simulation, seconds=10)

    row = row_of(simulation, message)
    assert (row.state, row.reason) == (S.UNKNOWN, Reason.RECORD_UNREAD)
    assert str(record.path) in row.detail
    assert events(simulation.system, "standing.unconfirmed")[-1]["reason"] == row.detail


def test_what_was_received_is_not_followed_for_ever(simulation: Simulation) -> None:
    """No end of its turn is told either: after as many days as texts are kept nobody will know."""
    message, record = received(simulation)
    is_unreadable(record)

    look(simulation, days=13)
    before = row_of(simulation, message)
    look(simulation, days=1, minutes=1)

    after = row_of(simulation, message)
    assert (before.state, before.updated_at < after.updated_at) == (S.ACCEPTED, True)
    assert (after.state, after.reason) == (S.UNKNOWN, Reason.RECORD_UNREAD)


def test_a_record_without_a_word_of_it_is_not_followed_for_ever_either(simulation: Simulation) -> None:
    """It can be read, and its session is never idle by its own word."""
    message, record = received(simulation)
    record.user("something else", "human", "turn-9")

    look(simulation, days=14, minutes=1)

    row = row_of(simulation, message)
    assert (row.state, row.reason, "14 days" in row.detail) == (S.UNKNOWN, Reason.NEVER_TOLD, True)


def test_what_an_ended_harness_had_is_unknown_where_its_record_cannot_be_read(simulation: Simulation) -> None:
    """It is not sent again by itself: a turn may have taken it."""
    message, record = received(simulation)
    is_unreadable(record)

    give_back(simulation.system, simulation.change(), None)

    row = row_of(simulation, message)
    assert (row.state, row.reason) == (S.UNKNOWN, Reason.RECORD_UNREAD)


def test_what_it_received_is_followed_while_another_message_waits(simulation: Simulation) -> None:
    """Under a pause, for as long as that may last."""
    message, record = received(simulation)
    simulation.change(hold=Hold(HoldKind.PAUSED, ACTOR, "", NOON))
    waiting = say(simulation.system, "scribe", "and then", actor=ACTOR, wait=0).message_id
    look(simulation)
    pane = simulation.tmux.panes["i-scribe"]

    record.user(pane.prompts[-1], "human", pane.turn)
    look(simulation, seconds=10)

    assert row_of(simulation, waiting).state is S.QUEUED
    assert row_of(simulation, message).state is S.CONFIRMED
    activity = simulation.system.activities.get("s-scribe")
    assert activity is not None
    assert activity.state is ActivityState.BUSY
