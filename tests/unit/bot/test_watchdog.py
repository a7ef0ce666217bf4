"""A dead connection is told from a quiet one."""

from __future__ import annotations

from bot.connection import BROKEN, Watchdog


def test_a_connection_whose_pongs_come_is_alive() -> None:
    """However long nobody writes."""
    dog = Watchdog(30.0)

    seen = [dog.look(float(second), connected=True, pong=float(second // 5)) for second in range(0, 3600, 5)]

    assert set(seen) == {""}


def test_an_old_pong_is_the_end_whatever_the_client_says() -> None:
    """The client still calls itself connected; its last pong does not change any more."""
    dog = Watchdog(30.0)
    dog.look(0.0, connected=True, pong=7.0)

    seen = [dog.look(now, connected=True, pong=7.0) for now in (10.0, 30.0, 31.0)]

    assert seen == ["", "", "no pong for 31 s"]


def test_a_client_that_never_pings_is_dead_too() -> None:
    """Its monitor has ended, so that there is no pong at all."""
    dog = Watchdog(30.0)
    dog.look(0.0, connected=True, pong=None)

    assert dog.look(40.0, connected=True, pong=None) == "no pong for 40 s"


def test_disconnected_has_to_be_seen_twice_in_a_row() -> None:
    """For a moment between two sessions a client has none."""
    dog = Watchdog(30.0)

    seen = [dog.look(float(now), connected=up, pong=float(now)) for now, up in enumerate([False, True, False, False])]

    assert seen == ["", "", "", BROKEN]
