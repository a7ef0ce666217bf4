"""What tmux tells of a pane, and what is asked of it. No I/O."""

from collections.abc import Mapping
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


@dataclass(frozen=True)
class Frame:
    """What a screen shows, with its colours, for somebody who watches it.

    `text`: its rows, with control sequences that set styles (ECMA-48 SGR) and the shifts to line drawing alone.
    """

    columns: int
    rows: int
    cursor: tuple[int, int]  #: column and row, from 0
    cursor_shown: bool
    text: str


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


@dataclass(frozen=True)
class EndedTree:
    """What ending a harness came to: whether there was one, its exit as far as it was seen, how many of its processes
    were killed hard, what would not go.
    """

    lived: bool
    exit: LastExit | None
    killed: int
    survivors: tuple[int, ...]
