"""What goes wrong in a fleet: kills, frozen processes, a database that ends at once, bad lines, lost sockets.

Each sleep is the length of a fault.
"""

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from embedded.workspace.thread import WorkspaceThread
from tests.support.postgres import Cluster
from tests.support.product import Product, Serving
from tests.support.socketrelay import SocketRelay

_AWAY = 70.0  #: seconds; after a minute of silence of its host a thread would be told of it
_SOCKETS = ("close", "fin", "rst", "refresh_requested")


@dataclass
class Member:
    """A host: its home, its way to the database, and the service that runs."""

    product: Product
    line: SocketRelay
    gateway: bool
    service: Serving


class FleetTrouble:
    """Makes trouble in a thread of its own until it is told to stop; owns the services and the server meanwhile.

    Each kind comes once, in an order by chance, before any comes again. `long`: also what outlasts a gateway's lease.
    """

    def __init__(
        self,
        members: Mapping[str, Member],
        cluster: Cluster,
        workspace: WorkspaceThread,
        chance: random.Random,
        *,
        long: bool,
    ) -> None:
        self.made: Counter[str] = Counter()
        self.problem: Exception | None = None
        self._members = members
        self._cluster = cluster
        self._workspace = workspace
        self._chance = chance
        self._freezes = (0.5, 3.0, 14.0) if long else (0.5, 2.0)
        self._sockets = (*_SOCKETS, "silence") if long else _SOCKETS  # the watchdog takes 30 s to believe in silence
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trouble")
        self._kinds: list[Callable[[], str]] = [
            self._kill_host,
            self._kill_gateway,
            self._freeze,
            self._end_engine,
            self._freeze_engine,
            self._cut,
            self._hold,
            self._slow,
            self._socket,
            *((self._engine_away,) if long else ()),
        ]

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def end(self) -> None:
        """Stop, and kill a host once more, so that the next service finds what it left.

        Raises what went wrong with the trouble itself.
        """
        self._stop.set()
        self._thread.join(300)
        if self.problem is not None:
            raise self.problem
        for member in self._members.values():
            member.line.delay = 0
        self.made[self._kill_host()] += 1

    def _run(self) -> None:
        try:
            while True:
                for kind in self._chance.sample(self._kinds, len(self._kinds)):
                    if self._stop.wait(self._chance.uniform(0.2, 1.5)):
                        return
                    self.made[kind()] += 1
        except Exception as error:  # noqa: BLE001 - raised again by end()
            self.problem = error

    def _one(self, *, gateway: bool | None = None) -> Member:
        found = [self._members[name] for name in sorted(self._members)]
        return self._chance.choice([one for one in found if gateway is None or one.gateway is gateway])

    # ------------------------------------------------------------ services

    def _kill_host(self) -> str:
        return self._kill(self._one(gateway=False), "kill -9 of a host")

    def _kill_gateway(self) -> str:
        return self._kill(self._one(gateway=True), "kill -9 of a gateway")

    def _kill(self, member: Member, words: str) -> str:
        member.service.kill()
        time.sleep(self._chance.uniform(0, 1))
        member.service = member.product.serve()
        return words

    def _freeze(self) -> str:
        member, seconds = self._one(), self._chance.choice(self._freezes)
        os.kill(member.service.pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.kill(member.service.pid, signal.SIGCONT)
        return f"{'gateway' if member.gateway else 'host'} stopped for {seconds:g} s"

    # ------------------------------------------------------------ the database

    def _end_engine(self) -> str:
        self._cluster.stop(signal.SIGQUIT)
        time.sleep(self._chance.uniform(0, 2))
        self._cluster.start()
        return "engine ended at once"

    def _engine_away(self) -> str:
        """No host can be heard of meanwhile, and none may be called silent afterwards."""
        self._cluster.stop(signal.SIGQUIT)
        time.sleep(_AWAY)
        self._cluster.start()
        return f"engine away for {_AWAY:g} s"

    def _freeze_engine(self) -> str:
        self._cluster.signal(signal.SIGSTOP)
        try:
            time.sleep(self._chance.choice((0.5, 2.0)))
        finally:
            self._cluster.signal(signal.SIGCONT)
        return "engine stopped"

    def _cut(self) -> str:
        self._one().line.cut()
        return "line cut"

    def _hold(self) -> str:
        line, seconds = self._one().line, self._chance.choice(self._freezes)
        line.hold()
        try:
            time.sleep(seconds)
        finally:
            line.let_go()
        return f"line silent for {seconds:g} s"

    def _slow(self) -> str:
        self._one().line.delay = self._chance.choice((0.0, 0.02, 0.2))
        return "line slowed"

    # ------------------------------------------------------------ the chat

    def _socket(self) -> str:
        how = self._chance.choice(self._sockets)
        if how == "refresh_requested":
            self._workspace.disconnect(how)
        else:
            self._workspace.break_sockets(how)
        return f"socket: {how}"
