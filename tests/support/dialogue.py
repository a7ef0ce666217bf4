"""Somebody at a terminal: a program runs in a pseudo-terminal, is waited for, and is answered."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tests.support.tmux import PATIENCE


class Dialogue:
    """What the terminal has shown so far, and the keys that go to the program."""

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self._process = process
        self._terminal = terminal
        self._read = 0
        self.shown = ""

    def wait(self, part: str, seconds: float = 2 * PATIENCE) -> str:
        """Return what was shown since the last wait, once the part is in it."""
        end = time.monotonic() + seconds
        while part not in self.shown[self._read :]:
            if not self._take(end - time.monotonic()):
                raise AssertionError(f"not shown: {part!r}\n{self.shown}")
        at = self.shown.index(part, self._read) + len(part)
        since, self._read = self.shown[self._read : at], at
        return since

    def answer(self, text: str = "") -> None:
        """Type a line."""
        os.write(self._terminal, f"{text}\n".encode())

    def ended(self, seconds: float = 2 * PATIENCE) -> int:
        """Return the exit code, once the program has ended."""
        end = time.monotonic() + seconds
        while self._take(end - time.monotonic()):
            continue
        return self._process.wait(max(1.0, end - time.monotonic()))

    def _take(self, seconds: float) -> bool:
        """Take what is shown next; False where nothing comes within that time, or ever."""
        if not select.select([self._terminal], [], [], max(0.0, seconds))[0]:
            return False
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # nobody has the other end open: not yet, or not any more
            if self._process.poll() is not None:
                return False
            time.sleep(0.02)
            return True
        self.shown += data.decode("utf-8", "replace")
        return bool(data)


@contextmanager
def dialogue(words: Sequence[str], environ: Mapping[str, str], cwd: os.PathLike[str]) -> Iterator[Dialogue]:
    """Run a program in a terminal of its own, which is its controlling one."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        ["/bin/sh", "-c", 'exec "$0" "$@" <"$TTY" >"$TTY" 2>"$TTY"', *words],
        env={**environ, "TTY": os.ttyname(theirs), "TERM": "xterm"},
        cwd=cwd,
        start_new_session=True,  # so that what it opens first becomes its controlling terminal
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    try:
        yield Dialogue(process, ours)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(10)
        os.close(ours)
