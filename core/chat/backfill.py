"""What core knows for the backfill: the bound threads, how far each was read, and the order of replies around a gap.

After a reconnect, live replies arrive before the backfill has read those that were missed. Delivery takes a session's
rows in the order of their time stamps, but only among the rows that it has. So rows that arrived after a gap began wait
until a backfill of their thread that began later is complete. No row waits longer than LIMIT from the beginning of the
gap, because a backfill may fail for long.
"""

import threading
from datetime import datetime, timedelta

from core.base.clock import Clock
from core.chat.inbound import close_thread, has_changed
from core.model.channel import BoundThread, Swept
from core.model.message import WAITING, InboxRow, ReplyAddress
from core.model.posts import NewPost, OutboundKind
from core.model.session import Binding
from core.session.system import System
from core.store.inbox import Inbox
from core.store.sessions import Activities, Bindings


def threads(
    inbox: Inbox, bindings: Bindings, activities: Activities, channel_kind: str, team: str
) -> tuple[BoundThread, ...]:
    """Return the team's bound threads, those of the session that was spoken with last first. Raises StoreBroken."""
    spoken = activities.last_messages()
    bound = [binding for binding in bindings.all(channel_kind) if binding.team == team]
    bound.sort(key=lambda binding: spoken.get(binding.uid, binding.created_at), reverse=True)
    return tuple(_thread(inbox, binding) for binding in bound)


def _thread(inbox: Inbox, binding: Binding) -> BoundThread:
    replies = inbox.of_thread(binding)
    return BoundThread(
        binding.name,
        binding.channel,
        binding.thread,
        binding.swept_to,
        binding.shared,
        fresh=not binding.cursor,
        waiting=tuple(ts for ts, waits in replies if waits),
        taken=tuple(ts for ts, waits in replies if not waits),
    )


def swept(system: System, channel_kind: str, team: str, done: Swept) -> None:
    """Move the thread's cursor, and tell what was caught up, once. Raises StoreBroken."""
    binding = system.bindings.of_thread(channel_kind, team, done.channel, done.thread)
    if binding is None:
        return  # unbound meanwhile
    changed = has_changed(binding, done.shared)
    as_before = done.cursor == binding.cursor and not done.caught_up and not changed
    with system.database.transaction(durable=not as_before):  # a sweep passes over a thousand threads at once
        if changed:
            close_thread(system.outbox, system.bindings, system.events, binding, shared=bool(done.shared))
            return
        system.bindings.move_cursor(binding, done.cursor)
        if done.shared is not None:
            system.bindings.note_sharing(binding, done.shared)
        system.bindings.forget_refused(binding, done.forget_before)
        if done.caught_up:
            system.outbox.add([_note(binding, done)])
    if done.caught_up:
        system.events.emit(
            "channel.backfilled",
            name=binding.name,
            detail=_what(done),
            channel=binding.channel,
            thread=binding.thread,
        )
        system.notify()


def _what(done: Swept) -> str:
    if done.caught_up == 1:
        return f"1 reply was read late (it is {done.oldest} old)"
    return f"{done.caught_up} replies were read late (the oldest is {done.oldest} old)"


def _note(binding: Binding, done: Swept) -> NewPost:
    return NewPost(
        id=f"p-caught-up-{binding.uid}-{done.cursor}",
        key=f"caught-up:{binding.uid}:{binding.thread}:{done.cursor}",
        kind=OutboundKind.NOTE,
        uid=binding.uid,
        name=binding.name,
        channel_kind=binding.channel_kind,
        text=f"{_what(done)}, because the-loop was not reading when "
        f"{'they were' if done.caught_up > 1 else 'it was'} sent.",
        channel=binding.channel,
        thread=binding.thread,
    )


LIMIT = timedelta(seconds=60)  #: that a gap counts


class CatchingUp:
    """What is known of gaps, in memory. Safe for several threads.

    The service's start is a gap for what it finds, too: the one before may have ended before its sweep was over.
    """

    def __init__(self, clock: Clock, bindings: Bindings, *channel_kinds: str) -> None:
        self._clock = clock
        self._bindings = bindings
        self._started = clock.now()
        self._lock = threading.Lock()
        #: by channel kind: the gaps that are not older than LIMIT
        self._begun = {kind: [self._started] for kind in channel_kinds}
        self._looking: dict[str, datetime] = {}  #: by channel kind: when the sweep that runs began
        self._swept: dict[tuple[str, str, str], datetime] = {}  #: by thread: when its latest whole sweep began
        self._alone: dict[tuple[str, str, str], datetime] = {}  #: by thread: its own latest gap, not older than LIMIT

    def behind(self, channel_kind: str) -> None:
        """Replies may have been missed until now: hold back what comes from now on."""
        with self._lock:
            now = self._clock.now()
            kept = [begun for begun in self._begun.get(channel_kind, []) if begun > now - LIMIT]
            self._begun[channel_kind] = [*kept, now]

    def behind_in(self, channel_kind: str, channel: str, thread: str) -> None:
        """Replies of one thread may have been missed until now: hold back what comes there from now on."""
        with self._lock:
            now = self._clock.now()
            self._alone = {place: begun for place, begun in self._alone.items() if begun > now - LIMIT}
            self._alone[channel_kind, channel, thread] = now

    def looking(self, channel_kind: str) -> None:
        """A sweep begins: it will find whatever was missed until now."""
        with self._lock:
            self._looking[channel_kind] = self._clock.now()

    def swept(self, channel_kind: str, channel: str, thread: str) -> None:
        """The sweep that runs has read the thread to its end."""
        with self._lock:
            if channel_kind in self._looking:
                self._swept[channel_kind, channel, thread] = self._looking[channel_kind]

    def holds(self, row: InboxRow) -> bool:
        """Return whether the row must wait, because an older one of its thread may be missing. Raises StoreBroken."""
        message, address = row.message, row.message.address
        if address is None or row.state not in WAITING:
            return False
        now, place = self._clock.now(), (address.channel_kind, address.channel, address.thread)
        with self._lock:
            swept, alone = self._swept.get(place), self._alone.get(place)
            gaps = [
                begun
                for begun in (*self._begun.get(address.channel_kind, []), *([alone] if alone else []))
                if (swept is None or swept < begun)
                and now < begun + LIMIT
                and (begun == self._started or begun <= message.created_at)
            ]
        return bool(gaps) and self._is_older(address, max(gaps))

    def _is_older(self, address: ReplyAddress, gap: datetime) -> bool:
        """Return whether the thread was there when the gap began: nothing is missing of one that was opened since."""
        binding = self._bindings.of_thread(address.channel_kind, address.team, address.channel, address.thread)
        return binding is None or binding.created_at < gap
