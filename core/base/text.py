"""Clean text for terminals, spans of time as people write them, and texts in a form that can be compared. No I/O.

Spans are `30s`, `15m`, `2h`, `7d`, `1h30m`; loops also accept `1.5 hours`. Claude Code's input line leaves out
characters without width (2.1.332) and composes accents (NFC; 2.1.197 and 2.1.332), so texts are compared in a form in
which that makes no difference. Every command imports this module, so it imports nothing heavy.
"""

import re
import unicodedata
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache

from core.base.errors import InvalidValue

_REASON_LIMIT = 500
_ELLIPSIS = "…"

# The patterns below are compiled at their first use, and kept by `re`: few commands need them.

#: C0 but tab and newline, DEL, C1, what turns the direction of text, halves of surrogate pairs.
_DROPPED = "[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"


#: What a program writes to colour and to move: a sequence is taken whole, for its rest would be read as text (ECMA-48).
SEQUENCES = (
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    "|(?:\x1b[P\\]X^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]*(?:\x07|\x1b\\\\|\x9c)"  # OSC, DCS, …
    "|\x1b[ -/]*[0-~]"
)
CONTROLS = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]"


def unstyled(text: str) -> str:
    """Return a text as a terminal would show it: without ANSI sequences, and without other control characters."""
    return re.sub(CONTROLS, "", re.sub(SEQUENCES, "", text))


#: CR and CRLF, VT, FF, the separators of files, groups and records, NEL, those of lines and paragraphs (Unicode, 5.8)
_LINE_END = "\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]"


def in_lines(text: str) -> str:
    """Return the text with `\n` for whatever ends a line somewhere: a quote has to mark every line that is shown."""
    return re.sub(_LINE_END, "\n", text)


def plain(text: str) -> str:
    """Return the text without control characters, direction marks and broken surrogates. Tabs and newlines stay."""
    return text if text.isascii() and text.isprintable() else re.sub(_DROPPED, "", text)


def visible(text: str) -> tuple[str, int]:
    """Return the text with each character that cannot be seen written as an escape (`\\u202e`), and their number.

    These are controls, direction marks, blanks of no or of odd width, and what no font has. Tabs, newlines and the
    ordinary blank stay, as does what belongs to an emoji before it.
    """
    return _unseen().subn(lambda found: _escape(ord(found[0])), text)


@cache
def _unseen() -> re.Pattern[str]:
    """Return what matches one such character; compiled where it is used, for most commands show no request."""
    symbol = "[\u203c-\u3299\U0001f000-\U0001faff]"  # what may be an emoji, which the next ones then belong to
    return re.compile(
        f"(?<!{symbol})[\ufe0e\ufe0f]|(?<![\ufe0f]|{symbol})\u200d"
        "|[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200c\u200e\u200f"
        "\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ud800-\uf8ff\ufdd0-\ufdef\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb"
        "\ufffe\uffff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
    )


def _escape(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def moment_text(moment: datetime) -> str:
    """Return a time as every text for people has it: `2026-12-01 01:38:12 UTC`.

    A chat that can show each reader their own time finds it by this form (`MOMENT`); all others show it as it is.
    """
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


MOMENT = r"\b([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}(?::[0-9]{2})?) UTC\b"


def reason_of(text: str) -> str:
    """Return a person's reason as it is kept and shown: plain, in one line, at most 500 characters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= _REASON_LIMIT else f"{line[: _REASON_LIMIT - len(_ELLIPSIS)]}{_ELLIPSIS}"


RULE = "a time above 0, such as 30s, 15m, 2h, 7d or 1h30m"
_FORM = r"(?:(\d{1,6})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?"
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


#: what may be left out where a text is shown: Unicode's Default_Ignorable_Code_Point and General_Category Cf (15.1)
UNSEEN = (
    "[\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_BLANK = "\u2800"  #: a pattern of Braille without a dot, which Unicode calls no space


def seen(text: str) -> str:
    """Return the text as it is compared with what a program has kept of it: composed, without what has no width."""
    lines = plain(in_lines(text))
    return lines if lines.isascii() else unicodedata.normalize("NFC", re.sub(UNSEEN, "", lines))


def alike(text: str) -> str:
    """Return the text with one letter for all that look alike: of any width, case and kind of blank. Newlines stay."""
    return "".join(map(_letter, text))


@lru_cache(maxsize=4096)
def _letter(letter: str) -> str:
    if letter == "\n":
        return letter
    shown = re.sub(UNSEEN, "", plain(letter))
    return " " if shown.isspace() or shown == _BLANK else unicodedata.normalize("NFKC", shown).casefold()
