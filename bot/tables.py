"""Tables as lines of aligned columns, since Slack's markup has none. Pure."""

import unicodedata
from collections.abc import Sequence
from itertools import zip_longest

_WIDEST = 40  #: columns; a longer cell stands out, so that one of them does not blow up every row

Row = Sequence[str]  #: a cell may have several lines


def columns(rows: Sequence[Row]) -> list[str]:
    """Return the rows as lines, the first one as their head; every row has as many cells as that."""
    cells = [[cell.split("\n") for cell in row] for row in rows]
    widths = [
        min(_WIDEST, max(_width(line) for cell in column for line in cell)) for column in zip(*cells, strict=True)
    ]
    head, *body = [
        [" | ".join(map(_padded, line, [*widths[:-1], 0])) for line in zip_longest(*row, fillvalue="")] for row in cells
    ]
    return [*head, "-+-".join("-" * width for width in widths), *(line for row in body for line in row)]


def _padded(cell: str, width: int) -> str:
    return cell + " " * max(0, width - _width(cell))


def _width(text: str) -> int:
    """Return the columns that the text takes in a fixed-width font."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(bool(unicodedata.combining(character)) for character in text)
