"""Tell by a channel's history which of its threads have nothing new, so that a sweep need not read each of them.

`conversations.history` shows a channel's own messages, newest first, and with each parent the time stamp of the latest
reply, `latest_reply` (https://docs.slack.dev/reference/methods/conversations.history). It shows neither edits nor
deletions of replies, and nobody promises how soon the field follows a reply. So a thread is passed over only where all
that is known speaks for it, and whatever is not known is read. No I/O.
"""

from collections.abc import Collection, Sequence

from bot import payloads
from bot.directory import earlier, order
from bot.documents import TIME_STAMP, Document
from core.model.channel import BoundThread

OVERLAP = 300  #: seconds before its cursor from which a thread is read


def has_to_be_read(thread: BoundThread, shared: bool, since: str) -> bool:
    """Return whether a thread must be read whatever the history says.

    `shared`: whether its channel is shared now; `since`: the time stamp of a moment up to which all threads were read.
    The history tells nothing of edits and deletions, which count for what waits and for what was typed a moment before
    that, nor of a reply that Slack showed later than the one that the cursor stands at.
    """
    known = (thread.cursor, *thread.taken)
    if thread.fresh or thread.waiting or thread.shared is not shared:
        return True
    if not all(TIME_STAMP.fullmatch(ts) for ts in (thread.thread, *known)):
        return True
    return order(max(known, key=order)) > order(earlier(since, OVERLAP))


def latest_known(threads: Collection[BoundThread]) -> str:
    """Return the time stamp of the latest message that is known of any of the threads."""
    known = (ts for thread in threads for ts in (thread.cursor, *thread.waiting, *thread.taken))
    return max((ts for ts in known if TIME_STAMP.fullmatch(ts)), key=order, default="0.000000")


class Roots:
    """What the pages of a channel's history tell of some of its threads."""

    def __init__(self, threads: Collection[BoundThread]) -> None:
        self._cursors = {thread.thread: order(thread.cursor) for thread in threads}
        self._unseen = set(self._cursors)
        self._quiet: set[str] = set()  #: whose latest reply is not later than the cursor
        self._bare: set[str] = set()  #: that show no reply at all
        self._news: set[str] = set()
        self._tells = False  #: whether any message had the field

    @property
    def unseen(self) -> int:
        """How many were on none of the pages."""
        return len(self._unseen)

    @property
    def oldest(self) -> str:
        """The oldest of those that were on none of the pages."""
        return min(self._unseen, key=order)

    def page(self, messages: Sequence[Document]) -> bool:
        """Take a page in, and return whether one of the threads was on it."""
        before = len(self._unseen)
        for message in messages:
            latest = payloads.latest_reply(message)
            self._tells = self._tells or bool(latest)
            ts, thread = payloads.ts_of(message), payloads.thread_of(message)
            if thread and thread != ts:  # a reply that was sent to the channel as well
                self._note_reply(thread, ts)
            elif ts in self._unseen:
                self._unseen.discard(ts)
                self._note_root(ts, latest, message)
        return len(self._unseen) < before

    def _note_reply(self, thread: str, ts: str) -> None:
        if thread in self._cursors and order(ts) > self._cursors[thread]:
            self._news.add(thread)

    def _note_root(self, root: str, latest: str, message: Document) -> None:
        if payloads.is_gone(message):
            return
        if latest:
            if order(latest) <= self._cursors[root]:
                self._quiet.add(root)
        elif not payloads.shows_thread(message):
            self._bare.add(root)

    def without_news(self) -> frozenset[str]:
        """Return the threads that have nothing new.

        A parent without replies has none of a thread's fields; nobody can tell that from a server which never gives
        the field, unless another message has it.
        """
        return frozenset((self._quiet | (self._bare if self._tells else set())) - self._news)
