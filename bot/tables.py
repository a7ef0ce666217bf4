"""Markdown's tables as fenced text in columns, since Slack's markup has none. Pure."""

import re
import unicodedata
from collections.abc import Sequence

from bot.fences import Fence, opening

_DELIMITER = re.compile(r" {0,3}\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$")
_WIDEST = 40  #: columns; a longer cell stands out, so that one of them does not blow up every row
_TILDES = re.compile(r"~+")


def with_fenced_tables(markdown: str) -> str:
    """Return the text with each table as a fence of aligned columns; everything else as it was."""
    lines, made, fence, position = markdown.split("\n"), list[str](), None, 0
    while position < len(lines):
        line = lines[position]
        if fence is None and _begins(lines, position):
            end = position + 2
            while end < len(lines) and "|" in lines[end] and lines[end].strip():
                end += 1
            made += _fenced([lines[position], *lines[position + 2 : end]])
            position = end
            continue
        fence = _after(fence, line)
        made.append(line)
        position += 1
    return "\n".join(made)


def _after(fence: Fence | None, line: str) -> Fence | None:
    if fence is None:
        return opening(line)
    return None if fence.closed_by(line) else fence


def _begins(lines: Sequence[str], position: int) -> bool:
    """Tell whether a header and its delimiter row stand here: as many cells, and at least one bar."""
    header, delimiter = lines[position], lines[position + 1] if position + 1 < len(lines) else ""
    return (
        "|" in header
        and "|" in delimiter
        and bool(_DELIMITER.match(delimiter))
        and len(_cells(header)) == len(_cells(delimiter))
    )


def _cells(line: str) -> list[str]:
    """Return a row's cells. A bar is escaped by a backslash, in code as well."""
    bare = line.strip().removeprefix("|")
    cells = re.split(r"(?<!\\)\|", bare)
    if len(cells) > 1 and not cells[-1].strip():
        cells.pop()
    return [cell.replace("\\|", "|").strip() for cell in cells]


def _fenced(rows: Sequence[str]) -> list[str]:
    table = [_cells(row) for row in rows]
    columns = max(map(len, table))
    table = [[*row, *([""] * (columns - len(row)))] for row in table]
    widths = [min(_WIDEST, max(_width(row[column]) for row in table)) for column in range(columns)]
    head, *body = [" | ".join(map(_padded, row, widths)).rstrip() for row in table]
    shown = [head, "-+-".join("-" * width for width in widths), *body]
    longest = max((len(run) for line in shown for run in _TILDES.findall(line)), default=0)
    mark = "~" * max(3, longest + 1)
    return [mark, *shown, mark]


def _padded(cell: str, width: int) -> str:
    return cell + " " * max(0, width - _width(cell))


def _width(text: str) -> int:
    """Return the columns that the text takes in a fixed-width font."""
    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(bool(unicodedata.combining(character)) for character in text)
