"""Spans of time as people write them: `30s`, `15m`, `2h`, `7d`, `1h30m`. No I/O."""

import re
from datetime import timedelta

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
