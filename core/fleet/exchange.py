"""The exchange between the hosts of a fleet: what a host and the gateway ask of it, in values and two protocols.

Each host keeps its own store and stays the only owner of its sessions. The exchange carries **calls** (what the chat
told the gateway) to the hosts, **posts** (what the hosts want said) to the gateway, and holds the **directory**: hosts,
sessions and routes. It can be made anew from the hosts and the chat, so nothing is kept there alone.

- *Order.* The calls of one host are numbered under a lock, so that they are committed in the order of their numbers. A
  number says nothing else: once an older state was restored, numbers come again.
- *Acknowledged by id.* Every call and post has a random id (`new_id`), and is done with by that id alone.
- *At least once.* Whatever is handed over stays until it is acknowledged, so it may come twice. Only the owner's inbox
  knows whether it has a reply already.
- *One gateway.* What only the gateway may do takes its lease, which is checked in the transaction that does it.
- *One clock.* Deadlines and ages are reckoned by the exchange's own clock; no host's clock is compared with another's.
- *Never parsed.* Bodies and rows are JSON texts that the exchange carries as they are (`core.fleet.envelope` writes
  and reads them). They hold no NUL character and no lone surrogate: `json.dumps` escapes both.

Every method raises ExchangeAway where the exchange could not be asked: then it is not known whether it was done, and
the same call may be made again. Every one may be called from any thread; each but `wait` answers within SECONDS.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from enum import Enum
from typing import ClassVar, Protocol

from core.base.errors import CoreError, Refused
from core.base.values import dataclass

SECONDS = 5.0  #: in which the exchange answers, else it is away
LEASE_SECONDS = 10.0  #: for which a gateway holds its lease without renewing it
SILENT_SECONDS = 20.0  #: after which a host that was not heard of may be replaced by a second machine of its name
PIECE = 1 << 20  #: bytes of one piece of a blob
ANSWER_SECONDS = 3_600.0  #: for which the answer to a call is kept for the gateway
BLOB_SECONDS = 86_400.0  #: for which a blob is kept that nobody fetched


def new_id() -> str:
    """Return an id that no other call, post, blob or incarnation has: 32 hexadecimal digits."""
    return secrets.token_hex(16)


class HostState(Enum):
    """How a host stands in the fleet."""

    INVITED = "invited"  #: it has a role, and has not joined yet
    ACTIVE = "active"
    EVICTED = "evicted"  #: its role cannot log in; what waits for it is kept until a person says what becomes of it
    LEFT = "left"  #: it has left in order


@dataclass(frozen=True)
class HostRow:
    """A host, as everybody in the fleet sees it."""

    name: str
    state: HostState
    gateway: bool  #: it may be the gateway
    speaks: bool  #: it is the gateway now
    version: str  #: of the-loop; "": it has never run
    seen_at: datetime | None  #: when it was last heard of; None: never
    age: float  #: seconds since then, by the exchange's clock; without meaning where `seen_at` is None
    stopped: bool  #: its service has ended in order since


@dataclass(frozen=True)
class Beat:
    """What a host tells of itself."""

    version: str  #: of the-loop


@dataclass(frozen=True)
class Standing:
    """What a host is told at its beat."""

    now: datetime  #: the exchange's clock
    gateway: str  #: the host that speaks with the chat now, "": none does
    calls: bool  #: calls wait for this host: `take`
    results: bool  #: its posts have results: `results`
    listening: bool  #: changes are told at once; False: they are asked for each second, since a pooler swallows them


@dataclass(frozen=True)
class Place:
    """A thread of a chat, or a channel where `thread` is ""."""

    kind: str  #: of the chat
    team: str
    channel: str
    thread: str


@dataclass(frozen=True)
class Route:
    """A thread that belongs to a session."""

    place: Place
    cursor: str  #: the last message of the last complete sweep that the host has taken; "": none has read it yet
    shared: bool | None = None  #: whether the channel is shared with other organizations; None: not known
    facts: str = "{}"  #: JSON: what else the gateway's sweep should know


@dataclass(frozen=True)
class PublishedSession:
    """A session as its host shows it to the fleet."""

    uid: str
    name: str
    row: str  #: JSON: its row of `list`, an object with at least one key, from its `{` to its `}`
    members: str = "[]"  #: JSON: who may write to it, as the envelope says it; it only ever serves to refuse
    routes: tuple[Route, ...] = ()  #: all threads of the session


@dataclass(frozen=True)
class RoutedThread:
    """A route as the gateway reads it."""

    route: Route  #: its cursor and `shared` are those of the exchange
    host: str
    uid: str
    name: str
    members: str


@dataclass(frozen=True)
class NewCall:
    """What the gateway sends to a host. Calls of one host come in the order in which they were sent."""

    id: str
    host: str
    kind: str
    body: str  #: JSON
    uid: str = ""  #: the session that it is about, which must belong to the host; "": it is about none
    seconds: float | None = None  #: after which it is not to be done any more; None: it never expires


@dataclass(frozen=True)
class Call:
    """A call as its host takes it."""

    id: str
    number: int  #: rises in the order of the calls; never a name for one
    kind: str
    body: str
    uid: str
    expired: bool  #: its time is over: it is told, not done
    remaining: float | None  #: seconds that are left, below 0 if it is expired; None: it never expires
    taken_before: bool  #: an earlier `take` gave it already


@dataclass(frozen=True)
class Answer:
    """What a host says of a call that it is done with."""

    call: str
    body: str | None = None  #: JSON, kept for the gateway for ANSWER_SECONDS; None: nobody waits for one


@dataclass(frozen=True)
class HostPost:
    """What a host wants done in the chat: a post, an edit, a reaction … A second one with its id changes nothing."""

    id: str
    uid: str  #: the session that it is of
    place: Place  #: the thread, which must be the session's; `thread` "": a new message of the channel
    rank: int  #: the lowest goes first
    kind: str
    body: str  #: JSON


@dataclass(frozen=True)
class WaitingPost:
    """A post as the gateway reads it."""

    post: HostPost
    host: str
    sending: float | None  #: seconds since a gateway began to send it, which may have been another; None: none has


@dataclass(frozen=True)
class PostResult:
    """What became of a post."""

    post: str  #: its id
    body: str  #: JSON


@dataclass(frozen=True)
class Moved:
    """How far a thread was read by a complete sweep."""

    place: Place
    cursor: str
    shared: bool | None = None  #: None: this sweep did not learn it, and what was known stays


@dataclass(frozen=True)
class Lease:
    """The right to speak with the chat, until it is lost: `token` tells it from every other, an epoch may repeat."""

    token: str
    epoch: int
    seconds: float  #: for which it holds from the moment in which it was asked for


class ExchangeAway(CoreError):
    """The exchange could not be asked, or did not answer in time. Whether the last statement was done is not known."""

    code = "exchange_away"

    def __init__(self, reason: str, since: datetime | None = None) -> None:
        """`since`: when it answered last; None: this process has had no answer yet."""
        self.reason, self.since = reason, since
        known = f"has not answered since {since.astimezone():%H:%M}" if since else "does not answer"
        super().__init__(f"the fleet's database {known} ({reason})")


class LoginRefused(ExchangeAway):
    """The database is there, and does not let this host in. Waiting alone does not mend it."""

    code = "login_refused"

    def __init__(self, host: str, reason: str, since: datetime | None = None) -> None:
        super().__init__(reason, since)
        self.remedy = f"if {host} was evicted, invite it again: `the-loop fleet invite {host}`"
        self.args = (f"{self.message}; {self.remedy}",)


class Evicted(Refused):
    """This host does not belong to the fleet any more."""

    code = "evicted"

    def __init__(self, host: str) -> None:
        self.host = host
        super().__init__(
            f"{host} was taken out of the fleet, or has left it",
            f"to let it in again: `the-loop fleet invite {host}`, then `the-loop fleet join` on {host}",
        )


class SecondIncarnation(Refused):
    """Another machine runs as this host: one of the two is a copy of the other."""

    code = "second_incarnation"

    def __init__(self, host: str, age: float) -> None:
        self.host = host
        super().__init__(
            f"another machine runs as {host}, and was heard of {age:.0f} s ago: one of the two is a copy of the other",
            f"stop one of them; to keep both, give this one a name of its own: `the-loop fleet invite NAME`, then "
            f"`the-loop fleet join`. If {host} has only moved, it goes on {SILENT_SECONDS:.0f} s after the other ended",
        )


class LeaseLost(Refused):
    """Another gateway speaks with the chat now: nothing was changed."""

    code = "lease_lost"

    def __init__(self) -> None:
        super().__init__("another gateway of the fleet speaks with the chat now")


class NotGateway(Refused):
    """This host has no right to be the gateway."""

    code = "not_gateway"

    def __init__(self, host: str) -> None:
        super().__init__(
            f"{host} may not be the gateway of the fleet",
            f"`the-loop fleet invite {host} --gateway`, then `the-loop fleet join` on {host}",
        )


class UnknownHost(CoreError, LookupError):
    """No host of the fleet has that name."""

    code = "unknown_host"

    def __init__(self, host: str) -> None:
        self.host = host
        super().__init__(f"no host of the fleet is called {host!r}", "look at `the-loop fleet list`")


class SessionElsewhere(Refused):
    """The session of a call does not belong to that host (any more): no call of the sending was taken."""

    code = "session_elsewhere"

    def __init__(self, uid: str, host: str) -> None:
        self.uid, self.host = uid, host
        super().__init__(f"the session {uid} does not belong to {host}", "read the routes again")


class PlaceRefused(Refused):
    """A host wants to write, or to have a route, where it has no right to."""

    code = "place_refused"

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: the thread or the session belongs to another host of the fleet")


class BlobGone(CoreError, LookupError):
    """No blob has that id (any more)."""

    code = "blob_gone"

    def __init__(self, blob: str) -> None:
        super().__init__(f"no file has the id {blob!r} in the fleet's database: it was fetched, or is older than a day")


class LayoutUnknown(Refused):
    """The exchange's layout is not one that this release can work with."""

    code: ClassVar[str] = "layout_unknown"

    def __init__(self, layout: int, oldest: int, newest: int) -> None:
        """`oldest` and `newest`: the layouts that this release works with."""
        known = f"{oldest}" if oldest == newest else f"{oldest} to {newest}"
        remedy = (
            "upgrade the-loop on this host"
            if layout > newest
            else "`the-loop fleet init` with the fleet's admin URL brings the database up to date"
        )
        super().__init__(
            f"the fleet's database has layout {layout}, and this release works with {known}",
            remedy,
        )


class HostExchange(Protocol):
    """What a host's service may ask, as that host. One incarnation of it: made anew at each start of the service.

    Every method raises ExchangeAway, Evicted, and SecondIncarnation where another incarnation has taken its place.
    """

    host: str

    def beat(self, beat: Beat) -> Standing:
        """Tell that the host is there, and return how it stands. Until the first one nothing else is allowed.

        It takes the place of an earlier incarnation that has stopped in order, that ran on the same machine, or that
        was not heard of for SILENT_SECONDS. Raises SecondIncarnation where that one may still live.
        """
        ...

    def stopped(self) -> None:
        """Tell that the service ends in order: whichever machine comes next need not wait."""
        ...

    def publish(
        self, changed: Sequence[PublishedSession], gone: Collection[str] = (), *, whole: bool = False
    ) -> tuple[str, ...]:
        """Show sessions with all their routes; take away those with the uids `gone`, and if `whole` all others.

        Returns the uids among `changed` that belong to another host now: those were left alone. A route's cursor is
        kept as the host says it, since the host has every reply up to there, and lacks those after it: it may be behind
        the gateway's (then a sweep reads some replies twice) or, after the exchange was restored, before it. `shared`
        None leaves what is known. Whoever publishes a session only because a cursor has moved does so for nothing.
        Raises PlaceRefused, and publishes nothing, where a thread belongs to another host; InvalidValue for a row that
        is no JSON object.
        """
        ...

    def take(self, most: int) -> tuple[Call, ...]:
        """Return the calls that wait for this host, the oldest first. They come again until they are `done`."""
        ...

    def done(self, answers: Sequence[Answer]) -> None:
        """Remove calls, and keep their answers for the gateway. What is not there any more is well."""
        ...

    def hand_over(self, posts: Sequence[HostPost]) -> None:
        """Keep posts for the gateway. All or none; those that are there already change nothing.

        Raises PlaceRefused where the session or the thread is not this host's.
        """
        ...

    def results(self, most: int = 1000) -> tuple[PostResult, ...]:
        """Return what became of posts. They come again until they are forgotten."""
        ...

    def forget(self, posts: Collection[str]) -> None:
        """Remove posts, by their ids; one that is being sent stays until it has a result."""
        ...

    def put_blob(self, blob: str, data: Iterable[bytes]) -> None:
        """Keep a file for the gateway, whole or not at all. A second one with its id changes nothing."""
        ...

    def get_blob(self, blob: str) -> Iterator[bytes]:
        """Return a file of this host in pieces of at most PIECE bytes.

        Raises BlobGone at once where it is not there, and at a piece where it was dropped meanwhile.
        """
        ...

    def drop_blob(self, blob: str) -> None:
        """Remove a file of this host. What is not there is well."""
        ...

    def hosts(self) -> tuple[HostRow, ...]:
        """Return the hosts of the fleet, by name."""
        ...

    def sessions(self, host: str = "") -> bytes:
        """Return a JSON array of the rows of all sessions, or of one host's, by host and name.

        Each is as it was published, with two keys more at its end: `host`, and `hostSeen` (ISO 8601 in UTC, or null).
        Raises UnknownHost.
        """
        ...

    def wait(self, seconds: float) -> None:
        """Return once a call or a result may have come, `wake` was called, or that much time is over.

        It may return early, and for no reason; it raises nothing, and never returns at once over and over. One thread
        waits at a time.
        """
        ...

    def wake(self) -> None:
        """Let the thread in `wait` return, or the next one that comes there."""
        ...


class GatewayExchange(Protocol):
    """What the gateway may ask. Every method raises ExchangeAway, Evicted, NotGateway; with a lease also LeaseLost."""

    def lease(self, seconds: float = LEASE_SECONDS) -> Lease | None:
        """Return the lease where nobody has it, or whoever had it let it run out; else None.

        Waits for a transaction of the one before, so that nothing of theirs comes after it.
        """
        ...

    def renew(self, lease: Lease) -> bool:
        """Let it hold for its seconds from now; False: another gateway has it."""
        ...

    def release(self, lease: Lease) -> None:
        """Give it back: another gateway may have it at once, and is told. Raises nothing where it was lost before."""
        ...

    def routes(self) -> tuple[RoutedThread, ...]:
        """Return all routes of the fleet, by host and place."""
        ...

    def route(self, place: Place) -> RoutedThread | None:
        """Return whose the thread is; None: nobody's."""
        ...

    def send(self, lease: Lease, calls: Sequence[NewCall], moved: Sequence[Moved] = ()) -> None:
        """Commit calls to hosts, in their order, and how far threads were read: all or none.

        A call whose id is there already, or has an answer, is left out: whoever does not know whether a sending was
        committed repeats it. Raises UnknownHost, SessionElsewhere. A thread that has no route any more is passed over.
        """
        ...

    def withdraw(self, lease: Lease, call: str) -> bool:
        """Take a call back; True: its host had not taken it and never will. False: it has, or is done with it."""
        ...

    def answer(self, call: str, seconds: float) -> str | None:
        """Return the answer to a call, as JSON, waiting so long for it; None: none has come. It may be read again."""
        ...

    def posts(self, lease: Lease, most: int) -> tuple[WaitingPost, ...]:
        """Return posts without a result, at most so many of each channel; none of a host that was evicted.

        The lowest rank comes first. Within a rank hosts take turns, and one host's come in the order of its handing
        over.
        """
        ...

    def sending(self, lease: Lease, host: str, post: str) -> bool:
        """Note that the chat is about to be asked for this post of the host; False: it is not there, or has a result.

        Ids of posts are unique within a host only.
        """
        ...

    def posted(self, lease: Lease, host: str, result: PostResult) -> None:
        """Keep the result of a post for its host. What is not there any more is well."""
        ...

    def put_blob(self, host: str, blob: str, data: Iterable[bytes]) -> None:
        """Keep a file for a host, whole or not at all. A second one with its id changes nothing. Raises UnknownHost."""
        ...

    def get_blob(self, host: str, blob: str) -> Iterator[bytes]:
        """Return a file of that host in pieces of at most PIECE bytes. Raises BlobGone as for a host."""
        ...

    def drop_blob(self, host: str, blob: str) -> None:
        """Remove a file of that host. What is not there is well."""
        ...

    def tidy(self, lease: Lease) -> None:
        """Remove answers and files that nobody fetched in time."""
        ...

    def wait(self, seconds: float) -> None:
        """Return once a post, an answer, a route or the lease may have changed, `wake` was called, or time is over.

        As `HostExchange.wait`.
        """
        ...

    def wake(self) -> None:
        """Let the thread in `wait` return, or the next one that comes there."""
        ...


class Fleet(Protocol):
    """A member's way into the exchange. Opening it asks nothing: each method below connects when it first has to."""

    host: str  #: this member's name

    def as_host(self, incarnation: str, machine: str) -> HostExchange:
        """Return what this member asks as a host.

        `incarnation` is a `new_id` of this start of the service. `machine` is the same for two starts only where the
        first is over for certain when the second begins: one state root of one boot of one machine.
        """
        ...

    def as_gateway(self) -> GatewayExchange:
        """Return what this member asks as a gateway."""
        ...

    def close(self) -> None:
        """Close its connections; whoever waits returns."""
        ...
