"""Dialogs on a pane's screen, read by their form. No I/O.

A dialog is recognised by its form, whatever its text and whichever program draws it: a list of choices with a cursor,
or a last line that says which key does what ("Enter to confirm · Esc to cancel"). Such text may also stand in a
conversation. So look for the harness's input line first: while it is shown, nothing waits for a key.
"""

import re
from collections.abc import Sequence

from core.base.values import dataclass

MOST_CHOICES = 8  #: of which each is offered
PRESSED = {
    "Enter": b"\r",
    "Esc": b"\x1b",
    "Space": b" ",
    "Tab": b"\t",
    "Shift+Tab": b"\x1b[Z",
}  #: what a terminal sends
LEAVES = "Esc"  #: of these, the key that changes nothing but the dialog
UP, DOWN = "A", "B"  #: how the cursor's keys end
_CURSOR = re.compile(r"(?P<indent>\s*)(?P<mark>[❯›▶▸→]|[>●](?=\s+\d{1,2}[.)]\s))\s+(?P<rest>\S.*)")
_NUMBER = re.compile(r"\d{1,2}[.)]\s+(?=\S)")
_FIRST = re.compile(r"1[.)]\s+\S")
_TICK = re.compile(r"(?P<box>\[[ xX✓✔*]?\]|[☐☑☒✔✓◯◉○◻◼])\s+(?=\S)")
_TICKED = frozenset("xX✓✔*☑☒◉◼")
_BOX = frozenset("[☐☑☒◯◉○◻◼")  #: what stands before a choice that can be ticked; a bare ✔ only tells which one holds
_RULE = re.compile(r"\s{0,4}[─▔━═]{8,}")
_FRAME = re.compile(r"[─▔━═]{8,}")  #: across the whole screen
_WALLS = re.compile(r"(?P<indent> {0,3})│(?P<row>.*)│\s*")
_UPPER, _LOWER = re.compile(r" {0,3}╭─{8,}╮\s*"), re.compile(r" {0,3}╰─{8,}╯\s*")
_BREAK = re.compile(r"\s*[╌┄┈─▔━═]{8,}\s*")
_MORE = re.compile(r"\s*[↑↓]\s")  #: `↓ 3 more` in the place of what does not fit
_PARTED = re.compile(r"\s+[·|•]\s+")
_KEY = re.compile(r"(?:press\s+)?(?P<key>[\w+/↑↓←→ ]{1,24}?)\s+to\s+(?P<what>\S.*)", re.IGNORECASE)
_NAMES = {
    "enter": "Enter", "return": "Enter", "any key": "Enter", "esc": "Esc", "escape": "Esc", "space": "Space",
    "tab": "Tab", "shift+tab": "Shift+Tab",
}  # fmt: skip
_LEAVES = re.compile(r"(?:cancel|close|reject|exit|go back|skip|dismiss|quit|continue|decline)\b", re.IGNORECASE)
_HINT_ROWS = 3  #: a narrow terminal breaks the line


@dataclass(frozen=True)
class Choice:
    """One choice of a dialog. `row` counts from the top of the screen, 0 the first."""

    label: str  #: without cursor, number and box
    row: int
    ticked: bool | None = None  #: of one that can be ticked; None: it cannot


@dataclass(frozen=True)
class Key:
    """A key that the dialog's last line names."""

    name: str  #: Enter, Esc, Space, Tab, Shift+Tab
    what: str  #: what it does, in the dialog's words


@dataclass(frozen=True)
class Dialog:
    """What waits for a key, as it stands on the screen."""

    body: tuple[str, ...]  #: its rows from the first on, without the cursor's mark, up to the closing line
    top: int  #: the row of the first of them
    closing: tuple[str, ...] = ()  #: the rows that name keys; which they name may depend on where the cursor is
    choices: tuple[Choice, ...] = ()
    at: int | None = None  #: the choice that the cursor is at
    keys: tuple[Key, ...] = ()
    headless: bool = False  #: no frame begins it on the screen, so that its first rows may have scrolled off

    @property
    def text(self) -> str:
        """Return it for people: without frames and blank margins."""
        kept = ["" if _BREAK.fullmatch(line) else line for line in (*self.body, *self.closing)]
        margin = min((len(line) - len(line.lstrip()) for line in kept if line), default=0)
        return re.sub(r"\n{2,}", "\n\n", "\n".join(line[margin:] for line in kept)).strip("\n")

    @property
    def title(self) -> str:
        """Return its first line with words."""
        return next((line.strip() for line in (*self.body, *self.closing) if re.search(r"\w", line)), "")

    def same(self, other: "Dialog | None") -> bool:
        """Return whether the other is the same, wherever it stands and whatever its cursor is at."""
        return other is not None and self.identity == other.identity

    @property
    def identity(self) -> tuple[str, ...]:
        """Return what tells it from every other dialog."""
        return self.body if self.choices else (*self.body, *(f"{key.name} {key.what}" for key in self.keys))

    def key(self, name: str) -> Key | None:
        """Return the key of that name, None where the dialog names none."""
        return next((key for key in self.keys if key.name == name), None)


@dataclass(frozen=True)
class Offer:
    """One way to answer a dialog: a choice, or a key alone."""

    label: str
    key: str  #: pressed in the end, once the cursor is at the choice
    choice: int | None = None


def offers_of(dialog: Dialog) -> tuple[Offer, ...]:
    """Return how a person may answer the dialog, in the order in which it is offered.

    Choices that can be ticked are, and a key that closes such a list is offered besides. A list that is too long to
    offer can only be left.
    """
    several = any(choice.ticked is not None for choice in dialog.choices)
    choices = dialog.choices if len(dialog.choices) <= MOST_CHOICES else ()
    offers = [
        Offer(choice.label, "Enter", place)
        if choice.ticked is None
        else Offer(f"{'☑' if choice.ticked else '☐'} {choice.label}", "Space", place)
        for place, choice in enumerate(choices)
    ]
    alone = {"Esc"} if dialog.choices and not several else {"Enter", "Esc"} if dialog.choices else set(PRESSED)
    offers += [Offer(f"{key.name}: {key.what}", key.name) for key in dialog.keys if key.name in alone]
    return tuple(offers)


def read_dialog(rows: Sequence[str]) -> Dialog | None:
    """Return the dialog that the rows of a screen end in, None where they show none."""
    rows = _unboxed(rows)
    end = len(rows)
    while end and not rows[end - 1].strip():
        end -= 1
    hint, keys = _hint(rows[:end])
    cursor = _cursor_row(rows, hint)
    choices = _choices(rows, cursor, hint) if cursor is not None else ()
    numbered = cursor is not None and _NUMBER.match(_bare(rows[cursor]).strip()) is not None
    if cursor is not None and (keys or (numbered and len(choices) > 1)):
        top, headless = _top(rows, choices[0].row)
        at = next(place for place, choice in enumerate(choices) if choice.row == cursor)
        return Dialog(_lines(rows[top:hint]), top, _lines(rows[hint:end]), choices, at, keys, headless)
    if any(key.name == "Enter" or (key.name == "Esc" and _LEAVES.match(key.what)) for key in keys):
        top, headless = _top(rows, hint)
        return Dialog(_lines(rows[top:hint]), top, _lines(rows[hint:end]), (), None, keys, headless)
    return None


def _unboxed(rows: Sequence[str]) -> Sequence[str]:
    """Return the rows with the last box around a cursor taken away: a frame in the place of its upper side.

    Gemini CLI draws its dialogs in such boxes. Without an upper side it begins above the screen.
    """
    inside = [_WALLS.fullmatch(row) for row in rows]
    cursor = next((row for row in reversed(range(len(rows))) if _is_cursor_in(inside[row])), None)
    if cursor is None:
        return rows
    first, last = cursor, cursor
    while first > 0 and inside[first - 1]:
        first -= 1
    while last + 1 < len(rows) and inside[last + 1]:
        last += 1
    result = list(rows)
    for row in range(first, last + 1):
        wall = inside[row]
        result[row] = f"{wall['indent']} {wall['row']}".rstrip() if wall else ""
    if first > 0 and _UPPER.fullmatch(rows[first - 1]):
        result[first - 1] = "─" * max(len(row) for row in rows)
    if last + 1 < len(rows) and _LOWER.fullmatch(rows[last + 1]):
        result[last + 1] = ""
    return result


def _is_cursor_in(wall: re.Match[str] | None) -> bool:
    return wall is not None and _CURSOR.fullmatch(wall["row"]) is not None


def _hint(rows: Sequence[str]) -> tuple[int, tuple[Key, ...]]:
    """Return the row at which the closing line begins that names keys, and those; behind all rows where there is none.

    Each of its parts names one (`Esc to cancel`), so that no sentence is taken for it.
    """
    for count in range(1, min(_HINT_ROWS, len(rows)) + 1):
        words = " ".join(row.strip() for row in rows[-count:])
        parts = [_KEY.fullmatch(part) for part in _PARTED.split(words)]
        if all(parts):
            found = [part for part in parts if part is not None]
            named = {_NAMES[name]: part["what"] for part in found if (name := part["key"].casefold()) in _NAMES}
            if named:
                return len(rows) - count, tuple(Key(name, what) for name, what in named.items())
    return len(rows), ()


def _cursor_row(rows: Sequence[str], end: int) -> int | None:
    """Return the last row with a cursor, unless a frame closes below it that does not belong to its list."""
    found = next((row for row in reversed(range(end)) if _CURSOR.fullmatch(rows[row])), None)
    if found is None:
        return None
    numbered = _NUMBER.match(_bare(rows[found]).strip()) is not None
    for row in range(found + 1, end):
        following = rows[row + 1].strip() if row + 1 < end else ""
        if _FRAME.match(rows[row]) and not (numbered and _NUMBER.match(following)):
            return None
    return found


def _bare(row: str) -> str:
    """Return the row with a blank in the place of the cursor's mark."""
    found = _CURSOR.fullmatch(row)
    return row if found is None else f"{row[: found.start('mark')]} {row[found.end('mark') :]}"


def _choices(rows: Sequence[str], cursor: int, end: int) -> tuple[Choice, ...]:
    """Return the choices of the cursor's list, in their order.

    Numbered ones are told by their numbers. Of others each row counts that begins between the cursor's mark and the
    labels, up to a blank row; what is further in explains the one above it.
    """
    found = _CURSOR.fullmatch(rows[cursor])
    assert found is not None
    mark = found.start("mark")
    if _NUMBER.match(found["rest"]):
        block = range(_first_number(rows, cursor), end)
        wanted = [row for row in block if _NUMBER.match(_bare(rows[row]).strip()) and _column(rows[row]) <= mark + 4]
    else:
        last = next((row for row in range(cursor, end) if not rows[row].strip()), end)
        block = range(_first(rows, cursor), last)
        deepest = max(
            _label_column(rows[row]) for row in block if row == cursor or _TICK.match(_bare(rows[row]).strip())
        )
        wanted = [row for row in block if mark < _column(rows[row]) <= deepest and not _MORE.match(rows[row])]
    return tuple(_choice(rows[row], row) for row in wanted)


def _first(rows: Sequence[str], cursor: int) -> int:
    """Return the first row of the block that the cursor's row is in: below a frame, or a blank row."""
    row = cursor
    while row > 0 and rows[row - 1].strip() and not _RULE.match(rows[row - 1]):
        row -= 1
    return row


def _first_number(rows: Sequence[str], cursor: int) -> int:
    """Return the row of the choice with the number 1 that the cursor's list begins with; a frame may part it."""
    numbered = (row for row in reversed(range(cursor + 1)) if _FIRST.match(_bare(rows[row]).strip()))
    return next(numbered, cursor)


def _column(row: str) -> int:
    bare = _bare(row)
    return len(bare) - len(bare.lstrip())


def _label_column(row: str) -> int:
    bare = _bare(row)
    column = _column(row)
    tick = _TICK.match(bare[column:])
    return column + (tick.end() if tick else 0)


def _choice(row: str, number: int) -> Choice:
    text = _bare(row).strip()
    numbered = _NUMBER.match(text)
    text = text[numbered.end() :] if numbered else text
    tick = _TICK.match(text)
    if tick is None:
        return Choice(text, number)
    box = tick["box"]
    ticked = any(character in _TICKED for character in box) if box[0] in _BOX else None
    return Choice(text[tick.end() :], number, ticked)


def _top(rows: Sequence[str], row: int) -> tuple[int, bool]:
    """Return the first row of what belongs to that row, and whether it may begin above the screen.

    Its frame goes across the screen from the first column on; a line within it is shorter, or further in. Where none
    does, all that is above belongs to it: too much is read past, what is hidden is not.
    """
    found = ((number, _FRAME.match(rows[number])) for number in range(min(row, len(rows))))
    frames = {number: frame.end() for number, frame in found if frame is not None}
    if not frames:
        return 0, True
    return max(number for number, width in frames.items() if width == max(frames.values())) + 1, False


def _lines(rows: Sequence[str]) -> tuple[str, ...]:
    return tuple(_bare(row).rstrip() for row in rows)
