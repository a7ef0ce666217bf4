"""Show this host's sessions to the fleet: their rows, who may write to them, and which threads are theirs.

Only what has changed is published. A session that is gone stays for as long as something of it is to be posted, and a
thread that it has left for as long as a post goes there: the gateway posts into threads of the fleet alone.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterable, Sequence

from core.base.clock import Deadline
from core.base.errors import CoreError
from core.base.values import replace
from core.fleet.envelope import Facts, written_facts, written_members
from core.fleet.exchange import ExchangeAway, HostExchange, Place, PublishedSession, Route
from core.lifecycle.announce import HOST_UID
from core.lifecycle.look import list_standing
from core.model.channel import Channel
from core.model.posts import OutboxRow
from core.model.session import Binding
from core.session.sessions import every_session
from core.session.system import System

_LOG = logging.getLogger(__name__)
_ROWS_SECONDS = 5.0  #: between two looks at the sessions, which ask tmux
_CALM_SECONDS = 0.1  #: in which wakes are gathered
_KNOWN = 200  #: the latest replies of a thread that are named


class Publisher:
    """Publishes when woken and from time to time. A thread's route is there within moments, a row within seconds."""

    def __init__(self, system: System, exchange: HostExchange, channels: Sequence[Channel], life: str) -> None:
        """`life`: another one at each start, by which the gateway knows threads that it has to look at."""
        self._system = system
        self._exchange = exchange
        self._channels = channels
        self._life = life
        self._wake = threading.Event()
        self._lock = threading.Lock()  #: one publishes at a time
        self._published: dict[str, PublishedSession] = {}
        self._whole = True
        self._rows: dict[str, tuple[str, str]] = {}  #: by uid: name and row, as they were seen last
        self._looked: Deadline | None = None

    def wake(self) -> None:
        """Publish soon. Callable from every thread."""
        self._wake.set()

    def ask_whole(self) -> None:
        """Publish everything next: the exchange may be an older one than it was."""
        self._whole = True

    def run(self, stopping: threading.Event) -> None:
        """Publish until told to stop."""
        while not stopping.is_set():
            try:
                if not self._whole:  # the first time is the relay's, right after its beat
                    self.publish()
            except ExchangeAway:
                self._whole = True  # the relay tells it
            except CoreError as error:
                _LOG.warning("sessions are not shown to the fleet", extra={"reason": str(error)})
            self._wake.wait(_ROWS_SECONDS)
            self._wake.clear()
            stopping.wait(_CALM_SECONDS)

    def publish(self) -> None:
        """Publish what has changed. Raises ExchangeAway, Evicted, SecondIncarnation, PlaceRefused, StoreBroken."""
        with self._lock:
            whole, now = self._whole, self.shown()
            changed = [one for uid, one in now.items() if whole or self._published.get(uid) != one]
            gone = self._published.keys() - now.keys()
            if changed or gone or whole:
                elsewhere = self._exchange.publish(changed, gone, whole=whole)
                for uid in elsewhere:
                    name = now[uid].name
                    _LOG.error("a session belongs to another host of the fleet", extra={"session": name})
            self._published, self._whole = now, False

    def shown(self) -> dict[str, PublishedSession]:
        """Return this host's sessions as they are to be published, by uid. Raises StoreBroken."""
        self._look()
        bindings = list(self._system.bindings.all())
        waiting = [row for channel in self._channels for row in self._system.outbox.open(channel.kind)]
        threads = {(one.channel_kind, one.channel, one.thread) for one in bindings}
        members = self._members()
        shown: dict[str, PublishedSession] = {}
        for uid, (name, row) in self._rows.items():
            shown[uid] = PublishedSession(uid, name, row, written_members(members.get(name)))
        for waits in waiting:
            if waits.post.uid not in ("", HOST_UID) and waits.post.uid not in shown:
                row = json.dumps({"name": waits.post.name, "uid": waits.post.uid, "status": "deleted"})
                shown[waits.post.uid] = PublishedSession(waits.post.uid, waits.post.name, row)
        for binding in bindings:
            if binding.uid in shown:
                shown[binding.uid] = _with(shown[binding.uid], self._route(binding))
        for place, waits in self._left(waiting, threads, bindings).items():
            if waits.post.uid in shown:
                closed = Route(place, "", facts=written_facts(Facts(closed=True)))
                shown[waits.post.uid] = _with(shown[waits.post.uid], closed)
        return shown

    def _look(self) -> None:
        """Look at the sessions, as `list` does, once in a while; a new one, or one that is gone, at once."""
        uids = {
            known.record.uid for known in every_session(self._system.settings, self._system.records) if known.record
        }
        if uids == self._rows.keys() and self._looked is not None and not self._looked.passed():
            return
        rows = {row.uid: (row.name, _written(row.to_json())) for row in list_standing(self._system) if row.uid}
        self._rows, self._looked = rows, Deadline(self._system.clock, _ROWS_SECONDS)

    def _members(self) -> dict[str, list[str]]:
        """Return who may write to each session, as far as lists name them; the host decides by rules of its own."""
        everybody = [member for channel in self._channels for member in channel.everybody()]
        found = {}
        for known in every_session(self._system.settings, self._system.records):
            lists = [said.authorized_users for said in known.definition.chat.values()]
            own = [member for listed in lists if listed is not None for member in listed]
            bound = bool(lists) and all(listed is not None for listed in lists)
            found[known.name] = sorted(set(everybody) & set(own) if bound else set(everybody))
        return found

    def _route(self, binding: Binding) -> Route:
        replies = self._system.inbox.of_thread(binding)[-_KNOWN:]
        facts = Facts(
            self._life,
            binding.swept_to,
            waiting=tuple(ts for ts, waits in replies if waits),
            taken=tuple(ts for ts, waits in replies if not waits),
        )
        place = Place(binding.channel_kind, binding.team, binding.channel, binding.thread)
        return Route(place, binding.cursor, binding.shared, written_facts(facts))

    def _left(
        self, waiting: Iterable[OutboxRow], bound: set[tuple[str, str, str]], bindings: Sequence[Binding]
    ) -> dict[Place, OutboxRow]:
        """Return the threads that are nobody's any more, and into which something is to be posted."""
        teams = {one.channel_kind: one.team for one in bindings}
        return {
            Place(kind, teams.get(kind, ""), row.post.channel, row.post.thread): row
            for row in waiting
            for kind in (row.post.channel_kind,)
            if row.post.thread and (kind, row.post.channel, row.post.thread) not in bound
        }


def _with(session: PublishedSession, route: Route) -> PublishedSession:
    return replace(session, routes=(*session.routes, route))


def _written(row: dict[str, object]) -> str:
    return json.dumps(row, separators=(",", ":"))
