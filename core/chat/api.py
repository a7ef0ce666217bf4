"""What a channel may ask of core, from any of its threads."""

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from core.base.errors import NotRunning, Refused, StoreBroken, UnknownSession
from core.base.redaction import redactor_of
from core.chat.backfill import CatchingUp, threads
from core.chat.backfill import swept as note_swept
from core.chat.commands import Orders
from core.chat.creating import Creations
from core.chat.inbound import Changes, Inbound, tell_refused
from core.chat.presses import Presses
from core.chat.remedies import Typed, as_done_there
from core.chat.tasks import TaskIntake
from core.config.settings import secret_variables
from core.delivery.pictures import picture
from core.lifecycle.look import list_standing
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
from core.process.presence import Connections
from core.session.attachments import fetched, keep_file
from core.session.sessions import definition_of
from core.session.system import System

_LOG = logging.getLogger(__name__)
_ATTEMPTS = 5


class ChatApi:
    """The CoreDoor of the service."""

    def __init__(
        self,
        system: System,
        connections: Connections,
        inbound: Inbound,
        changes: Changes,
        committed: Callable[[], None],
        presses: Presses,
        orders: Orders,
        creations: Creations,
        catching_up: CatchingUp,
        at_once: Callable[[Collection[str]], None],
        typed: Typed,
        tasks: TaskIntake,
    ) -> None:
        """`committed` is called once something else is new in the inbox; `typed` is the channel's.

        `at_once` takes the next step of the sessions with these uids.
        """
        self._system = system
        self._up_as = ""  #: how the connection stood when it was up last
        self._redactor = redactor_of(system.environ, secret_variables(system.settings, system.environ))
        self._changes = changes
        self._presses = presses
        self._orders = orders
        self._creations = creations
        self._tasks = tasks
        self._catching_up = catching_up
        self._connections = connections
        self._inbound = inbound
        self._committed = committed
        self._at_once = at_once
        self._typed = typed

    def receive(self, replies: Sequence[IncomingReply], taken: Callable[[tuple[Verdict | None, ...]], None]) -> None:
        """Run the inbound pipeline; once this returns, what passed is on the disk. Raises StoreBroken.

        `taken` is called with its words, None for what has to come again, as soon as that is committed. What follows,
        in this thread, is the way into the terminal, which may take seconds: who cannot wait for it calls `sync`, in
        another thread.

        The disk comes last: a power cut ends the terminal, too.
        """
        for place in {(one.channel_kind, one.channel, one.thread) for one in replies if one.unordered}:
            self._catching_up.behind_in(*place)
        found = self._inbound.take(replies)
        taken(found.verdicts)
        try:
            found.tell()
            self._deliver(found.uids)
        finally:
            self.sync()

    def sync(self) -> None:
        """Return once all that was taken is on the disk. Raises StoreBroken."""
        self._system.database.sync()

    def _deliver(self, uids: Collection[str]) -> None:
        try:
            self._at_once(uids)
        except StoreBroken as error:
            _LOG.warning("a reply is not delivered at once", extra={"reason": str(error)})
            self._committed()

    def heard(self, channel_kind: str, mark: str, until: datetime, *, durable: bool) -> bool:
        """Take note of a request that is about to be taken; False if it was before, by this or an earlier service.

        `mark` tells it from all others; it is known until that time. `durable`: a power cut does not undo it. Raises
        StoreBroken.
        """
        now = self._system.clock.now()
        return self._system.database.heard(channel_kind, mark, now, until, durable=durable)

    def unheard(self, channel_kind: str, mark: str) -> None:
        """Let a request that was not taken come again. Raises StoreBroken."""
        self._system.database.unheard(channel_kind, mark)

    def change(self, changes: Sequence[IncomingChange]) -> None:
        """Apply edits and deletions; one that delivery was faster than is judged by how it stands then."""
        self._tasks.change(changes)
        late: tuple[IncomingReply, ...] = ()
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                late = self._changes.apply(changes)
                break
            except Refused as error:
                if attempt == _ATTEMPTS:
                    raise StoreBroken(f"an edit cannot be applied: {error}", "it is tried again") from error
        self._committed()
        verdicts: list[Verdict | None] = []
        if late:
            self.receive(late, verdicts.extend)
        if None in verdicts:
            raise StoreBroken("an edit cannot be taken: its session's record cannot be read", "it is tried again")

    def threads(self, channel_kind: str, team: str) -> tuple[BoundThread, ...]:
        """Return the bound threads, the session's first that was spoken with last: a sweep begins.

        Raises StoreBroken.
        """
        self._catching_up.looking(channel_kind)
        return threads(self._system.inbox, self._system.bindings, self._system.activities, channel_kind, team)

    def behind(self, channel_kind: str) -> None:
        """Hold back what comes from now on until the sweep of its thread is over."""
        self._catching_up.behind(channel_kind)

    def swept(self, channel_kind: str, team: str, swept: Swept) -> None:
        """Move the thread's cursor, and tell in the thread what was caught up. Raises StoreBroken."""
        note_swept(self._system, channel_kind, team, swept)
        self._catching_up.swept(channel_kind, swept.channel, swept.thread)
        self._committed()

    def to_fetch(self, channel_kind: str) -> tuple[Fetch, ...]:
        """Return the messages that wait for their files. Raises StoreBroken."""
        return self._system.inbox.to_fetch(channel_kind)

    def keep_file(self, message_id: str, position: int, name: str, data: bytes) -> str:
        """Write a file into the session's folder, and return its path. Raises StoreBroken."""
        return keep_file(self._system, message_id, position, name, data)

    def fetched(self, message_id: str, files: Sequence[Fetched]) -> None:
        """Let the message go on, its text naming the files. Raises StoreBroken."""
        fetched(self._system, message_id, files)
        self._committed()

    def rows(self, author: str) -> tuple[Mapping[str, Any], ...]:
        """Return the rows of the sessions that the author may steer, without secrets: they are shown in a chat."""
        rows = (row for row in list_standing(self._system) if self._orders.may_see(row.name, author))
        return tuple(self._redactor.redact_all(row.to_json()) for row in rows)

    def waiting(self, channel_kind: str, author: str) -> tuple[Waiting, ...]:
        """Return what waits for an answer in sessions that the author may steer. Raises StoreBroken."""
        return self._presses.waiting(channel_kind, author)

    def press(self, press: IncomingPress) -> PrivateAnswer:
        """Do what a button is for. Raises CoreError."""
        return self._presses.press(press)

    def order(self, order: IncomingOrder) -> PrivateAnswer:
        """Do what a command says. Raises CoreError."""
        return self._orders.order(order)

    def picture(self, name: str, author: str) -> tuple[str, bytes]:
        """Draw the session's terminal. Raises UnknownSession, NoPicture, NotRunning, TmuxSilent."""
        if not self._orders.may_see(name, author):
            raise UnknownSession(name)
        record = definition_of(self._system.settings, self._system.records, name).record
        if record is None or record.instance_id is None:
            raise NotRunning(f"{name} has no terminal", f"start it: `the-loop standing start {name}`")
        return f"{name}-{self._system.clock.now():%Y-%m-%d-%H%M%S}.png", picture(self._system, record.instance_id)

    def task(self, task: IncomingTask) -> Verdict:
        """Take a task, durably. Raises StoreBroken."""
        return self._tasks.take(task)

    def harnesses(self) -> tuple[str, ...]:
        """Return the names of the harnesses that there are, the default one first."""
        return self._creations.harnesses()

    def faults(self, creation: IncomingCreation) -> Mapping[str, str]:
        """Return what is wrong with a creation, by field of it."""
        return self._creations.faults(creation)

    def create(self, creation: IncomingCreation) -> PrivateAnswer:
        """Create and start the session. Raises CoreError."""
        return self._creations.create(creation)

    def refuse(
        self, channel_kind: str, author: str, what: str, *, name: str = "", press: IncomingPress | None = None
    ) -> None:
        """Report a person without the right to the event log."""
        tell_refused(self._system, channel_kind, author, what, name=name, press=press)

    def shown(self, text: str, *, verbatim: bool = False) -> str:
        """Return a text as it may be shown: commands as the chat has them, then secrets taken out, those of a path
        among them."""
        settings, environ = self._system.settings, self._system.environ
        return self._redactor.redact(text if verbatim else as_done_there(text, settings, environ, self._typed))

    def listed(self, channel_kind: str, member: str) -> bool:
        """Return False: all lists of one machine are the channel's own."""
        return False

    def sensed(self, channel_kind: str) -> None:
        """Note that an event has come."""
        self._connections.sensed(channel_kind)

    def connected(self, channel_kind: str, up: bool, detail: str) -> None:
        """Keep how the connection stands, and tell when it changed, or is up otherwise: with somebody beside us."""
        changed = self._connections.set(channel_kind, up, detail)
        other, self._up_as = up and detail != self._up_as, detail if up else self._up_as
        if changed or other:
            event = "channel.connected" if up else "channel.disconnected"
            self._system.events.emit(event, level="info" if up else "warning", channel=channel_kind, detail=detail)
