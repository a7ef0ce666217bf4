"""Tells of the ends that a survey shows: of each once, and of a lost tmux server as the one thing that it is."""

from collections.abc import Callable, Sequence

from core.clock import Deadline
from core.domain.pane import Survey
from core.domain.session import SessionRecord
from core.observing.observer import ingest_record
from core.session.apart import each_apart
from core.standing.dying import tell_end, tell_server_lost
from core.system import System

_PATIENCE_SECONDS = 1.0  #: tmux 3.3a learns of a child's exit status later than of its death, at times
_SERVER_LOST = "the tmux server has ended, and all that lived in it"


class Ends:
    """Belongs to the observer's thread. `settled` tells whether the boot's sweep is over.

    Until then only what this service has seen alive can end: the sweep sees to the rest, and tells of it.
    """

    def __init__(self, system: System, settled: Callable[[], bool], ended: Callable[[str], None]) -> None:
        self._system = system
        self._settled = settled
        self._ended = ended
        self._witnessed: set[str] = set()
        self._told: set[str] = set()
        self._patience: dict[str, Deadline] = {}
        self._server: int | None = None
        self._lost = False

    def lives(self, instance: str) -> None:
        """Take note that the instance was seen alive."""
        self._witnessed.add(instance)

    def was_seen(self, instance: str) -> bool:
        """Tell whether the instance was seen alive, and its end was not told since."""
        return instance in self._witnessed

    def look(self, gone: Sequence[SessionRecord], survey: Survey) -> bool:
        """Tell of these sessions' ends, and return whether a look in a moment is worth while.

        `gone`: settled, should run, and their panes are dead or not there. Raises TmuxSilent, StoreBroken.
        """
        gone = [record for record in gone if record.instance_id not in self._told]
        self._follow_server(gone, survey)
        early: list[str] = []

        def tell(record: SessionRecord) -> None:
            if record.instance_id not in self._told and not self._tell(record):
                early.append(record.name)

        each_apart(self._system.events, gone, tell)
        return bool(early)

    def _follow_server(self, gone: Sequence[SessionRecord], survey: Survey) -> None:
        before, self._server = self._server, survey.server
        absent = [
            r for r in gone if r.instance_id in self._witnessed and survey.of_instance(r.instance_id or "") is None
        ]
        if before is not None and before != survey.server and absent:
            self._lost = tell_server_lost(self._system, absent, _SERVER_LOST, bring_back=True) or self._lost
            for record in absent:
                self._close(record)
        if self._lost and survey.server is not None:
            self._lost = False
            self._system.events.emit("standing.tmux_back", detail=f"a new server runs as process {survey.server}")

    def _tell(self, record: SessionRecord) -> bool:
        """Tell of one end; False if it is too early, or not ours to tell yet."""
        instance = record.instance_id or ""
        witnessed = instance in self._witnessed
        if not witnessed and not self._settled():
            return True
        ingest_record(self._system, record)  # among its last words may be that a person left
        patience = self._patience.setdefault(instance, Deadline(self._system.clock, _PATIENCE_SECONDS))
        done = tell_end(self._system, record.name, instance, patient=not patience.passed(), witnessed=witnessed)
        if done:
            self._close(record)
        return done

    def _close(self, record: SessionRecord) -> None:
        instance = record.instance_id or ""
        self._told.add(instance)
        self._witnessed.discard(instance)
        self._patience.pop(instance, None)
        self._ended(record.uid)
