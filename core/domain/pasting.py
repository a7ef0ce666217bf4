"""A text cut into pastes so small that a harness takes each for typed text. No I/O.

Claude Code 2.1.332 tells its model of a paste of more than two newlines or 800 characters that it may not be the user's
own words. It judges each bracketed paste alone, and joins what follows one another without a key.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice

from core.domain.harness import Echo, Traits
from core.domain.likeness import seen

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_FLAG_HALVES = re.compile("[\U0001f1e6-\U0001f1ff]+$")
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")  #: zero-width joiner, variation selectors
_NO_LETTER = re.compile(r"[^0-9A-Za-z]+")
_END = 16  #: letters by which the end of a text is known
_LOOK_BACK = 80  #: characters from a cut in which a blank is looked for


def pieces_of(text: str, traits: Traits) -> tuple[str, ...] | None:
    """Return the text in pieces that the harness takes for typed; whole where it knows no such limit.

    Each holds at most so many newlines, the last of them at its end, and at most so many UTF-16 units; no grapheme is
    cut that fits into one. None where they are more than the harness reads in a moment.
    """
    if not traits.paste_lines:
        return (text,)
    pieces = tuple(islice(_pieces(text, traits.paste_lines, traits.paste_chars), traits.paste_pieces + 1))
    return pieces if len(pieces) <= traits.paste_pieces else None


def most_pieces(text: str, traits: Traits) -> int:
    """Return a number that its pieces do not exceed, without cutting it."""
    if not traits.paste_lines:
        return 1
    most = 1 + text.count("\n") // traits.paste_lines + len(text) // (traits.paste_chars // 4)
    return min(most, traits.paste_pieces)


def shows_text(screen: str, text: str, echo: Echo) -> bool:
    """Return whether a screen's input line shows the end of the text, or something in the place of a long one.

    A text without a letter that every terminal shows alike counts as shown. A line of many rows may have its beginning,
    and its mark, above the screen.
    """
    end, line = _letters(text)[-_END:], input_line(screen, echo)
    return not end or end in _letters(line) or re.search(echo.folded, line) is not None


def input_line(screen: str, echo: Echo) -> str:
    """Return the screen from its input line on, the whole of it where that begins above."""
    return screen.rpartition(echo.mark)[2]


def _letters(text: str) -> str:
    return _NO_LETTER.sub("", seen(text))


def _pieces(text: str, lines: int, chars: int) -> Iterator[str]:
    piece, newlines = "", 0
    for line in _LINE.findall(text):
        for part in _parts(line, chars):
            if piece and (newlines == lines or _units(piece + part) > chars):
                yield piece
                piece, newlines = "", 0
            piece += part
            newlines += part.endswith("\n")
    if piece:
        yield piece


def _parts(line: str, chars: int) -> Iterator[str]:
    """Yield a line in parts of at most so many UTF-16 units."""
    start = 0
    while _units(line[start : start + chars + 1]) > chars:
        end = start + _cut(line[start : start + chars + 1], chars)
        yield line[start:end]
        start = end
    yield line[start:]


def _cut(line: str, chars: int) -> int:
    """Return where to cut a line that is too long: behind a blank near the limit, else between two graphemes."""
    most = len(line.encode("utf-16-le", "surrogatepass")[: 2 * chars].decode("utf-16-le", "ignore"))
    blank = line.rfind(" ", max(0, most - _LOOK_BACK), most)
    if blank >= 0:
        return blank + 1
    end = most
    while end > 0 and _goes_on(line, end):
        end -= 1
    return end or most


def _goes_on(line: str, at: int) -> bool:
    """Return whether what stands before the position and what follows may be one grapheme."""
    before, letter = line[at - 1], line[at]
    if letter in _JOINERS or before == "\u200d" or unicodedata.category(letter) in ("Mn", "Me", "Mc"):
        return True
    if "\U0001f3fb" <= letter <= "\U0001f3ff":  # a skin tone
        return True
    halves = _FLAG_HALVES.search(line, 0, at) if _is_flag_half(letter) else None
    return halves is not None and len(halves[0]) % 2 == 1


def _is_flag_half(letter: str) -> bool:
    return "\U0001f1e6" <= letter <= "\U0001f1ff"


def _units(text: str) -> int:
    """Return the length as a JavaScript program counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
