"""A text as somebody reads it: without styles, with each escape as its character, and where each character was written.

A secret is searched in what is read and removed from what is written; the rest stays letter by letter.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import accumulate

from core.base.text import CONTROLS, SEQUENCES, UNSEEN
from core.base.values import dataclass

_PIECE = 64 * 1024  #: characters that are looked through at once: `re` lets no other thread run meanwhile


def found_in(pattern: re.Pattern[str], text: str, *, lines: bool = False) -> Iterator[re.Match[str]]:
    """Yield what is found, a piece of the text after the other; `lines`: it may be found over several lines."""
    start = 0
    while start < len(text):
        end = len(text) if lines else text.find("\n", start + _PIECE) + 1 or len(text)
        yield from pattern.finditer(text, start, end)
        start = end


@dataclass(frozen=True)
class Cut:
    """A place of a text, and what is shown there in its stead."""

    start: int
    end: int
    shown: str


def joined(cuts: Iterable[Cut]) -> list[Cut]:
    """Return the cuts in order; one in the place of all that overlap."""
    made: list[Cut] = []
    for cut in sorted(cuts, key=lambda cut: (cut.start, cut.end)):
        if made and cut.start < made[-1].end:
            last = made.pop()
            cut = Cut(last.start, max(last.end, cut.end), last.shown or cut.shown)
        made.append(cut)
    return made


def without(text: str, cuts: Iterable[Cut]) -> str:
    """Return the text with what is shown in the place of each cut. They are in order, and none overlaps another."""
    made, end = [], 0
    for cut in cuts:
        made += [text[end : cut.start], cut.shown]
        end = cut.end
    return "".join([*made, text[end:]])


class Reading:
    """A text that loses parts of itself one look after the other, and knows where they were written."""

    def __init__(self, written: str, unlike: Iterable[tuple[int, int, str]] = ()) -> None:
        """`unlike`: where the text is written otherwise than it is read, from and to, and the character read, or ""."""
        made, self._begins, self._places, end, length = [], list[int](), list[tuple[int, int, int]](), 0, 0
        for start, after, character in unlike:
            length += start - end
            made += [written[end:start], character]
            self._begins.append(length)
            self._places.append((start, after, len(character)))
            length += len(character)
            end = after
        self.literal = not made  #: it is read as it is written
        self.text = "".join([*made, written[end:]]) if made else written
        self._cuts: list[Cut] = []  # of the text as it was read at first

    def take(self, found: Iterable[Cut]) -> None:
        """Take these out."""
        new = joined(found)
        if not new:
            return
        lengths = [len(cut.shown) - (cut.end - cut.start) for cut in self._cuts]
        begins = [cut.start + gone for cut, gone in zip(self._cuts, accumulate(lengths, initial=0), strict=False)]
        self.text = without(self.text, new)
        at_first = [
            Cut(self._at_first(begins, cut.start)[0], self._at_first(begins, cut.end - 1)[1], cut.shown) for cut in new
        ]
        self._cuts = joined([*self._cuts, *at_first])

    def _at_first(self, begins: list[int], place: int) -> tuple[int, int]:
        """Return where a character of the text stood, from and to, before anything was taken out."""
        index = bisect_right(begins, place) - 1
        if index < 0:
            return place, place + 1
        cut = self._cuts[index]
        beyond = place - begins[index] - len(cut.shown)
        return (cut.start, cut.end) if beyond < 0 else (cut.end + beyond, cut.end + beyond + 1)

    def cuts(self) -> Iterator[Cut]:
        """Yield what was taken out, at its place in the text as it is written."""
        for cut in self._cuts:
            yield Cut(self._written(cut.start)[0], self._written(cut.end - 1)[1], cut.shown)

    def _written(self, place: int) -> tuple[int, int]:
        """Return where a character that is read is written, from and to."""
        index = bisect_right(self._begins, place) - 1
        if index < 0:
            return place, place + 1
        start, end, length = self._places[index]
        beyond = place - self._begins[index] - length
        return (start, end) if beyond < 0 else (end + beyond, end + beyond + 1)


#: as programs write the beginning of a sequence: in JSON, C and shells, as `cat -v` does, without ESC
_WRITTEN_SEQUENCE = r"(?:(?<!\\)\\++(?:x1[bB]|0?33|e|u001[bB])|\^\[)\[[0-9;?]*[A-Za-z]|\[[0-9;]*[0-9]m"
_UNSTYLED = f"{SEQUENCES}|{CONTROLS}|{UNSEEN}"
_ESCAPES = (
    r"|(?<!\\)\\++(?:u(?P<u>[0-9a-fA-F]{4})|x(?P<x>[0-9a-fA-F]{2})|(?P<o>[01][0-7]{2})|(?P<end>[nrt])|(?P<sign>[!-/:-@\[\]^_`{|}~]))"
    r"|%(?P<url>[2-7][0-9a-fA-F]|0[9aAdD])|&(?P<entity>#[0-9]{1,5}|#[xX][0-9a-fA-F]{1,4}|[a-z]{2,8});"
)


def readings(written: str) -> Iterator[Reading]:
    """Yield the text as it is written, as a terminal and a chat show it, and as whatever knows its escapes does.

    The latter two only where they differ from the one before.
    """
    yield Reading(written)
    shown = [(found.start(), found.end(), "") for found in found_in(_styles(), written)]
    if shown:
        yield Reading(written, shown)
    unlike = [(found.start(), found.end(), _character(found)) for found in found_in(_all(), written)]
    if len(unlike) > len(shown):
        yield Reading(written, unlike)


@cache
def _styles() -> re.Pattern[str]:
    return re.compile(_UNSTYLED)


@cache
def _all() -> re.Pattern[str]:
    return re.compile(f"{_UNSTYLED}|{_WRITTEN_SEQUENCE}{_ESCAPES}")


_BASES: tuple[tuple[str, int], ...] = (("u", 16), ("x", 16), ("o", 8), ("url", 16))


def _character(found: re.Match[str]) -> str:
    """Return the character that an escape stands for, "" for what styles a text."""
    if found.lastgroup is None:
        return ""
    value = found[found.lastgroup]
    if found.lastgroup == "end":
        return {"n": "\n", "r": "\r", "t": "\t"}[value]
    if found.lastgroup == "sign":
        return value
    if found.lastgroup == "entity":
        from html import unescape

        character = unescape(found[0])
        return character if len(character) == 1 else " "
    return chr(int(value, dict(_BASES)[found.lastgroup]))
