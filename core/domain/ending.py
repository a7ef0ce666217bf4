"""What a thread is told of a session that ended by itself, or is about to be stopped for idleness. No I/O."""

from datetime import datetime, timedelta

from core.domain.durations import duration_text
from core.domain.restarting import BringBack, GiveUp, exit_text
from core.domain.session import LastExit


def ended_text(
    name: str, end: LastExit | None, then: BringBack | GiveUp | None, per_hour: int, kept: str | None = None
) -> str:
    """Return the note of an end that nobody asked for, with the command that starts the session.

    `kept` is the conversation that a start takes up again, where what has ended was begun in its place.
    """
    what = f"`{name}` has ended: {exit_text(end)}."
    if kept:
        what = f"{what} A new conversation was begun in the place of {kept}, and had no turn: the old one is kept."
    start = f"`the-loop standing start {name}`"
    if isinstance(then, BringBack):
        budget = f"restart {then.number} of {per_hour} within an hour"
        return f"{what} It is brought back at {_at(then.at)} ({budget}); to start it at once: {start}"
    if isinstance(then, GiveUp):
        return f"{what} It is held as failed: {then.reason}. To start it: {start}"
    return f"{what} Its conversation is kept; to start it: {start}"


def given_up_text(name: str, reason: str) -> str:
    """Return the note of a session that could not be brought back and stays down."""
    return f"`{name}` was not brought back: {reason}. To start it: `the-loop standing start {name}`"


def idle_text(name: str, stop_after: timedelta, stop_at: datetime) -> str:
    """Return the announcement of an idle session's end."""
    return (
        f"`{name}` has had nothing to do for nearly {duration_text(stop_after)} and will be stopped at "
        f"{_at(stop_at)}. Any message keeps it. Its conversation is kept either way."
    )


def collected_text(name: str, stop_after: timedelta) -> str:
    """Return the note of a session that is stopped for idleness."""
    return (
        f"`{name}` is stopped: it had nothing to do for {duration_text(stop_after)}. Its conversation is kept; "
        f"to start it: `the-loop standing start {name}`"
    )


def _at(moment: datetime) -> str:
    return f"{moment:%H:%M:%S} UTC"
