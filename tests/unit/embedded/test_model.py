"""The store: time stamps, threads, and identifiers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedded.workspace.model import Channel, Store, decode_cursor, encode_cursor, format_ts, parse_ts


@pytest.fixture
def store() -> Iterator[Store]:
    """A store in memory with one channel."""
    opened = Store(None)
    opened.put_channel(Channel("C1", "agents", 0, "U1"))
    yield opened
    opened.close()


def test_ts_increase_although_the_clock_does_not(store: Store) -> None:
    """Two messages of one moment, or of a clock set back, still have their order."""
    given = [store.next_ts("C1", now) for now in (1000.0, 1000.0, 900.0, 1000.5)]

    assert given == ["0000001000.000000", "0000001000.000001", "0000001000.000002", "0000001000.500000"]


def test_changing_a_channel_keeps_its_clock(store: Store) -> None:
    """Archiving and sharing do not let ts repeat."""
    first = store.next_ts("C1", 1000.0)
    store.put_channel(Channel("C1", "agents", 0, "U1", is_archived=True))

    assert store.next_ts("C1", 1.0) > first


def test_broadcast_reply_is_in_the_thread_and_in_the_channel(store: Store) -> None:
    """A plain reply is in the thread alone."""
    for ts, more in (("1", {}), ("2", {"thread_ts": "1"}), ("3", {"thread_ts": "1", "subtype": "thread_broadcast"})):
        store.put_message("C1", {"ts": ts, **more})

    assert [message["ts"] for message in store.roots("C1")] == ["1", "3"]
    assert [message["ts"] for message in store.replies("C1", "1")] == ["2", "3"]


def test_ts_are_read_as_integers() -> None:
    """Microseconds survive, short fractions are padded, nonsense is refused."""
    assert format_ts(parse_ts("1700000000.000100")) == "1700000000.000100"
    assert parse_ts("5.1") == 5_100_000
    for text in ("", "x", "1.2.3", "1.0000001", "-1"):
        with pytest.raises(ValueError, match="is not a ts"):
            parse_ts(text)


def test_cursors_of_others_are_refused() -> None:
    """Only what this server encoded is decoded."""
    assert decode_cursor(encode_cursor("1700000000.000100")) == "1700000000.000100"
    for text in ("###", "bm9wZQ==", "gICA"):
        with pytest.raises(ValueError):  # noqa: PT011 - base64's own message stands for one of them
            decode_cursor(text)
