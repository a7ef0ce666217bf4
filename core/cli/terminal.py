"""A line on standard error that says what a slow command is doing, where that is a terminal."""

import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Self

from core.base.clock import SystemClock
from core.base.text import plain
from core.cli.printing import before_warning

_FIRST_SECONDS = 1.0  #: a command that is done by then says nothing
_NEXT_SECONDS = 0.5
_CLEAR = "\r\x1b[K"
_WIDEST = 70  #: characters: a line that wraps could not be cleared


class Progress:
    """Shows a text with the seconds that have gone by, and takes it away at the end."""

    def __init__(self, text: str, environ: Mapping[str, str]) -> None:
        self._text = text
        self._shows = sys.stderr.isatty() and environ.get("TERM", "dumb") != "dumb"
        self._shown = False
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._clock = SystemClock()
        self._began = self._clock.monotonic()

    def __enter__(self) -> Self:
        if self._shows:
            before_warning.append(self._clear)
            self._thread = threading.Thread(target=self._show, name="progress", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            before_warning.remove(self._clear)
            self._clear()

    def tell(self, text: str) -> None:
        """Show another text from now on."""
        self._text = text

    def _show(self) -> None:
        pause = _FIRST_SECONDS
        while not self._over.wait(pause):
            pause = _NEXT_SECONDS
            seconds = self._clock.monotonic() - self._began
            with self._lock:
                self._write(f"{_CLEAR}{plain(self._text)[:_WIDEST]} … {seconds:.0f} s")
                self._shown = True

    def _clear(self) -> None:
        with self._lock:
            if self._shown:
                self._write(_CLEAR)
            self._shown = False

    @staticmethod
    def _write(text: str) -> None:
        with suppress(OSError):
            sys.stderr.write(text)
            sys.stderr.flush()
