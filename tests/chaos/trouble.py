"""Everything that goes wrong meanwhile: kills, cut sockets, a failing Slack, a frozen tmux, a lost control client.

Each sleep is the length of a fault.
"""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import psutil

from tests.support.product import Product, Serving

_CUTS = ("close", "fin", "rst", "silence")
_FRAMES = ("refresh_requested", "warning")
_CALLS = ("*", "chat.postMessage", "conversations.replies", "reactions.add", "apps.connections.open", "users.info")
_LULL = 45.0  #: seconds; the watchdog takes 30 s to believe that a socket is dead


class Trouble:
    """Makes trouble in a thread of its own until it is told to stop; owns the service's process meanwhile."""

    def __init__(self, product: Product, service: Serving, chance: random.Random, *, lulls: int = 0) -> None:
        self.made: Counter[str] = Counter()
        self.problem: Exception | None = None
        self._product = product
        self._service = service
        self._chance = chance
        self._lulls = lulls
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trouble")
        self._kinds: list[Callable[[], str]] = [
            self._kill,
            self._cut,
            self._frame,
            self._fail,
            self._freeze,
            self._blind,
        ]

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Stop, let everything run again, and kill the service once more, so that the next one finds what it left.

        Raises what went wrong with the trouble itself.
        """
        self._stop.set()
        self._thread.join(180)
        if self.problem is not None:
            raise self.problem
        self._product.workspace.clear_faults()
        self.made[self._kill()] += 1

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._chance.uniform(0.3, 2.0)):
                kind = self._lull if self._lulls and self._chance.random() < 0.02 else self._chance.choice(self._kinds)
                self.made[kind()] += 1
        except Exception as error:  # noqa: BLE001 - raised again by end()
            self.problem = error

    # ------------------------------------------------------------ the service

    def _kill(self) -> str:
        self._service.kill()
        time.sleep(self._chance.uniform(0, 1))
        self._service = self._product.serve()
        return "kill -9"

    # ------------------------------------------------------------ Slack

    def _cut(self) -> str:
        how = self._chance.choice(_CUTS)
        self._product.workspace.break_sockets(how)
        return f"socket: {how}"

    def _frame(self) -> str:
        reason = self._chance.choice(_FRAMES)
        self._product.workspace.disconnect(reason)
        return f"socket: {reason}"

    def _lull(self) -> str:
        """Silence the socket, and do nothing that would replace it but wait for the watchdog."""
        self._lulls -= 1
        self._product.workspace.break_sockets("silence")
        self._stop.wait(_LULL)
        return "socket: silence until the watchdog"

    def _fail(self) -> str:
        method, count = self._chance.choice(_CALLS), self._chance.randint(1, 3)
        kind = self._chance.choice(("ratelimited", "http", "lost", "refused", "slow", "error"))
        status = self._chance.choice((500, 502, 503))
        self._product.workspace.fault(method, kind, count, seconds=1, status=status)
        return f"calls: {kind}"

    # ------------------------------------------------------------ tmux

    def _freeze(self) -> str:
        pid = int(self._product.tmux("display-message", "-p", "#{pid}"))
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(self._chance.choice((0.2, 1.0, 1.0, 3.5)))
        finally:
            os.kill(pid, signal.SIGCONT)
        return "tmux frozen"

    def _blind(self) -> str:
        """Kill the service's control client: the one child that is `tmux -C`."""
        with suppress(psutil.NoSuchProcess):
            for child in psutil.Process(self._service.pid).children():
                if "-C" in child.cmdline() and "tmux" in child.name():
                    child.kill()
        return "control client killed"
