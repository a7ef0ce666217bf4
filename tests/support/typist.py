"""A person at a terminal: a writable tmux client on a pseudo-terminal that types what it is told."""

import os
import pty
import select
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from tests.support.tmux import PrivateTmux, wait_until

_QUIET_SECONDS = 5.2


class Person:
    """Attached to a session by a command of their own until closed."""

    def __init__(
        self, tmux: Callable[..., str], target: str, command: Sequence[str], environ: Mapping[str, str]
    ) -> None:
        """`tmux` asks the server; `command` attaches to the target."""
        self._tmux = tmux
        self._target = target
        self._master, slave = pty.openpty()
        self._process = subprocess.Popen(
            list(command),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**environ, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(slave)
        self._closing = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        wait_until(lambda: tmux("list-clients", "-t", f"={target}"), "the client is attached")
        self._last = time.monotonic()

    def type(self, text: str) -> None:
        """Press keys, and wait until the screen shows them."""
        os.write(self._master, text.encode())
        self._last = time.monotonic()
        wait_until(lambda: text.strip() in self.screen(), f"{text!r} is on the screen")

    def press(self, keys: bytes) -> None:
        """Press keys that show nothing."""
        os.write(self._master, keys)
        self._last = time.monotonic()

    def rest(self) -> None:
        """Wait until the last key is older than the quiet that delivery wants."""
        wait_until(lambda: time.monotonic() - self._last > _QUIET_SECONDS, "a pause in the typing")

    def screen(self) -> str:
        """Return what the pane shows."""
        return self._tmux("capture-pane", "-p", "-t", f"={self._target}:")

    def close(self) -> None:
        """Detach."""
        self._closing.set()
        self._process.terminate()
        self._process.wait(10)
        self._reader.join(5)
        os.close(self._master)

    def _read(self) -> None:
        """Take what the client draws, so that it never blocks."""
        while not self._closing.is_set():
            if select.select([self._master], [], [], 0.1)[0]:
                try:
                    os.read(self._master, 65536)
                except OSError:  # EIO: the client has gone
                    return


class Typist(Person):
    """Attached to a session of a private server by tmux itself."""

    def __init__(self, private: PrivateTmux, target: str, *words: str) -> None:
        command = [*private.server.command, "attach-session", *words, "-t", f"={target}:"]
        super().__init__(private.tmux, target, command, private.environ)
