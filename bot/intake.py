"""Hand over to core what people wrote, in order, before Slack is told that it arrived.

Replies, their edits and deletions pass one FIFO in the order of their frames, because Bolt runs a task for each event
and tasks overtake one another. What a backfill finds takes its place there too. One consumer takes all that wait, looks
their authors up, and hands them over in one call, so a burst costs one commit. What could not be committed is not
acknowledged, and Slack sends it again. A repeated delivery is not dropped for being one, because it may be the only
copy that arrived; core finds duplicates by (team, channel, ts).

The event loop and core meet here and nowhere else: calls into core run in threads.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import groupby
from typing import Any, TypeVar

from slack_bolt.context.async_context import AsyncBoltContext
from slack_bolt.response import BoltResponse

from bot.directory import Directory, age, words_of
from bot.documents import Document
from bot.payloads import KIND, as_known
from bot.settings import SlackSettings
from bot.views import Clean
from bot.words import mentioned, plain, quoted
from core.base.clock import Clock
from core.base.errors import ChannelError, Refused, StoreBroken
from core.base.values import dataclass, replace
from core.model.channel import (
    BoundThread,
    CoreApi,
    IncomingChange,
    IncomingCreation,
    IncomingOrder,
    IncomingPress,
    IncomingReply,
    IncomingTask,
    PrivateAnswer,
    Swept,
    Template,
    Verdict,
    Waiting,
)
from core.model.message import Fetch, Fetched

log = logging.getLogger(__name__)

Drawn = TypeVar("Drawn")
_HEAD_START_SECONDS = 0.02  # is no wait for whoever wrote: Slack gives three seconds
_ASKING = 2  # threads for each kind of question
_TAKING = 8  # of replies, each of which may go on into a terminal after it was answered
_KEEPING = 2  # threads that wait for the disk alone


MOST_PICTURES = 8  #: of terminals, that are being made or wait for it


class AsyncDoor:
    """Core's door, awaited. What takes replies in has threads of its own: nothing else keeps one waiting.

    What may ask tmux for long has others, and all else shares the loop's own.
    """

    def __init__(self, door: CoreApi, named: Callable[[str], str] = str) -> None:
        """`named` puts names for ids of people; it may wait."""
        self._door = door
        self._named = named
        self._taking = ThreadPoolExecutor(_TAKING, "taking")
        self._keeping = ThreadPoolExecutor(_KEEPING, "keeping")
        self._asking = ThreadPoolExecutor(_ASKING, "asking")
        self._pressing = ThreadPoolExecutor(_ASKING, "pressing")
        self._ordering = ThreadPoolExecutor(_ASKING, "ordering")
        self._picturing = ThreadPoolExecutor(1, "picturing")
        self._pictures = 0  #: that are being made, or wait for it

    def close(self) -> None:
        """Return once all that was asked is answered."""
        for threads in (self._taking, self._keeping, self._asking, self._pressing, self._ordering):
            threads.shutdown()
        self._picturing.shutdown(wait=False, cancel_futures=True)  # nobody waits for one

    async def receive(self, replies: Sequence[IncomingReply]) -> tuple[Verdict | None, ...]:
        """Hand replies over; once this returns they are on the disk, but for those that have to come again (None).

        Raises StoreBroken.

        Core's thread has a head start on its way into the terminal, for both need the interpreter; where that way takes
        longer, nobody waits for more than the disk.
        """
        taken: list[tuple[Verdict | None, ...]] = []
        work = asyncio.get_running_loop().run_in_executor(self._taking, self._door.receive, replies, taken.append)
        while True:
            await asyncio.wait((work,), timeout=_HEAD_START_SECONDS)
            if work.done():
                await work
                return taken[0]
            if taken:
                work.add_done_callback(_tell)
                await asyncio.get_running_loop().run_in_executor(self._keeping, self._door.sync)
                return taken[0]

    def heard(self, mark: str, until: datetime, *, durable: bool) -> bool:
        """Take note of a request; see CoreDoor. Asked in a thread that may wait. Raises StoreBroken."""
        return self._door.heard(KIND, mark, until, durable=durable)

    def unheard(self, mark: str) -> None:
        """Let a request that was not taken come again; asked in a thread that may wait. Raises StoreBroken."""
        self._door.unheard(KIND, mark)

    async def change(self, changes: Sequence[IncomingChange]) -> None:
        """Hand edits and deletions over. Raises StoreBroken."""
        await asyncio.get_running_loop().run_in_executor(self._keeping, self._door.change, changes)

    async def threads(self, channel_kind: str, team: str) -> tuple[BoundThread, ...]:
        """Return the bound threads. Raises StoreBroken."""
        return await asyncio.to_thread(self._door.threads, channel_kind, team)

    async def behind(self, channel_kind: str) -> None:
        """Let what comes from now on wait for the next sweep of its thread."""
        await asyncio.get_running_loop().run_in_executor(self._keeping, self._door.behind, channel_kind)

    async def swept(self, channel_kind: str, team: str, swept: Swept) -> None:
        """Note that a thread was read to its end. Raises StoreBroken."""
        await asyncio.to_thread(self._door.swept, channel_kind, team, swept)

    async def to_fetch(self, channel_kind: str) -> tuple[Fetch, ...]:
        """Return the messages that wait for their files. Raises StoreBroken."""
        return await asyncio.to_thread(self._door.to_fetch, channel_kind)

    async def keep_file(self, message_id: str, position: int, name: str, data: bytes) -> str:
        """Keep a file and return its path. Raises StoreBroken."""
        return await asyncio.to_thread(self._door.keep_file, message_id, position, name, data)

    async def fetched(self, message_id: str, files: Sequence[Fetched]) -> None:
        """Let a message with files go on. Raises StoreBroken."""
        await asyncio.to_thread(self._door.fetched, message_id, files)

    async def rows(self, author: str) -> tuple[Mapping[str, Any], ...]:
        """Return the rows of `list` that the author may see. Raises CoreError."""
        return await asyncio.get_running_loop().run_in_executor(self._asking, self._door.rows, author)

    async def waiting(self, kind: str, author: str) -> tuple[Waiting, ...]:
        """Return what waits for the author's answer. Raises CoreError."""
        return await asyncio.get_running_loop().run_in_executor(self._asking, self._door.waiting, kind, author)

    async def press(self, press: IncomingPress) -> PrivateAnswer:
        """Do what a button is for. Raises CoreError."""
        return await asyncio.get_running_loop().run_in_executor(self._pressing, self._door.press, press)

    async def order(self, order: IncomingOrder) -> PrivateAnswer:
        """Do what a command says. Raises CoreError."""
        return await asyncio.get_running_loop().run_in_executor(self._ordering, self._door.order, order)

    async def task(self, task: IncomingTask) -> Verdict:
        """Take a task; once this returns it is on the disk. Raises StoreBroken."""
        return await asyncio.get_running_loop().run_in_executor(self._keeping, self._door.task, task)

    async def harnesses(self) -> tuple[str, ...]:
        """Return the names of the harnesses, the default one first."""
        return await asyncio.to_thread(self._door.harnesses)

    async def faults(self, creation: IncomingCreation) -> Mapping[str, str]:
        """Return what is wrong with a creation, by field of it."""
        return await asyncio.to_thread(self._door.faults, creation)

    async def create(self, creation: IncomingCreation) -> PrivateAnswer:
        """Create and start a session. Raises CoreError."""
        return await asyncio.get_running_loop().run_in_executor(self._ordering, self._door.create, creation)

    async def refuse(self, author: str, what: str, *, name: str = "", press: IncomingPress | None = None) -> None:
        """Report a person without the right, with the verb or the button's action."""
        await asyncio.to_thread(self._door.refuse, KIND, author, what, name=name, press=press)

    async def picture(self, name: str, author: str, keep: Callable[[str, bytes], str]) -> tuple[str, str]:
        """Draw the session's terminal, let it be kept, and return what it is called and where it is kept.

        By a thread of its own: it takes seconds, and replies do not wait for it. Raises CoreError, Refused where many
        wait already.
        """
        if self._pictures >= MOST_PICTURES:
            raise Refused(f"{MOST_PICTURES} pictures are being made, which is all that there may be", "ask again later")

        def made() -> tuple[str, str]:
            called, content = self._door.picture(name, author)
            return called, keep(called, content)

        self._pictures += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._picturing, made)
        finally:
            self._pictures -= 1

    async def shown(self, draft: Callable[[Clean], Drawn]) -> Drawn:
        """Return what a draft becomes with people's names in its texts, once core has taken the secrets out of them."""

        def clean(text: str, *, verbatim: bool = False) -> str:
            return self._door.shown(text if verbatim else self._named(text), verbatim=verbatim)

        return await asyncio.to_thread(draft, clean)

    def listed(self, member: str) -> bool:
        """Return whether a list that is not the channel's own names the member: core returns at once."""
        return self._door.listed(KIND, member)

    def sensed(self, kind: str) -> None:
        """Note that an event has come: core returns at once."""
        self._door.sensed(kind)

    async def connected(self, kind: str, up: bool, detail: str) -> None:
        """Report the state of the connection to the service."""
        await asyncio.to_thread(self._door.connected, kind, up, detail)


def _tell(work: "asyncio.Future[None]") -> None:
    """Log that a delivery failed whose reply is on the disk, and was answered: the delivery thread goes on with it."""
    error = None if work.cancelled() else work.exception()
    if error is not None:
        log.warning("a reply is not delivered at once", extra={"reason": str(error)})


COMMIT = "the_loop_commit"  #: the key in Bolt's context under which a reply's Ticket.committed stands
LAST_RETRY = 3  #: Slack delivers four times: the event and three retries
_BATCH = 100
ASK_SECONDS = 2.0

Item = IncomingReply | IncomingChange


@dataclass(frozen=True)
class Ticket:
    """Something that waits for its commit. `committed` becomes core's word, or None if it has to be sent again."""

    item: Item
    message: Document  #: what it was made from
    retry: int  #: which delivery this is; 0 is the first
    committed: asyncio.Future[Verdict | None]
    called: str = ""  #: whose mention is no part of the text

    @property
    def reply(self) -> IncomingReply:
        """The message that it is about."""
        return self.item if isinstance(self.item, IncomingReply) else self.item.reply


class Intake:
    """Takes in what people wrote, edited and deleted, in order, and settles the tickets."""

    def __init__(self, door: AsyncDoor, directory: Directory, settings: SlackSettings, clock: Clock) -> None:
        self._door = door
        self._directory = directory
        self._settings = settings
        self._clock = clock
        self._waiting: asyncio.Queue[Ticket] = asyncio.Queue()
        self._broken = False
        self.committed: Callable[[], None] = lambda: None  #: called once something is new in core
        #: called with the channel and the thread of what was handed over and waits until its thread was read
        self.unordered: Callable[[str, str], None] = lambda channel, thread: None
        #: called with the channel and the thread of what could not be taken
        self.missed: Callable[[str, str], None] = lambda channel, thread: None

    def offer(self, item: Item, message: Document, retry: int, called: str = "") -> asyncio.Future[Verdict | None]:
        """Take a place in the queue, at once: no await may come between the frame and this call."""
        ticket = Ticket(item, message, retry, asyncio.get_running_loop().create_future(), called)
        self._waiting.put_nowait(ticket)
        return ticket.committed

    async def take(
        self, reply: IncomingReply, message: Document, template: Template, bot: str, retry: int
    ) -> Verdict | None:
        """Hand a task over, with what is known of its author, without the mention of the bot.

        None where Slack has to send it again.
        """
        found = await self._looked_up(reply, message, retry)
        if found is None:
            return None
        try:
            return await self._door.task(IncomingTask(await self._without(bot, found), template))
        except StoreBroken as error:
            log.error("a task cannot be stored; Slack is asked to send it again", extra={"reason": str(error)})
            return None

    async def run(self) -> None:
        """Consume until cancelled, or until core fails; then what waits is given up: Slack sends it again."""
        batch: list[Ticket] = []
        try:
            while True:
                batch = await self._batch()
                await self._commit(batch)
        finally:
            for ticket in (*batch, *self._rest()):
                if not ticket.committed.done():
                    ticket.committed.set_result(None)

    async def warm(self) -> None:
        """Learn who the listed people are, so that a moment in which Slack does not say costs nobody a reply."""
        listed = [entry.rpartition(":")[2] for entry in self._settings.everybody()]
        await self._directory.names(listed, ASK_SECONDS)

    async def _batch(self) -> list[Ticket]:
        return [await self._waiting.get(), *self._rest(_BATCH - 1)]

    def _rest(self, most: int | None = None) -> list[Ticket]:
        """Return what waits, without waiting for more."""
        count = self._waiting.qsize() if most is None else min(most, self._waiting.qsize())
        return [self._waiting.get_nowait() for _ in range(count)]

    async def _commit(self, batch: list[Ticket]) -> None:
        if len(batch) == 1:
            items = [await self._known(batch[0])]
        else:
            items = await asyncio.gather(*(self._known(ticket) for ticket in batch))
        known = [(ticket, item) for ticket, item in zip(batch, items, strict=True) if item is not None]
        verdicts: dict[int, Verdict] = {}
        for kind, group in groupby(known, key=lambda pair: type(pair[1])):
            pairs = list(group)
            done = await self._hand_over(kind, [item for _, item in pairs])
            verdicts |= {id(ticket): verdict for (ticket, _), verdict in zip(pairs, done, strict=True) if verdict}
        if untaken := [ticket for ticket in batch if verdicts.get(id(ticket)) is None]:
            await self._door.behind(KIND)  # Slack sends it again, but after others
            for ticket in untaken:
                self.missed(ticket.reply.channel, ticket.reply.thread)
        for reply in {ticket.reply for ticket in batch if ticket.reply.unordered}:
            self.unordered(reply.channel, reply.thread)
        for ticket in batch:
            verdict = verdicts.get(id(ticket))
            if not ticket.committed.done():
                ticket.committed.set_result(verdict)
        if Verdict.COMMITTED in verdicts.values():
            self.committed()

    async def _hand_over(self, kind: type[Item], items: Sequence[Item]) -> Sequence[Verdict | None]:
        """Give items of one kind to core; None for each of them where it could not store them."""
        try:
            if kind is IncomingChange:
                await self._door.change([item for item in items if isinstance(item, IncomingChange)])
                verdicts: Sequence[Verdict | None] = [Verdict.DUPLICATE] * len(items)
                self.committed()  # a note to colleagues may have become a message, with files
            else:
                verdicts = await self._door.receive([item for item in items if isinstance(item, IncomingReply)])
        except StoreBroken as error:
            if not self._broken:
                log.error("replies cannot be stored; Slack is asked to send them again", extra={"reason": str(error)})
            self._broken = True
            return [None] * len(items)
        if self._broken:
            log.info("replies are stored again")
        self._broken = False
        return verdicts

    async def _known(self, ticket: Ticket) -> Item | None:
        """Return the item with what is known of its author, None if Slack has to send it again."""
        item = ticket.item
        if isinstance(item, IncomingChange) and item.deleted:
            return item
        found = await self._looked_up(ticket.reply, ticket.message, ticket.retry)
        if isinstance(item, IncomingReply):
            return found
        if found is not None and ticket.called:
            found = await self._without(ticket.called, found)
        return None if found is None else replace(item, reply=found)

    async def _without(self, bot: str, reply: IncomingReply) -> IncomingReply:
        """Return the reply without the mention of the bot, by which it was called."""
        called = (await self._directory.names([bot], ASK_SECONDS)).get(bot, bot) if not reply.unlisted else bot
        return replace(reply, text=reply.text.replace(f"@{called}", "", 1).strip())

    async def _looked_up(self, reply: IncomingReply, message: Document, retry: int) -> IncomingReply | None:
        """Return the reply as its author is known, with names in its text; None if Slack has to send it again.

        Only those on the allow-list are looked up: nobody else's reply depends on the answer. Where Slack does not say
        who they are (a guest? deactivated?), the last delivery goes on without a team, which core refuses.
        """
        if reply.is_bot or not (self._settings.listed(reply.author) or self._door.listed(reply.author)):
            return replace(reply, unlisted=not reply.is_bot)
        try:
            person = await self._directory.person(reply.author, ASK_SECONDS)
        except ChannelError as error:
            log.warning("an author could not be looked up", extra={"author": reply.author, "reason": str(error)})
            if retry < LAST_RETRY:
                return None
            self.missed(reply.channel, reply.thread)
            return replace(reply, author_team="")
        known = replace(as_known(reply, person), confirm=late(reply.ts, self._settings, self._clock))
        ids = mentioned(message)
        if not ids:
            return known
        names = await self._directory.names(ids, ASK_SECONDS)
        return replace(known, text=plain(message, names), quoted=quoted(message, names))


def late(ts: str, settings: SlackSettings, clock: Clock) -> str:
    """Return why a reply has to be confirmed, if it does: it says what somebody wanted long ago."""
    seconds = age(ts, clock.now())
    limit = settings.confirm_older_than_minutes * 60
    return f"sent {words_of(seconds)} ago" if seconds > limit else ""


async def commit_before_ack(context: AsyncBoltContext, next: Callable[[], Awaitable[None]]) -> BoltResponse | None:
    """Let Bolt acknowledge a message once its reply is on the disk; events that are no reply pass at once."""
    committed: asyncio.Future[Verdict | None] | None = context.get(COMMIT)
    if committed is None or await committed:
        await next()
        return None
    return BoltResponse(status=503, body="")
