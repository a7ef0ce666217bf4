"""Text as a program may show it. No I/O.

Claude Code's composer leaves out what has no width (2.1.332) and composes accents (NFC; 2.1.197 and 2.1.332), so that a
text is judged, and found again, in a form in which that changes nothing.
"""

import re
import unicodedata
from functools import lru_cache

from core.domain.plaintext import in_lines, plain

#: what may be left out where a text is shown: Unicode's Default_Ignorable_Code_Point and General_Category Cf (15.1)
_UNSEEN = re.compile(
    "[\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_BLANK = "\u2800"  #: a pattern of Braille without a dot, which Unicode calls no space


def seen(text: str) -> str:
    """Return the text as it is compared with what a program has kept of it: composed, without what has no width."""
    lines = plain(in_lines(text))
    return lines if lines.isascii() else unicodedata.normalize("NFC", _UNSEEN.sub("", lines))


def alike(text: str) -> str:
    """Return the text with one letter for all that look alike: of any width, case and kind of blank. Newlines stay."""
    return "".join(map(_letter, text))


@lru_cache(maxsize=4096)
def _letter(letter: str) -> str:
    if letter == "\n":
        return letter
    shown = _UNSEEN.sub("", plain(letter))
    return " " if shown.isspace() or shown == _BLANK else unicodedata.normalize("NFKC", shown).casefold()
