"""The service's finisher thread: stops and deletions that were cut short come to their end without anybody's asking."""

import logging
import threading

from core.clock import Deadline
from core.domain.session import Phase, SessionRecord
from core.errors import CoreError, TmuxMissing, TmuxSilent
from core.reconcile import reconcile_one
from core.system import System

_LOG = logging.getLogger(__name__)
ACTOR = "supervisor"
_LOOK_SECONDS = 5.0
_AGAIN_SECONDS = 60.0  #: after an attempt that changed nothing: what stood in its way takes a person
_UNDER_LOCK = frozenset({Phase.STOPPING, Phase.DELETING})  #: whoever is at work on these holds the session's lock


class Finisher:
    """Looks every five seconds. What tmux was too silent for is finished when it answers again."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._not_before: dict[str, Deadline] = {}  #: by session

    def run(self, stopping: threading.Event) -> None:
        """Look until told to stop; trouble with the state on the disk is told and looked at again."""
        while not stopping.wait(_LOOK_SECONDS):
            try:
                self.look()
            except CoreError as error:
                _LOG.warning("cannot finish what was cut short", extra={"reason": str(error)})

    def look(self) -> None:
        """Finish what can be finished now. Raises CoreError."""
        records = [entry for entry in self._system.records.all() if isinstance(entry, SessionRecord)]
        unfinished = [record for record in records if record.phase in _UNDER_LOCK and self._is_due(record.name)]
        if not unfinished:
            return
        try:
            self._system.runner.survey()
        except (TmuxSilent, TmuxMissing):
            return  # the marks stay
        for record in unfinished:
            done = reconcile_one(self._system, record, ACTOR)
            if done.after is done.before:
                self._not_before[record.name] = Deadline(self._system.clock, _AGAIN_SECONDS)
        self._system.poke()

    def _is_due(self, name: str) -> bool:
        wait = self._not_before.get(name)
        return wait is None or wait.passed()
