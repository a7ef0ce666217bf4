"""The intake: a reply is committed by core before Slack is told that it arrived.

Replies pass one FIFO in the order in which their frames came, because Bolt runs a task for each event and those
overtake one another. A single consumer takes all that wait and hands them over in one call, so that a burst costs
one commit. What could not be committed is not acknowledged, and Slack sends it again; a repeated delivery is never
dropped for being one, since it may be the only copy that arrived. Core finds duplicates, by (team, channel, ts).
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from slack_bolt.context.async_context import AsyncBoltContext
from slack_bolt.response import BoltResponse

from bot.bridge import AsyncDoor
from bot.directory import Directory
from bot.payloads import as_known
from core.errors import ChannelError, StoreBroken
from core.ports import IncomingReply

log = logging.getLogger(__name__)

COMMIT = "the_loop_commit"  #: the key in Bolt's context under which a reply's Ticket.committed stands
LAST_RETRY = 3  #: Slack delivers four times: the event and three retries
_BATCH = 100
_ASK_SECONDS = 2.0


@dataclass(frozen=True)
class Ticket:
    """A reply that waits for its commit. `committed` becomes True, or False if Slack has to send it again."""

    reply: IncomingReply
    retry: int  #: which delivery this is; 0 is the first
    committed: asyncio.Future[bool]


class Intake:
    """Takes replies in, in order, and settles their tickets."""

    def __init__(self, door: AsyncDoor, directory: Directory, authorized: Callable[[str], bool]) -> None:
        self._door = door
        self._directory = directory
        self._authorized = authorized
        self._waiting: asyncio.Queue[Ticket] = asyncio.Queue()
        self._broken = False

    def offer(self, reply: IncomingReply, retry: int) -> asyncio.Future[bool]:
        """Take a place in the queue, at once: no await may come between the frame and this call."""
        ticket = Ticket(reply, retry, asyncio.get_running_loop().create_future())
        self._waiting.put_nowait(ticket)
        return ticket.committed

    async def run(self) -> None:
        """Consume until cancelled."""
        while True:
            await self._commit(await self._batch())

    async def _batch(self) -> list[Ticket]:
        batch = [await self._waiting.get()]
        while len(batch) < _BATCH and not self._waiting.empty():
            batch.append(self._waiting.get_nowait())
        return batch

    async def _commit(self, batch: list[Ticket]) -> None:
        replies = await asyncio.gather(*(self._known(ticket) for ticket in batch))
        kept = [(ticket, reply) for ticket, reply in zip(batch, replies, strict=True) if reply is not None]
        done = await self._receive([reply for _, reply in kept]) if kept else True
        sure = {id(ticket) for ticket, _ in kept} if done else set()
        for ticket in batch:
            if not ticket.committed.done():
                ticket.committed.set_result(id(ticket) in sure)

    async def _receive(self, replies: list[IncomingReply]) -> bool:
        try:
            await self._door.receive(replies)
        except StoreBroken as error:
            if not self._broken:
                log.error("replies cannot be stored; Slack is asked to send them again", extra={"reason": str(error)})
            self._broken = True
            return False
        if self._broken:
            log.info("replies are stored again")
        self._broken = False
        return True

    async def _known(self, ticket: Ticket) -> IncomingReply | None:
        """Return the reply with what is known of its author, None if Slack has to send it again.

        Only those on the allow-list are looked up: nobody else's reply depends on the answer. If the answer fails
        where the team depends on it, the last delivery goes on without a team, which core refuses.
        """
        reply = ticket.reply
        if reply.is_bot or not self._authorized(reply.author):
            return reply
        try:
            return as_known(reply, await self._directory.person(reply.author, _ASK_SECONDS))
        except ChannelError as error:
            log.warning("an author could not be looked up", extra={"author": reply.author, "reason": str(error)})
        return reply if reply.author_team or ticket.retry >= LAST_RETRY else None


async def commit_before_ack(context: AsyncBoltContext, next: Callable[[], Awaitable[None]]) -> BoltResponse | None:
    """Let Bolt acknowledge a message once its reply is on the disk; events that are no reply pass at once."""
    committed: asyncio.Future[bool] | None = context.get(COMMIT)
    if committed is None or await committed:
        await next()
        return None
    return BoltResponse(status=503, body="")
