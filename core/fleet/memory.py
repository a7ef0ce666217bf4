"""An exchange in this process's memory, with the rules of the real one: for tests, and for a relay in one process.

What is committed is kept in one `_Tables`, under one lock. `MemoryFleet.snapshot` and `restore` are the backup of a
database that is put back; `away` lets every question fail as a database does that is not there.
"""

from __future__ import annotations

import copy
import json
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from core.base.clock import Clock, Deadline, SystemClock, iso
from core.base.errors import InvalidValue
from core.base.values import replace
from core.fleet.exchange import (
    ANSWER_SECONDS,
    BLOB_SECONDS,
    LEASE_SECONDS,
    PIECE,
    SILENT_SECONDS,
    Answer,
    Beat,
    BlobGone,
    Call,
    Evicted,
    ExchangeAway,
    GatewayExchange,
    HostExchange,
    HostPost,
    HostRow,
    HostState,
    Lease,
    LeaseLost,
    Moved,
    NewCall,
    NotGateway,
    Place,
    PlaceRefused,
    PostResult,
    PublishedSession,
    RoutedThread,
    SecondIncarnation,
    SessionElsewhere,
    Standing,
    UnknownHost,
    WaitingPost,
    new_id,
)


@dataclass
class _Host:
    gateway: bool
    state: HostState = HostState.ACTIVE
    incarnation: str = ""
    machine: str = ""
    version: str = ""
    seen_at: datetime | None = None
    stopped: bool = False
    next_seq: int = 0
    served: int = 0  #: rises with each post that was sent; the host with the lowest has waited longest


@dataclass
class _Call:
    call: NewCall
    number: int
    deadline: datetime | None
    taken: bool = False


@dataclass
class _Session:
    host: str
    published: PublishedSession


@dataclass
class _Post:
    post: HostPost
    host: str
    number: int
    began: datetime | None = None
    result: str | None = None


@dataclass
class _Tables:
    """What a database would hold."""

    hosts: dict[str, _Host] = field(default_factory=dict)
    sessions: dict[str, _Session] = field(default_factory=dict)
    routes: dict[Place, RoutedThread] = field(default_factory=dict)
    calls: dict[str, _Call] = field(default_factory=dict)
    answers: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    posts: dict[tuple[str, str], _Post] = field(default_factory=dict)
    blobs: dict[tuple[str, str], tuple[bytes, datetime]] = field(default_factory=dict)
    token: str = ""
    holder: str = ""
    epoch: int = 0
    until: datetime | None = None
    posted: int = 0
    served: int = 0


class MemoryFleet:
    """The database: its members are made by `admit`."""

    def __init__(self, clock: Clock | None = None) -> None:
        """`clock` is the database's: deadlines and ages go by it."""
        self.clock = clock or SystemClock()
        self.lock = threading.RLock()
        self.tables = _Tables()
        self._away = ""
        self._since: datetime | None = None
        self._waiting: dict[str, list[_Bell]] = {}

    def admit(self, host: str, *, gateway: bool = False) -> MemoryMember:
        """Let a host in, as an invitation and its joining do."""
        with self.lock:
            known = self.tables.hosts.setdefault(host, _Host(gateway))
            known.gateway, known.state = gateway, HostState.ACTIVE
        return MemoryMember(self, host)

    def evict(self, host: str) -> None:
        """Take a host out. Raises UnknownHost."""
        with self.lock:
            row = self.tables.hosts.get(host)
            if row is None:
                raise UnknownHost(host)
            row.state = HostState.EVICTED
            if self.tables.holder == host:
                self.tables.token, self.tables.until = "", None

    def away(self, reason: str) -> None:
        """Let each question fail for that reason, until it is ""."""
        with self.lock:
            self._since = self.clock.now() if reason else None
            self._away = reason
        self.ring_all()

    def snapshot(self) -> _Tables:
        """Return all that is committed, for `restore`."""
        with self.lock:
            return copy.deepcopy(self.tables)

    def restore(self, tables: _Tables) -> None:
        """Put an earlier state back."""
        with self.lock:
            self.tables = copy.deepcopy(tables)
        self.ring_all()

    def asked(self) -> _Tables:
        """Return the tables. Raises ExchangeAway. Whoever calls this has the lock."""
        if self._away:
            raise ExchangeAway(self._away, self._since)
        return self.tables

    def bell(self, channel: str) -> _Bell:
        """Return what rings when somebody tells that channel."""
        with self.lock:
            made = _Bell()
            self._waiting.setdefault(channel, []).append(made)
            return made

    def tell(self, *channels: str) -> None:
        """Wake who waits for these."""
        with self.lock:
            for channel in channels:
                for one in self._waiting.get(channel, []):
                    one.ring()

    def ring_all(self) -> None:
        """Wake everybody who waits."""
        self.tell(*self._waiting)


class _Bell:
    """Rings for the thread that waits, or for the next one that comes."""

    def __init__(self) -> None:
        self._rung = threading.Event()

    def ring(self) -> None:
        self._rung.set()

    def wait(self, seconds: float) -> None:
        self._rung.wait(seconds)
        self._rung.clear()


_GATEWAY = "gateway"


def _of_host(host: str) -> str:
    return f"host {host}"


class MemoryMember:
    """A `Fleet` of one member."""

    def __init__(self, fleet: MemoryFleet, host: str) -> None:
        self._fleet = fleet
        self.host = host

    def as_host(self, incarnation: str, machine: str) -> HostExchange:
        """Return what this member asks as a host."""
        return MemoryHost(self._fleet, self.host, incarnation, machine)

    def as_gateway(self) -> GatewayExchange:
        """Return what this member asks as a gateway."""
        return MemoryGateway(self._fleet, self.host)

    def close(self) -> None:
        """Let whoever waits return."""
        self._fleet.tell(_of_host(self.host), _GATEWAY)


class MemoryHost:
    """A `HostExchange`."""

    def __init__(self, fleet: MemoryFleet, host: str, incarnation: str, machine: str) -> None:
        self.host = host
        self._fleet = fleet
        self._incarnation = incarnation
        self._machine = machine
        self._bell = fleet.bell(_of_host(host))

    def _asked(self) -> tuple[_Tables, _Host]:
        """Return the tables and this host's row. Raises ExchangeAway, Evicted, SecondIncarnation."""
        tables = self._fleet.asked()
        row = _member(tables, self.host)
        if row.incarnation != self._incarnation:
            raise SecondIncarnation(self.host, _age(self._fleet.clock.now(), row.seen_at))
        return tables, row

    def beat(self, beat: Beat) -> Standing:
        with self._fleet.lock:
            tables, now = self._fleet.asked(), self._fleet.clock.now()
            row = _member(tables, self.host)
            free = row.stopped or row.incarnation in {"", self._incarnation} or row.machine == self._machine
            if not free and _age(now, row.seen_at) < SILENT_SECONDS:
                raise SecondIncarnation(self.host, _age(now, row.seen_at))
            row.incarnation, row.machine, row.stopped = self._incarnation, self._machine, False
            row.version, row.seen_at = beat.version, now
            speaks = tables.holder if tables.until is not None and tables.until > now else ""
            mine = any(one.call.host == self.host for one in tables.calls.values())
            told = any(one.host == self.host and one.result is not None for one in tables.posts.values())
            return Standing(now, speaks, mine, told, listening=True)

    def stopped(self) -> None:
        with self._fleet.lock:
            self._asked()[1].stopped = True

    def publish(
        self, changed: Sequence[PublishedSession], gone: Collection[str] = (), *, whole: bool = False
    ) -> tuple[str, ...]:
        with self._fleet.lock:
            tables, _ = self._asked()
            elsewhere = [one.uid for one in changed if self._is_elsewhere(tables, one.uid)]
            mine = {one.uid: one for one in changed if one.uid not in elsewhere}
            own = {uid for uid, one in tables.sessions.items() if one.host == self.host}
            leaving = (own - mine.keys() if whole else own & set(gone)) - mine.keys()
            for session in mine.values():
                _check_row(session.row)
            for session in mine.values():
                for route in session.routes:
                    there = tables.routes.get(route.place)
                    if there is not None and there.host != self.host:
                        raise PlaceRefused(_told(route.place))
            known = {place: there.route.shared for place, there in tables.routes.items()}
            away = leaving | mine.keys()
            tables.routes = {place: there for place, there in tables.routes.items() if there.uid not in away}
            for uid in leaving:
                del tables.sessions[uid]
            for session in mine.values():
                tables.sessions[session.uid] = _Session(self.host, session)
                for route in session.routes:
                    shared = known.get(route.place) if route.shared is None else route.shared
                    tables.routes[route.place] = RoutedThread(
                        replace(route, shared=shared), self.host, session.uid, session.name, session.members
                    )
        self._fleet.tell(_GATEWAY)
        return tuple(elsewhere)

    def _is_elsewhere(self, tables: _Tables, uid: str) -> bool:
        there = tables.sessions.get(uid)
        return there is not None and there.host != self.host

    def take(self, most: int) -> tuple[Call, ...]:
        with self._fleet.lock:
            tables, _ = self._asked()
            now = self._fleet.clock.now()
            mine = sorted((one for one in tables.calls.values() if one.call.host == self.host), key=lambda c: c.number)
            told = tuple(_taken(one, now) for one in mine[:most])
            for one in mine[:most]:
                one.taken = True
            return told

    def done(self, answers: Sequence[Answer]) -> None:
        with self._fleet.lock:
            tables, _ = self._asked()
            until = self._fleet.clock.now() + timedelta(seconds=ANSWER_SECONDS)
            for answer in answers:
                call = tables.calls.get(answer.call)
                if call is None or call.call.host != self.host:
                    continue
                del tables.calls[answer.call]
                if answer.body is not None:
                    tables.answers[answer.call] = (answer.body, until)
        self._fleet.tell(_GATEWAY)

    def hand_over(self, posts: Sequence[HostPost]) -> None:
        with self._fleet.lock:
            tables, _ = self._asked()
            for post in posts:
                session, there = tables.sessions.get(post.uid), tables.routes.get(post.place)
                if session is None or session.host != self.host:
                    raise PlaceRefused(f"session {post.uid}")
                if post.place.thread and (there is None or there.host != self.host):
                    raise PlaceRefused(_told(post.place))
            for post in posts:
                if (self.host, post.id) not in tables.posts:
                    tables.posted += 1
                    tables.posts[self.host, post.id] = _Post(post, self.host, tables.posted)
        self._fleet.tell(_GATEWAY)

    def results(self, most: int = 1000) -> tuple[PostResult, ...]:
        with self._fleet.lock:
            tables, _ = self._asked()
            mine = [one for one in tables.posts.values() if one.host == self.host and one.result is not None]
            mine.sort(key=lambda one: one.number)
            return tuple(PostResult(one.post.id, one.result or "") for one in mine[:most])

    def forget(self, posts: Collection[str]) -> None:
        with self._fleet.lock:
            tables, _ = self._asked()
            for post in posts:
                there = tables.posts.get((self.host, post))
                if there is not None and (there.began is None or there.result is not None):
                    del tables.posts[self.host, post]

    def put_blob(self, blob: str, data: Iterable[bytes]) -> None:
        kept = b"".join(data)
        with self._fleet.lock:
            tables, _ = self._asked()
            tables.blobs.setdefault((self.host, blob), (kept, self._fleet.clock.now()))

    def get_blob(self, blob: str) -> Iterator[bytes]:
        with self._fleet.lock:
            return _pieces(self._asked()[0], self.host, blob)

    def drop_blob(self, blob: str) -> None:
        with self._fleet.lock:
            self._asked()[0].blobs.pop((self.host, blob), None)

    def hosts(self) -> tuple[HostRow, ...]:
        with self._fleet.lock:
            tables, _ = self._asked()
            now = self._fleet.clock.now()
            speaks = tables.holder if tables.until is not None and tables.until > now else ""
            return tuple(_host_row(name, row, now, speaks) for name, row in sorted(tables.hosts.items()))

    def sessions(self, host: str = "") -> bytes:
        with self._fleet.lock:
            tables, _ = self._asked()
            if host and host not in tables.hosts:
                raise UnknownHost(host)
            shown = [one for one in tables.sessions.values() if host in {"", one.host}]
            shown.sort(key=lambda one: (one.host, one.published.name, one.published.uid))
            return b"[" + b",".join(_shown(one, tables.hosts).encode() for one in shown) + b"]"

    def wait(self, seconds: float) -> None:
        self._bell.wait(seconds)

    def wake(self) -> None:
        self._bell.ring()


class MemoryGateway:
    """A `GatewayExchange`."""

    def __init__(self, fleet: MemoryFleet, host: str) -> None:
        self._fleet = fleet
        self._host = host
        self._bell = fleet.bell(_GATEWAY)
        self._answers = fleet.bell(_GATEWAY)

    def _asked(self, lease: Lease | None = None) -> _Tables:
        """Return the tables. Raises ExchangeAway, Evicted, NotGateway, LeaseLost."""
        tables = self._fleet.asked()
        if not _member(tables, self._host).gateway:
            raise NotGateway(self._host)
        if lease is not None and tables.token != lease.token:
            raise LeaseLost
        return tables

    def lease(self, seconds: float = LEASE_SECONDS) -> Lease | None:
        with self._fleet.lock:
            tables, now = self._asked(), self._fleet.clock.now()
            if tables.until is not None and tables.until > now:
                return None
            tables.token, tables.holder, tables.epoch = new_id(), self._host, tables.epoch + 1
            tables.until = now + timedelta(seconds=seconds)
            return Lease(tables.token, tables.epoch, seconds)

    def renew(self, lease: Lease) -> bool:
        with self._fleet.lock:
            tables = self._asked()
            if tables.token != lease.token:
                return False
            tables.until = self._fleet.clock.now() + timedelta(seconds=lease.seconds)
            return True

    def release(self, lease: Lease) -> None:
        with self._fleet.lock:
            tables = self._asked()
            if tables.token == lease.token:
                tables.token, tables.until = "", None
        self._fleet.tell(_GATEWAY)

    def routes(self) -> tuple[RoutedThread, ...]:
        with self._fleet.lock:
            return tuple(sorted(self._asked().routes.values(), key=_by_place))

    def route(self, place: Place) -> RoutedThread | None:
        with self._fleet.lock:
            return self._asked().routes.get(place)

    def send(self, lease: Lease, calls: Sequence[NewCall], moved: Sequence[Moved] = ()) -> None:
        with self._fleet.lock:
            tables, now = self._asked(lease), self._fleet.clock.now()
            for call in calls:
                if call.host not in tables.hosts:
                    raise UnknownHost(call.host)
            for call in calls:
                if call.uid and (call.uid not in tables.sessions or tables.sessions[call.uid].host != call.host):
                    raise SessionElsewhere(call.uid, call.host)
            for call in calls:
                if call.id in tables.calls or call.id in tables.answers:
                    continue
                row = tables.hosts[call.host]
                row.next_seq += 1
                until = None if call.seconds is None else now + timedelta(seconds=call.seconds)
                tables.calls[call.id] = _Call(call, row.next_seq, until)
            for one in moved:
                there = tables.routes.get(one.place)
                if there is not None:
                    shared = there.route.shared if one.shared is None else one.shared
                    route = replace(there.route, cursor=one.cursor, shared=shared)
                    tables.routes[one.place] = replace(there, route=route)
        self._fleet.tell(*(_of_host(call.host) for call in calls))

    def withdraw(self, lease: Lease, call: str) -> bool:
        with self._fleet.lock:
            tables = self._asked(lease)
            there = tables.calls.get(call)
            if there is None or there.taken:
                return False
            del tables.calls[call]
            return True

    def answer(self, call: str, seconds: float) -> str | None:
        deadline = Deadline(self._fleet.clock, seconds)
        while True:
            with self._fleet.lock:
                there = self._asked().answers.get(call)
            if there is not None or deadline.passed():
                return there[0] if there else None
            self._answers.wait(min(deadline.remaining(), 0.2))

    def posts(self, lease: Lease, most: int) -> tuple[WaitingPost, ...]:
        with self._fleet.lock:
            tables, now = self._asked(lease), self._fleet.clock.now()
            barred = {name for name, row in tables.hosts.items() if row.state is HostState.EVICTED}
            waiting = [one for one in tables.posts.values() if one.result is None and one.host not in barred]
            waiting.sort(key=lambda one: one.number)
            turns: dict[tuple[Place, str, int], int] = {}
            ordered = list[tuple[tuple[int, int, int, str, int], _Post]]()
            for one in waiting:
                whose = (_channel(one), one.host, one.post.rank)
                turns[whose] = turns.get(whose, 0) + 1
                served = tables.hosts[one.host].served
                ordered.append(((one.post.rank, turns[whose], served, one.host, one.number), one))
            ordered.sort(key=lambda pair: pair[0])
            return tuple(
                WaitingPost(one.post, one.host, None if one.began is None else _age(now, one.began))
                for one in _first(ordered, most)
            )

    def sending(self, lease: Lease, host: str, post: str) -> bool:
        with self._fleet.lock:
            there = self._asked(lease).posts.get((host, post))
            if there is None or there.result is not None:
                return False
            there.began = self._fleet.clock.now()
            return True

    def posted(self, lease: Lease, host: str, result: PostResult) -> None:
        with self._fleet.lock:
            tables = self._asked(lease)
            there = tables.posts.get((host, result.post))
            if there is None:
                return
            there.result = result.body
            tables.served += 1
            tables.hosts[host].served = tables.served
        self._fleet.tell(_of_host(host))

    def put_blob(self, host: str, blob: str, data: Iterable[bytes]) -> None:
        kept = b"".join(data)
        with self._fleet.lock:
            tables = self._asked()
            if host not in tables.hosts:
                raise UnknownHost(host)
            tables.blobs.setdefault((host, blob), (kept, self._fleet.clock.now()))

    def get_blob(self, host: str, blob: str) -> Iterator[bytes]:
        with self._fleet.lock:
            return _pieces(self._asked(), host, blob)

    def drop_blob(self, host: str, blob: str) -> None:
        with self._fleet.lock:
            self._asked().blobs.pop((host, blob), None)

    def tidy(self, lease: Lease) -> None:
        with self._fleet.lock:
            tables, now = self._asked(lease), self._fleet.clock.now()
            oldest = now - timedelta(seconds=BLOB_SECONDS)
            tables.answers = {call: kept for call, kept in tables.answers.items() if kept[1] > now}
            tables.blobs = {key: kept for key, kept in tables.blobs.items() if kept[1] > oldest}

    def wait(self, seconds: float) -> None:
        self._bell.wait(seconds)

    def wake(self) -> None:
        self._bell.ring()


def _member(tables: _Tables, host: str) -> _Host:
    row = tables.hosts.get(host)
    if row is None or row.state is not HostState.ACTIVE:
        raise Evicted(host)
    return row


def _host_row(name: str, row: _Host, now: datetime, speaks: str) -> HostRow:
    age = _age(now, row.seen_at)
    return HostRow(name, row.state, row.gateway, name == speaks, row.version, row.seen_at, age, row.stopped)


def _age(now: datetime, then: datetime | None) -> float:
    return (now - then).total_seconds() if then is not None else 0.0


def _taken(one: _Call, now: datetime) -> Call:
    left = None if one.deadline is None else (one.deadline - now).total_seconds()
    call = one.call
    return Call(call.id, one.number, call.kind, call.body, call.uid, left is not None and left <= 0, left, one.taken)


def _pieces(tables: _Tables, host: str, blob: str) -> Iterator[bytes]:
    """Return the pieces of what is there now, whatever becomes of it meanwhile. Raises BlobGone."""
    there = tables.blobs.get((host, blob))
    if there is None:
        raise BlobGone(blob)
    data = there[0]
    return iter([data[at : at + PIECE] for at in range(0, len(data), PIECE)])


def _shown(session: _Session, hosts: Mapping[str, _Host]) -> str:
    seen = hosts[session.host].seen_at
    more = json.dumps({"host": session.host, "hostSeen": iso(seen) if seen else None}, separators=(",", ":"))
    return f"{session.published.row[:-1]},{more[1:]}"


def _check_row(row: str) -> None:
    try:
        well = row[:1] == "{" and row[-1:] == "}" and len(json.loads(row)) > 0
    except ValueError:
        well = False
    if not well:
        raise InvalidValue(f"a session's row is {row[:40]!r}", allowed="a JSON object with at least one key")


def _told(place: Place) -> str:
    return f"thread {place.thread} of channel {place.channel}"


def _by_place(one: RoutedThread) -> tuple[str, ...]:
    place = one.route.place
    return one.host, place.kind, place.team, place.channel, place.thread


def _channel(one: _Post) -> Place:
    return replace(one.post.place, thread="")


def _first(ordered: Iterable[tuple[object, _Post]], most: int) -> Iterator[_Post]:
    """Yield the first so many of each channel."""
    counted: dict[Place, int] = {}
    for _, one in ordered:
        counted[_channel(one)] = counted.get(_channel(one), 0) + 1
        if counted[_channel(one)] <= most:
            yield one
