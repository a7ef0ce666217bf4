"""What tmux tells of a pane, and dialogs on its screen. No I/O.

A dialog is recognised by its form, whatever its text and whichever program draws it: a list of choices with a cursor,
or a last line that says which key does what ("Enter to confirm · Esc to cancel"). Such text may also stand in a
conversation. So look for the harness's input line first: while it is shown, nothing waits for a key.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any

from core.base.values import dataclass, field
from core.model.session import LastExit, Live


@dataclass(frozen=True)
class Pane:
    """One pane of the listing."""

    pane_id: str  #: `%3`
    session_id: str  #: `$2`
    target: str  #: the tmux session's name
    tag: str  #: our instance id; "" where the pane is not ours
    pid: int  #: of the pane's first process
    dead: bool
    exit: LastExit | None  #: of a dead pane; None where tmux lost it
    in_mode: bool
    input_off: bool
    receipts: Mapping["Receipt", str] = field(default_factory=dict)  #: latest token of each kind
    tty: str = ""  #: the path of its terminal
    brackets: bool | None = None  #: its program has switched bracketed paste on; None: this tmux does not tell


@dataclass(frozen=True)
class Window:
    """The window that shows a pane."""

    window_id: str  #: `@4`
    columns: int
    rows: int
    history: int  #: rows above the screen that tmux has kept
    limit: int  #: and the most that it keeps
    alternate: bool  #: its program draws on the alternate screen, of which tmux keeps no history
    options: Mapping[str, Any]  #: that are set for this window or its pane alone, by name; on and off are booleans

    def to_json(self) -> dict[str, Any]:
        """Return the fixed keys."""
        return {
            "id": self.window_id,
            "columns": self.columns,
            "rows": self.rows,
            "history": self.history,
            "historyLimit": self.limit,
            "alternate": self.alternate,
            "options": dict(self.options),
        }


@dataclass(frozen=True)
class View:
    """What a pane's screen shows at one moment, row by row, and where its terminal's cursor is."""

    rows: tuple[str, ...]
    cursor: tuple[int, int] = (0, 0)  #: column and row, from 0
    application_keys: bool = False  #: its program asked for the other form of the arrow keys
    bright: tuple[str, ...] = ()  #: the rows with blanks in the place of what is drawn faint; (): nothing is

    def typed(self, row: int) -> str:
        """Return a row without what its program suggests: that is drawn faint, but for a letter under the cursor."""
        plain, bright = self.rows[row], self.bright[row] if self.bright else self.rows[row]
        column, at = self.cursor
        suggested = at == row and plain[column + 1 :].strip() != "" and bright[column + 1 :].strip() == ""
        return bright[:column] if suggested else bright


@dataclass(frozen=True)
class InputLine:
    """The line in which a message is written, as a screen shows it."""

    text: str = ""  #: what stands in it, "" for nothing but blanks or a suggestion of its program
    mode: str = ""  #: what the line is in where it takes no message (`shell mode`); "": what is typed is a message


class Receipt(Enum):
    """What a guarded line leaves on the pane once it has written, as a pane option."""

    STASHED = "@the_loop_stashed"
    CLEARED = "@the_loop_cleared"
    PASTED = "@the_loop_pasted"
    SUBMITTED = "@the_loop_submitted"
    PRESSED = "@the_loop_pressed"  #: a key of a dialog
    INTERRUPTED = "@the_loop_interrupted"  #: its token names the moment, see `interrupt_token`


_MOMENT_DIGITS = 16  #: of microseconds since 1970; it holds until 2286


def interrupt_token(at: datetime) -> str:
    """Return the receipt of an interruption: it names its moment, after which the input line may hold a text again."""
    return f"esc-{int(at.timestamp() * 1_000_000)}"


def interrupted_at(receipts: Mapping[Receipt, str]) -> datetime | None:
    """Return when the pane was last interrupted by us, None if it never was."""
    digits = receipts.get(Receipt.INTERRUPTED, "").removeprefix("esc-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOMENT_DIGITS):
        return None  # anybody who reaches the server can set an option of a pane
    return datetime.fromtimestamp(int(digits) / 1_000_000, UTC)


class Written(Enum):
    """What became of a guarded write, by the server's own word."""

    DONE = "done"  #: the receipt is on the pane
    DEAD = "dead"  #: the pane's program has ended
    CLOSED = "closed"  #: the pane takes no input
    LATE = "late"  #: the deadline had passed in the server; nothing was written
    ABSENT = "absent"  #: no pane carries that instance's tag
    CHANGED = "changed"  #: it is no more as an earlier look showed it; nothing was written


@dataclass(frozen=True)
class Paste:
    """A message's bytes for the pane that carries the tag, with what is left there once they are written.

    The server refuses them after `deadline`.
    """

    instance: str
    data: bytes
    token: str  #: the receipt of the paste
    deadline: datetime
    enter: str = ""  #: the receipt of the Enter that follows in the same turn of the server; "": none follows
    seen: Pane | None = (
        None  #: how an earlier look showed the pane: refused unless nobody watches it, nor interrupted it
    )


@dataclass(frozen=True)
class Spawn:
    """A pane to be made. `deadline` (UTC) is checked in the server: a line that slept makes nothing.

    `env` is all that the program has of variables, but for the tag and what tmux tells of the terminal.
    """

    target: str
    instance: str
    launcher: Path
    cwd: Path
    env: Mapping[str, str]
    deadline: datetime


@dataclass(frozen=True)
class Typing:
    """A writable client of a session: when it last sent a key (UTC)."""

    client: str
    last_key_at: datetime


@dataclass(frozen=True)
class Survey:
    """One listing of all panes of the server, at one moment (UTC)."""

    panes: tuple[Pane, ...]
    at: datetime
    typing: Mapping[str, tuple[Typing, ...]] = field(default_factory=dict)  #: by tag: writable clients of its session
    viewed: frozenset[str] = frozenset()  #: tags of panes that a person's client shows, read-only ones included
    server: int | None = None  #: the tmux server's pid; None: none runs, or it has no pane at all

    def of_instance(self, instance: str) -> Pane | None:
        """Return the pane that carries the tag."""
        return next((pane for pane in self.panes if pane.tag == instance), None)

    def of_target(self, target: str) -> tuple[Pane, ...]:
        """Return the panes of the tmux session of that name."""
        return tuple(pane for pane in self.panes if pane.target == target)

    def live(self, target: str, instance: str | None) -> Live:
        """Return what lives under the target for the record whose latest instance is given.

        Where no program runs, it does not matter who made the panes: dead ones are in nobody's way.
        """
        ours = self.of_instance(instance) if instance else None
        if ours is not None:
            return Live.DEAD if ours.dead else Live.LIVE
        there = self.of_target(target)
        if not there:
            return Live.ABSENT
        return Live.DEAD if all(pane.dead for pane in there) else Live.FOREIGN


MOST_CHOICES = 8  #: of which each is offered
PRESSED = {
    "Enter": b"\r",
    "Esc": b"\x1b",
    "Space": b" ",
    "Tab": b"\t",
    "Shift+Tab": b"\x1b[Z",
}  #: what a terminal sends
UP, DOWN = "A", "B"  #: how the cursor's keys end

_CURSOR = re.compile(r"(?P<indent>\s*)(?P<mark>[❯›▶▸→]|[>●](?=\s+\d{1,2}[.)]\s))\s+(?P<rest>\S.*)")
_NUMBER = re.compile(r"\d{1,2}[.)]\s+(?=\S)")
_FIRST = re.compile(r"1[.)]\s+\S")
_TICK = re.compile(r"(?P<box>\[[ xX✓✔*]?\]|[☐☑☒✔✓◯◉○◻◼])\s+(?=\S)")
_TICKED = frozenset("xX✓✔*☑☒◉◼")
_BOX = frozenset("[☐☑☒◯◉○◻◼")  #: what stands before a choice that can be ticked; a bare ✔ only tells which one holds
_RULE = re.compile(r"\s{0,4}[─▔━═]{8,}")
_FRAME = re.compile(r"[─▔━═]{8,}")  #: across the whole screen
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


@dataclass(frozen=True)
class EndedTree:
    """What ending a harness came to: whether there was one, its exit as far as it was seen, how many of its processes
    were killed hard, what would not go.
    """

    lived: bool
    exit: LastExit | None
    killed: int
    survivors: tuple[int, ...]
