"""`the-loop top`: a live table of the sessions in a terminal, with the screen of the selected one.

Nothing else imports rich.

Two threads: one asks the-loop and tmux again and again, the other shows what is known and takes keys, so that a tmux
that does not answer keeps nobody from leaving. Keys look and choose; nothing is done to a session.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from core.base.clock import Clock, SystemClock
from core.base.errors import CoreError, UnknownSession
from core.base.text import plain
from core.cli.printing import EXIT_OK, print_json
from core.cli.session import Session
from core.lifecycle.look import list_standing, screen
from core.service.hosting import service_rows
from core.session.sessions import names_of
from core.session.system import System

_WAIT_SECONDS = 0.2  #: for a key, after which the screen is drawn again where something has changed
_LATE = 3  #: intervals after which what is shown is called old
_NARROW = 100  #: columns; below them columns are narrower, and there is none of the harness
_KEYS = "up/down or k/j: select   Enter: its screen   q: quit"
_ACTIVITIES = {"busy": "cyan", "permission": "yellow", "question": "yellow", "idle": "green"}
_DOWN = frozenset({"dead", "absent", "foreign"})


@dataclass(frozen=True)
class Snapshot:
    """What was seen at one moment. `trouble`: why it could not be, "" where it could."""

    services: Sequence[Mapping[str, Any]] = ()
    sessions: Sequence[Mapping[str, Any]] = ()
    screen: str = ""
    of: str = ""  #: the session whose screen that is
    at: float = 0.0  #: monotonic
    trouble: str = ""


@dataclass
class View:
    """What is chosen: a session, by name, and whether its screen is shown."""

    selected: str = ""
    opened: bool = False
    snapshot: Snapshot = field(default_factory=Snapshot)

    @property
    def names(self) -> list[str]:
        """Return the names in their order."""
        return [str(row["name"]) for row in self.snapshot.sessions]

    def take(self, snapshot: Snapshot) -> None:
        """Show another snapshot; a selected session that has gone gives its place to the first."""
        self.snapshot = snapshot
        if self.selected not in self.names:
            self.selected = next(iter(self.names), "")

    def press(self, key: str) -> bool:
        """Do what the key is for, and return whether to go on."""
        match key:
            case "q" | "Q" | "\x03" | "\x04":
                return False
            case "\x1b[A" | "\x1bOA" | "k":
                self._move(-1)
            case "\x1b[B" | "\x1bOB" | "j":
                self._move(1)
            case "\r" | "\n" | " ":
                self.opened = not self.opened
            case "\x1b":
                self.opened = False
        return True

    def _move(self, by: int) -> None:
        if self.selected in self.names:
            at = self.names.index(self.selected) + by
            self.selected = self.names[max(0, min(at, len(self.names) - 1))]


def top(session: Session, name: str | None, interval: float, once: bool) -> int:
    """Run `the-loop top`; once, and without colours, where standard output or input is no terminal."""
    session.acting(session.system)
    system = session.system
    if name is not None and name not in names_of(system.settings, system.records):
        raise UnknownSession(name, names_of(system.settings, system.records))
    view = View(name or "", opened=name is not None)
    console = Console(highlight=False, no_color=bool(session.environ.get("NO_COLOR")) or None)
    draws = console.is_terminal and not console.is_dumb_terminal and sys.stdin.isatty()
    if not draws or once or session.json:
        view.take(look(system, view.selected if view.opened else "", SystemClock()))
        if session.json:
            print_json({"services": list(view.snapshot.services), "sessions": list(view.snapshot.sessions)})
        else:
            console.print(drawn(view, console.width, None, SystemClock()))
        return EXIT_OK
    _run(system, view, console, interval)
    return EXIT_OK


def look(system: System, name: str, clock: Clock) -> Snapshot:
    """Return what there is now, with the screen of that session; "" for none."""
    try:
        services = [row.to_json() for row in service_rows(system.settings, system.paths, system.environ)]
        sessions = [row.to_json() for row in list_standing(system)]
    except CoreError as error:
        return Snapshot(at=clock.monotonic(), trouble=str(error))
    shown = ""
    if name:
        try:
            shown = screen(system, name, 200).text
        except CoreError as error:
            shown = f"({error.message})"
    return Snapshot(services, sessions, shown, name, clock.monotonic())


# ---------------------------------------------------------------- the loop


class _Looker:
    """Looks every `interval` seconds, and at once when it is woken, in a thread of its own."""

    def __init__(self, system: System, view: View, interval: float, clock: Clock) -> None:
        self._system = system
        self._view = view
        self._interval = interval
        self._clock = clock
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._latest: Snapshot | None = None
        self._ear, self._mouth = os.pipe()
        threading.Thread(target=self._work, name="top-looker", daemon=True).start()

    @property
    def ear(self) -> int:
        """Return the descriptor that can be read once there is something new."""
        return self._ear

    def wake(self) -> None:
        """Look now: something else is selected."""
        self._wake.set()

    def latest(self) -> Snapshot | None:
        """Return what was seen since the last call; None for nothing."""
        with self._lock:
            found, self._latest = self._latest, None
        return found

    def _work(self) -> None:
        while True:
            self._wake.clear()
            name = self._view.selected if self._view.opened else ""
            seen = look(self._system, name, self._clock)
            with self._lock:
                self._latest = seen
            os.write(self._mouth, b".")
            self._wake.wait(self._interval)


def _run(system: System, view: View, console: Console, interval: float) -> None:
    clock = SystemClock()
    looker = _Looker(system, view, interval, clock)
    with _keys() as ended, Live(console=console, screen=True, auto_refresh=False) as shown:
        while not ended.is_set():
            shown.update(drawn(view, console.width, console.height, clock, interval), refresh=True)
            ready, _, _ = select.select([sys.stdin, looker.ear], [], [], _WAIT_SECONDS)
            if looker.ear in ready:
                os.read(looker.ear, 4096)
            if (seen := looker.latest()) is not None:
                view.take(seen)
            if sys.stdin in ready:
                before = (view.selected, view.opened)
                if not all(view.press(key) for key in _pressed()):
                    return
                if (view.selected, view.opened) != before:
                    looker.wake()


@contextmanager
def _keys() -> Iterator[threading.Event]:
    """Give each key as it is pressed, and an event that is set by SIGTERM or SIGHUP; the terminal is restored."""
    ended, before = threading.Event(), termios.tcgetattr(sys.stdin)

    def end(_: int, __: FrameType | None) -> None:
        ended.set()

    handlers = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    try:
        tty.setcbreak(sys.stdin, termios.TCSANOW)
        yield ended
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _pressed() -> list[str]:
    """Return the keys that were pressed: letters one by one, the arrows whole. A terminal that is gone means quit."""
    data = os.read(sys.stdin.fileno(), 1024).decode("utf-8", "replace")
    if not data:
        return ["q"]
    keys: list[str] = []
    while data:
        length = 3 if data[:2] in ("\x1b[", "\x1bO") else 1
        keys.append(data[:length])
        data = data[length:]
    return keys


# ---------------------------------------------------------------- what is drawn


def drawn(view: View, width: int, height: int | None, clock: Clock, interval: float = 2.0) -> RenderableType:
    """Return what a terminal of that size shows; `height` None: all of it, without the line of keys."""
    parts: list[RenderableType] = [_head(view.snapshot, clock, interval)]
    parts.append(_table(view, width, height))
    if view.opened and view.selected:
        parts += _screen(view, width, height)
    if height is not None:
        used = _rows_shown(view, height) + 2 + (_screen_rows(view, height) + 1 if view.opened else 0)
        parts += [Text()] * max(0, height - used - 1)
        parts.append(Text(_KEYS, style="dim", no_wrap=True, overflow="ellipsis"))
    return Group(*parts)


def _head(snapshot: Snapshot, clock: Clock, interval: float) -> Text:
    head = Text(no_wrap=True, overflow="ellipsis")
    if not snapshot.at:
        return head.append("looking …")
    if snapshot.trouble:
        return head.append(_line(snapshot.trouble), style="red")
    for row in snapshot.services:
        word, style = {True: ("up", "green"), False: ("down", "red"), None: ("unknown", "magenta")}[row["running"]]
        head.append(f"{row['name']} ").append(word, style=style).append("  ")
    age = clock.monotonic() - snapshot.at
    if age > _LATE * interval:
        head.append(f"as it was {age:.0f} s ago: no answer since", style="yellow")
    return head


def _table(view: View, width: int, height: int | None) -> RenderableType:
    rows = list(view.snapshot.sessions)
    if not rows:
        return Text("no standing sessions" if view.snapshot.at and not view.snapshot.trouble else "")
    table = Table(box=None, expand=True, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for title, options in {**_COLUMNS, **(_WIDE if width >= _NARROW else {})}.items():
        table.add_column(title, no_wrap=True, overflow="ellipsis", **options)
    for row in _portion(rows, view, height):
        cells = [
            Text(_line(row["name"])),
            _state(row),
            _doing(row),
            Text(_number(row["queued"])),
            Text(_number(row["loops"])),
            Text(_tokens(row)),
            Text(_cost(row)),
        ]
        if width >= _NARROW:
            cells.append(Text(_line(row["harness"])))
        table.add_row(*cells, style="reverse" if row["name"] == view.selected and height is not None else None)
    return table


_COLUMNS: Mapping[str, Mapping[str, Any]] = {
    "NAME": {"max_width": 14},
    "STATE": {"max_width": 18},
    "DOING": {"ratio": 1, "min_width": 10},
    "QUEUE": {"justify": "right"},
    "LOOPS": {"justify": "right"},
    "TOKENS": {"justify": "right"},
    "COST": {"justify": "right"},
}
_WIDE: Mapping[str, Mapping[str, Any]] = {
    "NAME": {"max_width": 24},
    "STATE": {"max_width": 32},
    "HARNESS": {"max_width": 12},
}


def _portion(rows: Sequence[Mapping[str, Any]], view: View, height: int | None) -> Sequence[Mapping[str, Any]]:
    """Return the rows that find room, the selected one among them."""
    if height is None:
        return rows
    room = _rows_shown(view, height)
    at = view.names.index(view.selected) if view.selected in view.names else 0
    begin = max(0, min(at - room // 2, len(rows) - room))
    return rows[begin : begin + room]


def _rows_shown(view: View, height: int) -> int:
    """Return how many sessions are shown: with a screen below them a third of the height, else all that find room."""
    most = height // 3 if view.opened else height - 3
    return max(1, min(len(view.snapshot.sessions), most))


def _screen_rows(view: View, height: int) -> int:
    return max(1, height - _rows_shown(view, height) - 4)


def _screen(view: View, width: int, height: int | None) -> list[RenderableType]:
    """Return a line that names the session, and the end of its screen."""
    shown = view.snapshot.screen if view.snapshot.of == view.selected else "looking …"
    lines = plain(shown).rstrip().splitlines() or [""]
    if height is not None:
        room = _screen_rows(view, height)
        lines = (lines + [""] * room)[:room] if len(lines) < room else lines[-room:]
    title = f"── {view.selected} " + "─" * max(0, width - len(view.selected) - 4)
    return [
        Text(title, style="bold", no_wrap=True, overflow="crop"),
        *(Text(line.expandtabs(), no_wrap=True, overflow="crop") for line in lines),
    ]


def _state(row: Mapping[str, Any]) -> Text:
    hold = row["hold"]
    if row["phase"] in ("deleting", "starting", "stopping", "creating"):
        return Text(row["phase"], style="yellow")
    if hold is not None:
        reason = f": {_line(hold['reason'])}" if hold["reason"] else ""
        return Text(f"{hold['kind']}{reason}", style="red" if hold["kind"] == "failed" else "yellow")
    if row["status"] == "running" and row["live"] in _DOWN:
        return Text(f"should run: {row['live']}", style="red")
    if row["live"] == "unknown":
        return Text("unknown", style="magenta")
    return Text(str(row["status"] or "never ran"))


def _doing(row: Mapping[str, Any]) -> Text:
    activity = str(row["activity"] or "")
    working = row["working"] or {}
    doing = Text(activity, style=_ACTIVITIES.get(activity, ""))
    tool = _line(working.get("tool") or "")
    if working.get("limit"):
        doing.append(f" limit: {_line(working['limit']['what'])}", style="red")
    elif tool and activity == "busy":
        doing.append(f" {tool}", style="not bold")
    elif row["hooks"] == "silent":
        doing.append(" (hooks silent)", style="yellow")
    return doing


def _usage(row: Mapping[str, Any]) -> Mapping[str, Any]:
    return ((row["working"] or {}).get("usage") or {}).get("session") or {}


def _tokens(row: Mapping[str, Any]) -> str:
    """Return how many tokens were sent and written, those from a cache not counted; "" where that is not known."""
    usage = _usage(row)
    if not usage:
        return ""
    total = usage["input"] + usage["output"]
    return f"{total / 1e6:.1f}M" if total >= 1e6 else f"{total / 1e3:.1f}k" if total >= 1e3 else str(total)


def _cost(row: Mapping[str, Any]) -> str:
    cost = _usage(row).get("costUsd")
    return "" if cost is None else f"${cost:.2f}"


def _number(value: int | None) -> str:
    return "?" if value is None else str(value) if value else ""


def _line(text: str) -> str:
    """Return the text in one line, without what a terminal acts on."""
    return " ".join(plain(str(text)).split())
