"""Posts on their way out."""

from dataclasses import replace
from datetime import timedelta

import pytest

from core.base.errors import Refused
from core.model.posts import RANKS, OutboundKind, OutboxRow, PostState
from core.model.reasons import said
from core.store.database import Database
from core.store.outbox import DUE_POSTS, Outbox
from tests.unit.store.samples import NOON, a_post

K = OutboundKind


def _due(outbox: Outbox, later: float = 0) -> list[str]:
    return [row.post.id for row in outbox.due("slack", NOON + timedelta(seconds=later))]


def _first(outbox: Outbox) -> OutboxRow:
    return outbox.due("slack", NOON)[0]


def test_a_post_is_stored_whole_and_its_key_taken_once(outbox: Outbox) -> None:
    """A second commit of a key changes nothing and says so."""
    post = a_post(1, kind=OutboundKind.ROOT, channel="C9", thread="17.1")

    added = outbox.add([post, a_post(2, key="note:1")])
    again = outbox.add([a_post(3, key="note:1")])

    assert (added, again) == ((True, False), (False,))
    row = _first(outbox)
    assert row == OutboxRow(post, row.seq, PostState.PENDING, 0, None, None, None)


def test_each_session_has_its_first_open_post_due(outbox: Outbox) -> None:
    """Sessions go side by side, posts of one session one after the other, channels apart."""
    outbox.add([a_post(1), a_post(2), a_post(3, uid="s-b"), a_post(4, uid="s-b"), a_post(5, channel_kind="other")])

    first = _due(outbox)
    outbox.advance(outbox.advance(_first(outbox), PostState.SENDING), PostState.SENT, ts="17.2")

    assert first == ["p-1", "p-3"]
    assert _due(outbox) == ["p-2", "p-3"]


def test_a_later_post_never_overtakes_one_that_waits(outbox: Outbox) -> None:
    """While the first has to wait, or its answer is out, nothing of that session is due but itself."""
    outbox.add([a_post(1), a_post(2)])
    sending = outbox.advance(_first(outbox), PostState.SENDING)

    in_sending = _due(outbox)
    outbox.advance(sending, PostState.PENDING, because=said("rate limited"), not_before=NOON + timedelta(seconds=30))

    assert in_sending == ["p-1"]
    assert _due(outbox, 29.9) == []
    assert _due(outbox, 30) == ["p-1"]


def test_sending_counts_attempts_and_keeps_what_is_known(outbox: Outbox) -> None:
    """Each SENDING is an attempt; a step without a ts keeps the one there was."""
    outbox.add([a_post()])

    one = outbox.advance(_first(outbox), PostState.SENDING)
    two = outbox.advance(outbox.advance(one, PostState.PENDING, because=said("503")), PostState.SENDING)
    sent = outbox.advance(two, PostState.SENT, ts="17.3")

    assert (one.attempts, two.attempts, sent.attempts) == (1, 2, 2)
    assert (sent.state, sent.ts, sent.detail) == (PostState.SENT, "17.3", "")
    assert _due(outbox) == []


def test_whoever_comes_second_is_refused(outbox: Outbox) -> None:
    """Of two that saw the same post, one sends it."""
    outbox.add([a_post()])
    row = _first(outbox)
    outbox.advance(row, PostState.SENDING)

    with pytest.raises(Refused, match="no longer pending"):
        outbox.advance(row, PostState.SENDING)


@pytest.mark.parametrize("state", [PostState.SENT, PostState.FAILED])
def test_what_is_settled_stays_so(outbox: Outbox, state: PostState) -> None:
    """A post that is sent or failed is not sent again."""
    outbox.add([a_post()])
    settled = outbox.advance(_first(outbox), state)

    with pytest.raises(ValueError, match="final"):
        outbox.advance(settled, PostState.SENDING)


def test_dropping_leaves_the_closing_note(outbox: Outbox) -> None:
    """A session that goes says goodbye, and nothing else any more."""
    outbox.add([a_post(1), a_post(2), a_post(3, kind=OutboundKind.CLOSING), a_post(4, uid="s-b")])
    outbox.advance(_first(outbox), PostState.SENDING)

    dropped = outbox.drop("s-scribe", said("deleted"))

    assert dropped == 2
    assert _due(outbox) == ["p-4", "p-3"]


def test_open_posts_are_found_by_their_index(database: Database) -> None:
    """However many posts were sent, only the open ones are looked at."""
    with database.transaction(durable=False):
        found = database.read(f"EXPLAIN QUERY PLAN {DUE_POSTS}", ("slack", "[]", "2026"))
    plan = " ".join(step["detail"] for step in found)

    assert "INDEX outbox_open" in plan
    assert "SCAN outbox" not in plan


def test_what_somebody_waits_for_goes_first(outbox: Outbox) -> None:
    """The root, requests, what we say ourselves, an agent's words, and last what one person alone is told."""
    kinds = [
        K.ASKED,
        K.ANSWER,
        K.WHISPER,
        K.PART,
        K.POST,
        K.NOTE,
        K.BOOT,
        K.REQUEST,
        K.FILE,
        K.CLOSING,
        K.ROOT,
        K.ATTACHMENT,
    ]
    outbox.add([replace(a_post(number), kind=kind) for number, kind in enumerate(kinds)])

    order = []
    while due := outbox.due("slack", NOON):
        order.append(due[0].post.kind)
        outbox.advance(due[0], PostState.SKIPPED)

    assert order == [K.ROOT, K.REQUEST, K.NOTE, K.BOOT, K.ASKED, K.ANSWER, K.PART, K.POST, K.FILE, K.CLOSING,
                     K.ATTACHMENT, K.WHISPER]  # fmt: skip
    assert set(RANKS) == set(OutboundKind)


def test_a_request_of_one_session_goes_before_the_answers_of_all_others(outbox: Outbox) -> None:
    """They share the channel's pace; and it does not wait for parts that were begun, or that Slack put off."""
    outbox.add([replace(a_post(number), uid=f"s-{number}", kind=K.ANSWER) for number in range(3)])
    outbox.split(outbox.due("slack", NOON)[0], [replace(a_post(n), uid="s-0", kind=K.PART) for n in (10, 11)])
    first = outbox.due("slack", NOON)[0]
    outbox.advance(first, PostState.SENDING, not_before=NOON + timedelta(seconds=60))

    outbox.add([replace(a_post(20), uid="s-0", kind=K.REQUEST), replace(a_post(21), uid="s-2", kind=K.NOTE)])

    assert [row.post.id for row in outbox.due("slack", NOON)] == ["p-20", "p-21", "p-1"]
