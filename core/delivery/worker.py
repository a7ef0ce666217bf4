"""The service's one delivery thread: each session gets its steps when they are due, and none waits for another."""

import logging
import threading
from collections.abc import Collection
from datetime import datetime, timedelta

from core.delivery.deliverer import Deliverer
from core.errors import CoreError
from core.system import System

_LOG = logging.getLogger(__name__)
_LOOK = timedelta(seconds=5)
_TOGETHER = 64  #: sessions whose messages are pasted together: their verbs wait for their locks meanwhile
_IDLE_SECONDS = 0.5  #: the longest rest: a row that nobody told of is seen within it


class DeliveryWorker:
    """Drives a Deliverer by timers and wakes. Nothing here sleeps for one session."""

    def __init__(self, system: System, deliverer: Deliverer) -> None:
        self._system = system
        self._deliverer = deliverer
        self._due: dict[str, datetime] = {}
        self._lock = threading.Lock()
        self._stepping = threading.Lock()  #: the deliverer belongs to one thread at a time
        self._woken: set[str] = set()
        self._all = False
        self._follows = False
        self._wake = threading.Event()

    def wake(self, uid: str | None = None) -> None:
        """Something changed for the session, or, without one, for any. Callable from every thread."""
        with self._lock:
            if uid is None:
                self._all = True
            else:
                self._woken.add(uid)
        self._wake.set()

    def at_once(self, uids: Collection[str]) -> None:
        """Take the sessions' next step in the caller's thread, which has just given them something to do.

        Saves a message the way to another thread. Where a step is being taken that one is followed by theirs.
        """
        if not uids:
            return
        if self._stepping.acquire(blocking=False):
            try:
                self._step(list(uids))
            except CoreError as error:
                _LOG.warning("cannot tell what is to be delivered", extra={"reason": str(error)})
            finally:
                self._stepping.release()
            self._wake.set()  # for the step after that
        else:
            for uid in uids:
                self.wake(uid)

    def run(self, stopping: threading.Event) -> None:
        """Deliver until told to stop; a step that began is finished."""
        while not stopping.is_set():
            self._wake.wait(self._turned())
            self._wake.clear()

    def _turned(self) -> float:
        """Take a turn; a database that cannot be asked is told of and asked again, and ends no worker."""
        try:
            if not self._follows:
                self._deliverer.follow(self._system.inbox.accepted_uids())
                self._follows = True
            return self.turn()
        except CoreError as error:
            _LOG.warning("cannot tell what is to be delivered", extra={"reason": str(error)})
            return _LOOK.total_seconds()

    def turn(self) -> float:
        """Give each session whose time has come one step, and return the seconds until the next is due.

        Raises StoreBroken.
        """
        with self._stepping:
            self._take_wakes()
            uids = set(self._system.inbox.busy_uids()) | self._deliverer.followed
            now = self._system.clock.now()
            self._due = {uid: due for uid, due in self._due.items() if uid in uids}
            due = [uid for uid in uids if self._is_due(self._due.get(uid, now), now)]
            for begin in range(0, len(due), _TOGETHER):
                self._step(due[begin : begin + _TOGETHER])
            now = self._system.clock.now()
            rest = min((due - now for due in self._due.values()), default=timedelta(seconds=_IDLE_SECONDS))
        return min(max(0.0, rest.total_seconds()), _IDLE_SECONDS)

    @staticmethod
    def _is_due(due: datetime, now: datetime) -> bool:
        return due <= now or due > now + 2 * _LOOK  # the latter: the clock was set back

    def _step(self, uids: list[str]) -> None:
        for uid, outcome in self._deliverer.advance_all(uids).items():
            if isinstance(outcome, CoreError):
                _LOG.warning("message cannot be moved on", extra={"session": uid, "reason": str(outcome)})
            self._due[uid] = outcome if isinstance(outcome, datetime) else self._system.clock.now() + _LOOK

    def _take_wakes(self) -> None:
        with self._lock:
            if self._all:
                self._due.clear()
            for uid in self._woken:
                self._due.pop(uid, None)
            self._deliverer.follow(self._woken)  # what its harness reported to have may be in a turn by now
            self._woken.clear()
            self._all = False
