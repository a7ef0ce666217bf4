"""Two threads of the service: remove what is older than limits.retainTextDays, and finish verbs that were cut short.

Rows and files are removed at the start and every hour after, in small batches, so nobody waits for the database. The
event log holds no text unless it is told to, and has its own rotation. Ticks are removed with their loops' runs.
"""

import logging
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from core.base.clock import Deadline
from core.base.errors import CoreError
from core.base.failpoints import Failpoint, failpoint
from core.base.files import broken
from core.chat.unsent import UNSENT
from core.harness.base import BAD
from core.lifecycle.common import Tmux, start_takes
from core.lifecycle.recover import reconcile_some
from core.model.framing import file_of
from core.model.message import WAITING
from core.model.posts import PostState
from core.model.session import Phase, SessionRecord
from core.session.attachments import OUTGOING, attachment_id
from core.session.launching import FOLDER
from core.session.system import System
from core.store.retention import Living

_LOG = logging.getLogger(__name__)
_EVERY_SECONDS = 3600.0
_AGAIN_SECONDS = 60.0  #: after a failure
_BATCH = 200  #: rows of a transaction
_BATCHES = 10  #: of a kind and look; more is left to the next look
_REPORTS_KEPT = timedelta(days=1)  #: longer than another process takes to take one in that it has read
_OPEN_POSTS = frozenset({PostState.PENDING, PostState.SENDING})


class Housekeeper:
    """Belongs to one thread."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._next = Deadline(system.clock, 0)
        self._past: frozenset[str] = frozenset()  #: instances that were no session's at the look before

    def turn(self) -> None:
        """Remove a little, if it is time for that. Raises StoreBroken."""
        if self._next.passed():
            self._next = Deadline(self._system.clock, _AGAIN_SECONDS)  # where it fails
            self._next = Deadline(self._system.clock, _EVERY_SECONDS if self.look() else 0)

    def look(self) -> bool:
        """Remove some of what may go, and tell whether that was all. Raises StoreBroken."""
        now = self._system.clock.now()
        before = now - timedelta(days=self._system.settings.limits.retain_text_days)
        kept, reporters = self._system.retention, self._system.retention.reporters()
        living = self._living()
        with failpoint(Failpoint.KEEP_FORGET):
            # messages and requests first: the posts about them go with them
            done = self._batches(lambda: kept.messages(before, living, _BATCH))
            done &= self._batches(lambda: kept.requests(before, _BATCH))
            done &= self._batches(lambda: kept.posts(before, living, _BATCH))
            done &= self._batches(lambda: kept.traces(before, _BATCH))
            for instance in reporters:
                done &= self._reports(instance, now - _REPORTS_KEPT)
            self._ends(living)
        if done:
            with failpoint(Failpoint.KEEP_FILES):
                self._files(before)
        return done

    def _living(self) -> Living:
        entries = self._system.records.all()
        records = [entry for entry in entries if isinstance(entry, SessionRecord)]
        return Living(
            frozenset(record.uid for record in records),
            frozenset(record.instance_id for record in records if record.instance_id),
            all_known=len(records) == len(entries),
        )

    @staticmethod
    def _batches(remove: Callable[[], int]) -> bool:
        return any(remove() < _BATCH for _ in range(_BATCHES))

    def _reports(self, instance: str, before: datetime) -> bool:
        spooled = [entry.name for entry in _entries(self._system.paths.spool_of(instance))]
        stamp = f"{int(before.timestamp()) * 10**9}"  # a report's name begins with nanoseconds since the epoch
        return self._batches(lambda: self._system.retention.reports(instance, stamp, spooled, _BATCH))

    def _ends(self, living: Living) -> None:
        """Forget ends an hour after nobody could ask for them any more."""
        past = self._system.retention.past_ends(living)
        self._system.retention.forget_ends(past & self._past)
        self._past = past

    # ------------------------------------------------------------ files

    def _files(self, before: datetime) -> None:
        for folder in _entries(self._system.paths.sessions):
            self._remove_each(partial(self._of_session, Path(folder.path)), before)
        for folder in _entries(self._system.paths.spool):
            self._remove_each(partial(_reports_put_aside, Path(folder.path)), before)

    @staticmethod
    def _remove_each(paths: Callable[[], Iterator[Path]], before: datetime) -> None:
        """Remove what is old of one session; trouble with its files leaves those of the others to go."""
        try:
            for path in paths():
                _remove_old(path, before)
        except CoreError as error:
            _LOG.warning("cannot remove what is over for long", extra={"reason": str(error)})

    def _of_session(self, folder: Path) -> Iterator[Path]:
        """Yield what may go of a session's folder if it is old enough: what no row speaks of any more."""
        yield from (Path(entry.path) for entry in _entries(folder / UNSENT))
        yield from (
            Path(entry.path) for entry in _entries(folder / OUTGOING) if not self._is_to_send(attachment_id(entry.name))
        )
        yield from (Path(entry.path) for entry in _entries(folder / FOLDER) if not self._has_text(entry.name))
        for entry in _entries(folder):
            message_id = entry.name.removeprefix("message-").removesuffix(".txt")
            if file_of(message_id, folder).name == entry.name and not self._has_text(message_id):
                yield Path(entry.path)

    def _is_to_send(self, post_id: str) -> bool:
        row = self._system.outbox.get(post_id)
        return row is not None and row.state in _OPEN_POSTS

    def _has_text(self, message_id: str) -> bool:
        row = self._system.inbox.get(message_id)
        return row is not None and (row.state in WAITING or bool(row.message.text))


def _reports_put_aside(spool: Path) -> Iterator[Path]:
    return (Path(report.path) for report in _entries(spool / BAD))


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    """Return what lies in a folder of ours; nothing where it is none, or a link that may lead anywhere."""
    try:
        if folder.is_symlink() or not folder.is_dir():
            return []
        with os.scandir(folder) as found:
            return list(found)
    except FileNotFoundError:
        return []  # its session was deleted meanwhile
    except OSError as error:
        raise broken(error, folder, "read the folder") from error


def _remove_old(path: Path, before: datetime) -> None:
    """Remove a file, a link or a folder that was last changed before that. Raises StoreBroken."""
    try:
        if path.lstat().st_mtime >= before.timestamp():
            return
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except FileNotFoundError:
        return  # its session was deleted meanwhile
    except OSError as error:
        raise broken(error, path, "remove what is no longer kept") from error


ACTOR = "supervisor"
_LOOK_SECONDS = 5.0
_AGAIN_SECONDS_finishing = 60.0  #: after an attempt that changed nothing: what stood in its way takes a person
_UNDER_LOCK = frozenset({Phase.STOPPING, Phase.DELETING})  #: whoever is at work on these holds the session's lock
_COMING_UP = frozenset({Phase.STARTING, Phase.CREATING})  #: the lock is let go while the harness comes up


class Reconciler:
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
        for done in reconcile_some(self._system, unfinished, ACTOR, Tmux(self._system.runner)):
            if done.after is done.before and not done.passing:
                self._not_before[done.name] = Deadline(self._system.clock, _AGAIN_SECONDS_finishing)
        self._system.notify()

    def _is_left(self, record: SessionRecord) -> bool:
        """Return whether nobody is at work on what the record's phase says, or its lock will tell."""
        if record.phase in _UNDER_LOCK:
            return True
        takes = start_takes(self._system.settings)
        begun = record.started_at or record.created_at
        return record.phase in _COMING_UP and self._system.clock.now() - begun > takes

    def _is_due(self, name: str) -> bool:
        wait = self._not_before.get(name)
        return wait is None or wait.passed()
