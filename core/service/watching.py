"""The service's observer thread: take in reports when woken, notice panes that end, ask again when a turn is silent."""

import logging
import os
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import TypeVar

from core.base.clock import Deadline
from core.base.errors import CoreError, TmuxMissing, TmuxSilent
from core.base.files import broken, is_there
from core.base.names import target_for
from core.delivery.dialogs import DialogWatch
from core.delivery.evidence import give_back
from core.delivery.hearing import Hearing, Retries
from core.delivery.hook_ingest import ingest_record
from core.delivery.pictures import post_picture
from core.delivery.snapshot import ask_again, look_at_record, settle_end
from core.harness.base import awaits_reading
from core.lifecycle.exits import Ends
from core.model.activity import ASKING_STATES, Activity
from core.model.pane import Pane, Survey
from core.model.session import Live, Phase, SessionRecord, Status
from core.process.presence import Notifier
from core.session.folder import ASKING
from core.session.sessions import each_apart
from core.session.system import System

_LOG = logging.getLogger(__name__)
_SURVEY_SECONDS = 5.0
_FAILING_SECONDS = 10.0  #: what a start takes at most to find that its program has ended
_COMING_UP = frozenset({Phase.CREATING, Phase.STARTING})
_SOON_SECONDS = 0.1  #: until the next survey while an end waits to be told
_END_SECONDS = 0.01  #: until the next look at a turn's end that one source alone has told of
_AT_FIRST = timedelta(seconds=1)  #: for so long after it
_DIALOG_SECONDS = 0.5  #: until the next look at an open dialog, which needs no tmux

Wake = Callable[[str | None], None]
T = TypeVar("T")


class ObserverWorker:
    """Reads the FIFO and the spool, and surveys every five seconds. `wake` tells the deliveries what changed.

    `ended` is called when the end of a session was told; `swept` tells whether the boot's sweep is over.
    """

    def __init__(
        self,
        system: System,
        wake: Wake,
        *,
        ended: Callable[[], None] = lambda: None,
        swept: Callable[[], bool] = lambda: True,
    ) -> None:
        self._system = system
        self._wake = wake
        self._tell_ended = ended
        self._ends = Ends(system, swept, self._one_ended)
        self._hearing = Hearing(system)
        self._retries = Retries(system)
        self._soon = False
        self._watched: dict[str, Callable[[], None]] = {}
        self._looked_at: set[str | None] = set()
        self._survey: Survey | None = None  #: the latest
        self._given_back: dict[str, tuple[str | None, str | None]] = {}
        self._silent = False
        self._dialogs = DialogWatch(system, shows=True, pictured=post_picture)
        self._failing: dict[str | None, Deadline] = {}  #: ended as they were started: until when that is looked at
        self._died = threading.Event()

    def run(self, stopping: threading.Event) -> None:
        """Observe until told to stop. Raises StoreBroken if the FIFO cannot be made."""
        poke = Notifier(self._system.paths.notify)
        poke.open()
        try:
            while not stopping.is_set():
                self._died.clear()
                self._guarded(self.survey)
                self._guarded(self.take_in)
                deadline = Deadline(self._system.clock, _SOON_SECONDS if self._soon else _SURVEY_SECONDS)
                while not stopping.is_set() and not self._died.is_set() and not deadline.passed():
                    closely = [self._guarded(self.look_at_unheard), self._guarded(self.look_at_dialogs)]
                    ends = self._guarded(self.look_at_ends) or _SURVEY_SECONDS
                    rest = min(ends, _DIALOG_SECONDS if any(closely) else _SURVEY_SECONDS)
                    if poke.wait(min(deadline.remaining(), rest)):
                        self._guarded(self.take_in)
        finally:
            for instance in list(self._watched):
                self.release(instance)
            poke.close()

    def watches(self, instance: str) -> bool:
        """Return whether the instance's process is watched."""
        return instance in self._watched

    def watching(self) -> int:
        """Return how many watches are held, as their holder counts them: one too many, or one left behind, shows."""
        return self._system.processes.watches()

    def tmux(self) -> str:
        """Return "silent" if tmux did not answer the last survey, else "ok"."""
        return "silent" if self._silent else "ok"

    def _one_died(self) -> None:
        """Called from the thread that watches processes."""
        self._died.set()
        self._system.notify()

    def take_in(self) -> None:
        """Take in every report that waits; a poke without one means that somebody committed a row."""
        records = self._records()
        changed: list[str] = []

        def take(record: SessionRecord) -> None:
            if self._has_reports(record) and ingest_record(self._system, record):
                changed.append(record.uid)

        each_apart(self._system.events, records, take)
        if any(record.instance_id not in self._looked_at for record in records):
            self._died.set()  # one that was just started: watched from now on, not from the next survey on
        for uid in changed:
            self._wake(uid)
        if not changed:
            self._wake(None)

    def survey(self) -> None:
        """Compare what should live with what does: the truth, where a watch on a process may have missed its end."""
        try:
            survey = self._system.runner.survey()
        except (TmuxSilent, TmuxMissing) as error:
            self._survey = None
            self._tmux(silent=True, reason=str(error))
            return
        self._tmux(silent=False, reason="")
        self._survey = survey
        records = self._records()
        self._looked_at = {record.instance_id for record in records}
        self._release(records, survey)
        each_apart(self._system.events, records, lambda record: self._adopt(record, survey))
        settled = [record for record in records if record.phase is Phase.SETTLED]  # a verb is at work on the others
        running = [record for record in settled if record.status is Status.RUNNING]
        told = self._ends.look([record for record in running if not _lives(record, survey)], survey)
        self._soon = told or self._start_failed(records, survey)
        self._hearing.forget(frozenset(record.uid for record in running))
        self._hear_each(running, survey)
        self._ask_each(running, survey)
        self._retries.look(running, survey)
        each_apart(self._system.events, settled, lambda record: self._give_back(record, survey))

    def _start_failed(self, records: Sequence[SessionRecord], survey: Survey) -> bool:
        """Return whether a program has ended that was being started: its start is over in a moment, and then its end is
        told. One whose start does not settle, since it was killed, is the finisher's after a while.
        """
        ended = {
            record.instance_id
            for record in records
            if record.phase in _COMING_UP and self._has_ended(record.instance_id or "", survey)
        }
        self._failing = {
            instance: self._failing.get(instance) or Deadline(self._system.clock, _FAILING_SECONDS)
            for instance in ended
        }
        return any(not deadline.passed() for deadline in self._failing.values())

    def _has_ended(self, instance: str, survey: Survey) -> bool:
        """Return whether the instance's program has ended; a pane that was never seen may be about to be made."""
        pane = survey.of_instance(instance)
        return pane.dead if pane is not None else self._ends.was_seen(instance)

    def look_at_dialogs(self) -> bool:
        """Ask again about each open dialog, and tell whether there is one: no hook tells of a key that ends it."""
        survey, activities = self._survey, self._system.activities.all()
        asking: list[SessionRecord] = []

        def look(record: SessionRecord) -> None:
            if self._asks(record, activities.get(record.uid)):
                asking.append(record)

        each_apart(self._system.events, self._records(), look)
        if survey is not None:
            self._ask_each(asking, survey)
        return bool(asking)

    def look_at_ends(self) -> float:
        """Ask again about each end of a turn that hooks alone have told of, and return the seconds until the next look.

        As a rule the other source follows within some tenths of a second, once all hooks of that end are through.
        """
        now, rest = self._system.clock.now(), _SURVEY_SECONDS
        ending = {uid: activity for uid, activity in self._system.activities.all().items() if activity.ending}
        survey = self._survey if ending else None

        def look(record: SessionRecord) -> None:
            nonlocal rest
            activity = ending.get(record.uid)
            if survey is None or activity is None or activity.instance != record.instance_id:
                return
            if settle_end(self._system, record, survey.of_instance(activity.instance)):
                self._wake(record.uid)
            elif activity.turn_ended_at is not None and now - activity.turn_ended_at < _AT_FIRST:
                rest = min(rest, _END_SECONDS)
            else:
                rest = min(rest, _DIALOG_SECONDS)

        if ending:
            each_apart(self._system.events, self._records(), look)
        return rest

    def look_at_unheard(self) -> bool:
        """Ask other sources about each session whose hooks may be silent, and tell whether there is one."""
        survey, activities = self._survey, self._system.activities.all()
        unheard: list[SessionRecord] = []

        def look(record: SessionRecord) -> None:
            if record.phase is Phase.SETTLED and self._hearing.suspects(record, activities.get(record.uid)):
                unheard.append(record)

        each_apart(self._system.events, self._records(), look)
        if survey is not None:
            self._hear_each(unheard, survey)
        return bool(unheard)

    def _hear_each(self, records: Iterable[SessionRecord], survey: Survey) -> None:
        def hear(record: SessionRecord) -> None:
            if self._hearing.follow(record, survey.of_instance(record.instance_id or "")):
                self._wake(record.uid)

        each_apart(self._system.events, records, hear)

    def _asks(self, record: SessionRecord, activity: Activity | None) -> bool:
        if record.phase is not Phase.SETTLED or record.status is not Status.RUNNING:
            return False
        if self._dialogs.suspects(record, activity):
            return True
        told = activity is not None and activity.instance == record.instance_id and activity.state in ASKING_STATES
        return told or is_there(self._system.paths.session(record.uid) / ASKING)

    def _release(self, records: list[SessionRecord], survey: Survey) -> None:
        """Let go of what has ended or was replaced: each live pane has one watch, and nothing else has."""
        living = {record.instance_id or "" for record in records if _lives(record, survey)}
        for instance in self._watched.keys() - living:
            self.release(instance)

    def release(self, instance: str) -> None:
        """Watch the instance no longer. Its agent is not touched."""
        unwatch = self._watched.pop(instance, None)
        if unwatch is not None:
            unwatch()

    def _adopt(self, record: SessionRecord, survey: Survey) -> None:
        """Watch the process of a live pane of ours, if that is not done yet."""
        instance = record.instance_id or ""
        pane = survey.of_instance(instance)
        if pane is None or pane.dead:
            return
        self._ends.lives(instance)
        if instance not in self._watched:
            self._watched[instance] = self._system.processes.watch(pane.pid, self._one_died)

    def _one_ended(self, uid: str) -> None:
        self._wake(uid)
        self._tell_ended()

    # ------------------------------------------------------------ one session

    def _give_back(self, record: SessionRecord, survey: Survey) -> None:
        """See to what an ended instance had queued, once for each change of what lives."""
        pane = survey.of_instance(record.instance_id or "")
        living = record.instance_id if pane is not None and not pane.dead else None
        seen = (record.instance_id, living)
        if self._given_back.get(record.uid) != seen:
            if give_back(self._system, record, living):
                self._wake(record.uid)
            self._given_back[record.uid] = seen

    def _ask_each(self, records: Iterable[SessionRecord], survey: Survey) -> None:
        def ask(record: SessionRecord) -> None:
            self._ask_again(record, survey.of_instance(record.instance_id or ""))

        each_apart(self._system.events, records, ask)

    def _ask_again(self, record: SessionRecord, pane: Pane | None) -> None:
        look_at_record(self._system, record)
        if ask_again(self._system, record, pane) or self._dialogs.follow(record, pane, self._survey):
            self._wake(record.uid)

    # ------------------------------------------------------------ small things

    def _records(self) -> list[SessionRecord]:
        return [entry for entry in self._system.records.all() if isinstance(entry, SessionRecord) and entry.instance_id]

    def _has_reports(self, record: SessionRecord) -> bool:
        folder = self._system.paths.spool_of(record.instance_id or "")
        try:
            with os.scandir(folder) as entries:
                now = self._system.clock.now().timestamp()
                return any(awaits_reading(entry, now) for entry in entries)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise broken(error, folder, "read the folder") from error

    def _tmux(self, *, silent: bool, reason: str) -> None:
        if silent != self._silent:
            self._silent = silent
            event = "standing.tmux_lost" if silent else "standing.tmux_back"
            self._system.events.emit(event, level="warning" if silent else "info", reason=reason or None)
            self._wake(None)

    @staticmethod
    def _guarded(look: Callable[[], T]) -> T | None:
        """Look; trouble with the state on the disk is told and looked at again, and ends no worker."""
        try:
            return look()
        except CoreError as error:
            _LOG.warning("cannot observe", extra={"reason": str(error)})
            return None


def _lives(record: SessionRecord, survey: Survey) -> bool:
    return survey.live(target_for(record.name), record.instance_id) is Live.LIVE
