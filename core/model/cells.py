"""A terminal's screen as cells with colours, to be drawn: what its styles mean, and which cells hide a secret. No I/O.

Styles are ECMA-48 SGR as tmux writes them; 38 and 48 with 5 (256 colours) and 2 (RGB), by semicolons and by colons
(ITU-T T.416). The shifts to line drawing are those of a VT100.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from core.base.reading import Cut
from core.base.values import dataclass, replace
from core.model.pane import Frame

MOST_COLUMNS, MOST_ROWS = 250, 80  #: of a picture; what is wider is cut at its right, what is higher at its top
_LEAST_COLUMNS = 40  #: a picture is at least so wide
_SHORTEST = 3  #: characters of a part of a secret that is looked for by itself
_EDGES = " \t│┃║|"  #: what a program draws around a text
_STYLED = re.compile(r"\x1b\[([0-9;:]*)m|([\x0e\x0f])|([^\x1b\x0e\x0f]+)")
_LINES = str.maketrans("`afgjklmnopqrstuvwxyz{|}~", "◆▒°±┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·")

#: the sixteen colours, as most terminals show them
_BASE = (
    *("#2e3436", "#cc4444", "#5fa02f", "#c4a000", "#4a78c8", "#9060a8", "#1a9ba0", "#d3d7cf"),
    *("#767a76", "#ef5350", "#8ae234", "#fce94f", "#82aaff", "#c792ea", "#4dd8dc", "#ffffff"),
)
_LEVELS = (0, 95, 135, 175, 215, 255)


@dataclass(frozen=True)
class Style:
    """How a cell is drawn. A colour is `#rrggbb`; "": the terminal's own."""

    front: str = ""
    back: str = ""
    bold: bool = False
    faint: bool = False
    italic: bool = False
    underlined: bool = False
    inverse: bool = False
    hidden: bool = False
    struck: bool = False


@dataclass(frozen=True)
class Cell:
    """One letter, with what is composed with it. `width`: 2 of a letter that takes two columns."""

    text: str
    width: int
    style: Style
    masked: bool = False  #: its letter is part of a secret: it is not given away


Rows = tuple[tuple[Cell, ...], ...]
_FLAGS = {1: "bold", 2: "faint", 3: "italic", 4: "underlined", 7: "inverse", 8: "hidden", 9: "struck"}
#: what ends a style is 20 above what begins it; bold and faint end together
_FLAGS_OFF = {22: ("bold", "faint"), **{code + 20: (name,) for code, name in _FLAGS.items() if code > 2}}


def colour(number: int) -> str:
    """Return one of the 256 colours."""
    if number < 16:
        return _BASE[number]
    if number >= 232:
        return "#" + f"{8 + 10 * (number - 232):02x}" * 3
    cube = number - 16
    return "#" + "".join(f"{_LEVELS[part]:02x}" for part in (cube // 36, cube // 6 % 6, cube % 6))


def rows_of(frame: Frame) -> Rows:
    """Return the cells of a frame, row by row. A style goes on over the end of a row."""
    made, style, shifted = [], Style(), False
    for line in frame.text.split("\n"):
        row: list[Cell] = []
        for found in _STYLED.finditer(line):
            codes, shift, text = found.groups()
            if codes is not None:
                style = _styled(style, codes)
            elif shift:
                shifted = shift == "\x0e"
            else:
                _add(row, text.translate(_LINES) if shifted else text, style)
        made.append(tuple(row))
    return tuple(made)


def _add(row: list[Cell], text: str, style: Style) -> None:
    for letter in text:
        if row and (unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf")):
            row[-1] = replace(row[-1], text=row[-1].text + letter)
        else:
            row.append(Cell(letter, 2 if unicodedata.east_asian_width(letter) in ("W", "F") else 1, style))


def _styled(style: Style, codes: str) -> Style:
    """Return the style after these codes of an SGR sequence; one that is not known changes nothing."""
    parts = iter((codes or "0").split(";"))
    for part in parts:
        first, *rest = part.split(":")
        code = int(first or 0)
        if code == 0:
            style = Style()
        elif code in (38, 48):
            shown = _extended([field for field in rest if field] if rest else _following(parts))
            style = replace(style, front=shown) if code == 38 else replace(style, back=shown)
        elif code == 4 and rest == ["0"]:
            style = replace(style, underlined=False)
        elif code in _FLAGS:
            style = _flagged(style, (_FLAGS[code],), True)
        elif code in _FLAGS_OFF:
            style = _flagged(style, _FLAGS_OFF[code], False)
        elif code in (39, 49):
            style = replace(style, front="") if code == 39 else replace(style, back="")
        elif 30 <= code <= 37 or 90 <= code <= 97:
            style = replace(style, front=colour(code - 30 if code < 90 else code - 82))
        elif 40 <= code <= 47 or 100 <= code <= 107:
            style = replace(style, back=colour(code - 40 if code < 100 else code - 92))
    return style


def _flagged(style: Style, names: Sequence[str], on: bool) -> Style:
    changes: dict[str, Any] = dict.fromkeys(names, on)
    return replace(style, **changes)


def _following(parts: Iterator[str]) -> list[str]:
    """Take the fields of a colour that are written as codes of their own."""
    kind = next(parts, "")
    return [kind, *(next(parts, "") or "0" for _ in range({"5": 1, "2": 3}.get(kind, 0)))]


def _extended(fields: Sequence[str]) -> str:
    """Return a colour by its fields, `5;N` or `2;R;G;B`; "" for what is neither."""
    numbers = [int(field) for field in fields[1:]]
    if fields[:1] == ["5"] and len(numbers) == 1 and numbers[0] < 256:
        return colour(numbers[0])
    if fields[:1] == ["2"] and len(numbers) >= 3 and all(number < 256 for number in numbers[-3:]):
        return "#" + "".join(f"{number:02x}" for number in numbers[-3:])
    return ""


# ---------------------------------------------------------------- what is not given away


def masked(rows: Rows, columns: int, cuts: Callable[[str], Iterable[Cut]], known: Iterable[str] = ()) -> Rows:
    """Return the rows with every cell masked that shows a part of a secret.

    `cuts` finds the secrets of a text. It is asked about the rows as they are, joined where a row fills its terminal,
    and joined without what a program draws around them: a program breaks its lines where its terminal ends. `known`:
    what was found to be secret in a longer text, such as with lines above the screen; each of its lines is masked.
    """
    parts = {line.strip(_EDGES) for text in known for line in text.splitlines()}
    hidden: set[tuple[int, int]] = set()
    for text, places in _readings(rows, columns):
        spans = [(cut.start, cut.end) for cut in cuts(text)]
        spans += [span for part in parts if len(part) >= _SHORTEST for span in _found(text, part)]
        hidden |= {place for start, end in spans for place in places[start:end] if place is not None}
    if not hidden:
        return rows
    return tuple(
        tuple(replace(cell, text=" ", masked=True) if (y, x) in hidden else cell for x, cell in enumerate(row))
        for y, row in enumerate(rows)
    )


def _found(text: str, part: str) -> Iterator[tuple[int, int]]:
    start = text.find(part)
    while start >= 0:
        yield start, start + len(part)
        start = text.find(part, start + 1)


def _readings(rows: Rows, columns: int) -> Iterator[tuple[str, list[tuple[int, int] | None]]]:
    """Yield the rows as texts, each with the row and the cell of each of its characters; None for a line's end."""
    for read in (_whole, _filled, _unframed):
        text, places = list[str](), list[tuple[int, int] | None]()
        for y, row in enumerate(rows):
            kept, ended = read(row, columns)
            for x in kept:
                text.append(row[x].text)
                places += [(y, x)] * len(row[x].text)
            if ended:
                text.append("\n")
                places.append(None)
        yield "".join(text), places


def _whole(row: Sequence[Cell], columns: int) -> tuple[range, bool]:
    return range(len(row)), True


def _filled(row: Sequence[Cell], columns: int) -> tuple[range, bool]:
    used = len(row)
    while used and row[used - 1].text == " ":
        used -= 1
    return range(len(row)), sum(cell.width for cell in row[:used]) < columns - 1


def _unframed(row: Sequence[Cell], columns: int) -> tuple[range, bool]:
    first, end = 0, len(row)
    while first < end and row[first].text in _EDGES:
        first += 1
    while end > first and row[end - 1].text in _EDGES:
        end -= 1
    return range(first, end), False


def drawing_of(frame: Frame, rows: Rows) -> dict[str, object]:
    """Return what is drawn, as JSON: `{columns, rows: [[[column, text, width, front, back, flags], …], …], cursor}`.

    A cell that shows nothing is left out, and so are empty rows at the end and empty columns at the right: what is
    left can be read on a small screen. Bounded by MOST_COLUMNS and MOST_ROWS. `cursor`: column and row, or null.
    """
    column, row = frame.cursor
    most = min(frame.columns, MOST_COLUMNS)
    all_drawn = [list(_drawn(cells, most)) for cells in rows]
    at = row if frame.cursor_shown and column < most and row < len(rows) else -1
    end = max([at, *(y for y, drawn in enumerate(all_drawn) if drawn)]) + 1
    above = max(0, end - MOST_ROWS)
    shown = all_drawn[above:end]
    used = [cell[0] + cell[2] for drawn in shown for cell in drawn]
    seen = at >= above
    columns = min(most, max([_LEAST_COLUMNS, *used, column + 1 if seen else 0]))
    return {"columns": columns, "rows": shown, "cursor": [column, row - above] if seen else None}


def _drawn(row: Iterable[Cell], columns: int) -> Iterator[list[Any]]:
    column = 0
    for cell in row:
        if column + cell.width > columns:
            return
        style = cell.style
        front, back = (style.back or "back", style.front or "front") if style.inverse else (style.front, style.back)
        named = ("bold", "faint", "italic", "underlined", "struck")
        flags = [flag for flag in named if getattr(style, flag)] + ["masked"] * cell.masked
        text = " " if style.hidden else cell.text
        if text != " " or back or flags:
            yield [column, text, cell.width, front, back, flags]
        column += cell.width
