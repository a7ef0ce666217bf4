"""What the channel's tests share: a recording door, and the channel served in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from bot.backfill import SweepPace
from bot.channel import SlackChannel
from bot.connection import Pace
from bot.files import FilePace
from bot.http import Patience
from core.base.clock import Clock
from core.base.errors import CoreError, StoreBroken
from core.model.channel import (
    BoundThread,
    IncomingChange,
    IncomingCreation,
    IncomingOrder,
    IncomingPress,
    IncomingReply,
    IncomingTask,
    PrivateAnswer,
    Swept,
    Verdict,
    Waiting,
)
from core.model.message import Fetch, Fetched
from core.model.posts import NewPost, OutboundKind
from embedded.workspace.thread import WorkspaceThread
from tests.support.tmux import PATIENCE

SECRET = "hunter2-and-more"  #: what the door of the tests takes out
PICTURE = b"\x89PNG\r\n\x1a\n of the test"
T = TypeVar("T")
SWEEP_PACE = SweepPace(between=0.0, attempts=3, first=0.05, again=0.3, fresh=0.3, settled=0.0)
FILE_PACE = FilePace(attempts=3, first=0.05, call=PATIENCE, whole=2 * PATIENCE, written=PATIENCE, ask_again=0.05)
HTTP_PATIENCE = Patience(connected=PATIENCE, taken=PATIENCE)
QUICK = Pace(first=0.05, most=0.2, hello=PATIENCE, end=2.0, steady=0.0, ping=0.5, lookup=0.2)


class Refusal(NamedTuple):
    """What core is told of somebody who was refused."""

    kind: str
    author: str
    what: str
    name: str = ""


class Door:
    """Core's door: keeps what it is given. `gate` closed makes a commit take until it is opened."""

    def __init__(self) -> None:
        self.batches: list[list[IncomingReply]] = []
        self.presses: list[IncomingPress] = []
        self.orders: list[IncomingOrder] = []
        self.creations: list[IncomingCreation] = []
        self.tasks: list[IncomingTask] = []
        self.wrong: dict[str, str] = {}
        self.questions: list[Waiting] = []
        self.lookers: list[str] = []
        self.picture_error: CoreError | None = None
        self.drawing = threading.Event()  #: cleared: a picture takes until it is set
        self.drawing.set()
        self.refused: list[Refusal] = []
        self.states: list[tuple[bool, str]] = []
        self.sessions: list[Mapping[str, Any]] = []
        self.changes: list[IncomingChange] = []
        self.bound: list[BoundThread] = []
        self.sweeps: list[Swept] = []
        self.gaps: list[int] = []
        self.events = 0
        self.marks: set[str] = set()
        self.kept: dict[str, bytes] = {}
        self.told: dict[str, list[Fetched]] = {}
        self.gate = threading.Event()
        self.gate.set()
        self.broken = False
        self.bug: Exception | None = None
        self.rows_error: CoreError | None = None
        self.order_error: CoreError | None = None
        self._changed = threading.Condition()

    @property
    def replies(self) -> list[IncomingReply]:
        """Everything received, in order."""
        return [reply for batch in self.batches for reply in batch]

    def receive(self, replies: Sequence[IncomingReply], taken: Callable[[tuple[Verdict, ...]], None]) -> None:
        """Record the batch once the gate is open."""
        assert self.gate.wait(PATIENCE), "the gate was never opened"
        if self.bug is not None:
            raise self.bug
        if self.broken:
            self._note()
            raise StoreBroken("the disk is full", "free some space")
        before = {reply.ts for reply in self.replies}
        self.batches.append(list(replies))
        self._note()
        taken(tuple(Verdict.DUPLICATE if reply.ts in before else Verdict.COMMITTED for reply in replies))

    def heard(self, channel_kind: str, mark: str, until: datetime, *, durable: bool) -> bool:
        """Keep it, as core does over restarts."""
        first = mark not in self.marks
        self.marks.add(mark)
        return first

    def unheard(self, channel_kind: str, mark: str) -> None:
        """Forget it."""
        self.marks.discard(mark)

    def sync(self) -> None:
        """Do nothing: there is no disk."""

    def change(self, changes: Sequence[IncomingChange]) -> None:
        """Record edits and deletions."""
        self.changes += changes
        self._note()

    def threads(self, channel_kind: str, team: str) -> tuple[BoundThread, ...]:
        """Return the bound threads of the test."""
        return tuple(self.bound)

    def behind(self, channel_kind: str) -> None:
        """Record that replies may have been missed, by how many were received before."""
        self.gaps.append(len(self.replies))

    def swept(self, channel_kind: str, team: str, swept: Swept) -> None:
        """Move the thread's cursor, as core does."""
        self.sweeps.append(swept)
        self.bound = [
            replace(thread, cursor=swept.cursor, shared=swept.shared, fresh=False)
            if thread.thread == swept.thread
            else thread
            for thread in self.bound
        ]
        self._note()

    def to_fetch(self, channel_kind: str) -> tuple[Fetch, ...]:
        """Return what came with files and was not told yet."""
        done = set(self.told)
        found = {reply.ts: reply for reply in self.replies if reply.files and reply.ts not in done}
        return tuple(Fetch(ts, "scribe", reply.files) for ts, reply in found.items())

    def keep_file(self, message_id: str, position: int, name: str, data: bytes) -> str:
        """Keep the data under the message and the name."""
        self.kept[f"{message_id}/{position}"] = data
        return f"/files/{message_id}/{name}"

    def fetched(self, message_id: str, files: Sequence[Fetched]) -> None:
        """Record what became of the files."""
        self.told[message_id] = list(files)
        self._note()

    def rows(self, author: str) -> tuple[Mapping[str, Any], ...]:
        """Return the sessions of the test, and note who asked."""
        self.lookers.append(author)
        self._note()
        if self.rows_error is not None:
            raise self.rows_error
        return tuple(self.sessions)

    def waiting(self, channel_kind: str, author: str) -> tuple[Waiting, ...]:
        """Return what waits in the test."""
        return tuple(self.questions)

    def press(self, press: IncomingPress) -> PrivateAnswer:
        """Record the press."""
        self.presses.append(press)
        return PrivateAnswer("")

    def order(self, order: IncomingOrder) -> PrivateAnswer:
        """Record the command."""
        self.orders.append(order)
        if self.order_error is not None:
            raise self.order_error
        terminal = order.name if order.verb == "screen" else ""
        return PrivateAnswer(f"{order.verb} done", "screen" if terminal else "", terminal=terminal)

    def picture(self, name: str, author: str) -> tuple[str, bytes]:
        """Return the picture of the test, and note who asked."""
        self.lookers.append(author)
        self._note()
        self.drawing.wait(PATIENCE)
        if self.picture_error is not None:
            raise self.picture_error
        return f"{name}-2026-11-30-210500.png", PICTURE

    def task(self, task: IncomingTask) -> Verdict:
        """Record a task."""
        if self.broken:
            self._note()
            raise StoreBroken("the disk is full", "free some space")
        before = {one.message.ts for one in self.tasks}
        self.tasks.append(task)
        self._note()
        return Verdict.DUPLICATE if task.message.ts in before else Verdict.COMMITTED

    def harnesses(self) -> tuple[str, ...]:
        """Name two."""
        return ("claude", "codex")

    def faults(self, creation: IncomingCreation) -> Mapping[str, str]:
        """Find wrong what the test says."""
        return dict(self.wrong)

    def create(self, creation: IncomingCreation) -> PrivateAnswer:
        """Record the creation."""
        self.creations.append(creation)
        self._note()
        if self.order_error is not None:
            raise self.order_error
        return PrivateAnswer(f"{creation.name} is created")

    def refuse(
        self, channel_kind: str, author: str, what: str, *, name: str = "", press: IncomingPress | None = None
    ) -> None:
        """Record who was refused what."""
        self.refused.append(Refusal(channel_kind, author, what, name))
        self._note()

    def shown(self, text: str, *, verbatim: bool = False) -> str:
        """Take one word for a secret, and tell commands apart from what is shown as it is."""
        hidden = text.replace(SECRET, "[redacted]")
        return hidden if verbatim else hidden.replace("`the-loop ", "`/opt/the-loop ")

    def listed(self, channel_kind: str, member: str) -> bool:
        """Know no other list than the channel's own."""
        return False

    def sensed(self, channel_kind: str) -> None:
        """Count the events."""
        self.events += 1

    def connected(self, channel_kind: str, up: bool, detail: str) -> None:
        """Record how the connection stands."""
        self.states.append((up, detail))
        self._note()

    def wait(self, find: Callable[[Door], T | None], deadline: float = PATIENCE) -> T:
        """Return what `find` finds, neither None nor False."""
        with self._changed:
            self._changed.wait_for(lambda: find(self) not in (None, False), deadline)
            found = find(self)
        assert found not in (None, False), f"not seen within {deadline:g} s: {self.states}, {self.replies}"
        assert found is not None
        return found

    def wait_until_up(self) -> str:
        """Return the detail of the latest state, which is a connected one."""
        return self.wait(lambda door: door.states[-1][1] if door.states and door.states[-1][0] else None)

    def wait_until_down(self) -> str:
        """Return the detail of the latest state, which is a disconnected one."""
        return self.wait(lambda door: door.states[-1][1] if door.states and not door.states[-1][0] else None)

    def wait_for_replies(self, count: int) -> list[IncomingReply]:
        """Return the replies once there are that many."""
        return self.wait(lambda door: door.replies if len(door.replies) >= count else None)

    def _note(self) -> None:
        with self._changed:
            self._changed.notify_all()


class Served:
    """The channel, served in a thread of its own."""

    def __init__(
        self, workspace: WorkspaceThread, door: Door, tokens: Mapping[str, str] | None = None, **block: Any
    ) -> None:
        self.workspace = workspace
        self.channel = channel_on(workspace, tokens, **block)
        self._door = door
        self._stopping = threading.Event()
        self._threads = ThreadPoolExecutor(1, "slack-channel")
        self._serving: Future[None] | None = None

    def __enter__(self) -> Self:
        self._serving = self._threads.submit(self.channel.serve, self._door, self._stopping.is_set)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._door.gate.set()
        self._stopping.set()
        self._threads.shutdown()

    def stop(self, deadline: float = PATIENCE) -> None:
        """Ask it to stop, and wait until it has."""
        self._stopping.set()
        self.ended(deadline)

    def ended(self, deadline: float = PATIENCE) -> None:
        """Wait until serving has returned, and raise what it raised."""
        assert self._serving is not None, "nothing is served"
        self._serving.result(deadline)

    def thread(self, text: str = "scribe is up") -> str:
        """Post a root as the bot, and return its ts."""
        return self.channel.post(post_of(text), self.workspace.channel_id("agents"), "").ts


def channel_on(
    workspace: WorkspaceThread,
    tokens: Mapping[str, str] | None = None,
    *,
    pace: Pace = QUICK,
    sweep_pace: SweepPace = SWEEP_PACE,
    clock: Clock | None = None,
    **block: Any,
) -> SlackChannel:
    """Return a channel on the workspace; alice is on the allow-list unless the block says otherwise."""
    whole = {
        "enabled": True,
        "apiUrl": workspace.api_url,
        "channel": workspace.channel_id("agents"),
        "authorizedUsers": [workspace.user_id("alice")],
        **block,
    }
    environ = {
        "THE_LOOP_SLACK_BOT_TOKEN": workspace.bot_token,
        "THE_LOOP_SLACK_APP_TOKEN": workspace.app_token,
        **(tokens or {}),
    }
    return SlackChannel(
        whole,
        environ,
        clock=clock,
        pace=pace,
        sweep_pace=sweep_pace,
        file_pace=FILE_PACE,
        http_patience=HTTP_PATIENCE,
    )


def post_of(text: str, *, id: str = "p-1", kind: OutboundKind = OutboundKind.ROOT) -> NewPost:
    """Return a post of the session `scribe`."""
    return NewPost(id=id, key=id, kind=kind, uid="s-1", name="scribe", channel_kind="slack", text=text)
