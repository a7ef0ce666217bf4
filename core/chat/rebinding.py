"""Bind threads again after the database was lost: the record names the thread, and the chat must confirm it.

A thread is bound again only if its first message, read from the chat, is our own announcement of this session and no
closing post of ours follows. While the chat cannot be asked, nothing is decided, and a post that would open another
thread waits. The answer is committed, so it is given once.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from core.base.clock import Deadline
from core.base.errors import ChannelError, LockBusy, RecordUnreadable, RowBroken
from core.base.failpoints import Failpoint, failpoint
from core.base.names import standing_ref
from core.model.channel import Channel
from core.model.posts import FOREIGN_ROOT, NewPost, OutboundKind, ThreadSeen, why_not
from core.model.reasons import Because, Reason, because
from core.model.session import Binding, Definition, Phase, SessionRecord, Thread
from core.session.sessions import Unforeseen, apart, home_of
from core.session.system import System

_LOG = logging.getLogger(__name__)
LOST_DATABASE = "database-lost"
MOVED = "channel-changed"
_AGAIN_SECONDS = 15.0
_LOCK_SECONDS = 1.0
_ANSWERS = frozenset({ChannelError.CHANNEL_GONE, ChannelError.NOT_MEMBER, ChannelError.THREAD_GONE})


@dataclass
class _Question:
    """A session whose thread is asked for; `why` there is no answer yet."""

    name: str
    again: Deadline | None = None
    why: Because = field(default_factory=lambda: Because(Reason.THREAD_LOOKED_FOR))


class Rebinder:
    """Asks for the threads of one channel kind. Used by the thread that posts there alone."""

    def __init__(self, system: System, channel: Channel, bound: Callable[[str], None]) -> None:
        """`bound` is told the session (uid) that has its thread again."""
        self._system = system
        self._channel = channel
        self._tell_bound = bound
        self._questions: dict[str, _Question] | None = None  #: by uid; None: nobody has looked yet

    def turn(self) -> None:
        """Ask what may be asked now, up to the first question that has no answer yet. Raises StoreBroken."""
        if self._questions is None:
            records = [entry for entry in self._system.records.all() if isinstance(entry, SessionRecord)]
            self._questions = {each.uid: _Question(each.name) for each in records if self._is_asked(each)}
        for uid, question in list(self._questions.items()):
            if question.again is not None and not question.again.passed():
                continue
            if not self._answered(uid, question):
                return
            self._questions.pop(uid)

    def waiting_for(self, name: str, uid: str) -> Because | None:
        """Return why a post has to wait until it is known which thread is the session's; None where it is known."""
        try:
            record = self._system.records.read(name)
        except RecordUnreadable:
            return None
        if self._questions is None or record is None or record.uid != uid or not self._is_asked(record):
            return None
        return self._questions.setdefault(uid, _Question(name)).why

    def _is_asked(self, record: SessionRecord) -> bool:
        """Return whether the record names a thread that the database knows neither as bound nor as left."""
        kind, bindings = self._channel.kind, self._system.bindings
        if record.thread is None or record.thread.kind != kind or record.phase is Phase.DELETING:
            return False
        if not self._definition(record).chat_kind:
            return False
        try:
            if bindings.of_session(record.uid, kind) is not None:
                return False
        except RowBroken:  # it is bound, and the store has told that nobody can tell where
            return False
        return not bindings.is_left(record.uid, record.thread)

    def _definition(self, record: SessionRecord) -> Definition:
        return self._system.settings.standing.get(record.name) or record.definition

    # ------------------------------------------------------------ one question

    def _answered(self, uid: str, question: _Question) -> bool:
        """Settle one question, and tell whether that could be done now: the chat may be away, or the lock taken."""
        seconds = _AGAIN_SECONDS
        try:
            record = self._system.records.read(question.name)
            if record is not None and record.uid == uid and self._is_asked(record):
                with apart(self._system.events, record.name):
                    self._settle(record)
            return True
        except RecordUnreadable:
            return True
        except (LockBusy, Unforeseen) as error:
            reason = str(error)
        except ChannelError as error:
            reason, seconds = str(error), _AGAIN_SECONDS if error.retry_after is None else error.retry_after
        why = because(Reason.THREAD_UNKNOWN, error=reason)
        if question.why != why:
            _LOG.warning("a thread cannot be asked for", extra={"session": question.name, "reason": reason})
        question.why, question.again = why, Deadline(self._system.clock, seconds)
        return False

    def _settle(self, record: SessionRecord) -> None:
        """Ask, and commit the answer. Raises ChannelError where there is none, LockBusy, RecordUnreadable."""
        place, definition = _place(record), self._definition(record)
        home = home_of(self._system.settings, definition)
        if home and (definition.chat_kind, home) != (place.kind, place.channel):
            self._leave(record, MOVED, f"it is announced in {home} from now on")
            return
        try:
            seen = self._channel.read_thread(place.channel, place.thread)
        except ChannelError as error:
            if error.reason not in _ANSWERS:
                raise
            self._leave(record, error.reason, str(error))
            return
        refused = why_not(seen, standing_ref(record.name), record.uid)
        if self._system.bindings.of_thread(place.kind, seen.team, place.channel, place.thread) is not None:
            refused = FOREIGN_ROOT
        if refused:
            self._leave(record, refused, "the database was lost, and nothing proves that this thread is the session's")
        else:
            self._take_back(record, seen)

    def _still_asked(self, before: SessionRecord) -> bool:
        """Ask again under the lock. Raises RecordUnreadable."""
        now = self._system.records.read(before.name)
        return now is not None and (now.uid, now.thread) == (before.uid, before.thread) and self._is_asked(now)

    def _take_back(self, record: SessionRecord, seen: ThreadSeen) -> None:
        """Bind the thread from its last message on; a root that waits becomes an edit of the one that is there."""
        with self._system.locks.hold(record.name, "take its thread back", _LOCK_SECONDS):
            if not self._still_asked(record):
                return
            binding = self._binding(record, seen)
            with failpoint(Failpoint.REBIND), self._system.database.transaction(durable=True):
                self._system.bindings.bind(binding)
                self._system.outbox.edit_instead(record.uid, self._channel.kind)
                self._system.outbox.add([_note(binding)])
        self._emit("channel.rebound", record, LOST_DATABASE, "its first message proves that it is the session's")
        self._tell_bound(record.uid)

    def _leave(self, record: SessionRecord, reason: str, detail: str) -> None:
        """Commit that the thread is the session's no more: its next start makes a new one."""
        with self._system.locks.hold(record.name, "leave its thread", _LOCK_SECONDS):
            if not self._still_asked(record):
                return
            place = _place(record)
            with failpoint(Failpoint.REBIND_REFUSE), self._system.database.transaction(durable=True):
                self._system.bindings.leave(record.uid, place.kind, place.channel, place.thread)
        self._emit("channel.unbound", record, reason, detail, level="warning")

    def _binding(self, record: SessionRecord, seen: ThreadSeen) -> Binding:
        return Binding(
            channel_kind=self._channel.kind,
            team=seen.team,
            channel=seen.channel,
            thread=seen.thread,
            uid=record.uid,
            name=record.name,
            created_at=self._system.clock.now(),
            begins=seen.latest,
        )

    def _emit(self, event: str, record: SessionRecord, reason: str, detail: str, level: str = "info") -> None:
        self._system.events.emit(
            event,
            level=level,
            name=record.name,
            channel=_place(record).channel,
            thread=_place(record).thread,
            reason=reason,
            detail=detail,
        )


def _place(record: SessionRecord) -> Thread:
    """Return the thread of a record that is asked for. Raises ValueError for one that names none."""
    if record.thread is None:
        raise ValueError(f"{record.name} names no thread")
    return record.thread


def _note(binding: Binding) -> NewPost:
    return NewPost(
        id=f"p-rebound-{binding.uid}-{binding.begins}",
        key=f"rebound:{binding.uid}:{binding.thread}:{binding.begins}",
        kind=OutboundKind.NOTE,
        uid=binding.uid,
        name=binding.name,
        channel_kind=binding.channel_kind,
        text=f"The database of the-loop was lost; this is the thread of `{binding.name}` again. Replies above this "
        "note that have no answer may be lost; the-loop will not deliver them now. Messages that waited are gone, and "
        "the buttons above do nothing. To do: send again what you still want, and see which loops are left: "
        f"`the-loop loop list {binding.name}`",
        channel=binding.channel,
        thread=binding.thread,
    )
