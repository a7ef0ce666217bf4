"""Keeps the order over a gap: what came live waits until what was missed before it has been read.

After a new connection the first live replies are there before the sweep has found those of the gap. Delivery takes a
session's rows by time stamp, but only among those it has; so rows that came in after a gap began wait for a sweep of
their thread that began later. None waits longer than LIMIT from the gap's begin, for sweeps may fail for long.
"""

import threading
from datetime import datetime, timedelta

from core.clock import Clock
from core.domain.message import WAITING, InboxRow, ReplyAddress
from core.ports import Bindings

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

    def behind(self, channel_kind: str) -> None:
        """Replies may have been missed until now: hold back what comes from now on."""
        with self._lock:
            now = self._clock.now()
            kept = [begun for begun in self._begun.get(channel_kind, []) if begun > now - LIMIT]
            self._begun[channel_kind] = [*kept, now]

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
        """Tell whether the row is to wait, for an older one of its thread may still be missing. Raises StoreBroken."""
        message, address = row.message, row.message.address
        if address is None or row.state not in WAITING:
            return False
        now = self._clock.now()
        with self._lock:
            swept = self._swept.get((address.channel_kind, address.channel, address.thread))
            gaps = [
                begun
                for begun in self._begun.get(address.channel_kind, [])
                if (swept is None or swept < begun)
                and now < begun + LIMIT
                and (begun == self._started or begun <= message.created_at)
            ]
        return bool(gaps) and self._is_older(address, max(gaps))

    def _is_older(self, address: ReplyAddress, gap: datetime) -> bool:
        """Tell whether the thread was there when the gap began: nothing is missing of one that was opened since."""
        binding = self._bindings.of_thread(address.channel_kind, address.team, address.channel, address.thread)
        return binding is None or binding.created_at < gap
