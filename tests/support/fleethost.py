"""Hosts of a fleet in one process: each with its own store, the relay, and where it may be one, the gateway.

There are no panes: what arrived is looked up in each host's inbox. `Room` is the chat that all of them share.
"""

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from core.base.errors import CoreError, StoreBroken
from core.chat.backfill import CatchingUp
from core.chat.outbound import OutboundWorker
from core.config.settings import FleetSettings
from core.fleet.exchange import Fleet
from core.model.channel import CoreApi, IncomingOrder, IncomingReply, PrivateAnswer, Verdict
from core.model.message import Attachment, Fetched, InboxRow, Kind
from core.model.posts import NewPost, OutboundKind
from core.model.session import Binding, SessionRecord
from core.process.presence import Connections
from core.service.fleet import Joined, join
from core.session.system import System
from tests.support.chat import HOME, TEAM, Chat, Message
from tests.support.door import door_of
from tests.support.tmux import wait_until
from tests.support.world import World, definition

T0 = datetime(2026, 11, 29, tzinfo=UTC)


@dataclass
class Room(Chat):
    """A chat that hands its door to the test for as long as it is served. Its messages are everybody's."""

    doors: list[CoreApi] = field(default_factory=list)
    replies: bool = True
    too_late: str = ""

    def serve(self, door: CoreApi, stopping: Callable[[], bool]) -> None:
        """Give the door out until told to stop."""
        self.doors.append(door)
        while not stopping():
            time.sleep(0.01)
        self.doors.remove(door)

    def look_again(self) -> None:
        """Fetch what is waited for: each file holds its own name."""
        for door in list(self.doors):
            for fetch in door.to_fetch(self.kind):
                threading.Thread(target=_fetch, args=(door, fetch.message_id, fetch.files)).start()

    def late(self, ts: str) -> str:
        """Tell what the test says."""
        return self.too_late


def _fetch(door: CoreApi, message: str, files: Collection[Attachment]) -> None:
    done = []
    for position, file in enumerate(files, 1):
        data = file.name.encode()
        done.append(Fetched(file, door.keep_file(message, position, file.name, data), len(data)))
    door.fetched(message, done)


def room_like(other: Room) -> Room:
    """Return another host's view of the same room: other settings, the same messages."""
    return Room(messages=other.messages, reactions=other.reactions, statuses=other.statuses, shown=other.shown)


class Host:
    """One host. `stop` ends its life in order; `start` begins a new one over the same store."""

    def __init__(self, folder: Path, fleet: Fleet, room: Room, *, gateway: bool = False) -> None:
        self.name = fleet.host
        self.fleet = fleet
        self.room = room
        world = World(folder, f"none-{folder.name}", folder, slack=True)
        settings = world.settings()._replace(fleet=FleetSettings(True, self.name, gateway))
        self.system: System = world.system(settings)
        self.connections = Connections([])
        self.joined: Joined
        self.outbound: OutboundWorker
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []

    def session(self, name: str, *, members: tuple[str, ...] | None = None) -> SessionRecord:
        """Record a session with a thread of its own, and return it."""
        uid, thread = f"s-{self.name}-{name}", f"17{len(self.room.messages):02d}.{hash_of(self.name + name)}"
        self.room.messages.append(_root(uid, name, thread))
        declared = definition(name, slack=True)
        if members is not None:
            chat = {kind: replace(said, authorized_users=members) for kind, said in declared.chat.items()}
            declared = replace(declared, chat=chat)
        record = SessionRecord(name, uid, declared, T0)
        with self.system.locks.hold(name, "test", 1.0):
            self.system.records.write(record)
        with self.system.database.transaction(durable=True):
            self.system.bindings.bind(Binding("slack", TEAM, HOME, thread, uid, name, self.system.clock.now()))
        return record

    def thread(self, name: str) -> str:
        """Return the thread of a session."""
        bound = self.system.bindings.of_session(f"s-{self.name}-{name}", "slack")
        assert bound is not None
        return bound.thread

    def start(self, *, takes: bool = True, posts: bool = True) -> Self:
        """Begin a life. `takes`: whether calls are replayed; `posts`: whether the outbox is emptied."""
        self._stopping = threading.Event()
        self.joined = join(self.system, self.system.settings, self.fleet, [self.room], self.connections)
        [channel] = self.joined.channels
        self.catching_up = CatchingUp(self.system.clock, self.system.bindings, "slack")
        self.door = door_of(self.system, self.room, catching_up=self.catching_up)
        self.outbound = OutboundWorker(self.system, channel)
        workers = self.joined.workers({"slack": self.door}, {"slack": self.outbound.wake})
        stopping = self._stopping
        works: list[Callable[[], object]] = [lambda run=worker.run: run(stopping) for worker in workers]  # type: ignore[misc]
        if takes:
            works.append(lambda: channel.serve(self.door, stopping.is_set))
        if posts:
            works.append(lambda: self.outbound.run(stopping))
        self._threads = [threading.Thread(target=work, daemon=True) for work in works]
        for thread in self._threads:
            thread.start()
        return self

    def up(self) -> Self:
        """Begin a life, and wait until its sessions are known to the fleet."""
        self.start()
        self.wait_published()
        return self

    def wait_published(self) -> None:
        """Wait until the fleet knows of it."""
        wait_until(lambda: not self.joined.relay.away, f"{self.name} is known to the fleet")

    def stop(self) -> None:
        """End the life in order."""
        self._stopping.set()
        self.outbound.wake()
        for thread in self._threads:
            thread.join(15)
            assert not thread.is_alive(), f"a thread of {self.name} goes on"
        self._threads = []

    def detail(self, post: str) -> str:
        """Return why a post of this host stands there."""
        row = self.system.outbox.get(post)
        return row.detail if row is not None else ""

    def freeze(self) -> None:
        """Let the host take no call any more, and be heard of as before."""
        self.joined.relay._take = lambda: None  # type: ignore[method-assign]

    def close(self) -> None:
        """End it, and its store."""
        if self._threads:
            self.stop()
        self.system.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # ------------------------------------------------------------ what came of it

    def taken(self, name: str) -> list[str]:
        """Return the texts of the replies that the session has, in the order in which they go in."""
        rows = self.system.inbox.unsettled(f"s-{self.name}-{name}")
        return [row.message.text for row in rows if row.message.kind is Kind.REPLY]

    def rows(self, name: str) -> tuple[InboxRow, ...]:
        """Return the rows of the session's inbox."""
        return self.system.inbox.unsettled(f"s-{self.name}-{name}")

    def say(self, name: str, text: str, number: int = 0, kind: OutboundKind = OutboundKind.ANSWER) -> str:
        """Commit a post of the session, and return its id."""
        uid, ident = f"s-{self.name}-{name}", f"p-{kind.value}-{self.name}-{name}-{number}"
        self.system.outbox.add([NewPost(ident, ident, kind, uid, name, "slack", text)])
        self.outbound.wake()
        return ident

    def state(self, post: str) -> str:
        """Return where a post of this host stands."""
        row = self.system.outbox.get(post)
        assert row is not None
        return row.state.value


def hash_of(text: str) -> str:
    """Return six digits that are always the same for a text."""
    return f"{sum(ord(letter) * 31**place for place, letter in enumerate(text)) % 1_000_000:06d}"


def _root(uid: str, name: str, thread: str) -> Message:
    return Message(f"p-root-{uid}", HOME, "", thread, f"root of {name}", "root", name, uid)


def reply_to(thread: str, text: str, number: int = 1, **changes: object) -> IncomingReply:
    """Return what U1 writes in a thread, as the `number`-th message."""
    reply = IncomingReply(
        "slack", TEAM, HOME, thread, f"1{800_000_000 + number}.000000", "U1", "ann", TEAM, False, False, "plain", text
    )
    return replace(reply, **changes)  # type: ignore[arg-type]


def write(room: Room, *replies: IncomingReply, seconds: float = 20.0) -> list[Verdict | None]:
    """Let people write: each is sent again until it is taken, as Slack does. Return the words about them."""
    verdicts: list[Verdict | None] = []
    for reply in replies:
        words: list[tuple[Verdict | None, ...]] = []

        def given(reply: IncomingReply = reply, words: list[tuple[Verdict | None, ...]] = words) -> bool:
            for door in list(room.doors):
                try:
                    door.receive([reply], words.append)
                except StoreBroken:
                    continue
                return bool(words) and words[-1] != (None,)
            return False

        wait_until(given, f"{reply.text!r} is taken", seconds)
        verdicts.append(words[-1][0])
    return verdicts


def ordered(door: CoreApi, name: str, verb: str = "queue") -> PrivateAnswer | CoreError:
    """Return what a command of U1 is answered with."""
    try:
        return door.order(IncomingOrder("slack", "U1", "ann", verb, name, ""))
    except CoreError as error:
        return error
