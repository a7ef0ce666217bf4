"""Puts the pieces of a long text into parts that fit into a message each, cut where a reader would. Pure.

A fence that a border falls into is closed before it and opened again behind it, with its language.
"""

from collections.abc import Sequence

from bot.rendering import Piece, units

_WORTH = 0.5  #: a part that is cut at a good border is at least this full


def split(pieces: Sequence[Piece], limit: int) -> tuple[str, ...]:
    """Return the parts, in order, none of them longer than `limit`, which is at least twice as long as any piece.

    Parts without anything to see are left out.
    """
    parts, start = list[str](), 0
    while start < len(pieces):
        end = _end(pieces, start, limit)
        parts.append(_part(pieces[start:end]))
        start = end
    return tuple(part for part in parts if part.strip())


def _end(pieces: Sequence[Piece], start: int, limit: int) -> int:
    """Return where the part that begins at `start` ends: at the best border that it is worth being cut at."""
    opened = pieces[start].before
    size = units(opened) + 1 if opened else 0
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


def _rank(pieces: Sequence[Piece], end: int) -> int:
    """Return how good a border is: between paragraphs 3, between lines 2, within a fence 1, within a line 0."""
    last = pieces[end - 1]
    if last.ends != "\n" or (last.before is None and last.after is not None):
        return 0  # the latter would be an empty fence
    if last.after is not None:
        return 1
    following = pieces[end] if end < len(pieces) else None
    at_fence = last.before is not None or (following is not None and following.after is not None)
    return 3 if at_fence or not last.text.strip(" >") else 2


def _part(pieces: Sequence[Piece]) -> str:
    opened, left = pieces[0].before, pieces[-1].after
    text = "".join(piece.text + piece.ends for piece in pieces)
    if left is not None:
        text = f"{text.removesuffix(pieces[-1].ends) if pieces[-1].ends else text}\n```"
    text = f"{opened}\n{text}" if opened else text
    return text.rstrip() if opened else text.strip("\n").rstrip()
