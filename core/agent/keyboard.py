"""Bytes of the terminal -> keys. Pure."""

from enum import Enum

from core.values import dataclass

_PASTE_BEGIN = b"\x1b[200~"
_PASTE_END = b"\x1b[201~"


class Key(Enum):
    """What was pressed."""

    TEXT = "text"
    PASTE = "paste"
    ENTER = "enter"
    NEWLINE = "newline"  #: C-j
    BACKSPACE = "backspace"
    KILL_LINE = "kill-line"  #: C-u
    STASH = "stash"  #: C-s
    INTERRUPT = "interrupt"  #: C-c
    ESCAPE = "escape"
    UP = "up"
    DOWN = "down"
    VIEW = "view"  #: C-o


_ARROWS = {b"\x1b[A": Key.UP, b"\x1bOA": Key.UP, b"\x1b[B": Key.DOWN, b"\x1bOB": Key.DOWN}
_CONTROLS = {
    0x0D: Key.ENTER,
    0x0A: Key.NEWLINE,
    0x7F: Key.BACKSPACE,
    0x08: Key.BACKSPACE,
    0x15: Key.KILL_LINE,
    0x13: Key.STASH,
    0x03: Key.INTERRUPT,
    0x0F: Key.VIEW,
}


@dataclass(frozen=True)
class Press:
    """One key, or one run of text."""

    key: Key
    text: str = ""


class Keyboard:
    """Takes bytes as they come, cut anywhere, and gives whole keys back."""

    def __init__(self) -> None:
        self._rest = b""

    @property
    def undecided(self) -> bool:
        """Whether bytes wait that may be an Escape, or the beginning of something longer."""
        return bool(self._rest) and not self._rest.startswith(_PASTE_BEGIN)

    def feed(self, data: bytes) -> list[Press]:
        """Return the keys that are whole now."""
        self._rest += data
        presses: list[Press] = []
        while self._rest:
            taken = self._take()
            if taken is None:
                break
            length, press = taken
            self._rest = self._rest[length:]
            if press is not None:
                presses.append(press)
        return presses

    def settle(self) -> list[Press]:
        """Decide that nothing more comes: a lone Escape is the Escape key, half a character is dropped."""
        lone = self._rest == b"\x1b"
        if self.undecided:
            self._rest = b""
        return [Press(Key.ESCAPE)] if lone else []

    def _take(self) -> tuple[int, Press | None] | None:
        """Return the length of the first key and the key (None: it means nothing to us); None while it is not whole."""
        first = self._rest[0]
        if first == 0x1B:
            return self._take_escape()
        if first in _CONTROLS:
            return 1, Press(_CONTROLS[first])
        if first < 0x20 and first != 0x09:
            return 1, None
        return self._take_text()

    def _take_escape(self) -> tuple[int, Press | None] | None:
        rest = self._rest
        if rest.startswith(_PASTE_BEGIN):
            end = rest.find(_PASTE_END)
            if end < 0:
                return None
            return end + len(_PASTE_END), Press(Key.PASTE, rest[len(_PASTE_BEGIN) : end].decode("utf-8", "replace"))
        if len(rest) == 1:
            return None
        if rest[1] not in b"[O":
            return 1, Press(Key.ESCAPE)
        for index in range(2, len(rest)):
            if 0x40 <= rest[index] <= 0x7E:  # an arrow or a function key
                arrow = _ARROWS.get(rest[: index + 1])
                return index + 1, Press(arrow) if arrow is not None else None
        return None

    def _take_text(self) -> tuple[int, Press | None] | None:
        end = next((index for index, byte in enumerate(self._rest) if byte in _CONTROLS or byte in b"\x1b"), None)
        run = self._rest if end is None else self._rest[:end]
        text = run.decode("utf-8", "ignore")
        whole = len(text.encode()) if end is None and _cut_short(run) else len(run)
        return None if whole == 0 else (whole, Press(Key.TEXT, "".join(c for c in text if c >= " " or c == "\t")))


def _cut_short(run: bytes) -> bool:
    """Tell whether the run ends in the middle of a character."""
    try:
        run.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False
