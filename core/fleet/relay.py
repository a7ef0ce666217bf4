"""A host's side of the fleet: the gateway's calls go into today's door, and what is said goes to the gateway.

`Relay` is the one of a service: it tells that the host is there, takes calls, and learns what became of posts.
`RelayChannel` stands in the place of each chat's own channel, which still answers what needs no other side.

- A call is replayed in the order in which it came, and removed by its id once it is committed here. One that cannot be
  understood stays, and so does all that follows it for the same session: a later release takes it.
- A post is handed over under an id that follows from its own, so that a second handing over changes nothing. It counts
  as posted once the gateway has said so. What was handed over before a crash, or before the database was away, is
  handed over again as one that may stand in the chat already: the gateway looks for it first.
"""

from __future__ import annotations

import hashlib
import logging
import queue
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

from core.base.clock import Deadline
from core.base.errors import ChannelError, CoreError, HandedOver, Refused, StoreBroken
from core.base.failpoints import Failpoint, failpoint
from core.base.files import read_plain
from core.base.redaction import Redactor
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
    PostBody,
    Pressed,
    React,
    Read,
    Reply,
    ResultBody,
    Say,
    Show,
    SweptThread,
    Unreadable,
)
from core.fleet.exchange import (
    Answer,
    Beat,
    BlobGone,
    Call,
    Evicted,
    ExchangeAway,
    HostExchange,
    HostPost,
    LayoutUnknown,
    Place,
    PlaceRefused,
    SecondIncarnation,
    Standing,
    new_id,
)
from core.fleet.publisher import Publisher
from core.lifecycle.announce import HOST_UID
from core.model.asking import Role
from core.model.channel import Channel, CoreApi, IncomingReply, Posted, Verdict, WebHook
from core.model.health import Finding
from core.model.live import LiveRow, LiveShown
from core.model.message import Fetched
from core.model.posts import RANKS, Mark, NewPost, OutboundKind, PostState, ThreadSeen
from core.session.system import System

_LOG = logging.getLogger(__name__)
BEAT_SECONDS = 10.0
_NO_GATEWAY_SECONDS = 2.0  #: between two beats while no gateway speaks, so that one that is back is soon known
_POLL_SECONDS = 1.0  #: where changes are not told
_AWAY_SECONDS = 2.0  #: between two attempts to reach the exchange
_MOST = 200  #: calls that are taken at once
_HEAD_START_SECONDS = 0.02  #: as the chat's own intake gives to the way into the terminal
_GAP_SECONDS = 60.0  #: for which a gap counts (core.chat.backfill): until then a restart has to learn of it again
_AGAIN_SECONDS = 5.0  #: until a reply that could not be taken is tried again
_UNHEARD_SECONDS = 60.0  #: after which what was handed over is handed over again
_PUBLISHED_SECONDS = 30.0  #: in which a thread must have become known to the fleet
_READ_SECONDS = 5.0  #: for which a thread's reading is waited for
_TAKING, _DOING = 8, 2  #: threads: for replies on their way into terminals, for presses and commands
_MOST_BYTES = 1 << 26
_SIGNAL_RANK = max(RANKS.values()) + 1

_NO_GATEWAY = "no gateway of the fleet speaks with the chat now; it waits in the fleet's database"
_WAITS = "the gateway of the fleet has it, and has not said yet that it is posted"


@dataclass
class _Handed:
    """What was handed over, or was to be."""

    post_id: str
    since: Deadline  #: until it is handed over again
    unknown: Deadline  #: until the fleet must know its thread
    kept: bool = False  #: it is of no outbox: its result stays until it was asked for
    done: bool = False  #: `result` tells what became of it
    result: ResultBody = None
    told: bool = False

    @property
    def told_failed(self) -> bool:
        """Whether a failure was told: it is kept until the same thing is tried anew."""
        return self.done and self.told and isinstance(self.result, Failed)


class Relay:
    """The host's way through the exchange. Its methods may be called from any thread."""

    def __init__(
        self,
        system: System,
        exchange: HostExchange,
        publisher: Publisher,
        version: str,
        tell: Callable[[bool, str], None],
    ) -> None:
        """`tell` is told whether the exchange answers, and how it stands."""
        self._system = system
        self.exchange = exchange
        self._publisher = publisher
        self._version = version
        self._tell = tell
        self._lock = threading.Lock()
        self._takers: dict[str, Taker] = {}
        self._wake: dict[str, Callable[[], None]] = {}  #: by chat: lets its posts be asked for
        self._handed: dict[str, _Handed] = {}  #: by the key of the post
        self._before: set[str] = set()  #: keys of what an earlier attempt may have handed over
        self._showing: dict[str, tuple[str, str]] = {}  #: by place: key and text of what is on its way there
        self._show_next: dict[str, tuple[HostPost, str]] = {}
        self._at_work: set[str] = set()  #: ids of calls that were taken, and are not done with
        self._to_settle: list[Answer] = []
        self._later: list[tuple[Deadline, str]] = []  #: gaps, with when they may be forgotten
        self._stuck: dict[str, str] = {}  #: by session: why its calls stay
        self._known = threading.Event()  #: set once the results of an earlier life are known
        self._standing: Standing | None = None
        self._away = "the fleet's database was not asked yet"
        self._beat_due: Deadline | None = None

    @property
    def host(self) -> str:
        """This host's name."""
        return self.exchange.host

    @property
    def gateway(self) -> str:
        """The host that speaks with the chats now, as last told; "": none does."""
        return self._standing.gateway if self._standing is not None and not self._away else ""

    @property
    def listening(self) -> bool:
        """Whether the exchange tells of changes at once, as last told; False: it is asked each second."""
        return self._standing is not None and self._standing.listening

    @property
    def away(self) -> str:
        """Why the exchange cannot be asked, "" where it can."""
        return self._away

    def join(self, taker: Taker, wake: Callable[[], None]) -> None:
        """Let the calls of a chat come in here; `wake` is called once a post of it has a result."""
        self._takers[taker.kind] = taker
        self._wake[taker.kind] = wake

    def wake(self) -> None:
        """Look now. Callable from every thread."""
        self.exchange.wake()

    # ------------------------------------------------------------ the thread

    def run(self, stopping: threading.Event) -> None:
        """Take and learn until told to stop."""
        self._remember()
        while not stopping.is_set():
            self.turn()
            self._wait(stopping)
        with suppress(CoreError):
            self._settle(())
            self.exchange.stopped()

    def turn(self) -> None:
        """Ask once for everything."""
        try:
            if self._away or self._beat_due is None or self._beat_due.passed():
                self._beat()
            self._take()
            self._settle(self._over())
            self._learn()
            self._forget()
        except (ExchangeAway, Evicted, SecondIncarnation, LayoutUnknown) as error:
            self._lose(str(error))

    def _beat(self) -> None:
        standing = self.exchange.beat(Beat(self._version))
        self._beat_due = Deadline(self._system.clock, BEAT_SECONDS if standing.gateway else _NO_GATEWAY_SECONDS)
        if self._away:
            self._publisher.ask_whole()
            self._publisher.publish()
        before, self._standing = self._standing, standing
        came_back, self._away = bool(self._away), ""
        if came_back or before is None or (before.gateway, before.listening) != (standing.gateway, standing.listening):
            self._tell(bool(standing.gateway), self.told())
        if came_back:
            for wake in self._wake.values():
                wake()

    def told(self) -> str:
        """Return how it stands with the fleet."""
        if self._away:
            return self._away
        gateway = self._standing.gateway if self._standing else ""
        if not gateway:
            return f"as {self.host} of the fleet; no gateway speaks with the chat now, and what is said waits"
        polls = "" if self._standing and self._standing.listening else "; it is asked each second, for nothing is told"
        stuck = "".join(f"; {why}" for why in dict.fromkeys(self._stuck.values()))
        return f"as {self.host} of the fleet; the gateway is {gateway}{polls}{stuck}"

    def _lose(self, why: str) -> None:
        """Note that the exchange cannot be asked. It may come back as an older one: what it had is given again."""
        if self._away != why:
            _LOG.warning("the fleet cannot be asked", extra={"reason": why})
            self._tell(False, why)
        self._away = why
        with self._lock:
            for handed in self._handed.values():
                handed.since = Deadline(self._system.clock, 0)
            self._showing.clear()
            self._show_next.clear()

    def _wait(self, stopping: threading.Event) -> None:
        if self._away:
            stopping.wait(_AWAY_SECONDS)
            return
        waits = [BEAT_SECONDS if self.listening else _POLL_SECONDS]
        if self._beat_due is not None:
            waits.append(max(0.05, self._beat_due.remaining()))
        waits += [max(0.05, deadline.remaining()) for deadline, _ in self._later]
        if any(handed.done and not handed.told_failed for handed in list(self._handed.values())):
            waits.append(0.5)  # its row says soon that it knows
        self.exchange.wait(min(waits))

    # ------------------------------------------------------------ calls

    def _take(self) -> None:
        """Give to each chat what waits for it, in its order. What cannot be understood keeps its session's back."""
        stuck: dict[str, str] = {}
        for call in self.exchange.take(_MOST):
            if call.id in self._at_work:
                continue
            if call.uid in stuck or "" in stuck:
                continue
            try:
                body = envelope.read_call(call.kind, call.body)
            except Unreadable as error:
                stuck[call.uid] = str(error)
                if self._stuck.get(call.uid) != str(error):
                    _LOG.error("a call of the fleet stays", extra={"reason": str(error)})
                continue
            taker = self._takers.get(_chat_of(body))
            if taker is not None:
                self._at_work.add(call.id)
                taker.put(call, body)
        if stuck != self._stuck:
            self._stuck = stuck
            self._tell(not self._away, self.told())

    def settle(self, answers: Sequence[Answer]) -> None:
        """Remove calls that are committed here, with their answers. What cannot be told now is told later."""
        try:
            self._settle(answers)
        except CoreError as error:
            _LOG.info("calls are acknowledged later", extra={"reason": str(error)})

    def settle_later(self, call: str) -> None:
        """Remove a gap once it does not count any more: until then a restart of the service must learn of it."""
        with self._lock:
            self._later.append((Deadline(self._system.clock, _GAP_SECONDS), call))

    def _over(self) -> tuple[Answer, ...]:
        with self._lock:
            over = [call for deadline, call in self._later if deadline.passed()]
            self._later = [(deadline, call) for deadline, call in self._later if call not in over]
        return tuple(Answer(call) for call in over)

    def _settle(self, answers: Sequence[Answer]) -> None:
        with self._lock:
            waiting = [*self._to_settle, *answers]
            self._to_settle = waiting
        if not waiting:
            return
        with failpoint(Failpoint.FLEET_ACKNOWLEDGE):
            self.exchange.done(waiting)
        with self._lock:
            self._to_settle = [answer for answer in self._to_settle if answer not in waiting]
        self._at_work -= {answer.call for answer in waiting}
        if len(waiting) >= _MOST // 2:
            self.wake()  # there may be more

    # ------------------------------------------------------------ what became of posts

    def _remember(self) -> None:
        """Know what an earlier service handed over, or may have."""
        for kind in self._takers:
            for row in self._system.outbox.open(kind):
                if row.state is PostState.SENDING:
                    self._before.add(self.key(kind, "say", row.post.id))

    def _learn(self) -> None:
        """Take in what became of posts; what nobody here waits for goes."""
        found = self.exchange.results()
        unknown = []
        for one in found:
            handed = self._handed.get(one.post)
            if handed is not None and handed.done:
                continue
            if handed is None and one.post not in self._before:
                self._shown(one.post)
                unknown.append(one.post)
                continue
            try:
                result = envelope.read_result(one.body)
            except Unreadable as error:
                _LOG.error("a result of the fleet stays", extra={"reason": str(error)})
                continue
            with self._lock:
                handed = self._handed.setdefault(one.post, self._new(""))
                handed.result, handed.done = result, True
        if unknown:
            self.exchange.forget(unknown)
        self._known.set()
        if len(found) > len(unknown):
            for taker in self._takers.values():
                taker.fetched()
            for wake in self._wake.values():
                wake()

    def _forget(self) -> None:
        """Remove the results of posts that are recorded as sent, or as given up; others are asked for again."""
        with self._lock:
            done = [(key, handed) for key, handed in self._handed.items() if handed.done]
        over = [key for key, handed in done if self._is_settled(handed)]
        if over:
            with failpoint(Failpoint.FLEET_FORGET):
                self.exchange.forget(over)
            with self._lock:
                for key in over:
                    self._handed.pop(key, None)
                    self._before.discard(key)

    def _is_settled(self, handed: _Handed) -> bool:
        if handed.kept:
            return handed.told
        if not handed.post_id:
            return False  # of an earlier life: its row asks for it
        row = self._system.outbox.get(handed.post_id)
        return row is None or row.state not in (PostState.PENDING, PostState.SENDING)

    # ------------------------------------------------------------ posts

    def key(self, kind: str, what: str, ident: str) -> str:
        """Return the id under which something is handed over: the same for the same thing, another on each host."""
        return hashlib.sha256("\0".join((self.host, kind, what, ident)).encode()).hexdigest()[:32]

    def result_of(self, key: str, post_id: str, made: Callable[[bool], HostPost], *, kept: bool = False) -> ResultBody:
        """Return what became of something, and hand it over where nobody has yet. A told failure is tried anew.

        `made` returns it, given whether an earlier attempt may have carried it out. Raises HandedOver, ChannelError.
        """
        with self._lock:
            handed = self._handed.get(key)
            if handed is not None and handed.done and not handed.told_failed:
                handed.told, handed.post_id, handed.kept = True, post_id, kept
                return handed.result
            waits = handed is not None and not handed.done and not handed.since.passed()
        if self._away:
            raise HandedOver(f"{self._away}; it waits here")
        if not self._known.is_set():
            raise HandedOver("it is not known yet what an earlier service has handed to the fleet")
        if waits:
            raise HandedOver(self._waits())
        again = key in self._before or (handed is not None and not handed.done)
        if handed is not None and handed.done:
            self._asked(lambda: self.exchange.forget([key]))
            with self._lock:
                self._handed.pop(key, None)
            handed = None
        with self._lock:
            handed = self._handed.setdefault(key, self._new(post_id))
            handed.post_id, handed.kept = post_id, kept
        try:
            with failpoint(Failpoint.FLEET_HAND_OVER):
                self._asked(lambda: self.exchange.hand_over([made(again)]))
        except PlaceRefused as error:
            self._publisher.wake()
            if not handed.unknown.passed():
                raise HandedOver("the fleet does not know its thread yet") from error
            raise ChannelError(error.message, error.remedy, transient=False) from error
        handed.since = Deadline(self._system.clock, _UNHEARD_SECONDS)
        raise HandedOver(self._waits())

    def known(self, kind: str, post_id: str) -> Posted | None:
        """Return where a post is; None where it is not known to have been handed over. Raises HandedOver."""
        key = self.key(kind, "say", post_id)
        if not self._known.is_set():
            raise HandedOver("it is not known yet what an earlier service has handed to the fleet")
        with self._lock:
            handed = self._handed.get(key)
            if handed is None or (handed.done and not isinstance(handed.result, Posted)):
                self._before.add(key)
                return None
            if handed.done and isinstance(handed.result, Posted):
                handed.told, handed.post_id = True, handed.post_id or post_id
                return handed.result
        raise HandedOver(self._waits())

    def _new(self, post_id: str) -> _Handed:
        clock = self._system.clock
        return _Handed(post_id, Deadline(clock, 0), Deadline(clock, _PUBLISHED_SECONDS))

    def _waits(self) -> str:
        return _WAITS if self._standing and self._standing.gateway else _NO_GATEWAY

    def _asked(self, call: Callable[[], None]) -> None:
        """Ask the exchange. Raises HandedOver where that cannot be done: nothing is lost by asking again."""
        try:
            call()
        except (ExchangeAway, Evicted, SecondIncarnation) as error:
            self._lose(str(error))
            self.wake()
            raise HandedOver(f"{error}; it waits here") from error

    def send_off(self, post: HostPost) -> None:
        """Hand something over of which nobody here needs to know what became. Raises ChannelError."""
        if self._away:
            raise ChannelError(self._away, transient=True)
        try:
            self.exchange.hand_over([post])
        except (ExchangeAway, Evicted, SecondIncarnation, PlaceRefused) as error:
            raise ChannelError(error.message, error.remedy, transient=True) from error

    def show(self, place: str, post: HostPost, text: str) -> None:
        """Hand over what a thread is shown, after what it is shown now: at most one of a thread is on its way."""
        with self._lock:
            if place in self._showing:
                self._show_next[place] = (post, text)
                return
            self._showing[place] = (post.id, text)
        try:
            self.send_off(post)
        except ChannelError as error:
            _LOG.debug("status not shown", extra={"reason": str(error)})
            with self._lock:
                self._showing.pop(place, None)
                self._show_next.pop(place, None)

    def _shown(self, key: str) -> None:
        with self._lock:
            place = next((place for place, (sent, _) in self._showing.items() if sent == key), None)
            if place is None:
                return
            _, text = self._showing.pop(place)
            following = self._show_next.pop(place, None)
        if following is not None and following[1] != text:
            self.show(place, *following)

    def read(self, key: str, made: Callable[[bool], HostPost]) -> ThreadSeen:
        """Return a thread as the gateway read it. Raises HandedOver, ChannelError."""
        deadline = Deadline(self._system.clock, _READ_SECONDS)
        while True:
            try:
                found = self.result_of(key, "", made, kept=True)
                break
            except HandedOver:
                if deadline.passed() or self._away:
                    raise
            self._system.clock.pause(0.05)
        if isinstance(found, Failed):
            raise found.channel_error()
        if not isinstance(found, ThreadSeen):
            raise ChannelError("the gateway's answer is no thread", transient=True)
        return found

    # ------------------------------------------------------------ files

    def put_file(self, blob: str, data: bytes) -> None:
        """Keep a file for the gateway. Raises HandedOver."""
        self._asked(lambda: self.exchange.put_blob(blob, [data]))

    def get_file(self, blob: str) -> bytes:
        """Return a file that the gateway has fetched. Raises ExchangeAway, BlobGone."""
        return b"".join(self.exchange.get_blob(blob))

    def drop_files(self, blobs: Iterable[str]) -> None:
        """Remove files that are kept here now; what cannot be removed goes by itself in a day."""
        with suppress(CoreError):
            for blob in blobs:
                self.exchange.drop_blob(blob)


def _chat_of(body: CallBody) -> str:
    match body:
        case Gap() | Looking() | SweptThread():
            return body.chat
        case Reply():
            return body.reply.channel_kind
        case Change():
            return body.change.reply.channel_kind
        case Pressed():
            return body.press.channel_kind
        case Ordered():
            return body.order.channel_kind


class Taker:
    """Replays the calls of one chat into the door, in their order. Presses and commands go beside them."""

    def __init__(self, real: Channel, system: System, relay: Relay) -> None:
        self.kind = real.kind
        self._real = real
        self._system = system
        self._relay = relay
        self._waiting: queue.SimpleQueue[tuple[Call, CallBody]] = queue.SimpleQueue()
        self._again: list[tuple[Deadline, Call, IncomingReply]] = []
        self._caught: dict[tuple[str, str], int] = {}  #: by thread: replies that were new since a sweep began
        self._fetching: set[str] = set()  #: the keys of files that were asked for
        self._door: CoreApi | None = None

    def put(self, call: Call, body: CallBody) -> None:
        """Take a call. Called by the relay's thread alone, in the order of the calls."""
        self._waiting.put((call, body))

    def serve(self, door: CoreApi, stopping: Callable[[], bool]) -> None:
        """Replay until told to stop; what was taken and not replayed comes again."""
        self._door = door
        with (
            ThreadPoolExecutor(_TAKING, "taking") as taking,
            ThreadPoolExecutor(_DOING, "pressing") as pressing,
            ThreadPoolExecutor(_DOING, "ordering") as ordering,
        ):
            self._fetch(door)
            while not stopping():
                self._try_again(door, taking, stopping)
                batch = self._batch()
                for kind, group in groupby(batch, key=lambda pair: type(pair[1])):
                    calls = list(group)
                    if kind is Reply:
                        self._receive(door, taking, calls, stopping)
                    else:
                        for call, body in calls:
                            self._replay(door, call, body, pressing, ordering, stopping)

    def _batch(self) -> list[tuple[Call, CallBody]]:
        try:
            batch = [self._waiting.get(timeout=0.2)]
        except queue.Empty:
            return []
        while len(batch) < _MOST:
            try:
                batch.append(self._waiting.get_nowait())
            except queue.Empty:
                break
        return batch

    # ------------------------------------------------------------ replies

    def _receive(
        self,
        door: CoreApi,
        taking: ThreadPoolExecutor,
        calls: Sequence[tuple[Call, CallBody]],
        stopping: Callable[[], bool],
    ) -> None:
        replies = [self._judged(body.reply) for _, body in calls if isinstance(body, Reply)]
        while not stopping():
            try:
                verdicts = _committed(door, taking, replies)
                break
            except StoreBroken as error:
                _LOG.error("replies of the fleet cannot be stored; they stay there", extra={"reason": str(error)})
                self._system.clock.pause(1.0)
        else:
            return
        answers = []
        for (call, _), reply, verdict in zip(calls, replies, verdicts, strict=True):
            if verdict is None:
                self._again.append((Deadline(self._system.clock, _AGAIN_SECONDS), call, reply))
                continue
            if verdict is Verdict.COMMITTED:
                place = (reply.channel, reply.thread)
                self._caught[place] = self._caught.get(place, 0) + 1
            answers.append(Answer(call.id))
        if len(answers) < len(calls):
            door.behind(self.kind)  # what comes now must not overtake what comes again
        self._relay.settle(answers)
        if any(reply.files for reply in replies):
            self._fetch(door)

    def _judged(self, reply: IncomingReply) -> IncomingReply:
        """Return the reply as late as it is now: it may have waited for this host."""
        return replace(reply, confirm=self._real.late(reply.ts))

    def _try_again(self, door: CoreApi, taking: ThreadPoolExecutor, stopping: Callable[[], bool]) -> None:
        due = [entry for entry in self._again if entry[0].passed()]
        self._again = [entry for entry in self._again if not entry[0].passed()]
        if due:
            calls: list[tuple[Call, CallBody]] = [(call, Reply(reply)) for _, call, reply in due]
            self._receive(door, taking, calls, stopping)

    # ------------------------------------------------------------ the others

    def _replay(
        self,
        door: CoreApi,
        call: Call,
        body: CallBody,
        pressing: ThreadPoolExecutor,
        ordering: ThreadPoolExecutor,
        stopping: Callable[[], bool],
    ) -> None:
        match body:
            case Pressed() | Ordered():
                pool = pressing if isinstance(body, Pressed) else ordering
                work = pool.submit(self._do, door, call, body)
                work.add_done_callback(partial(_log, "a press or a command was not answered"))
            case Gap():
                door.behind(self.kind)
                self._relay.settle_later(call.id)
            case _:
                while not stopping():
                    try:
                        self._tell(door, body)
                        self._relay.settle([Answer(call.id)])
                        return
                    except StoreBroken as error:
                        _LOG.error("a call of the fleet cannot be stored; it stays", extra={"reason": str(error)})
                        self._system.clock.pause(1.0)

    def _tell(self, door: CoreApi, body: CallBody) -> None:
        match body:
            case Looking():
                self._caught.clear()
                door.threads(self.kind, body.team)
            case Change():
                door.change([body.change])
            case SweptThread():
                swept = body.swept
                caught = self._caught.pop((swept.channel, swept.thread), swept.caught_up)
                door.swept(self.kind, body.team, replace(swept, caught_up=min(caught, swept.caught_up)))

    def _do(self, door: CoreApi, call: Call, body: Pressed | Ordered) -> None:
        """Do what somebody pressed or said, once: what an earlier service may have begun is told as unknown."""
        self._relay.settle([Answer(call.id, envelope.written_answer(self._done(door, call, body)))])

    def _done(self, door: CoreApi, call: Call, body: Pressed | Ordered) -> envelope.AnswerBody:
        if call.expired:
            return Failed(Refused.code, f"{self._relay.host} took it too late, so nothing was done", "say it again")
        if call.taken_before:
            what = f"{self._relay.host} was interrupted by its end, and it is not known whether this was done"
            return Failed(Refused.code, what, "look before you say it again")
        try:
            return door.press(body.press) if isinstance(body, Pressed) else door.order(body.order)
        except CoreError as error:
            return envelope.failed(error)

    # ------------------------------------------------------------ files

    def fetched(self) -> None:
        """Look whether files have come. Called by the relay's thread."""
        if self._door is not None and self._fetching:
            self._fetch(self._door)

    def _fetch(self, door: CoreApi) -> None:
        """Ask for the files that messages wait for, and keep those that have come."""
        try:
            wanted = door.to_fetch(self.kind)
        except StoreBroken as error:
            _LOG.warning("it cannot be seen which files are wanted", extra={"reason": str(error)})
            return
        self._fetching = set()
        for fetch in wanted:
            row = self._system.inbox.get(fetch.message_id)
            if row is None or row.message.address is None:
                continue
            address, uid = row.message.address, row.message.uid
            place = Place(self.kind, address.team, address.channel, address.thread)
            kind, body = envelope.written_post(FetchFiles(fetch.message_id, fetch.name, fetch.files))
            key = self._relay.key(self.kind, "fetch", fetch.message_id)
            self._fetching.add(key)
            post = HostPost(key, uid, place, RANKS[OutboundKind.NOTE], kind, body)
            try:
                found = self._relay.result_of(key, "", lambda again, post=post: post, kept=True)  # type: ignore[misc]
                if isinstance(found, tuple):
                    self._keep(door, fetch.message_id, found)
                elif isinstance(found, Failed):
                    told = tuple(Fetched(file, problem=found.told) for file in fetch.files)
                    door.fetched(fetch.message_id, told)
                self._fetching.discard(key)
            except HandedOver:
                continue
            except (ChannelError, StoreBroken) as error:
                _LOG.warning("a message's files are not there yet", extra={"reason": str(error)})

    def _keep(self, door: CoreApi, message: str, found: Sequence[Fetched]) -> None:
        kept = []
        for position, one in enumerate(found, 1):
            try:
                data = self._relay.get_file(one.path) if one.path else b""
                path = door.keep_file(message, position, one.attachment.name, data) if one.path else ""
                kept.append(replace(one, path=path))
            except (BlobGone, Refused) as error:
                kept.append(Fetched(one.attachment, problem=str(error)))
            except ExchangeAway as error:
                raise ChannelError(error.message, transient=True) from error
        door.fetched(message, kept)
        self._relay.drop_files(one.path for one in found if one.path)


def _committed(
    door: CoreApi, taking: ThreadPoolExecutor, replies: Sequence[IncomingReply]
) -> tuple[Verdict | None, ...]:
    """Return core's words once the replies are on the disk; the way into the terminal goes on. Raises StoreBroken."""
    words: list[tuple[Verdict | None, ...]] = []
    known = threading.Event()

    def taken(verdicts: tuple[Verdict | None, ...]) -> None:
        words.append(verdicts)
        known.set()

    work = taking.submit(door.receive, replies, taken)
    work.add_done_callback(lambda _: known.set())
    known.wait()
    with suppress(TimeoutError):
        work.result(_HEAD_START_SECONDS)
        return words[0]
    if not words:
        work.result()
    work.add_done_callback(partial(_log, "a reply is not delivered at once"))
    door.sync()
    return words[0]


def _log(what: str, work: Future[None]) -> None:
    error = None if work.cancelled() else work.exception()
    if error is not None:
        _LOG.warning(what, extra={"reason": str(error)})


class RelayChannel:
    """A chat of a host in a fleet; see core.model.channel.Channel. What needs the other side goes to the gateway."""

    def __init__(self, real: Channel, system: System, relay: Relay, *, gateway: bool) -> None:
        """`gateway`: this host may speak with the chat itself, so that its requests over HTTP come here."""
        self.kind = real.kind
        self.real = real
        self.taker = Taker(real, system, relay)
        self._system = system
        self._relay = relay
        self._gateway = gateway
        self._redactor: Redactor | None = None
        self._updating: dict[str, str] = {}  #: by post: the key of its edit that is on its way

    def serve(self, door: CoreApi, stopping: Callable[[], bool]) -> None:
        """Replay what the gateway hands over."""
        self.taker.serve(door, stopping)

    # ------------------------------------------------------------ what the chat's own channel answers

    def sweeps(self) -> bool:
        """Return whether replies are read."""
        return self.real.sweeps()

    def echoes(self) -> bool:
        """Return False: what a host posts comes back to the gateway."""
        return False

    def presses(self) -> bool:
        """Return whether presses arrive."""
        return self.real.presses()

    def typed(self, role: Role) -> str:
        """Return how a command begins that needs the role."""
        return self.real.typed(role)

    def default_channel(self) -> str:
        """Return the configured channel's id."""
        return self.real.default_channel()

    def authorized(self, author: str) -> bool:
        """Return whether the member is on this host's list."""
        return self.real.authorized(author)

    def has_role(self, author: str, role: Role) -> bool:
        """Return whether somebody has the role by this host's lists."""
        return self.real.has_role(author, role)

    def everybody(self) -> tuple[str, ...]:
        """Return whoever a list of this host names."""
        return self.real.everybody()

    def late(self, ts: str) -> str:
        """Return why a message must be confirmed now."""
        return self.real.late(ts)

    def look_again(self) -> None:
        """Let the gateway's channel look, where it is here."""
        self.real.look_again()

    def redact_with(self, redactor: Redactor) -> None:
        """Take secrets out by this redactor: what leaves this host holds none."""
        self._redactor = redactor
        self.real.redact_with(redactor)

    def wants(self, kind: OutboundKind) -> bool:
        """Return whether posts of that kind are shown."""
        return self.real.wants(kind)

    def parts(self, post: NewPost) -> tuple[NewPost, ...]:
        """Return what the post is sent as."""
        return self.real.parts(post)

    def link(self, channel: str, thread: str) -> str:
        """Return the address of a thread, where it is known here."""
        return self.real.link(channel, thread)

    def webhook(self) -> WebHook | None:
        """Return what answers the chat's requests over HTTP, on a host that may be the gateway."""
        return self.real.webhook() if self._gateway else None

    def check(self, channels: Collection[str] = ()) -> tuple[Finding, ...]:
        """Ask the other side whether everything is in place."""
        return self.real.check(channels)

    def send_probe(self, channel: str) -> Callable[[], None]:
        """Post a message that asks nobody anything."""
        return self.real.send_probe(channel)

    def manifest(self, url: str = "") -> str:
        """Return the app manifest."""
        return self.real.manifest(url)

    # ------------------------------------------------------------ live posts, which no gateway makes yet

    def live(self) -> bool:
        """Return False: a turn is not shown as it runs, but by its progress and its answer."""
        return False

    def begin_live(self, row: LiveRow) -> Posted:
        """Make none. Raises ChannelError."""
        raise _no_live()

    def add_live(self, row: LiveRow, change: LiveShown, text: str = "") -> None:
        """Add nothing. Raises ChannelError."""
        raise _no_live()

    def end_live(self, row: LiveRow, post: NewPost | None, change: LiveShown, text: str) -> Posted:
        """End none. Raises ChannelError."""
        raise _no_live()

    def remove_live(self, row: LiveRow) -> None:
        """Leave one of an earlier time, without a fleet, where it is."""

    def find_live(self, row: LiveRow) -> Posted | None:
        """Find none."""
        return None

    def live_parts(self, post: NewPost, shown: LiveShown) -> tuple[NewPost, ...]:
        """Return what the post is sent as, without a live post."""
        return self.real.parts(post)

    def live_pieces(self, post: NewPost, shown: LiveShown) -> tuple[str, ...]:
        """Return none."""
        return ()

    # ------------------------------------------------------------ what goes to the gateway

    def post(self, post: NewPost, channel: str, thread: str) -> Posted:
        """Hand the post over, or tell what became of it. Raises HandedOver, ChannelError."""
        return self._said(post, channel, thread, "", post.id)

    def update(self, post: NewPost, channel: str, ts: str) -> Posted:
        """Hand the edit over, or tell what became of it. Raises HandedOver, ChannelError.

        A turn's progress is edited again and again under one id: the next edit waits for the word about this one.
        """
        thread = self._thread_of(post, channel, ts)
        if post.kind is not OutboundKind.PROGRESS:
            return self._said(post, channel, thread, ts, post.id)
        ident = f"{post.id}\0{hashlib.sha256(post.text.encode(errors='surrogatepass')).hexdigest()}"
        before = self._updating.get(post.id, ident)
        try:
            posted = self._said(post, channel, thread, ts, before)
        except HandedOver:
            self._updating[post.id] = before
            raise
        self._updating.pop(post.id, None)
        return posted if before == ident else self.update(post, channel, ts)

    def _thread_of(self, post: NewPost, channel: str, ts: str) -> str:
        """Return the thread of the message that an edit replaces."""
        if post.thread:
            return post.thread
        binding = self._system.bindings.of_session(post.uid, self.kind)
        return binding.thread if binding is not None and binding.channel == channel else ts

    def _said(self, post: NewPost, channel: str, thread: str, ts: str, ident: str) -> Posted:
        key = self._relay.key(self.kind, "say", ident)

        def made(again: bool) -> HostPost:
            blob = self._blob(post, key)
            body = Say(post, channel, thread, ts, blob, again=again)
            return self._host_post(key, post.uid, channel, thread, RANKS.get(post.kind, 3), body)

        found = self._relay.result_of(key, post.id, made, kept=post.kind is OutboundKind.PROGRESS)
        if isinstance(found, Failed):
            raise found.channel_error()
        if not isinstance(found, Posted):
            raise ChannelError("the gateway's answer is not where the post is", transient=True, unclear=True)
        return found

    def _blob(self, post: NewPost, key: str) -> str:
        """Hand over the file that a post attaches, without secrets, and return its id. Raises ChannelError."""
        if not post.path:
            return ""
        path = Path(post.path)
        try:
            content = read_plain(path, _MOST_BYTES)
        except OSError as error:
            reason = f"the file {path.name} cannot be read: {error.strerror}"
            raise ChannelError(reason, "post it again", transient=False) from error
        redacted = self._redactor.redact_file(content) if self._redactor is not None else content
        if redacted is None:
            reason = f"the file {path.name} contains a secret that cannot be removed, because it is not a text file"
            raise ChannelError(reason, "post the file without the secret, or as text", transient=False)
        self._relay.put_file(key, redacted)
        return key

    def find(self, post_id: str, channel: str, thread: str) -> Posted | None:
        """Return where a post is that was handed over. Raises HandedOver, ChannelError."""
        return self._relay.known(self.kind, post_id)

    def read_thread(self, channel: str, thread: str) -> ThreadSeen:
        """Let the gateway read a thread. Raises HandedOver, ChannelError."""
        key = self._relay.key(self.kind, "read", f"{channel}\0{thread}")
        uid = self._owner(channel, thread)
        return self._relay.read(
            key, lambda again: self._host_post(key, uid, channel, "", RANKS[OutboundKind.ROOT], Read(channel, thread))
        )

    def react(self, channel: str, ts: str, mark: Mark, instead_of: Collection[Mark]) -> None:
        """Let the gateway show the mark. Raises ChannelError where it cannot be handed over."""
        for binding in self._system.bindings.all(self.kind):
            if binding.channel == channel:
                row = self._system.inbox.of_key(":".join((self.kind, binding.team, channel, ts)))
                if row is not None and row.message.address is not None:
                    ordered = tuple(sorted(instead_of, key=lambda one: one.value))
                    body = React(channel, ts, mark, ordered)
                    thread = row.message.address.thread
                    post = self._host_post(new_id(), row.message.uid, channel, thread, _SIGNAL_RANK, body)
                    self._relay.send_off(post)
                    return
        raise ChannelError(f"no message here has the time stamp {ts}", transient=False)

    def status(self, channel: str, thread: str, text: str) -> None:
        """Let the gateway show what the session is doing."""
        uid = self._owner(channel, thread)
        if uid:
            shown = self._redactor.redact(text) if self._redactor else text
            post = self._host_post(new_id(), uid, channel, thread, _SIGNAL_RANK, Show(channel, thread, shown))
            self._relay.show(f"{channel} {thread}", post, text)

    def _owner(self, channel: str, thread: str) -> str:
        """Return the session (uid) of a thread, by its binding or, after the database was lost, by its record."""
        for binding in self._system.bindings.all(self.kind):
            if (binding.channel, binding.thread) == (channel, thread):
                return binding.uid
        for record in self._system.records.all():
            place = getattr(record, "thread", None)
            if place is not None and (place.kind, place.channel, place.thread) == (self.kind, channel, thread):
                return str(getattr(record, "uid", ""))
        return ""

    def _any_session(self) -> str:
        """Return a session of this host, for what is about none: the fleet takes posts of its sessions alone."""
        found = (getattr(record, "uid", "") for record in self._system.records.all())
        return next((str(uid) for uid in found if uid), "")

    def _host_post(self, key: str, uid: str, channel: str, thread: str, rank: int, body: PostBody) -> HostPost:
        kind, written = envelope.written_post(body)
        team = _team_of(self._system, self.kind, channel, thread) if thread else ""
        uid = self._any_session() if uid == HOST_UID else uid
        return HostPost(key, uid, Place(self.kind, team, channel, thread), rank, kind, written)


def _no_live() -> ChannelError:
    reason = "a turn is not shown as it runs in a fleet"
    return ChannelError(reason, transient=False, reason=ChannelError.NOT_ALLOWED)


def _team_of(system: System, kind: str, channel: str, thread: str) -> str:
    """Return the team of a thread, as its binding says; of one that is bound no more, that of the others."""
    bindings: Mapping[tuple[str, str], str] = {
        (binding.channel, binding.thread): binding.team for binding in system.bindings.all(kind)
    }
    return bindings.get((channel, thread)) or next(iter(bindings.values()), "")
