"""Cuts a long text into parts that fit into a message each, at the borders where a reader would. Pure.

A fence that a border falls into is closed before it and opened again behind it, with its language.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bot.fences import Fence, opening
from bot.rendering import code_line, fence_lines, text_line

_WORTH = 0.5  #: a part that is cut at a good border is at least this full


@dataclass(frozen=True)
class Part:
    """One part: `text` stands alone, `raw` is what of the whole it holds. All raws in a row are the whole."""

    text: str
    raw: str


@dataclass(frozen=True)
class _Piece:
    """A line, or a bit of one that is too long: with what it weighs once rendered, and the fences around it."""

    text: str
    ends: str  #: what the whole has behind it: a line feed, or nothing
    weight: int
    before: Fence | None
    after: Fence | None


def split(markdown: str, limit: int) -> tuple[Part, ...]:
    """Return the parts, in order. None of them is longer than `limit` once rendered; `limit` is at least 1,000.

    Parts without anything to see are left out.
    """
    pieces = list(_pieces(markdown, limit))
    parts, start = list[Part](), 0
    while start < len(pieces):
        end = _end(pieces, start, limit)
        parts.append(_part(pieces[start:end]))
        start = end
    return tuple(part for part in parts if part.raw.strip())


def units(text: str) -> int:
    """Return a text's length as Slack may count it: a character outside the basic plane is two."""
    return len(text) + sum(character > "\uffff" for character in text)


def _pieces(markdown: str, limit: int) -> Iterator[_Piece]:
    lines, fence = markdown.split("\n"), None
    for number, line in enumerate(lines):
        bits = list(_bits(line, limit // 2, fence))
        for position, bit in enumerate(bits):
            last = position == len(bits) - 1
            after = _after(fence, bit)
            ends = "\n" if last and number < len(lines) - 1 else ""
            yield _Piece(bit, ends, _weight(bit, fence, after), fence, after)
            fence = after


def _bits(line: str, room: int, fence: Fence | None) -> Iterator[str]:
    """Return the line, or pieces of one that alone would fill a part; they end at a space where one is near."""
    while len(line) > room or _weight(line, fence, fence) > room:
        low, high = 1, min(len(line), room)
        while low < high:
            middle = (low + high + 1) // 2
            fits = _weight(line[:middle], fence, fence) <= room
            low, high = (middle, high) if fits else (low, middle - 1)
        space = line.rfind(" ", low // 2, low)
        cut = space + 1 if space > 0 and fence is None else low
        yield line[:cut]
        line = line[cut:]
    yield line


def _after(fence: Fence | None, line: str) -> Fence | None:
    if fence is None:
        return opening(line)
    return None if fence.closed_by(line) else fence


def _weight(line: str, before: Fence | None, after: Fence | None) -> int:
    """Return how long the line is once rendered, its line feed included."""
    if before is None and after is not None and after is not before:
        shown = "\n".join(fence_lines(after))
    else:
        shown = text_line(line) if before is None else code_line(line)
    return units(shown) + 1


def _end(pieces: Sequence[_Piece], start: int, limit: int) -> int:
    """Return where the part that begins at `start` ends: at the best border that it is worth being cut at."""
    opened = pieces[start].before
    size = (units("\n".join(fence_lines(opened))) + 1) if opened else 0
    best, best_rank = start + 1, -1
    for end in range(start + 1, len(pieces) + 1):
        size += pieces[end - 1].weight
        closing = len("```") + 1 if pieces[end - 1].after else 0
        if size + closing > limit and end > start + 1:
            return best
        rank = _rank(pieces, end) if size >= limit * _WORTH else 0
        if rank >= best_rank:
            best, best_rank = end, rank
    return len(pieces)


def _rank(pieces: Sequence[_Piece], end: int) -> int:
    """Return how good a border is: between paragraphs 3, between lines 2, within a fence 1, within a line 0."""
    last = pieces[end - 1]
    if not last.ends:
        return 0
    if last.after is not None:
        return 1
    following = pieces[end] if end < len(pieces) else None
    at_fence = last.before is not None or (following is not None and following.after is not None)
    return 3 if at_fence or not last.text.strip() else 2


def _part(pieces: Sequence[_Piece]) -> Part:
    opened, left = pieces[0].before, pieces[-1].after
    raw = "".join(piece.text + piece.ends for piece in pieces)
    lines = [f"{opened.mark}{opened.language}"] if opened else []
    lines += [piece.text for piece in pieces]
    if left is not None:
        lines.append(left.mark)
    text = "\n".join(lines)
    return Part(text if left or opened else text.strip("\n"), raw)
