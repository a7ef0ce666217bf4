"""How old a message is: Slack's time stamps are seconds with six decimals, compared as text or as a pair of numbers."""

from datetime import UTC, datetime

_WIDTH = 12  #: digits of the seconds, with zeros before them, so that text compares as numbers do


def age(ts: str, now: datetime) -> float:
    """Return the age in seconds; a time stamp that is no number, or in the future, has none."""
    try:
        return max(0.0, now.astimezone(UTC).timestamp() - float(ts))
    except (ValueError, OverflowError):
        return 0.0


def words_of(seconds: float) -> str:
    """Return an age as a person says it: `40 s`, `14 min`, `3 h`, `2 d`."""
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{int(seconds)} s"


def earlier(ts: str, seconds: int) -> str:
    """Return the time stamp that many seconds before."""
    whole, _, micros = ts.partition(".")
    return f"{max(0, int(whole) - seconds)}.{micros}"


def order(ts: str) -> str:
    """Return what time stamps are compared by."""
    return ts.rjust(_WIDTH + 7, "0")
