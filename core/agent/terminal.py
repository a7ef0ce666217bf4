"""The terminal: raw mode, what is printed, and the composer's row below it."""

import os
import sys
import termios
import tty
from types import TracebackType
from typing import Any

_BOLD, _DIM, _PLAIN = "\x1b[1m", "\x1b[2m", "\x1b[0m"


class Terminal:
    """Prints above one row that is drawn again after each print. A context manager: raw mode, bracketed paste."""

    def __init__(self) -> None:
        self.descriptor = sys.stdin.fileno()
        self._before: list[Any] = []
        self._row = ""
        self._back = ""  #: what goes up to the first of several rows

    def __enter__(self) -> "Terminal":
        self._before = termios.tcgetattr(self.descriptor)
        tty.setraw(self.descriptor, termios.TCSADRAIN)
        self._write("\x1b[?2004h")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._write("\r\x1b[K\x1b[?2004l")
        termios.tcsetattr(self.descriptor, termios.TCSADRAIN, self._before)

    @property
    def width(self) -> int:
        """The terminal's columns."""
        return os.get_terminal_size(self.descriptor).columns

    def show(self, text: str, style: str = "") -> None:
        """Print lines above the row: `style` is "", "bold" or "dim"."""
        begin = {"bold": _BOLD, "dim": _DIM}.get(style, "")
        lines = "\r\n".join(f"{begin}{line}{_PLAIN}" for line in _harmless(text).split("\n"))
        self._write(f"{self._back}\r\x1b[J{lines}\r\n{self._row}")

    def row(self, text: str) -> None:
        """Replace the row, which may be several."""
        back, rows = self._back, text.split("\n")
        self._row = "\r\n".join(rows)
        self._back = f"\x1b[{len(rows) - 1}A" if len(rows) > 1 else ""
        self._write(f"{back}\r\x1b[J{self._row}")

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(sys.stdout.fileno(), data) :]


def _harmless(text: str) -> str:
    """Show control characters instead of obeying them."""
    return "".join(c if c in "\n\t" or c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
