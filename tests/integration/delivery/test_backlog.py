"""Messages with many others waiting behind them."""

from datetime import timedelta

from core.delivery.deliverer import Deliverer
from core.model.message import Kind, MessageState
from core.session.system import System
from tests.support.talking import record_of
from tests.support.tmux import PATIENCE
from tests.unit.store.samples import a_message


def test_a_message_with_a_long_backlog_behind_it_is_confirmed(scribe: System) -> None:
    """The agent's record is matched with what was attempted, however much was committed since."""
    uid, _ = record_of(scribe)
    record, now = scribe.records.read("scribe"), scribe.clock.now()
    assert record is not None
    common = {"uid": uid, "name": "scribe", "generation": record.generation, "created_at": now, "kind": Kind.SAY}
    marks = "abcdefghijkmnpqrstuvwxyz"
    many = [
        a_message(number, marker=f"{marks[number // 24]}{marks[number % 24]}2345", order_us=number, **common)
        for number in range(1, 81)
    ]
    scribe.inbox.add(many)

    first = Deliverer(scribe).run(uid, "m-1", now + timedelta(seconds=PATIENCE))

    assert first is not None
    assert (first.state, first.submits) == (MessageState.CONFIRMED, 1)
