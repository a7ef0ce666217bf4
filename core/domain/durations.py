"""Spans of time as people write them: `30s`, `15m`, `2h`, `7d`, `1h30m`; those of loops also `1.5 hours`. No I/O."""

import re
from datetime import timedelta

from core.errors import InvalidValue

RULE = "a time such as 30s, 15m, 2h, 7d or 1h30m, longer than nothing"
_FORM = r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?"  # compiled at its first use: few commands do
_UNITS = (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1))


def parse_duration(text: str) -> timedelta:
    """Return the span. Raises ValueError, whose message is the rule, for anything else and for no time at all."""
    found = re.fullmatch(_FORM, text, re.ASCII)
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()) if found else (0, 0, 0, 0)
    span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    if not span:
        raise ValueError(RULE)
    return span


def duration_text(span: timedelta) -> str:
    """Return the shortest spelling of a span, to the second: `1h30m`; `0s` for less."""
    left, parts = int(span.total_seconds()), []
    for unit, seconds in _UNITS:
        count, left = divmod(left, seconds)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


INTERVAL_RULE = "a number and its unit, such as 30s, 1.5h, 5 minutes, 2 days or 1h30m"
_SPELLINGS = {
    "d": ("d", "day", "days"),
    "h": ("h", "hr", "hrs", "hour", "hours"),
    "m": ("m", "min", "mins", "minute", "minutes"),
    "s": ("s", "sec", "secs", "second", "seconds"),
}
_PART = r"(?P<number>\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})\s*(?P<unit>[a-z]+)\s*"
_SECONDS = r"\d{1,9}(?:\.\d{1,9})?"
_ECHO = 60  #: characters of what was given that a refusal repeats
_LONGEST = timedelta(days=36_500)


def parse_interval(text: str, least: timedelta, most: timedelta) -> timedelta:
    """Return how far apart the runs of a loop are.

    Units are s, m, h, d and their words, each once, the larger first. Raises InvalidValue, whose message repeats the
    text and tells the rule and the bounds.
    """
    span = _span(text)
    if span is None:
        raise InvalidValue(f"the interval {_echo(text)} is not understood", allowed=INTERVAL_RULE)
    if not least <= span <= most:
        bounds = f"{interval_text(least)} to {interval_text(most)}"
        raise InvalidValue(
            f"the interval {_echo(text)} is out of bounds",
            allowed=f"{bounds} (loops.minInterval, loops.maxInterval)",
        )
    return span


def parse_delay(given: str | float, least: timedelta, most: timedelta) -> tuple[timedelta, bool]:
    """Return a delay within the bounds, and whether it had to be brought there. A bare number is seconds.

    Raises InvalidValue for what is neither.
    """
    text = f"{given:f}" if isinstance(given, float | int) else given.strip()
    bare = re.fullmatch(_SECONDS, text, re.ASCII)
    span = timedelta(seconds=float(text)) if bare else _span(text)
    if span is None:
        raise InvalidValue(f"the delay {_echo(str(given))} is not understood", allowed=f"{INTERVAL_RULE}, or seconds")
    clamped = min(max(span, least), most)
    return clamped, clamped != span


def interval_text(span: timedelta) -> str:
    """Return the shortest spelling of a span that says all of it: `1h30m`; `1.5s` where seconds are broken."""
    return duration_text(span) if span == timedelta(seconds=int(span.total_seconds())) else f"{span.total_seconds()}s"


def _span(text: str) -> timedelta | None:
    """Return the span, None for a text that is none or goes beyond a century."""
    units = {word: (order, unit) for order, (unit, words) in enumerate(_SPELLINGS.items()) for word in words}
    seconds, place, last, sizes = 0.0, 0, -1, dict(_UNITS)
    lowered = text.strip().lower()
    while place < len(lowered):
        found = re.compile(_PART, re.ASCII).match(lowered, place)
        order, unit = units.get(found["unit"], (-1, "")) if found else (-1, "")
        if found is None or order <= last:
            return None
        seconds, place, last = seconds + float(found["number"]) * sizes[unit], found.end(), order
    return timedelta(seconds=seconds) if 0 < seconds <= _LONGEST.total_seconds() else None


def _echo(text: str) -> str:
    shown = " ".join(text.split())
    return repr(shown if len(shown) <= _ECHO else f"{shown[:_ECHO]}…")
