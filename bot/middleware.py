"""The intake: a reply is committed by core before Slack is told that it arrived.

Replies, and edits and deletions of them, pass one FIFO in the order in which their frames came, because Bolt runs a
task for each event and those overtake one another; what a sweep finds takes its place there, too. A single consumer
takes all that wait and hands them over in one call, so that a burst costs one commit. What could not be committed is
not acknowledged, and Slack sends it again; a repeated delivery is never dropped for being one, since it may be the only
copy that arrived. Core finds duplicates, by (team, channel, ts).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby

from slack_bolt.context.async_context import AsyncBoltContext
from slack_bolt.response import BoltResponse

from bot.ages import age, words_of
from bot.bridge import AsyncDoor
from bot.directory import Directory
from bot.payloads import KIND, Document, as_known
from bot.settings import SlackSettings
from bot.words import mentioned, plain, quoted
from core.clock import Clock
from core.errors import ChannelError, StoreBroken
from core.ports import IncomingChange, IncomingReply, Verdict
from core.values import dataclass, replace

log = logging.getLogger(__name__)

COMMIT = "the_loop_commit"  #: the key in Bolt's context under which a reply's Ticket.committed stands
LAST_RETRY = 3  #: Slack delivers four times: the event and three retries
_BATCH = 100
_ASK_SECONDS = 2.0

Item = IncomingReply | IncomingChange


@dataclass(frozen=True)
class Ticket:
    """Something that waits for its commit. `committed` becomes core's word, or None if it has to be sent again."""

    item: Item
    message: Document  #: what it was made from
    retry: int  #: which delivery this is; 0 is the first
    committed: asyncio.Future[Verdict | None]


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
        self.missed: Callable[[], None] = lambda: None  #: called once something could not be taken

    def offer(self, item: Item, message: Document, retry: int) -> asyncio.Future[Verdict | None]:
        """Take a place in the queue, at once: no await may come between the frame and this call."""
        ticket = Ticket(item, message, retry, asyncio.get_running_loop().create_future())
        self._waiting.put_nowait(ticket)
        return ticket.committed

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
        listed = [entry.rpartition(":")[2] for entry in self._settings.authorized_users]
        await self._directory.names(listed, _ASK_SECONDS)

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
        if any(verdicts.get(id(ticket)) is None for ticket in batch):
            await self._door.behind(KIND)  # Slack sends it again, but after others
            self.missed()
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
        if isinstance(item, IncomingReply):
            return await self._looked_up(item, ticket)
        if item.deleted:
            return item
        found = await self._looked_up(item.reply, ticket)
        return None if found is None else replace(item, reply=found)

    async def _looked_up(self, reply: IncomingReply, ticket: Ticket) -> IncomingReply | None:
        """Return the reply as its author is known, with names in its text.

        Only those on the allow-list are looked up: nobody else's reply depends on the answer. Where Slack does not say
        who they are (a guest? deactivated?), the last delivery goes on without a team, which core refuses.
        """
        if reply.is_bot or not self._settings.listed(reply.author):
            return replace(reply, unlisted=not reply.is_bot)
        try:
            person = await self._directory.person(reply.author, _ASK_SECONDS)
        except ChannelError as error:
            log.warning("an author could not be looked up", extra={"author": reply.author, "reason": str(error)})
            if ticket.retry < LAST_RETRY:
                return None
            self.missed()
            return replace(reply, author_team="")
        known = replace(as_known(reply, person), confirm=self._late(reply.ts))
        ids = mentioned(ticket.message)
        if not ids:
            return known
        names = await self._directory.names(ids, _ASK_SECONDS)
        return replace(known, text=plain(ticket.message, names), quoted=quoted(ticket.message, names))

    def _late(self, ts: str) -> str:
        """Return why a reply has to be confirmed: it says what somebody wanted long ago."""
        seconds = age(ts, self._clock.now())
        limit = self._settings.confirm_older_than_minutes * 60
        return f"sent {words_of(seconds)} ago" if seconds > limit else ""


async def commit_before_ack(context: AsyncBoltContext, next: Callable[[], Awaitable[None]]) -> BoltResponse | None:
    """Let Bolt acknowledge a message once its reply is on the disk; events that are no reply pass at once."""
    committed: asyncio.Future[Verdict | None] | None = context.get(COMMIT)
    if committed is None or await committed:
        await next()
        return None
    return BoltResponse(status=503, body="")
