"""What a chat shows besides posts: reactions, what a session is doing, and the steps of its turn.

Only the latest of each matters, and all of it follows from what is stored. So there is no queue, nothing delays a post,
and a signal that comes too late is left out. It has a thread of its own, because a chat that answers slowly must not
delay posts.
"""

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from core.base.clock import Deadline
from core.base.errors import ChannelError, CoreError, HandedOver
from core.base.redaction import redactor_of
from core.base.values import dataclass, replace
from core.chat.live import LivePosts
from core.config.settings import secret_variables
from core.model.activity import Activity, ActivityState
from core.model.channel import Channel
from core.model.message import MessageState
from core.model.posts import Mark, MarkRow, NewPost, OutboundKind, ProgressRow, progress_text
from core.model.reasons import Because, Reason, Remedy
from core.model.session import Binding
from core.model.texts import text
from core.session.notes import note_for
from core.session.sessions import Unforeseen, apart
from core.session.system import System

_LOG = logging.getLogger(__name__)
_REST_SECONDS = 1.0
_TROUBLE_SECONDS = 5.0
_REACTION_SECONDS = 1.2  # chats allow about fifty reactions a minute and workspace
_PROGRESS_SECONDS = 3.0
_STATUS_REFRESH = timedelta(seconds=90)  # a chat takes a status away after two minutes
_FRESH = (Mark.TAKEN, Mark.TYPED)  #: told to whoever speaks at this moment
_LATE = {Mark.TAKEN: timedelta(minutes=2)}  #: then nobody wonders any more
_LATEST = timedelta(days=1)  #: of the others: somebody may wait for them
_UNSHOWN = timedelta(minutes=10)  #: that a message may be taken without a mark that says so
_OVERLAP = timedelta(seconds=5)  #: between a row's time stamp and its commit
_STATUS = {
    ActivityState.BUSY: "is working…",
    ActivityState.PERMISSION: "is waiting for a permission",
    ActivityState.QUESTION: "is waiting for an answer",
    ActivityState.DIALOG: "is waiting at a dialog",
}


@dataclass(frozen=True)
class _Shown:
    """What stands below a thread, and since when."""

    text: str
    at: datetime
    binding: Binding


class SignalWorker:
    """Shows one channel kind's signals. The service's thread for it."""

    def __init__(self, system: System, channel: Channel, live: LivePosts | None = None) -> None:
        """`live`: what shows turns as they run, if another worker shares it."""
        self._live = live or LivePosts(system, channel)
        self._system = system
        self._channel = channel
        self._redactor = redactor_of(system.environ, secret_variables(system.settings, system.environ))
        self._wake = threading.Event()
        self._since = system.clock.now() - _LATEST
        self._waiting: dict[tuple[str, str], MarkRow] = {}  #: by channel and time stamp
        self._statuses: dict[str, _Shown] = {}
        self._cleared: set[str] = set()
        self._free: dict[str, Deadline] = {}  #: by kind of signal: until then the next one waits
        self._off: set[str] = set()  #: kinds that this installation may not send

    def wake(self) -> None:
        """Look now: a session does something else, or a message got on. Callable from every thread."""
        self._wake.set()

    def posted(self, uid: str) -> None:
        """The session's thread has got a post, which takes its status away. Callable from every thread."""
        self._cleared.add(uid)
        self._wake.set()

    def run(self, stopping: threading.Event) -> None:
        """Show until told to stop; a call that began is finished."""
        while not stopping.is_set():
            self._wake.wait(self._guarded_turn())
            self._wake.clear()

    def _guarded_turn(self) -> float:
        """Take a turn; trouble with the state on the disk is told and looked at again, and ends no worker."""
        try:
            return self.turn()
        except CoreError as error:
            _LOG.warning("cannot show signals", extra={"reason": str(error)})
            return _TROUBLE_SECONDS

    def turn(self) -> float:
        """Show what has changed and may be shown now, and return the seconds until it is worth looking again."""
        self._collect()
        self._react()
        self._show_statuses()
        self._show_progress()
        self._live.turn(self._cleared.add)
        waits = [free.remaining() for free in self._free.values() if not free.passed()]
        return min([_REST_SECONDS, *waits]) if self._waiting else _REST_SECONDS

    # ------------------------------------------------------------ reactions

    def _collect(self) -> None:
        """Take in what changed; for each message only the latest counts."""
        now = self._system.clock.now()
        if left := self._system.marks.left(now - _UNSHOWN):
            with self._system.database.transaction(durable=False):
                self._tell_cut_off([message_id for message_id, failed in left.items() if failed])
                self._system.marks.end(left)
        for row in self._system.marks.changed(self._channel.kind, self._since):
            self._waiting.pop((row.channel, row.ts), None)
            if row.mark is not None and row.mark is not row.shown:
                self._waiting[row.channel, row.ts] = row
        self._since = now - _OVERLAP
        self._waiting = {
            key: row for key, row in self._waiting.items() if row.mark and now - row.at <= _LATE.get(row.mark, _LATEST)
        }

    def _tell_cut_off(self, messages: Sequence[str]) -> None:
        """Tell the senders of those whose turn ended with its program. Part of the open transaction.

        What a person cut off in the terminal they know; of a turn that failed a note was committed as it did.
        """
        why, remedy = Because(Reason.CUT_OFF_BY, {"what": "the end of its program"}), text(Remedy.SEND_AGAIN)
        activities = self._system.activities.all() if messages else {}
        for message_id in messages:
            row = self._system.inbox.get(message_id)
            activity = activities.get(row.message.uid) if row is not None else None
            if row is None or activity is None:
                continue  # the session is gone, with all that could take it
            if activity.instance == row.instance and (activity.is_cut_off or activity.failed):
                continue
            note = note_for(self._system, row, MessageState.CONFIRMED, why, remedy)
            if note is not None:  # the next one joins it
                self._system.outbox.add([note])

    def _react(self) -> None:
        """Show what may be shown now: that a message was taken, for whoever speaks at this moment, then by age."""
        while self._waiting and self._may("react"):
            oldest = iter(self._waiting)
            place = next((key for key, row in self._waiting.items() if row.mark in _FRESH), None) or next(oldest)
            row = self._waiting[place]
            mark = row.mark
            if mark is None or not self._reacted(row, mark):
                return
            self._waiting.pop(place)
            self._system.marks.shown(row.message, mark)

    def _reacted(self, row: MarkRow, mark: Mark) -> bool:
        """Show the mark. That it may stand there is noted before, so that only what may is ever taken back."""
        self._free["react"] = Deadline(self._system.clock, _REACTION_SECONDS)
        self._system.marks.asked(row, mark)
        try:
            self._channel.react(row.channel, row.ts, mark, row.instead_of)
        except ChannelError as error:
            self._troubled("react", error)
            if not error.transient and not error.unclear:
                self._waiting.pop((row.channel, row.ts), None)  # a message that is gone, or a right that lacks
            return False
        return True

    # ------------------------------------------------------------ what a session is doing

    def _show_statuses(self) -> None:
        for uid in list(self._cleared):
            self._cleared.discard(uid)
            self._statuses.pop(uid, None)
        activities, now = self._system.activities.all(), self._system.clock.now()
        bound = {binding.uid: binding for binding in self._system.bindings.all(self._channel.kind)}
        for uid in bound.keys() | self._statuses.keys():
            shown, binding = self._statuses.get(uid), bound.get(uid)
            name = binding.name if binding else shown.binding.name if shown else uid
            with suppress(Unforeseen), apart(self._system.events, name):
                self._show_status(uid, shown, binding, self._status(activities.get(uid)) if binding else "", now)

    def _status(self, activity: Activity | None) -> str:
        """Return what stands below the thread; "" for a session whose program has ended, whatever it did last."""
        if activity is None or activity.between_turns or activity.state not in _STATUS:
            return ""
        end = self._system.exit_ledger.end(activity.instance)
        return _STATUS[activity.state] if end is None or end.told_at is None else ""

    def _show_status(self, uid: str, shown: _Shown | None, binding: Binding | None, text: str, now: datetime) -> None:
        if text and binding is not None and (shown is None or shown.text != text or _is_old(shown, now)):
            self._channel.status(binding.channel, binding.thread, text)
            self._statuses[uid] = _Shown(text, now, binding)
        elif not text and shown is not None:
            self._channel.status(shown.binding.channel, shown.binding.thread, "")
            del self._statuses[uid]

    # ------------------------------------------------------------ the steps of a turn

    def _show_progress(self) -> None:
        rows = self._system.progress.due() if self._channel.wants(OutboundKind.PROGRESS) else ()
        if not rows or self._posts_wait():
            return
        for row in rows:
            binding = self._system.bindings.of_session(row.uid, self._channel.kind)
            if binding is not None and self._may(f"progress:{row.uid}"):
                self._free[f"progress:{row.uid}"] = Deadline(self._system.clock, _PROGRESS_SECONDS)
                with suppress(Unforeseen), apart(self._system.events, binding.name):
                    self._tell_progress(row, binding)

    def _posts_wait(self) -> bool:
        """Return whether something is to be posted that says more, and goes by the same pace."""
        due = self._system.outbox.due(self._channel.kind, self._system.clock.now())
        return any(self._system.bindings.of_session(row.post.uid, self._channel.kind) for row in due)

    def _tell_progress(self, row: ProgressRow, binding: Binding) -> None:
        post = _progress_post(row, binding)
        post = replace(post, text=self._redactor.redact(post.text))
        try:
            if not row.ts and row.asked:
                found = self._channel.find(post.id, binding.channel, binding.thread)
                row = replace(row, channel=found.channel, ts=found.ts) if found else row
            if row.ts:
                posted = self._channel.update(post, row.channel, row.ts)
            else:
                self._system.progress.asked(row)
                posted = self._channel.post(post, binding.channel, binding.thread)
                self._cleared.add(row.uid)
        except HandedOver:
            return
        except ChannelError as error:
            self._troubled(f"progress:{row.uid}", error)
            return
        self._system.progress.told(row, posted.channel, posted.ts or row.ts)

    # ------------------------------------------------------------ pace and trouble

    def _may(self, kind: str) -> bool:
        free = self._free.get(kind)
        return kind not in self._off and (free is None or free.passed())

    def _troubled(self, kind: str, error: ChannelError) -> None:
        """Wait as long as the chat says. A right that lacks is told once and ends that kind until the next start."""
        if error.reason == ChannelError.NOT_ALLOWED:
            self._off.add(kind)
            _LOG.warning("signals are off", extra={"signal": kind, "reason": str(error)})
            return
        _LOG.info("signal not shown", extra={"signal": kind, "reason": str(error)})
        seconds = error.retry_after if error.retry_after is not None else _TROUBLE_SECONDS
        self._free[kind] = Deadline(self._system.clock, seconds)


def _is_old(shown: _Shown, now: datetime) -> bool:
    return now - shown.at >= _STATUS_REFRESH


def _progress_post(row: ProgressRow, binding: Binding) -> NewPost:
    return NewPost(
        id=f"p-progress-{row.turn}",
        key=f"progress:{row.turn}",
        kind=OutboundKind.PROGRESS,
        uid=row.uid,
        name=binding.name,
        channel_kind=binding.channel_kind,
        text=progress_text(row),
    )
