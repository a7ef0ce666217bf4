"""Which threads a sweep may pass over, by what the history of their channel tells and by what is known of them."""

from __future__ import annotations

from typing import Any

import pytest

from bot.history import Roots, has_to_be_read, latest_known
from core.model.channel import BoundThread

ROOT, OTHER, CURSOR = "1700000000.000001", "1700000100.000001", "1700001000.000001"
LATER = "1700002000.000001"


def thread(root: str = ROOT, cursor: str = CURSOR, **known: Any) -> BoundThread:
    """Return a thread that was read up to its cursor."""
    return BoundThread("scribe", "C1", root, cursor, **{"shared": False, **known})


def parent(root: str = ROOT, latest: str = CURSOR, **more: Any) -> dict[str, Any]:
    """Return a parent as the history shows it."""
    return {"type": "message", "ts": root, "thread_ts": root, "reply_count": 2, "latest_reply": latest, **more}


def quiet(*messages: dict[str, Any], threads: tuple[BoundThread, ...] = (thread(), thread(OTHER))) -> set[str]:
    """Return which of the threads have nothing new by one page of history."""
    roots = Roots(threads)
    roots.page(messages)
    return set(roots.without_news())


def test_a_thread_whose_latest_reply_was_seen_has_nothing_new() -> None:
    """And one with a later reply has: the time stamps are compared as numbers."""
    assert quiet(parent(), parent(OTHER, LATER)) == {ROOT}
    assert quiet(parent(latest="999999999.000001")) == {ROOT}


def test_a_latest_reply_before_the_cursor_is_nothing_new() -> None:
    """The one at the cursor was deleted."""
    assert quiet(parent(latest="1700000900.000001")) == {ROOT}


@pytest.mark.parametrize("latest", ["", "soon", "1700002000", 1700000000.5, None])
def test_a_parent_whose_latest_reply_cannot_be_compared_is_read(latest: Any) -> None:
    """It has replies, and nobody knows how late."""
    assert quiet(parent(latest=latest), parent(OTHER)) == {OTHER}


def test_a_message_that_shows_no_thread_has_no_replies() -> None:
    """Provided that the server gives the field at all, which another message shows."""
    bare = {"type": "message", "ts": ROOT}

    assert quiet(bare, parent(OTHER)) == {ROOT, OTHER}
    assert quiet(bare) == set()


def test_a_parent_that_was_deleted_is_read() -> None:
    """Only its place is left."""
    assert quiet(parent(subtype="tombstone"), parent(OTHER)) == {OTHER}


def test_a_reply_that_was_sent_to_the_channel_as_well_is_news_of_its_thread() -> None:
    """Whatever the parent says, and on whichever page it comes; an old one is none."""
    late = {"type": "message", "subtype": "thread_broadcast", "ts": LATER, "thread_ts": ROOT}
    old = {"type": "message", "subtype": "thread_broadcast", "ts": CURSOR, "thread_ts": OTHER}

    assert quiet(late, old, parent(), parent(OTHER)) == {OTHER}


def test_a_parent_that_was_on_no_page_is_read() -> None:
    """It is older than what was asked for, or than what the server gives."""
    roots = Roots((thread(), thread(OTHER)))

    found = roots.page([parent(OTHER)]), roots.page([{"ts": LATER}])

    assert (found, roots.unseen, roots.oldest) == ((True, False), 1, ROOT)
    assert roots.without_news() == {OTHER}


@pytest.mark.parametrize(
    ("known", "read"),
    [
        ({}, False),
        ({"fresh": True}, True),
        ({"shared": None}, True),
        ({"shared": True}, True),
        ({"waiting": (CURSOR,)}, True),
        ({"taken": ("1700000500.000001",)}, False),
        ({"taken": ("1700003000.000001",)}, True),
        ({"taken": ("later",)}, True),
        ({"cursor": "1700002800.000001"}, True),
        ({"cursor": ""}, True),
        ({"cursor": "9" * 400}, True),
    ],
)
def test_what_the_history_cannot_tell_is_read(known: dict[str, Any], read: bool) -> None:
    """What waits may have been edited, and so may what was typed shortly before; a cursor may be damaged."""
    assert has_to_be_read(thread(**known), shared=False, since="1700003000.000000") is read


def test_the_latest_that_is_known_is_found_among_all_threads() -> None:
    """Damaged time stamps count for nothing."""
    threads = (thread(cursor="later"), thread(taken=("999999999.000001",), waiting=(LATER,)))

    assert latest_known(threads) == LATER
    assert latest_known(()) == "0.000000"
