"""The service's scheduler thread: make due runs into inbox rows, and settle finished ones.

It sleeps until the next slot or a notification. Its work grows with the loops that are due, held or open, not with
their number. Several processes may do this at once: one of them claims a run, under a lease.
"""

import logging
import os
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

from core.base.clock import Deadline
from core.base.errors import CoreError
from core.base.failpoints import Failpoint, failpoint
from core.base.files import is_there, remove_file
from core.base.names import new_run_id
from core.base.paths import StatePaths
from core.loops.outcomes import settle_runs, settle_taken_runs
from core.loops.transitions import look_at_ages, release_loops, send
from core.model.framing import file_of
from core.session.sessions import apart
from core.session.system import System
from core.store.loops import Loops

_LOG = logging.getLogger(__name__)
LEASE = timedelta(seconds=30)
_BATCH = 50  #: runs of one claim: what a killed process leaves to others
_LEAST_REST = 0.05  #: wakes come with every report
_OPEN_REST = 1.0  #: while a tick is on its way
_LONGEST_REST = 5.0
_HOLDS_SECONDS = 5.0  #: between two looks at what is held
_AGES_SECONDS = 60.0
_PRUNE_SECONDS = 600.0
_TICKS_KEPT = timedelta(hours=6)  #: runs and their rows: the loop itself tells how the latest went
_ENDS_KEPT = timedelta(days=7)  #: loops that have ended


class Scheduler:
    """`wake` is called with the session for which a tick was committed."""

    def __init__(
        self,
        system: System,
        wake: Callable[[str], None] = lambda _: None,
        swept: Callable[[], bool] = lambda: True,
        lease: timedelta = LEASE,
    ) -> None:
        """`swept` tells whether the boot's sweep is over: until then nothing fires, since what is down may come up."""
        self._system = system
        self._swept = swept
        self._tell = wake
        self._lease = lease
        self._claimer = f"{os.getpid()}-{new_run_id()}"
        self._wake = threading.Event()
        self._holds = self._ages = self._prune = Deadline(system.clock, 0)

    def wake(self) -> None:
        """Something changed: a loop, a session or a message. Callable from every thread."""
        self._wake.set()

    def run(self, stopping: threading.Event) -> None:
        """Fire until told to stop; trouble with the state on the disk is told and looked at again."""
        while not stopping.is_set():
            rest = _LONGEST_REST
            try:
                rest = self.turn(stopping)
            except CoreError as error:
                _LOG.warning("cannot fire loops", extra={"reason": str(error)})
            woken = self._wake.wait(rest)
            self._wake.clear()
            if woken:
                self._holds = Deadline(self._system.clock, min(self._holds.remaining(), _OPEN_REST))
                stopping.wait(_LEAST_REST)

    def look_at_everything(self) -> None:
        """Let the next turn look at what is held, old and over, too."""
        self._holds = self._ages = self._prune = Deadline(self._system.clock, 0)

    def turn(self, stopping: threading.Event | None = None) -> float:
        """Do what is due now, and return the seconds until the next look. Raises StoreBroken."""
        settle_runs(self._system)
        if not self._swept():
            return _OPEN_REST
        self._look_at_what_is_slow()
        self._fire(stopping)
        return self._rest()

    def _fire(self, stopping: threading.Event | None) -> None:
        system = self._system
        while stopping is None or not stopping.is_set():
            now = system.clock.now()
            with failpoint(Failpoint.LOOP_CLAIM):
                claimed = system.loops.claim(now, self._claimer, now + self._lease, _BATCH)
            if not claimed:
                return
            for loop, run in claimed:
                try:
                    with apart(system.events, loop.name):
                        sent = send(system, loop, run)
                    if sent:
                        self._tell(loop.uid)
                except CoreError as error:
                    _LOG.warning("tick not sent", extra={"loop": loop.id, "run_id": run.id, "reason": str(error)})

    def _look_at_what_is_slow(self) -> None:
        system, clock = self._system, self._system.clock
        if self._holds.passed():
            self._holds = Deadline(clock, _HOLDS_SECONDS)
            release_loops(system)
            settle_taken_runs(system)
        if self._ages.passed():
            self._ages = Deadline(clock, _AGES_SECONDS)
            look_at_ages(system)
        if self._prune.passed():
            self._prune = Deadline(clock, _PRUNE_SECONDS)
            _prune(system.paths, system.loops, clock.now())

    def _rest(self) -> float:
        due, now = self._system.loops.next_due(), self._system.clock.now()
        longest = min(_LONGEST_REST, self._holds.remaining())
        if self._system.loops.any_open_run():
            longest = min(longest, _OPEN_REST)
        return longest if due is None else min(longest, max(0.0, (due - now).total_seconds()))


def _prune(paths: StatePaths, loops: Loops, now: datetime) -> None:
    """Remove what was over long ago: ticks with their runs and their files, and loops that have ended."""
    before = now - _TICKS_KEPT
    with failpoint(Failpoint.LOOP_PRUNE):
        for uid, message_id in loops.over_ticks(before):
            file = file_of(message_id, paths.session(uid))
            if is_there(file):  # a row whose file is left is asked again; the other way round it would stay for ever
                remove_file(file)
        loops.prune(before, now - _ENDS_KEPT)
