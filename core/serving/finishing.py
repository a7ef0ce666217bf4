"""The service's finisher thread: what verbs that were cut short have begun comes to its end without being asked for."""

import logging
import threading
from datetime import timedelta

from core.clock import Deadline
from core.domain.session import Phase, SessionRecord
from core.errors import CoreError
from core.serving.housekeeping import Housekeeper
from core.standing.reconcile import reconcile_some
from core.standing.together import Tmux
from core.system import System

_LOG = logging.getLogger(__name__)
ACTOR = "supervisor"
_LOOK_SECONDS = 5.0
_AGAIN_SECONDS = 60.0  #: after an attempt that changed nothing: what stood in its way takes a person
_UNDER_LOCK = frozenset({Phase.STOPPING, Phase.DELETING})  #: whoever is at work on these holds the session's lock
_COMING_UP = frozenset({Phase.STARTING, Phase.CREATING})  #: the lock is let go while the harness comes up
_START_MARGIN = timedelta(seconds=30)  #: what a start takes beside its own deadlines


class Finisher:
    """Looks every five seconds. What tmux was too silent for is finished when it answers again.

    The thread has time, so what is over for long is removed by it, too.
    """

    def __init__(self, system: System) -> None:
        self._system = system
        self._housekeeper = Housekeeper(system)
        self._not_before: dict[str, Deadline] = {}  #: by session

    def run(self, stopping: threading.Event) -> None:
        """Look until told to stop; trouble with the state on the disk is told and looked at again."""
        while not stopping.wait(_LOOK_SECONDS):
            try:
                self.look()
            except CoreError as error:
                _LOG.warning("cannot finish what was cut short", extra={"reason": str(error)})
            try:
                self._housekeeper.turn()
            except CoreError as error:
                _LOG.warning("cannot remove what is over for long", extra={"reason": str(error)})

    def look(self) -> None:
        """Finish what can be finished now. Raises CoreError."""
        records = [entry for entry in self._system.records.all() if isinstance(entry, SessionRecord)]
        unfinished = [record for record in records if self._is_left(record) and self._is_due(record.name)]
        if not unfinished:
            return
        for done in reconcile_some(self._system, unfinished, ACTOR, Tmux(self._system)):
            if done.after is done.before and not done.passing:
                self._not_before[done.name] = Deadline(self._system.clock, _AGAIN_SECONDS)
        self._system.poke()

    def _is_left(self, record: SessionRecord) -> bool:
        """Tell whether nobody is at work on what the record's phase says, or its lock will tell."""
        if record.phase in _UNDER_LOCK:
            return True
        tmux = self._system.settings.routing.tmux
        takes = timedelta(seconds=tmux.start_timeout_seconds + 4 * tmux.command_timeout_seconds) + _START_MARGIN
        begun = record.started_at or record.created_at
        return record.phase in _COMING_UP and self._system.clock.now() - begun > takes

    def _is_due(self, name: str) -> bool:
        wait = self._not_before.get(name)
        return wait is None or wait.passed()
