"""The exchange in PostgreSQL: connections with deadlines, and each question as one call of a function of the schema.

A member keeps a few connections and opens one in the thread that needs it, so that whoever asks is told why it failed.
A statement that gets no answer in time ends its connection, also where the other side is only silent (a cut network, a
stopped server): then ExchangeAway is raised, and the next question connects anew. Nothing is repeated here: after a
lost answer nobody knows whether a statement was done, and every question may be asked again by whoever asked it.

A host waits on a connection of its own for notifications, which carry nothing. A pooler may swallow them, so the first
wait tries out whether they arrive, and else looks once a second.
"""

from __future__ import annotations

import logging
import select
import socket
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from enum import Enum
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.abc import RV, PQGen
from psycopg.pq import TransactionStatus

from core.base.clock import Clock, Deadline, SystemClock
from core.base.errors import CoreError, InvalidValue
from core.fleet import schema
from core.fleet.access import Access
from core.fleet.exchange import (
    LEASE_SECONDS,
    PIECE,
    SECONDS,
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
    LayoutUnknown,
    Lease,
    LeaseLost,
    LoginRefused,
    Moved,
    NewCall,
    NotGateway,
    Place,
    PlaceRefused,
    PostResult,
    PublishedSession,
    Route,
    RoutedThread,
    SecondIncarnation,
    SessionElsewhere,
    Standing,
    UnknownHost,
    WaitingPost,
    new_id,
)

_LOG = logging.getLogger(__name__)
_BUSY = 8  #: connections of one member at most, the two that listen apart
_IDLE = 2  #: that are kept open
_PROBE_SECONDS = 2.0  #: in which a notification comes back, else a pooler swallows them
_POLL_SECONDS = 1.0
_ANSWER_LOOK_SECONDS = 0.25
_PIECE_SECONDS = 30.0  #: for one piece of a file, which may go over a slow line

# Answers of the server that say that it cannot be asked now: classes of codes, and codes.
_AWAY = ("08", "53", "57", "25006", "55P03", "40001", "40P01", "25P03")
_READ_ONLY = "25006"
_DENIED = "42501"
_WRONG = frozenset({"22P02", "23514"})  #: a text that is no JSON object
_LACKS = frozenset({"3F000", "42P01", "42883"})  #: schema, table or function


class _Connection(psycopg.Connection[tuple[Any, ...]]):
    """Waits for an answer so long, and no longer."""

    patience = SECONDS

    def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        return super().wait(gen, interval, timeout=self.patience if timeout is None else timeout)


def connected(parameters: dict[str, Any], *, autocommit: bool = True) -> _Connection:
    """Return a connection to a server that takes writes. Raises psycopg.Error."""
    return _Connection.connect(
        **{
            "target_session_attrs": "read-write",
            "connect_timeout": int(SECONDS),
            "gssencmode": "disable",
            "keepalives_idle": 5,
            "keepalives_interval": 3,
            "keepalives_count": 3,
            "tcp_user_timeout": int(SECONDS * 2_000),
            **parameters,
        },
        autocommit=autocommit,
        prepare_threshold=None,  # poolers that give each statement another connection know no prepared ones
    )


class Refusal(Enum):
    """Why a server did not let somebody in."""

    NO_LOGIN = "no login"  #: who they are is proved, and they may not
    NO_PROOF = "no proof"  #: the secret is not, or not any more, that of a role


def refusal(error: psycopg.Error) -> Refusal | None:
    """Return why the server refused a login; None: it did not, or in another language.

    libpq does not hand on the code of an error before the login, so these are the server's own English words.
    """
    words = str(error)
    if "is not permitted to log in" in words:
        return Refusal.NO_LOGIN
    return Refusal.NO_PROOF if "authentication failed" in words else None


class Database:
    """The connections of one member, and what became of them. Safe for several threads."""

    def __init__(self, access: Access, clock: Clock) -> None:
        self.access = access
        self.clock = clock
        self._lock = threading.Lock()
        self._room = threading.BoundedSemaphore(_BUSY)
        self._idle: list[_Connection] = []
        self._closed = False
        self._answered: datetime | None = None  #: when the server answered last

    def opened(self) -> _Connection:
        """Return a new connection. Raises ExchangeAway, LoginRefused, Evicted."""
        try:
            made = connected(self.access.parameters())
        except psycopg.Error as error:
            raise self._not_let_in(error) from error
        self.heard()
        return made

    def _not_let_in(self, error: psycopg.Error) -> CoreError:
        match refusal(error):
            case Refusal.NO_LOGIN:
                return Evicted(self.access.host)
            case Refusal.NO_PROOF:
                return LoginRefused(self.access.host, told(error), self._answered)
        return ExchangeAway(told(error), self._answered)

    def heard(self) -> None:
        """Note that the server has answered."""
        self._answered = self.clock.now()

    def ask(self, question: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows that a statement answers with; it is committed. Raises the errors of the exchange."""
        with self.lent() as connection:
            return connection.execute(question, values).fetchall()

    @contextmanager
    def lent(self, patience: float = SECONDS) -> Iterator[_Connection]:
        """Lend a connection, in autocommit, to one thread. What psycopg raises becomes an error of the exchange."""
        if not self._room.acquire(timeout=SECONDS):
            raise ExchangeAway("all connections of this host are busy", self._answered)
        try:
            connection = self._kept() or self.opened()
            connection.patience = patience
            try:
                yield connection
            except psycopg.Error as error:
                self._look_again(connection, error)
                raise self.translated(error) from error
            except BaseException:
                connection.close()
                raise
            else:
                self.heard()
            finally:
                self._keep(connection)
        finally:
            self._room.release()

    def _look_again(self, connection: _Connection, error: psycopg.Error) -> None:
        """End a connection that cannot be used any more. Raises Evicted, LoginRefused where that is why it ended.

        A server that ends a connection does not say why, and the next login tells.
        """
        ended = connection.closed
        idle = not ended and connection.info.transaction_status == TransactionStatus.IDLE
        if not idle or error.sqlstate == _READ_ONLY:
            connection.close()
        if ended:
            try:
                self._keep(self.opened())
            except (Evicted, LoginRefused) as refused:
                raise refused from error
            except ExchangeAway as away:
                _LOG.debug("the database is away", extra={"detail": str(away)})

    def _kept(self) -> _Connection | None:
        """Return a connection that is open, as far as this machine knows. One on which something came has ended."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if connection.closed or _has_news(connection):
                connection.close()
                continue
            return connection

    def _keep(self, connection: _Connection) -> None:
        with self._lock:
            if not connection.closed and not self._closed and len(self._idle) < _IDLE:
                self._idle.append(connection)
                return
        connection.close()

    def translated(self, error: psycopg.Error) -> CoreError:
        """Return the exchange's error for one of psycopg's."""
        code, detail = error.sqlstate or "", error.diag.message_detail or ""
        host = self.access.host
        if code.startswith("TL"):
            self.heard()
        match code:
            case schema.EVICTED:
                return Evicted(host)
            case schema.SECOND:
                return SecondIncarnation(host, float(detail))
            case schema.LEASE_LOST:
                return LeaseLost()
            case schema.UNKNOWN_HOST:
                return UnknownHost(detail)
            case schema.ELSEWHERE:
                return SessionElsewhere(*detail.split("\t"))
            case schema.PLACE:
                return PlaceRefused(detail)
        if code == _DENIED:
            return NotGateway(host)
        if code in _WRONG:
            return InvalidValue(f"the fleet's database refuses a value: {told(error)}", allowed=_ROW)
        if code in _LACKS:
            return LayoutUnknown(0, schema.OLDEST_LAYOUT, schema.LAYOUT)
        if not code or code.startswith(_AWAY) or isinstance(error, psycopg.OperationalError):
            return ExchangeAway(told(error), self._answered)
        raise error

    def close(self) -> None:
        """End the idle connections, and those that are lent as soon as they are given back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


_ROW = "for a session's row a JSON object with at least one key"


def _has_news(connection: _Connection) -> bool:
    """Return whether something came on an idle connection: its end, or word of it."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def told(error: psycopg.Error) -> str:
    """Return the first line of what is wrong. libpq names hosts, ports and roles there, and no secret."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


class _Bell:
    """Waits for notifications of one channel, or looks each second where none arrive. One thread waits at a time."""

    def __init__(self, database: Database, channel: str) -> None:
        self._database = database
        self._channel = f"the_loop_{channel}"
        self._connection: _Connection | None = None
        self._refused: Deadline | None = None  #: until then no new connection is tried
        self._waiting = threading.Lock()
        self._rung, self._ring = socket.socketpair()
        self._ring.setblocking(False)
        self._ended = False
        self.listening = True  #: as far as is known

    def wake(self) -> None:
        """Let the thread that waits return, or the next one."""
        with suppress(OSError):  # it is rung already, or closed
            self._ring.send(b"x")

    def wait(self, seconds: float) -> None:
        """Return once something was told, after `wake`, or when time is over; raises nothing."""
        with self._waiting:
            if self._ended:
                self._database.clock.pause(min(seconds, _POLL_SECONDS))
            elif not self._has_come_up():
                self._look(seconds)

    def _has_come_up(self) -> bool:
        """Return whether it listens since just now: what was told before was missed."""
        if self._connection is not None or (self._refused is not None and not self._refused.passed()):
            return False
        self._refused = Deadline(self._database.clock, _POLL_SECONDS)
        try:
            self._connection = self._listening()
        except CoreError as error:
            _LOG.debug("cannot listen", extra={"detail": str(error)})
            return False
        return True

    def _look(self, seconds: float) -> None:
        connection = self._connection
        hears = connection is not None and self.listening
        poll = select.poll()
        poll.register(self._rung, select.POLLIN)
        if connection is not None:
            poll.register(connection, select.POLLIN)
        ready = {number for number, _ in poll.poll(1000 * (seconds if hears else min(seconds, _POLL_SECONDS)))}
        if self._rung.fileno() in ready:
            self._rung.recv(4096)
        if connection is not None and connection.fileno() in ready:
            try:
                for _ in connection.notifies(timeout=0):
                    pass
            except psycopg.Error as error:
                _LOG.debug("the listening connection has ended", extra={"detail": told(error)})
                self._leave()

    def _listening(self) -> _Connection:
        """Return a connection that listens, and note whether it hears. Raises ExchangeAway and the like."""
        connection = self._database.opened()
        try:
            connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
            self._database.ask("SELECT pg_notify(%s, '')", self._channel)
            self.listening = any(True for _ in connection.notifies(timeout=_PROBE_SECONDS, stop_after=1))
        except psycopg.Error as error:
            connection.close()
            raise self._database.translated(error) from error
        except BaseException:
            connection.close()
            raise
        if not self.listening:
            _LOG.warning("the fleet's database tells no changes: a pooler swallows them, so it is asked each second")
        return connection

    def _leave(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def end(self) -> None:
        """End the connection; whoever waits returns."""
        self._ended = True
        self.wake()
        with self._waiting:
            self._leave()
            self._rung.close()
            self._ring.close()


class PostgresFleet:
    """A `Fleet` of one member."""

    def __init__(self, access: Access, clock: Clock | None = None) -> None:
        self._database = Database(access, clock or SystemClock())
        self._bells: list[_Bell] = []
        self.host = access.host

    def as_host(self, incarnation: str, machine: str) -> HostExchange:
        """Return what this member asks as a host."""
        return PostgresHost(self._database, incarnation, machine, self._bell(f"host_{self.host}"))

    def as_gateway(self) -> GatewayExchange:
        """Return what this member asks as a gateway."""
        return PostgresGateway(self._database, self._bell("gateway"))

    def _bell(self, channel: str) -> _Bell:
        bell = _Bell(self._database, channel)
        self._bells.append(bell)
        return bell

    def close(self) -> None:
        """End its connections; whoever waits returns."""
        self._database.close()
        for bell in self._bells:
            bell.end()


class PostgresHost:
    """A `HostExchange`."""

    def __init__(self, database: Database, incarnation: str, machine: str, bell: _Bell) -> None:
        self.host = database.access.host
        self._database = database
        self._incarnation = incarnation
        self._machine = machine
        self._bell = bell

    def _ask(self, question: LiteralString, *values: object) -> list[tuple[Any, ...]]:
        """Ask as this incarnation, which is the first argument of each function."""
        return self._database.ask(question, self._incarnation, *values)

    def beat(self, beat: Beat) -> Standing:
        rows = self._ask("SELECT * FROM the_loop.beat(%s, %s, %s)", self._machine, beat.version)
        now, speaks, calls, results, layout, serves_from = rows[0]
        if layout < schema.OLDEST_LAYOUT or serves_from > schema.LAYOUT:
            raise LayoutUnknown(layout, schema.OLDEST_LAYOUT, schema.LAYOUT)
        return Standing(now, speaks or "", calls, results, self._bell.listening)

    def stopped(self) -> None:
        self._ask("SELECT the_loop.stopped(%s)")

    def publish(
        self, changed: Sequence[PublishedSession], gone: Collection[str] = (), *, whole: bool = False
    ) -> tuple[str, ...]:
        routes = [(one, route) for one in changed for route in one.routes]
        rows = self._ask(
            "SELECT the_loop.publish(%s, %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s, "
            "%s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::boolean[], %s::text[])",
            [one.uid for one in changed],
            [one.name for one in changed],
            [one.row for one in changed],
            [one.members for one in changed],
            list(gone),
            whole,
            *_places(route.place for _, route in routes),
            [one.uid for one, _ in routes],
            [route.cursor for _, route in routes],
            [route.shared for _, route in routes],
            [route.facts for _, route in routes],
        )
        return tuple(rows[0][0])

    def take(self, most: int) -> tuple[Call, ...]:
        rows = self._ask("SELECT * FROM the_loop.take(%s, %s)", most)
        return tuple(
            Call(call, number, kind, body, uid, left is not None and left <= 0, left, before)
            for call, number, kind, body, uid, left, before in rows
        )

    def done(self, answers: Sequence[Answer]) -> None:
        self._ask(
            "SELECT the_loop.done(%s, %s::text[], %s::text[])",
            [one.call for one in answers],
            [one.body for one in answers],
        )

    def hand_over(self, posts: Sequence[HostPost]) -> None:
        self._ask(
            "SELECT the_loop.hand_over(%s, %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], "
            "%s::integer[], %s::text[], %s::text[])",
            [one.id for one in posts],
            [one.uid for one in posts],
            *_places(one.place for one in posts),
            [one.rank for one in posts],
            [one.kind for one in posts],
            [one.body for one in posts],
        )

    def results(self, most: int = 1000) -> tuple[PostResult, ...]:
        return tuple(PostResult(*row) for row in self._ask("SELECT * FROM the_loop.results(%s, %s)", most))

    def forget(self, posts: Collection[str]) -> None:
        self._ask("SELECT the_loop.forget(%s, %s::text[])", list(posts))

    def put_blob(self, blob: str, data: Iterable[bytes]) -> None:
        _put(self._database, "SELECT the_loop.put_piece(%s, %s, %s, %s)", self._incarnation, blob, data)

    def get_blob(self, blob: str) -> Iterator[bytes]:
        return _got(self._database, "SELECT * FROM the_loop.piece(%s, %s, %s)", self._incarnation, blob)

    def drop_blob(self, blob: str) -> None:
        self._ask("SELECT the_loop.drop_blob(%s, %s)", blob)

    def hosts(self) -> tuple[HostRow, ...]:
        return tuple(
            HostRow(name, HostState(state), gateway, speaks, version, seen_at, age, stopped)
            for name, state, gateway, speaks, version, seen_at, age, stopped in self._ask(
                "SELECT * FROM the_loop.members(%s)"
            )
        )

    def sessions(self, host: str = "") -> bytes:
        """The server sends UTF-8, and it is handed on as it came."""
        with self._database.lent() as connection, connection.cursor(binary=True) as cursor:
            cursor.execute("SELECT convert_to(the_loop.listed(%s, %s), 'UTF8')", (self._incarnation, host))
            row = cursor.fetchone()
            return bytes(row[0]) if row else b"[]"

    def wait(self, seconds: float) -> None:
        self._bell.wait(seconds)

    def wake(self) -> None:
        self._bell.wake()


class PostgresGateway:
    """A `GatewayExchange`."""

    def __init__(self, database: Database, bell: _Bell) -> None:
        self._database = database
        self._bell = bell

    def lease(self, seconds: float = LEASE_SECONDS) -> Lease | None:
        token = new_id()
        epoch = self._database.ask("SELECT the_loop.elect(%s, %s)", token, seconds)[0][0]
        return None if epoch is None else Lease(token, epoch, seconds)

    def renew(self, lease: Lease) -> bool:
        return bool(self._database.ask("SELECT the_loop.renew(%s, %s)", lease.token, lease.seconds)[0][0])

    def release(self, lease: Lease) -> None:
        self._database.ask("SELECT the_loop.release(%s)", lease.token)

    def routes(self) -> tuple[RoutedThread, ...]:
        rows = self._database.ask("SELECT * FROM the_loop.routed(NULL, NULL, NULL, NULL)")
        return tuple(_routed(*row) for row in rows)

    def route(self, place: Place) -> RoutedThread | None:
        rows = self._database.ask(
            "SELECT * FROM the_loop.routed(%s, %s, %s, %s)", place.kind, place.team, place.channel, place.thread
        )
        return _routed(*rows[0]) if rows else None

    def send(self, lease: Lease, calls: Sequence[NewCall], moved: Sequence[Moved] = ()) -> None:
        self._database.ask(
            "SELECT the_loop.send(%s, %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], "
            "%s::double precision[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::boolean[])",
            lease.token,
            [one.id for one in calls],
            [one.host for one in calls],
            [one.kind for one in calls],
            [one.body for one in calls],
            [one.uid for one in calls],
            [one.seconds for one in calls],
            *_places(one.place for one in moved),
            [one.cursor for one in moved],
            [one.shared for one in moved],
        )

    def withdraw(self, lease: Lease, call: str) -> bool:
        return bool(self._database.ask("SELECT the_loop.withdraw(%s, %s)", lease.token, call)[0][0])

    def answer(self, call: str, seconds: float) -> str | None:
        """Look four times a second: what is asked so is a person's command, and one at a time."""
        deadline = Deadline(self._database.clock, seconds)
        while True:
            found: str | None = self._database.ask("SELECT the_loop.answered(%s)", call)[0][0]
            if found is not None or deadline.passed():
                return found
            self._database.clock.pause(min(deadline.remaining(), _ANSWER_LOOK_SECONDS))

    def posts(self, lease: Lease, most: int) -> tuple[WaitingPost, ...]:
        rows = self._database.ask("SELECT * FROM the_loop.waiting(%s, %s)", lease.token, most)
        return tuple(
            WaitingPost(HostPost(post, uid, Place(chat, team, channel, thread), rank, kind, body), host, sending)
            for post, host, uid, chat, team, channel, thread, rank, kind, body, sending in rows
        )

    def sending(self, lease: Lease, host: str, post: str) -> bool:
        return bool(self._database.ask("SELECT the_loop.sending(%s, %s, %s)", lease.token, host, post)[0][0])

    def posted(self, lease: Lease, host: str, result: PostResult) -> None:
        self._database.ask("SELECT the_loop.posted(%s, %s, %s, %s)", lease.token, host, result.post, result.body)

    def put_blob(self, host: str, blob: str, data: Iterable[bytes]) -> None:
        _put(self._database, "SELECT the_loop.put_piece_for(%s, %s, %s, %s)", host, blob, data)

    def get_blob(self, host: str, blob: str) -> Iterator[bytes]:
        return _got(self._database, "SELECT * FROM the_loop.piece_of(%s, %s, %s)", host, blob)

    def drop_blob(self, host: str, blob: str) -> None:
        self._database.ask("SELECT the_loop.drop_blob_of(%s, %s)", host, blob)

    def tidy(self, lease: Lease) -> None:
        self._database.ask("SELECT the_loop.tidy(%s)", lease.token)

    def wait(self, seconds: float) -> None:
        self._bell.wait(seconds)

    def wake(self) -> None:
        self._bell.wake()


def _places(places: Iterable[Place]) -> tuple[list[str], list[str], list[str], list[str]]:
    """Return the four columns of some places."""
    listed = list(places)
    return (
        [one.kind for one in listed],
        [one.team for one in listed],
        [one.channel for one in listed],
        [one.thread for one in listed],
    )


def _routed(
    chat: str,
    team: str,
    channel: str,
    thread: str,
    cursor: str,
    shared: bool | None,
    facts: str,
    host: str,
    uid: str,
    name: str,
    members: str,
) -> RoutedThread:
    return RoutedThread(Route(Place(chat, team, channel, thread), cursor, shared, facts), host, uid, name, members)


def _cut(data: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the data in pieces of PIECE bytes, the last one shorter; one at least."""
    kept, any_yet = bytearray(), False
    for part in data:
        kept += part
        while len(kept) >= PIECE:
            any_yet = True
            yield bytes(kept[:PIECE])
            del kept[:PIECE]
    if kept or not any_yet:
        yield bytes(kept)


def _put(database: Database, question: LiteralString, whose: str, blob: str, data: Iterable[bytes]) -> None:
    """Keep all pieces in one transaction."""
    with database.lent(_PIECE_SECONDS) as connection, connection.transaction():
        for nth, piece in enumerate(_cut(data)):
            row = connection.execute(question, (whose, blob, nth, piece)).fetchone()
            if row is None or not row[0]:
                return


def _got(database: Database, question: LiteralString, whose: str, blob: str) -> Iterator[bytes]:
    """Return the pieces; the first one is fetched at once. Raises BlobGone."""

    def piece(nth: int) -> tuple[bytes, int]:
        with database.lent(_PIECE_SECONDS) as connection, connection.cursor(binary=True) as cursor:
            row = cursor.execute(question, (whose, blob, nth)).fetchone()
        if row is None or row[0] is None:
            raise BlobGone(blob)
        return bytes(row[0]), row[1]

    first, last = piece(0)

    def pieces() -> Iterator[bytes]:
        yield first
        for nth in range(1, last + 1):
            yield piece(nth)[0]

    return pieces()
