"""How the service's connections to the outside stand, for whoever asks it."""

import os
import threading
from collections.abc import Sequence

from core.domain.reasons import Reason
from core.domain.services import ServiceRow
from core.domain.texts import text


class Connections:
    """How each connection to the outside stands, for `status`. Written by who keeps it, read by anybody."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self._lock = threading.Lock()
        reason, pid = Reason.NOT_CONNECTED_YET, os.getpid()
        self._rows = {kind: ServiceRow(kind, False, pid, text(reason), reason.value) for kind in kinds}
        self._shut: dict[str, str] = {}

    def set(self, kind: str, up: bool, detail: str) -> bool:
        """Store the state and tell whether it changed from up to down or back. What comes up is not shut out."""
        with self._lock:
            if up:
                self._shut.pop(kind, None)
            before = self._rows.get(kind)
            self._rows[kind] = ServiceRow(kind, up, os.getpid(), detail)
            return before is None or before.running != up

    def shut_out(self, kind: str, problem: str) -> None:
        """Show the connection as down for what keeps its posts back, however it reads; "": nothing does any more."""
        with self._lock:
            self._shut[kind] = problem

    def rows(self) -> tuple[ServiceRow, ...]:
        """Return one row a connection."""
        with self._lock:
            return tuple(
                ServiceRow(row.name, False, row.pid, problem) if (problem := self._shut.get(row.name)) else row
                for row in self._rows.values()
            )
