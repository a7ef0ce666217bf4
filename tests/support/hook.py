"""A client that waits for the answer to a permission request, as a harness's hook does."""

import json
import socket
import threading
from typing import Any

from core.clients.askclient import NONCE
from core.delivery.permission_requests import Requests
from core.process.control import Peer
from core.session.system import System
from tests.support.talking import record_of


class Hook:
    """A client that waits for an answer, as a hook does."""

    def __init__(self, requests: Requests, instance: str, key: str, **changes: Any) -> None:
        self.ours, theirs = socket.socketpair()
        line = {"op": "request", "instance": instance, "key": key, "tool": "Bash", "input": {"command": "date"}}
        line |= changes
        self._thread = threading.Thread(target=self._talk, args=(requests, line, theirs))
        self._thread.start()

    @staticmethod
    def _talk(requests: Requests, line: dict[str, Any], theirs: socket.socket) -> None:
        with theirs:
            requests.talk(line, Peer(theirs))

    def lines(self) -> list[dict[str, Any]]:
        """Return all that it was told, once the service has hung up."""
        self._thread.join(20)
        self.ours.settimeout(20)
        with self.ours, self.ours.makefile("rb") as stream:
            return [json.loads(line) for line in stream]

    def wait_until_shown(self) -> None:
        """Wait for the service's first word: from then on the hook is one of those that wait."""
        self.ours.settimeout(20)
        self.ours.recv(1, socket.MSG_PEEK)
        self.ours.settimeout(None)

    def hang_up(self) -> None:
        """End as a hook does that its harness has ended."""
        self.ours.shutdown(socket.SHUT_RDWR)
        self._thread.join(20)
        self.ours.close()


def key_of(system: System, name: str = "k-1") -> str:
    """Return the key of a hook's request: its name, and what its instance alone knows."""
    return f"{name}.{(system.paths.session(record_of(system)[0]) / NONCE).read_text().strip()}"
