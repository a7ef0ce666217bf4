"""Text without what a terminal would act on. No I/O; imported by every command, so nothing heavy is imported here."""

import re

_REASON_LIMIT = 500
_ELLIPSIS = "…"

#: C0 but tab and newline, DEL, C1, what turns the direction of text, halves of surrogate pairs.
_DROPPED = re.compile("[\x00-\x08\x0b-\x1f\x7f\x80-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


#: What a program writes to colour and to move: a sequence is taken whole, for its rest would be read as text (ECMA-48).
_SEQUENCE = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI
    "|(?:\x1b[P\\]X^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)"  # OSC, DCS and the like
    "|\x1b[ -/]*[0-~]"
)
_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")


def unstyled(text: str) -> str:
    """Return a text as a terminal would show it: without ANSI sequences, and without other control characters."""
    return _CONTROLS.sub("", _SEQUENCE.sub("", text))


def plain(text: str) -> str:
    """Return the text without control characters, direction marks and broken surrogates. Tabs and newlines stay."""
    return _DROPPED.sub("", text)


def reason_of(text: str) -> str:
    """Return a person's reason as it is kept and shown: plain, in one line, at most 500 characters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= _REASON_LIMIT else f"{line[: _REASON_LIMIT - len(_ELLIPSIS)]}{_ELLIPSIS}"
