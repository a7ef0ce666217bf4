"""The gateway of a fleet: the one host that speaks with the chats, for as long as it holds the lease.

- `Gateway` takes the lease, lets the chats' own channels serve, and ends them once the lease is lost.
- `GatewayDoor` is the door that they serve: what people do goes to the host whose session it is about. A reply of a
  thread that is no session's is not kept; of one whose author no list of its host names nothing but who wrote it.
- `Poster` says what the hosts hand over: by rank, hosts in turns, one a second in each channel.
"""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from core.base.clock import Clock, Deadline
from core.base.errors import ChannelError, CoreError, Refused, StoreBroken, UnknownSession
from core.base.failpoints import Failpoint, failpoint
from core.base.names import check_name
from core.base.values import replace
from core.fleet import envelope
from core.fleet.envelope import (
    CallBody,
    Change,
    Failed,
    FetchFiles,
    Gap,
    Looking,
    Ordered,
    Pressed,
    React,
    Read,
    Reply,
    ResultBody,
    Say,
    Show,
    SweptThread,
    Unreadable,
    read_facts,
    read_members,
    without_words,
)
from core.fleet.exchange import (
    LEASE_SECONDS,
    SILENT_SECONDS,
    BlobGone,
    Evicted,
    ExchangeAway,
    GatewayExchange,
    HostExchange,
    HostRow,
    Lease,
    LeaseLost,
    Moved,
    NewCall,
    Place,
    PostResult,
    RoutedThread,
    SessionElsewhere,
    UnknownHost,
    WaitingPost,
    new_id,
)
from core.model.channel import (
    BoundThread,
    Channel,
    CoreApi,
    IncomingChange,
    IncomingCreation,
    IncomingOrder,
    IncomingPress,
    IncomingReply,
    IncomingTask,
    Posted,
    PrivateAnswer,
    Swept,
    Verdict,
    Waiting,
)
from core.model.message import Fetch, Fetched
from core.model.posts import NewPost, OutboundKind

_LOG = logging.getLogger(__name__)
_STANDBY_SECONDS = 4.0  #: between two looks whether the lease has run out: 0.25 statements a second
_TOLD_SECONDS = 1.0  #: between two looks at least: what gateways are told is mostly that there are posts
_AWAY_SECONDS = 2.0
_ROUTES_SECONDS = 5.0  #: for which a list of the routes counts, unless something was told
_COMMAND_SECONDS = 20.0  #: in which a host has to take a press or a command
_ANSWER_SECONDS = 60.0  #: for which the answer of one that was taken is waited for
_TURN_SECONDS = 1.0
_PACE_SECONDS = {"say": 1.0, "react": 1.2}  #: of a channel, of all reactions: what a chat allows
_CALL_SECONDS = 45.0  #: after which no request of a gateway is under way any more: three of 15 s for a file
_HANDS = 4  #: threads that speak
_POSTS = 20  #: of each channel that are looked at
_HEARD_SECONDS = 15.0  #: in which every host that lives beats, once the exchange is there again
_TIDY_SECONDS = 600.0  #: between two removals of answers and files that nobody fetched
_TELL_SILENT_SECONDS = 60.0  #: of silence, before a thread is told that its host is not heard of


def _utc(moment: datetime | None) -> str:
    return f"{moment:%H:%M} UTC" if moment is not None else "no time"


class Directory:
    """Whose the threads are, and how the hosts stand, as last read. May be asked from any thread."""

    def __init__(self, clock: Clock, exchange: GatewayExchange, host: HostExchange) -> None:
        self._clock = clock
        self._exchange = exchange
        self._host = host
        self._lock = threading.Lock()
        self._routes: dict[Place, RoutedThread] = {}
        self._read_until: Deadline | None = None
        self._changes = 0  #: how often something has changed
        self._unknown: dict[Place, Deadline] = {}
        self._hosts: Mapping[str, HostRow] = {}
        self._hosts_until: Deadline | None = None
        self._listed: frozenset[str] = frozenset()
        self._heard = Deadline(clock, _HEARD_SECONDS)

    def stale(self) -> None:
        """Read anew at the next question: something has changed."""
        with self._lock:
            self._changes += 1
            self._read_until = None

    def routes(self) -> Mapping[Place, RoutedThread]:
        """Return all routes. Raises ExchangeAway."""
        read_until = self._read_until
        if read_until is None or read_until.passed():
            until, changes = Deadline(self._clock, _ROUTES_SECONDS), self._changes
            found = {one.route.place: one for one in self._exchange.routes()}
            listed = [read_members(one.members) for one in found.values()]
            with self._lock:
                self._routes, self._unknown = found, {}
                self._read_until = until if changes == self._changes else None  # else it may be from before the change
                self._listed = frozenset(_member(name) for names in listed if names for name in names)
        return self._routes

    def route(self, place: Place) -> RoutedThread | None:
        """Return whose the thread is; None: nobody's. Raises ExchangeAway."""
        found, unknown = self.routes().get(place), self._unknown.get(place)
        if found is not None or (unknown is not None and not unknown.passed()):
            return found
        found = self._exchange.route(place)
        with self._lock:
            if found is not None:
                self._routes = {**self._routes, place: found}  # another one: somebody may be looking at all of them
            else:
                self._unknown[place] = Deadline(self._clock, _ROUTES_SECONDS)
        return found

    def listed(self, member: str) -> bool:
        """Return whether a list of any host names the member. Waits for nothing."""
        return _member(member) in self._listed

    def hosts(self) -> Mapping[str, HostRow]:
        """Return the hosts by name, as they were a moment ago. Raises ExchangeAway."""
        if self._hosts_until is None or self._hosts_until.passed():
            self._hosts = {row.name: row for row in self._host.hosts()}
            self._hosts_until = Deadline(self._clock, _ROUTES_SECONDS)
        return self._hosts

    def silent(self, host: str, seconds: float) -> HostRow | None:
        """Return the row of a host that was not heard of for so long; None of one that was. Raises ExchangeAway.

        While the exchange is away nobody is heard of, and the lease ends. So a gateway that has just begun says it only
        of hosts that have stopped in order, until the others have had the time to be heard of.
        """
        row = self.hosts().get(host)
        if row is None or row.stopped:
            return row
        silent = self._heard.passed() and (row.seen_at is None or row.age >= seconds)
        return row if silent else None

    def rows(self) -> tuple[Mapping[str, Any], ...]:
        """Return the rows of all sessions of the fleet, each with its host. Raises ExchangeAway."""
        return tuple(json.loads(self._host.sessions()))


def _member(author: str) -> str:
    return author.rpartition(":")[2]


class Held:
    """The lease, and whether it is still there. Safe for several threads."""

    def __init__(self, lease: Lease, clock: Clock) -> None:
        self.lease = lease
        self._clock = clock
        self._until = Deadline(clock, lease.seconds)
        self._lost = threading.Event()

    def renewed(self, asked: Deadline) -> None:
        """Let it hold until that moment, which was reckoned before the exchange was asked."""
        self._until = asked

    def lose(self) -> None:
        """Note that it is lost."""
        self._lost.set()

    @property
    def lost(self) -> bool:
        """Whether it may be another's by now."""
        return self._lost.is_set() or self._until.passed()

    def remaining(self) -> float:
        """Return the seconds for which it still holds."""
        return self._until.remaining()

    def wait(self, seconds: float) -> None:
        """Wait so long, or until it is lost."""
        self._lost.wait(seconds)


class Sender:
    """Commits calls to hosts, each host's after the gaps that it has not been told of."""

    def __init__(self, exchange: GatewayExchange, held: Held) -> None:
        self._exchange = exchange
        self._held = held
        self._lock = threading.Lock()
        self._gaps: dict[str, int] = {}  #: by chat: how many there were
        self._told: dict[tuple[str, str], int] = {}  #: by chat and host: of how many it was told

    def gap(self, chat: str) -> None:
        """Replies may have been missed until now: each host is told before the next call that it gets."""
        with self._lock:
            self._gaps[chat] = self._gaps.get(chat, 0) + 1

    def gaps(self, chat: str) -> int:
        """Return how many gaps there were."""
        with self._lock:
            return self._gaps.get(chat, 0)

    def was_told(self, chat: str, host: str) -> bool:
        """Return whether the host was told of any gap."""
        with self._lock:
            return self._told.get((chat, host), 0) > 0

    def send(self, chat: str, calls: Sequence[NewCall], moved: Sequence[Moved] = ()) -> None:
        """Commit them all. Raises StoreBroken, which lets the chat send them again; SessionElsewhere."""
        with self._lock:
            gaps = self._gaps.get(chat, 0)
            hosts = dict.fromkeys(call.host for call in calls)
            behind = [host for host in hosts if self._told.get((chat, host), 0) < gaps]
        first = [NewCall(new_id(), host, *envelope.written_call(Gap(chat))) for host in behind]
        if self._held.lost:
            raise StoreBroken("this gateway of the fleet has lost its lease", "another one takes it")
        try:
            with failpoint(Failpoint.FLEET_SEND):
                self._exchange.send(self._held.lease, [*first, *calls], moved)
        except LeaseLost as error:
            self._held.lose()
            raise StoreBroken(error.message, "the other one takes it") from error
        except (ExchangeAway, Evicted, UnknownHost) as error:
            self.gap(chat)
            raise StoreBroken(error.message, error.remedy) from error
        with self._lock:
            for host in behind:
                self._told[chat, host] = max(gaps, self._told.get((chat, host), 0))


class GatewayDoor:
    """The CoreApi that a chat's own channel serves at the gateway. What is about no session goes to this host's own."""

    def __init__(
        self,
        chat: str,
        own: CoreApi,
        host: str,
        sender: Sender,
        exchange: GatewayExchange,
        held: Held,
        directory: Directory,
        poster: Poster,
        clock: Clock,
    ) -> None:
        """`own`: this host's door; `host`: its name."""
        self._chat = chat
        self._own = own
        self._host = host
        self._sender = sender
        self._exchange = exchange
        self._held = held
        self._directory = directory
        self._poster = poster
        self._clock = clock
        self._sweep_gaps = 0  #: how many gaps there were as the sweep that runs began
        self._looked: set[str] = set()  #: hosts that know of the sweep that runs
        self._unordered: set[Place] = set()  #: threads in which something waits until they were read
        self._seen_lives: dict[Place, str] = {}  #: by thread: in which life of its host it was swept last

    # ------------------------------------------------------------ replies

    def receive(self, replies: Sequence[IncomingReply], taken: Callable[[tuple[Verdict | None, ...]], None]) -> None:
        """Commit replies for their hosts. Raises StoreBroken."""
        for attempt in (1, 2):
            calls, verdicts, notes = self._routed(replies)
            try:
                if calls:
                    self._sender.send(self._chat, calls)
                break
            except SessionElsewhere as error:
                self._directory.stale()
                if attempt == 2:
                    raise StoreBroken(error.message, error.remedy) from error
        taken(verdicts)
        for note in notes:
            self._poster.say_once(*note)

    def _routed(
        self, replies: Sequence[IncomingReply]
    ) -> tuple[list[NewCall], tuple[Verdict | None, ...], list[tuple[NewPost, str, str]]]:
        calls: list[NewCall] = []
        notes: list[tuple[NewPost, str, str]] = []
        verdicts: list[Verdict | None] = []
        for reply in replies:
            routed = self._route_of(reply) if not reply.is_self and reply.thread not in ("", reply.ts) else None
            if routed is None:
                verdicts.append(Verdict.DROPPED)
                continue
            facts = read_facts(routed.route.facts)
            if reply.unordered:
                self._unordered.add(routed.route.place)
            kept = reply if _may_write(routed, reply.author) and not reply.is_bot else without_words(reply)
            ident = "\0".join((reply.channel_kind, reply.team, reply.channel, reply.ts, reply.piece))
            calls.append(self._call(routed, Reply(kept), ident))
            known = reply.ts in facts.taken or reply.ts in facts.waiting
            verdicts.append(Verdict.DUPLICATE if known else Verdict.COMMITTED)
            notes += self._silence(routed, reply) if kept is reply and not known else []
        return calls, tuple(verdicts), notes

    def _route_of(self, reply: IncomingReply) -> RoutedThread | None:
        """Return whose thread it is; None: nobody's. Raises StoreBroken."""
        place = Place(reply.channel_kind, reply.team, reply.channel, reply.thread)
        with self._asking():
            found = self._directory.route(place)
        return None if found is None or read_facts(found.route.facts).closed else found

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Raise StoreBroken where the fleet cannot be asked, and note that what comes now may be missed."""
        try:
            yield
        except (ExchangeAway, Evicted) as error:
            self._sender.gap(self._chat)
            raise StoreBroken(error.message, error.remedy) from error

    def _call(self, routed: RoutedThread, body: CallBody, ident: str, seconds: float | None = None) -> NewCall:
        kind, written = envelope.written_call(body)
        key = hashlib.sha256(f"{kind}\0{ident}".encode(errors="surrogatepass")).hexdigest()[:32] if ident else new_id()
        return NewCall(key, routed.host, kind, written, routed.uid, seconds)

    def _silence(self, routed: RoutedThread, reply: IncomingReply) -> list[tuple[NewPost, str, str]]:
        """Return the note that a reply waits for a host of which nothing is heard."""
        with suppress(ExchangeAway, Evicted):
            row = self._directory.silent(routed.host, _TELL_SILENT_SECONDS)
            if row is not None:
                seen = f"{row.seen_at:%Y%m%d%H%M}" if row.seen_at else "never"
                text = (
                    f"`{row.name}` was last heard of at {_utc(row.seen_at)}. Your reply is kept, and goes in once "
                    f"`{row.name}` is back; if it is old by then, `{routed.name}` asks first."
                )
                note = NewPost(
                    id=f"p-silent-{row.name}-{seen}-{reply.thread}",
                    key=f"silent:{row.name}:{seen}:{reply.thread}",
                    kind=OutboundKind.NOTE,
                    uid=routed.uid,
                    name=routed.name,
                    channel_kind=self._chat,
                    text=text,
                    channel=reply.channel,
                    thread=reply.thread,
                )
                return [(note, reply.channel, reply.thread)]
        return []

    def sync(self) -> None:
        """Return at once: what was taken is committed."""

    def change(self, changes: Sequence[IncomingChange]) -> None:
        """Commit edits and deletions for their hosts. Raises StoreBroken."""
        calls = []
        for change in changes:
            reply = change.reply
            routed = self._route_of(reply)
            if routed is None:
                continue
            if not change.deleted and not _may_write(routed, reply.author):
                continue
            now = (reply.text, reply.quoted, str(change.deleted), str(change.only_quotes))
            ident = "\0".join((reply.channel_kind, reply.team, reply.channel, reply.ts, *now))
            calls.append(self._call(routed, Change(change), ident))
        try:
            if calls:
                self._sender.send(self._chat, calls)
        except SessionElsewhere as error:
            self._directory.stale()
            raise StoreBroken(error.message, error.remedy) from error

    # ------------------------------------------------------------ sweeps

    def threads(self, channel_kind: str, team: str) -> tuple[BoundThread, ...]:
        """Return the threads of all hosts: a sweep begins. Raises StoreBroken."""
        self._directory.stale()
        with self._asking():
            routes = self._directory.routes()
        self._sweep_gaps, self._looked = self._sender.gaps(self._chat), set()
        found = []
        for place, routed in routes.items():
            facts = read_facts(routed.route.facts)
            if (place.kind, place.team) != (channel_kind, team) or facts.closed:
                continue
            unseen = self._seen_lives.get(place) != facts.life
            found.append(
                BoundThread(
                    routed.name,
                    place.channel,
                    place.thread,
                    routed.route.cursor or facts.begins or place.thread,
                    routed.route.shared,
                    facts.waiting,
                    fresh=not routed.route.cursor or unseen,
                    taken=facts.taken,
                )
            )
        return tuple(found)

    def behind(self, channel_kind: str) -> None:
        """Note a gap."""
        self._sender.gap(channel_kind)

    def swept(self, channel_kind: str, team: str, swept: Swept) -> None:
        """Move the thread's cursor for all gateways, and tell its host what it has to know. Raises StoreBroken."""
        place = Place(channel_kind, team, swept.channel, swept.thread)
        with self._asking():
            routed = self._directory.route(place)
        if routed is None:
            return
        facts, route = read_facts(routed.route.facts), routed.route
        same = route.cursor == swept.cursor and route.shared == swept.shared and not swept.caught_up
        waited = (
            place in self._unordered
            or self._seen_lives.get(place) != facts.life
            or self._sender.was_told(channel_kind, routed.host)
        )
        calls = []
        if not same or waited:
            if routed.host not in self._looked and self._sender.gaps(channel_kind) == self._sweep_gaps:
                looking = Looking(channel_kind, team)
                calls.append(NewCall(new_id(), routed.host, *envelope.written_call(looking)))
            calls.append(self._call(routed, SweptThread(channel_kind, team, swept), ""))
        if calls or not same:
            try:
                self._sender.send(channel_kind, calls, [Moved(place, swept.cursor, swept.shared)])
            except SessionElsewhere:
                self._directory.stale()
                return
            self._looked.add(routed.host)
            self._directory.stale()
        self._unordered.discard(place)
        self._seen_lives[place] = facts.life

    # ------------------------------------------------------------ files

    def to_fetch(self, channel_kind: str) -> tuple[Fetch, ...]:
        """Return the files that hosts wait for."""
        return self._poster.to_fetch(channel_kind)

    def keep_file(self, message_id: str, position: int, name: str, data: bytes) -> str:
        """Keep a file for the host that waits for it, and return its id. Raises StoreBroken."""
        waiting, blob = self._poster.waits_for(message_id), new_id()
        if waiting is None:
            raise Refused("no host waits for it any more")
        try:
            self._exchange.put_blob(waiting.host, blob, [data])
        except (ExchangeAway, Evicted, UnknownHost) as error:
            raise StoreBroken(error.message, error.remedy) from error
        return blob

    def fetched(self, message_id: str, files: Sequence[Fetched]) -> None:
        """Tell the host what became of its files. Raises StoreBroken."""
        waiting = self._poster.waits_for(message_id)
        if waiting is None:
            return
        result = PostResult(waiting.post.id, envelope.written_result(tuple(files)))
        try:
            self._exchange.posted(self._held.lease, waiting.host, result)
        except LeaseLost as error:
            self._held.lose()
            raise StoreBroken(error.message) from error
        except (ExchangeAway, Evicted) as error:
            raise StoreBroken(error.message, error.remedy) from error
        self._poster.fetched(message_id)

    # ------------------------------------------------------------ presses and commands

    def press(self, press: IncomingPress) -> PrivateAnswer:
        """Let the host of the thread do what the button is for. Raises CoreError."""
        routed = self._directory.route(Place(press.channel_kind, press.team, press.channel, press.thread))
        if routed is None:
            raise Refused("this thread is no session's any more")
        return self._answered(routed.host, routed.uid, Pressed(press))

    def order(self, order: IncomingOrder) -> PrivateAnswer:
        """Let the host of the session do what a command says. Raises CoreError."""
        if not order.name:
            told = self._own.order(order)
            others = sorted({one.host for one in self._directory.routes().values()} - {self._host})
            more = f" Only sessions of `{self._host}` were meant; those of {', '.join(others)} are as they were."
            return replace(told, text=f"{told.text}{more}") if others else told
        name, _, host = order.name.partition("@")
        check_name(name)
        found = {
            (one.host, one.uid)
            for one in self._directory.routes().values()
            if one.name == name and host in ("", one.host) and _may_write(one, order.author)
        }
        if len(found) > 1:
            which = " or ".join(f"`{name}@{there}`" for there, _ in sorted(found))
            raise Refused(f"several hosts have a session called {name}", f"say which: {which}")
        if not found and host in ("", self._host):
            return self._own.order(replace(order, name=name))
        if not found:
            raise UnknownSession(order.name)
        [(there, uid)] = found
        return self._answered(there, uid, Ordered(replace(order, name=name)))

    def _answered(self, host: str, uid: str, body: CallBody) -> PrivateAnswer:
        """Send a call that has a deadline, and return its answer. Raises CoreError: what was done, and why not."""
        row = self._directory.silent(host, SILENT_SECONDS)
        if row is not None:
            raise Refused(f"nothing was done, because `{host}` was last heard of at {_utc(row.seen_at)}")
        call = NewCall(new_id(), host, *envelope.written_call(body), uid, _COMMAND_SECONDS)
        try:
            self._sender.send(self._chat, [call])
        except SessionElsewhere:
            self._directory.stale()
            raise Refused("nothing was done, because the session has just moved to another host", "again") from None
        found = self._exchange.answer(call.id, _COMMAND_SECONDS)
        if found is None and self._withdrawn(call.id):
            raise Refused(f"nothing was done, because `{host}` did not take it within {_COMMAND_SECONDS:.0f} s")
        found = found or self._exchange.answer(call.id, _ANSWER_SECONDS)
        if found is None:
            raise Refused(f"`{host}` took it and has not answered, so it is not known whether it was done")
        answer = envelope.read_answer(found)
        if isinstance(answer, Failed):
            raise answer.error()
        return replace(answer, terminal="")  # a picture of it is made on its own host

    def _withdrawn(self, call: str) -> bool:
        try:
            return self._exchange.withdraw(self._held.lease, call)
        except LeaseLost:
            self._held.lose()
            return False

    def waiting(self, channel_kind: str, author: str) -> tuple[Waiting, ...]:
        """Return what waits for an answer in sessions of this host: the threads of the others show theirs."""
        return self._own.waiting(channel_kind, author)

    def picture(self, name: str, author: str) -> tuple[str, bytes]:
        """Return a picture of a terminal of this host. Raises CoreError."""
        return self._own.picture(name, author)

    def harnesses(self) -> tuple[str, ...]:
        """Return the harnesses of this host: new sessions are made here."""
        return self._own.harnesses()

    def faults(self, creation: IncomingCreation) -> Mapping[str, str]:
        """Return what is wrong with a creation on this host."""
        return self._own.faults(creation)

    def create(self, creation: IncomingCreation) -> PrivateAnswer:
        """Create a session on this host, and say so where there are others. Raises CoreError."""
        told = self._own.create(creation)
        try:
            alone = self._directory.hosts().keys() <= {self._host}
        except (ExchangeAway, Evicted):
            alone = False  # what was created is there, whoever else is
        return told if alone else replace(told, text=f"{told.text} New sessions are those of `{self._host}`.")

    def task(self, task: IncomingTask) -> Verdict:
        """Take a task: its session is made on this host. Raises StoreBroken."""
        return self._own.task(task)

    def rows(self, author: str) -> tuple[Mapping[str, Any], ...]:
        """Return the rows of this host's sessions, then those of the others, that the author may see."""
        may = {one.uid for one in self._directory.routes().values() if _may_write(one, author)}
        others = (row for row in self._directory.rows() if row.get("host") != self._host and row.get("uid") in may)
        own = ({"host": self._host, "hostSeen": None, **row} for row in self._own.rows(author))
        return (*own, *others)

    def refuse(
        self, channel_kind: str, author: str, what: str, *, name: str = "", press: IncomingPress | None = None
    ) -> None:
        """Report it to the event log of this host."""
        self._own.refuse(channel_kind, author, what, name=name, press=press)

    # ------------------------------------------------------------ what this host answers itself

    def heard(self, channel_kind: str, mark: str, until: datetime, *, durable: bool) -> bool:
        """Take note of a request; see CoreApi."""
        return self._own.heard(channel_kind, mark, until, durable=durable)

    def unheard(self, channel_kind: str, mark: str) -> None:
        """Let a request come again."""
        self._own.unheard(channel_kind, mark)

    def shown(self, text: str, *, verbatim: bool = False) -> str:
        """Return a text as it may be shown."""
        return self._own.shown(text, verbatim=verbatim)

    def listed(self, channel_kind: str, member: str) -> bool:
        """Return whether a list of any host names the member."""
        return self._directory.listed(member)

    def sensed(self, channel_kind: str) -> None:
        """Note that an event has come."""
        self._own.sensed(channel_kind)

    def connected(self, channel_kind: str, up: bool, detail: str) -> None:
        """Report how the connection stands."""
        self._own.connected(channel_kind, up, detail)


def _may_write(routed: RoutedThread, author: str) -> bool:
    """Return False for one whom no list of the session's host names in any form; the host decides about the others."""
    members = read_members(routed.members)
    return members is None or _member(author) in {_member(one) for one in members}


@dataclass
class _Lane:
    """What is asked one after the other: the posts of a channel, all reactions, all statuses."""

    free: Deadline
    busy: bool = False


@dataclass
class _Own:
    """A note of the gateway's own."""

    post: NewPost
    channel: str
    thread: str
    tries: int = 0
    told: bool = False


class Poster:
    """Says what the hosts hand over."""

    def __init__(
        self,
        channels: Mapping[str, Channel],
        exchange: GatewayExchange,
        held: Held,
        directory: Directory,
        clock: Clock,
        sent: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`sent` is told the chat's kind once something was posted that comes back as an event."""
        self._channels = channels
        self._exchange = exchange
        self._held = held
        self._directory = directory
        self._clock = clock
        self._sent = sent
        self._lock = threading.Lock()
        self._lanes: dict[tuple[str, str], _Lane] = {}
        self._at_work: list[Future[None]] = []
        self._clear: set[str] = set()  #: ids of posts that certainly do not stand in the chat
        self._again: dict[str, Deadline] = {}  #: by post: until then it is left alone
        self._begun: set[str] = set()  #: posts for which this gateway itself has asked the chat
        self._logged: set[str] = set()
        self._fetches: dict[str, WaitingPost] = {}
        self._own: dict[str, _Own] = {}
        self._messages: dict[tuple[str, str], set[str]] = {}  #: by channel and thread: those known to stand there
        self._tidy_due = Deadline(clock, 0)

    def run(self) -> None:
        """Say what is to be said until the lease is lost."""
        with ThreadPoolExecutor(_HANDS, "poster") as hands:
            while not self._held.lost:
                try:
                    self._tidy()
                    rest = self.turn(hands)
                except LeaseLost:
                    self._held.lose()
                    return
                except (ExchangeAway, Evicted):
                    self._held.wait(_AWAY_SECONDS)  # whoever renews the lease tells it
                    continue
                self._exchange.wait(rest)
                self._directory.stale()

    def _tidy(self) -> None:
        """Remove what nobody fetched in time, once in a while. Raises LeaseLost, ExchangeAway, Evicted."""
        if self._tidy_due.passed():
            self._tidy_due = Deadline(self._clock, _TIDY_SECONDS)  # at first: one that fails keeps no post back
            self._exchange.tidy(self._held.lease)

    def turn(self, hands: ThreadPoolExecutor) -> float:
        """Give out what may be said now, and return the seconds until it is worth looking again.

        Raises LeaseLost, ExchangeAway, Evicted, and what a thread that spoke has failed with.
        """
        for work in [one for one in self._at_work if one.done()]:
            self._at_work.remove(work)
            work.result()
        waiting = self._exchange.posts(self._held.lease, _POSTS)
        rest = _TURN_SECONDS if waiting else LEASE_SECONDS
        self._note_fetches(waiting)
        for own in [one for one in list(self._own.values()) if not one.told]:
            rest = min(rest, self._give(hands, ("say", own.channel), lambda own=own: self._say_own(own)))  # type: ignore[misc]
        taken: set[tuple[str, str]] = set()
        for one in waiting:
            if (again := self._again.get(_ident(one))) is not None and not again.passed():
                rest = min(rest, again.remaining())
                continue
            try:
                body = envelope.read_post(one.post.kind, one.post.body)
            except Unreadable as error:
                self._log_once(_ident(one), "a post of the fleet stays", str(error))
                continue
            if isinstance(body, FetchFiles):
                continue
            lane = _lane_of(one, body)
            if lane in taken:
                continue  # what comes first goes first
            taken.add(lane)
            left = self._give(hands, lane, lambda one=one, body=body: self._do(one, body))  # type: ignore[misc]
            rest = min(rest, left)
        return max(rest, 0.01)

    def _give(self, hands: ThreadPoolExecutor, lane: tuple[str, str], work: Callable[[], None]) -> float:
        """Let a thread do it if the lane is free; return the seconds until it may be."""
        with self._lock:
            there = self._lanes.setdefault(lane, _Lane(Deadline(self._clock, 0)))
            if there.busy:
                return _TURN_SECONDS
            if not there.free.passed():
                return there.free.remaining()
            there.busy, there.free = True, Deadline(self._clock, _PACE_SECONDS.get(lane[0], 0.0))

        def run() -> None:
            try:
                work()
            except LeaseLost:
                self._held.lose()
            except (ExchangeAway, Evicted) as error:
                _LOG.warning("the fleet cannot be asked", extra={"reason": str(error)})
            finally:
                with self._lock:
                    there.busy = False
                self._exchange.wake()

        self._at_work.append(hands.submit(run))
        return _TURN_SECONDS

    def _log_once(self, ident: str, what: str, reason: str) -> None:
        if ident not in self._logged:
            self._logged.add(ident)
            _LOG.error(what, extra={"reason": reason})

    # ------------------------------------------------------------ one post

    def _do(self, one: WaitingPost, body: envelope.PostBody) -> None:
        """Ask the chat, and keep what became of it."""
        channel = self._channels.get(one.post.place.kind)
        try:
            if channel is None:
                raise ChannelError(f"the gateway serves no {one.post.place.kind}", transient=True)
            self._check(one, body, channel)
            result = self._done(one, body, channel)
        except ChannelError as error:
            if self._put_off(one, body, error):
                return
            result = envelope.failed(error)
        except _Wait as wait:
            self._again[_ident(one)] = Deadline(self._clock, wait.seconds)
            return
        with failpoint(Failpoint.FLEET_POSTED):
            self._exchange.posted(self._held.lease, one.host, PostResult(one.post.id, envelope.written_result(result)))
        self._clear.discard(_ident(one))
        self._begun.discard(_ident(one))
        self._again.pop(_ident(one), None)

    def _check(self, one: WaitingPost, body: envelope.PostBody, channel: Channel) -> None:
        """Refuse what a host may not do: its thread must be its own. Raises ChannelError."""
        place = one.post.place
        if isinstance(body, Read):
            there = self._whose(place.kind, body.channel, body.thread)
            allowed = there is None or there.host == one.host
        elif isinstance(body, (Say, Show)):
            allowed = (body.channel, body.thread) == (place.channel, place.thread)
        else:
            allowed = isinstance(body, React) and body.channel == place.channel
        if allowed and isinstance(body, Say) and body.ts and body.ts != place.thread:
            allowed = self._is_in_thread(body, channel)
        if not allowed:
            raise ChannelError("the gateway refuses it: the place is another host's", transient=False)

    def _whose(self, kind: str, channel: str, thread: str) -> RoutedThread | None:
        there = (one for place, one in self._directory.routes().items() if place.kind == kind)
        return next((one for one in there if _at(one) == (channel, thread)), None)

    def _is_in_thread(self, body: Say, channel: Channel) -> bool:
        """Return whether what is to be edited stands in the thread that the host may write to."""
        known = self._messages.setdefault((body.channel, body.thread), set())
        if body.ts not in known:
            known.update(post.ts for post in channel.read_thread(body.channel, body.thread).posts)
        return body.ts in known

    def _done(self, one: WaitingPost, body: envelope.PostBody, channel: Channel) -> ResultBody:
        match body:
            case Say():
                return self._say(one, body, channel)
            case Read():
                return channel.read_thread(body.channel, body.thread)
            case React():
                channel.react(body.channel, body.ts, body.mark, body.instead_of)
            case Show():
                channel.status(body.channel, body.thread, body.text)
        return None

    def _say(self, one: WaitingPost, body: Say, channel: Channel) -> ResultBody:
        """Post or edit, once: what may stand there is looked for first. Raises ChannelError, _Wait, LeaseLost."""
        unclear = (one.sending is not None or body.again) and _ident(one) not in self._clear
        if unclear and one.sending is not None and _ident(one) not in self._begun and one.sending < _CALL_SECONDS:
            raise _Wait(_CALL_SECONDS - one.sending)  # another gateway's request may still be under way
        if unclear and not body.ts:
            if body.post.only_for:
                raise ChannelError("it may have been shown; this cannot be checked", transient=True, unclear=True)
            found = channel.find(body.post.id, body.channel, body.thread)
            if found is not None:
                return found
        if not self._exchange.sending(self._held.lease, one.host, one.post.id):
            raise _Wait(0.0)
        if self._held.lost:
            raise LeaseLost
        self._begun.add(_ident(one))
        with failpoint(Failpoint.FLEET_POST):
            posted = self._posted(one, body, channel)
        if posted.ts:
            self._messages.setdefault((body.channel, body.thread or posted.ts), set()).add(posted.ts)
        if not body.ts and not body.post.only_for and channel.echoes():
            self._sent(channel.kind)
        return posted

    def _posted(self, one: WaitingPost, body: Say, channel: Channel) -> Posted:
        """Raises ChannelError: where there is no file to post, one that lets the host hand it over again."""
        if body.ts:
            return channel.update(body.post, body.channel, body.ts)
        if not body.blob:
            return channel.post(replace(body.post, path=""), body.channel, body.thread)
        with ExitStack() as stack:
            try:
                kept = tempfile.TemporaryDirectory(prefix="the-loop-", ignore_cleanup_errors=True)
                path = Path(stack.enter_context(kept)) / (Path(body.post.path).name or "file")
                path.write_bytes(b"".join(self._exchange.get_blob(one.host, body.blob)))
            except BlobGone as error:
                raise ChannelError(error.message, transient=True) from error
            except OSError as error:
                raise ChannelError(f"the gateway cannot keep the file: {error}", transient=True) from error
            posted = channel.post(replace(body.post, path=str(path)), body.channel, body.thread)
        self._exchange.drop_blob(one.host, body.blob)
        return posted

    def _put_off(self, one: WaitingPost, body: envelope.PostBody, error: ChannelError) -> bool:
        """Return whether it is tried again here: the chat says when, or nobody can tell what became of it.

        All else is the host's business, which keeps its own count.
        """
        if not error.unclear:
            self._clear.add(_ident(one))
        if error.unclear and isinstance(body, Say) and not body.post.only_for:
            self._again[_ident(one)] = Deadline(self._clock, error.retry_after or 2.0)
            return True
        if error.transient and error.retry_after is not None:
            self._again[_ident(one)] = Deadline(self._clock, error.retry_after)
            lane = _lane_of(one, body)
            with self._lock:
                if lane in self._lanes:
                    self._lanes[lane].free = Deadline(self._clock, error.retry_after)
            return True
        return False

    # ------------------------------------------------------------ files that hosts wait for

    def _note_fetches(self, waiting: Iterable[WaitingPost]) -> None:
        now = {_ident(one): one for one in waiting if one.post.kind == "fetch"}
        new = {one.post.place.kind for ident, one in now.items() if ident not in self._fetches}
        self._fetches = now
        for kind in new:
            channel = self._channels.get(kind)
            if channel is not None:
                channel.look_again()

    def to_fetch(self, kind: str) -> tuple[Fetch, ...]:
        """Return what hosts wait for, in this chat."""
        found = []
        for one in list(self._fetches.values()):
            with suppress(Unreadable):
                body = envelope.read_post(one.post.kind, one.post.body)
                if one.post.place.kind == kind and isinstance(body, FetchFiles):
                    found.append(Fetch(_ident(one), body.name, body.files))
        return tuple(found)

    def waits_for(self, ident: str) -> WaitingPost | None:
        """Return the post by which a host waits for these files; None where none does any more."""
        return self._fetches.get(ident)

    def fetched(self, ident: str) -> None:
        """Note that they were fetched."""
        self._fetches.pop(ident, None)

    # ------------------------------------------------------------ what the gateway says itself

    def say_once(self, post: NewPost, channel: str, thread: str) -> None:
        """Say something of the gateway's own, unless it stands there; a few attempts."""
        if post.id not in self._own:
            self._own[post.id] = _Own(post, channel, thread)
            self._exchange.wake()

    def _say_own(self, own: _Own) -> None:
        channel = self._channels.get(own.post.channel_kind)
        own.tries += 1
        try:
            if channel is not None and channel.find(own.post.id, own.channel, own.thread) is None:
                channel.post(own.post, own.channel, own.thread)
            own.told = True
        except ChannelError as error:
            own.told = own.tries >= 5 or not error.transient
            _LOG.warning("a note was not posted", extra={"reason": str(error)})


def _ident(one: WaitingPost) -> str:
    """Return what tells a post from all others of all hosts."""
    return f"{one.host} {one.post.id}"


def _lane_of(one: WaitingPost, body: envelope.PostBody) -> tuple[str, str]:
    """Return where the post waits for its turn: with the others of its channel, or of its kind."""
    return ("say", one.post.place.channel) if isinstance(body, (Say, Read)) else (one.post.kind, "")


def _at(one: RoutedThread) -> tuple[str, str]:
    return one.route.place.channel, one.route.place.thread


class _Wait(Exception):
    """The post is to be looked at later."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__()


class Gateway:
    """Takes the lease and serves the chats with it; a service's thread."""

    def __init__(
        self,
        channels: Mapping[str, Channel],
        exchange: GatewayExchange,
        host: HostExchange,
        clock: Clock,
        tell: Callable[[bool, str], None],
        sent: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`channels`: the chats' own, by kind; `tell` is told whether it speaks, and why not; `sent`: see Poster."""
        self._channels = channels
        self.exchange = exchange
        self._host = host
        self._clock = clock
        self._tell = tell
        self._sent = sent
        self.held: Held | None = None  #: the lease of which it serves now
        self.doors: dict[str, CoreApi] = {}  #: this host's own doors, by kind
        self._said = ""

    def run(self, stopping: threading.Event) -> None:
        """Take the lease whenever it is free, and serve until it is lost or the service stops."""
        while not stopping.is_set():
            try:
                lease = self.exchange.lease()
            except CoreError as error:
                self._say(False, str(error))
                stopping.wait(_AWAY_SECONDS)
                continue
            if lease is None:
                self._say(True, "ready to be the gateway; another host is it now")
                if not stopping.wait(_TOLD_SECONDS):
                    self.exchange.wait(_STANDBY_SECONDS - _TOLD_SECONDS)  # it is told that the lease was given back
                continue
            self._serve(Held(lease, self._clock), stopping)

    def _say(self, up: bool, what: str) -> None:
        if self._said != what:
            self._said = what
            self._tell(up, what)

    def _serve(self, held: Held, stopping: threading.Event) -> None:
        """Serve with the lease. Raises what a channel's serve raises."""
        self._say(True, "it is the gateway")
        self.held = held
        directory = Directory(self._clock, self.exchange, self._host)
        poster = Poster(self._channels, self.exchange, held, directory, self._clock, self._sent)
        sender, serving = Sender(self.exchange, held), list[Future[None]]()

        def over() -> bool:
            return held.lost or stopping.is_set()

        with ThreadPoolExecutor(len(self._channels) + 1, "gateway") as threads:
            try:
                serving.append(threads.submit(poster.run))
                for kind, channel in self._channels.items():
                    door = GatewayDoor(
                        kind,
                        self.doors[kind],
                        self._host.host,
                        sender,
                        self.exchange,
                        held,
                        directory,
                        poster,
                        self._clock,
                    )
                    serving.append(threads.submit(channel.serve, door, over))
                while not over() and not any(one.done() and one.exception() for one in serving):
                    self._renew(held)
                    held.wait(min(0.2, held.lease.seconds / 10))
            finally:
                held.lose()
                self.exchange.wake()
        with suppress(CoreError):
            self.exchange.release(held.lease)
        for one in serving:
            one.result()

    def _renew(self, held: Held) -> None:
        """Renew the lease once a third of it is over. It counts from the moment before the question."""
        asked = Deadline(self._clock, held.lease.seconds)
        if held.remaining() > held.lease.seconds * 2 / 3:
            return
        try:
            if self.exchange.renew(held.lease):
                held.renewed(asked)
            else:
                held.lose()
                self._say(False, "another host has become the gateway")
        except CoreError as error:
            if held.lost:
                self._say(False, f"not the gateway any more: {error}")
