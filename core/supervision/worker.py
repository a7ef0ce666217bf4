"""The supervisor thread: what is due is brought back, what is idle for long is collected, what stalls is told."""

import logging
import threading
from collections.abc import Callable
from datetime import timedelta

from core.clock import Deadline
from core.config.settings import Settings
from core.domain.pane import Survey
from core.domain.session import SessionRecord
from core.errors import CoreError, TmuxMissing, TmuxSilent
from core.supervision.collector import Collector
from core.supervision.drift import Drift
from core.supervision.restarts import Restarts
from core.supervision.stalls import Stalls
from core.system import System

_LOG = logging.getLogger(__name__)
_REST_SECONDS = 1.0
_STARTING_SECONDS = 0.05  #: between two looks at a session that is coming up
_ROUND_SECONDS = 15.0  #: between two looks at what changes slowly


class Supervisor:
    """Everything that it does to a session it does by the verbs, under the session's lock. Silence of tmux stops it."""

    def __init__(self, system: System, load: Callable[[], Settings], swept: Callable[[], bool] = lambda: True) -> None:
        self._system = system
        self._swept = swept
        self._restarts = Restarts(system)
        self._collector = Collector(system)
        self._stalls = Stalls(system)
        self._drift = Drift(system, load)
        self._round = Deadline(system.clock, 0)
        self._wake = threading.Event()

    def wake(self) -> None:
        """Look now: the end of a session was told. Callable from every thread."""
        self._wake.set()

    def run(self, stopping: threading.Event) -> None:
        """Supervise until told to stop; trouble with the state on the disk is told and looked at again."""
        while not stopping.is_set():
            rest = _REST_SECONDS
            try:
                rest = self.turn()
            except CoreError as error:
                _LOG.warning("cannot supervise", extra={"reason": str(error)})
            self._wake.wait(rest)
            self._wake.clear()

    def turn(self) -> float:
        """Do what is due now, and return the seconds until the next look. Raises CoreError."""
        if not self._swept():
            return _REST_SECONDS  # the boot's sweep brings back what it may; what it leaves is ours
        due = self._restarts.next_due()
        if self._restarts.under_way or (due is not None and not due):
            self._restarts.turn({record.instance_id or "": record for record in self._records()})
        if self._round.passed():
            self._go_round()
        return self._rest()

    def _rest(self) -> float:
        if self._restarts.under_way:
            return _STARTING_SECONDS
        due = self._restarts.next_due()
        waits = [timedelta(seconds=_REST_SECONDS), *([due] if due is not None else [])]
        return min(waits).total_seconds()

    def _go_round(self) -> None:
        survey, seconds = self._survey(), _ROUND_SECONDS
        if survey is not None:
            records = self._records()
            wait = self._collector.turn(records, survey)
            self._stalls.turn(records, survey)
            if wait is not None:
                seconds = min(max(wait.total_seconds(), 0.0), seconds)
        self._drift.turn()
        self._round = Deadline(self._system.clock, seconds)

    def _survey(self) -> Survey | None:
        try:
            return self._system.runner.survey()
        except (TmuxSilent, TmuxMissing):
            return None

    def _records(self) -> list[SessionRecord]:
        return [entry for entry in self._system.records.all() if isinstance(entry, SessionRecord) and entry.instance_id]
