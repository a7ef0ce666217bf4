"""How many rows are in each state, for /metrics."""

from core.model.message import MessageState
from core.model.posts import PostState
from core.store.inbox import Inbox
from core.store.outbox import Outbox
from tests.unit.store.samples import NOON, a_message, a_post


def test_messages_are_tallied_by_state_settled_ones_too(inbox: Inbox) -> None:
    """A state that no row is in is missing; an empty inbox has none."""
    empty = inbox.tally()
    inbox.add([a_message(1), a_message(2), a_message(3)])
    row = inbox.get(a_message(3).id)
    assert row is not None
    inbox.advance(row, MessageState.REFUSED)

    tally = inbox.tally()

    assert (empty, tally) == ({}, {"pending": 2, "refused": 1})


def test_posts_are_tallied_by_state(outbox: Outbox) -> None:
    """Sent and failed ones stay in the count."""
    outbox.add([a_post(1), a_post(2, uid="s-b")])
    row = outbox.due("slack", NOON)[0]
    outbox.advance(outbox.advance(row, PostState.SENDING), PostState.SENT, ts="17.2")

    tally = outbox.tally()

    assert tally == {"pending": 1, "sent": 1}
