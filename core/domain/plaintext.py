"""Text without what a terminal would act on. No I/O; imported by every command, so nothing heavy is imported here."""

import re
from functools import cache

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


#: CR and CRLF, VT, FF, the separators of files, groups and records, NEL, those of lines and paragraphs (Unicode, 5.8)
_LINE_END = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def in_lines(text: str) -> str:
    """Return the text with `\n` for whatever ends a line somewhere: a quote has to mark every line that is shown."""
    return _LINE_END.sub("\n", text)


def plain(text: str) -> str:
    """Return the text without control characters, direction marks and broken surrogates. Tabs and newlines stay."""
    return _DROPPED.sub("", text)


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


def reason_of(text: str) -> str:
    """Return a person's reason as it is kept and shown: plain, in one line, at most 500 characters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= _REASON_LIMIT else f"{line[: _REASON_LIMIT - len(_ELLIPSIS)]}{_ELLIPSIS}"
