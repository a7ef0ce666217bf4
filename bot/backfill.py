"""Backfill: messages written in bound threads while nobody listened go through the same checks as live ones.

Each thread is read from a little before its cursor; a message that is there twice is known by its key. The cursor moves
only when the thread was read to its end and all of it was handed over, so an interrupted backfill is repeated.
"""

import asyncio
import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot import payloads
from bot.app import Self
from bot.clients import ASYNC_FAILURES, Tokens, channel_error
from bot.directory import age, earlier, order, words_of
from bot.documents import Document
from bot.intake import AsyncDoor, Intake
from bot.payloads import KIND, Identity, Ignored
from core.base.clock import Clock
from core.base.errors import ChannelError, StoreBroken
from core.base.values import dataclass
from core.model.channel import BoundThread, IncomingChange, Swept, Verdict

log = logging.getLogger(__name__)

_OVERLAP = 300  #: seconds before the cursor
_PAGE = 200  #: messages, as Slack recommends
_MOST_PAUSE = 300.0


@dataclass(frozen=True)
class SweepPace:
    """How fast Slack is asked, in seconds. conversations.replies allows an internal app some 50 calls a minute."""

    between: float = 1.2
    attempts: int = 4  #: of one call
    first: float = 1.0  #: pause after a failed call, doubling
    again: float = 20.0  #: after a sweep that stayed incomplete
    fresh: float = 5.0  #: how soon a new thread is looked at
    settled: float = 10.0  #: how old a message must be to be taken for deleted where its thread lacks it


Committed = asyncio.Future[Verdict | None]


@dataclass(frozen=True)
class Looked:
    """What came of a look at the threads: how many were read to their end, how many not, and why not."""

    read: int
    unread: int = 0
    reason: str = ""  #: of the first that could not be read
    passing: str = ""  #: why one of them could not be read that may be read later by itself; "": there is none


class Incomplete(Exception):
    """A thread was not handed over to its end; its cursor stays."""


class Sweeper:
    """Sweeps all threads when asked, those of the sessions that were spoken with last first."""

    def __init__(
        self,
        client: AsyncWebClient,
        tokens: Tokens,
        own: Self,
        door: AsyncDoor,
        intake: Intake,
        clock: Clock,
        pace: SweepPace,
        *,
        polls: bool = False,
    ) -> None:
        """`polls`: nothing comes in but by sweeps."""
        self._client = client
        self._tokens = tokens
        self._own = own
        self._door = door
        self._intake = intake
        self._clock = clock
        self._pace = pace
        self._asked = asyncio.Event()
        self._next_call = 0.0
        self._told: dict[tuple[str, str], str] = {}  #: by thread: the trouble that was logged
        self._polls = polls
        self._since: datetime | None = None  #: since when what is said is heard live
        self._round = 0
        self._read: dict[tuple[str, str], int] = {}  #: by thread: the latest round that read it to its end

    def listening(self) -> None:
        """From now on what is said is heard as it is said."""
        self._since = self._clock.now()

    async def behind(self) -> None:
        """Let what is delivered from now on wait for a sweep, which is to be asked for."""
        await self._door.behind(KIND)

    def ask(self) -> None:
        """Sweep soon; asked during a sweep, another one follows it."""
        self._asked.set()

    async def run(self) -> None:
        """Sweep whenever asked, and look at new threads, until cancelled."""
        while True:
            asked = await self._wait(self._pace.fresh)
            if self._own.identity is None:
                continue
            try:
                await self.sweep(only_new=not asked)
            except Incomplete as problem:
                log.info("a sweep is incomplete; it is done again", extra={"reason": str(problem)})
                asyncio.get_running_loop().call_later(self._pace.again, self.ask)

    async def _wait(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._asked.wait()
        except TimeoutError:
            return False
        self._asked.clear()
        return True

    async def sweep(self, *, only_new: bool = False) -> None:
        """Sweep once. Raises Incomplete if any thread could not be read to its end for a reason that passes."""
        looked = await self.look(only_new=only_new)
        if looked.passing:
            raise Incomplete(looked.passing)

    async def look(self, *, only_new: bool = False) -> Looked:
        """Sweep once, and return what came of it. Raises Incomplete where it is not known which threads there are."""
        own = self._own.identity
        if own is None:
            raise Incomplete("it is not known yet who the bot is")
        if not only_new:
            self._round += 1
            await self._intake.warm()
        failed: list[tuple[str, bool]] = []
        read, sharing = 0, dict[str, bool]()
        try:
            threads = await self._door.threads(KIND, own.team)
        except StoreBroken as error:
            raise Incomplete(str(error)) from error
        for thread in threads:
            if only_new and thread.shared is not None and not thread.fresh:
                continue
            try:
                await self._thread(thread, own, sharing)
                self._told.pop((thread.channel, thread.thread), None)
                read += 1
            except ChannelError as error:
                self._tell(thread, error)
                failed.append((str(error), error.transient))
            except (StoreBroken, Incomplete) as error:
                failed.append((str(error), True))
        passing = next((reason for reason, passes in failed if passes), "")
        return Looked(read, len(failed), failed[0][0] if failed else "", passing)

    def _tell(self, thread: BoundThread, error: ChannelError) -> None:
        place = (thread.channel, thread.thread)
        if self._told.get(place) != error.message:
            self._told[place] = error.message
            where = {"session": thread.name, "channel": thread.channel, "thread_ts": thread.thread}
            log.warning("a thread cannot be read", extra={**where, "reason": str(error)})

    # ------------------------------------------------------------ one thread

    async def _thread(self, thread: BoundThread, own: Identity, sharing: dict[str, bool]) -> None:
        if thread.channel not in sharing:
            answer = await self._asked_slack("conversations.info", thread.channel, {"channel": thread.channel})
            sharing[thread.channel] = payloads.conversation(answer).is_ext_shared
        shared, cursor, page = sharing[thread.channel], thread.cursor, ""
        begin, now = _begin(thread), self._clock.now()
        caught: list[str] = []
        seen: set[str] = set()
        while True:
            arguments: dict[str, Any] = {
                "channel": thread.channel,
                "ts": thread.thread,
                "oldest": begin,
                "limit": _PAGE,
                **({"cursor": page} if page else {}),
            }
            answer = await self._asked_slack("conversations.replies", thread.channel, arguments)
            found = [message for message in payloads.messages(answer) if payloads.ts_of(message)]
            caught += await self._handed_over(found, thread, own, shared)
            cursor = max([cursor, *map(payloads.ts_of, found)], key=order)
            seen |= {payloads.ts_of(message) for message in found if not payloads.is_gone(message)}
            page = payloads.next_cursor(answer)
            if not page:
                break
        await self._tell_missing(thread, own, [ts for ts in _known(thread) if ts not in seen], now)
        missed = [ts for ts in caught if not self._heard(thread, ts)]
        self._read[thread.channel, thread.thread] = self._round
        oldest = words_of(age(min(missed, key=order), now)) if missed else ""
        before = earlier(cursor, 2 * _OVERLAP)
        done = Swept(thread.channel, thread.thread, cursor, before, len(missed), oldest, shared)
        await self._door.swept(KIND, own.team, done)

    def _heard(self, thread: BoundThread, ts: str) -> bool:
        """Return whether somebody listened when that was said, so that it is nothing to tell that a sweep has found it.

        Who polls listens by reading a thread again and again, one round that failed or not.
        """
        if self._polls:
            return self._read.get((thread.channel, thread.thread), -2) >= self._round - 2
        return self._since is not None and age(ts, self._since) == 0

    async def _handed_over(self, found: list[Document], thread: BoundThread, own: Identity, shared: bool) -> list[str]:
        """Hand a page's replies and edits over, and return the time stamps of replies that were new.

        Of what stands before the overlap only edits of known messages count: all else was judged by an earlier sweep.
        Raises Incomplete.
        """
        overlap, known = order(earlier(thread.cursor, _OVERLAP)), _known(thread)
        waiting = []
        for message in found:
            payload = payloads.swept(message, thread.channel, shared)
            reply = payloads.reply(payload, own)
            if isinstance(reply, Ignored) or reply.is_self:
                continue
            event = payloads.event_of(payload)
            if order(reply.ts) > overlap:
                waiting.append((reply.ts, self._intake.offer(reply, event, 0)))
            if reply.ts in known and payloads.edited(message):
                waiting.append((reply.ts, self._intake.offer(IncomingChange(reply, deleted=False), event, 0)))
        return await self._taken(waiting, thread)

    async def _tell_missing(self, thread: BoundThread, own: Identity, gone: list[str], now: datetime) -> None:
        """Hand over as deleted what is in the thread no more, which was read whole. Raises Incomplete.

        What was sent a moment ago may not be shown there yet: it is looked for again a little later.
        """
        settled = [ts for ts in gone if age(ts, now) >= self._pace.settled]
        if len(settled) < len(gone):
            asyncio.get_running_loop().call_later(self._pace.settled, self.ask)
        missing = [payloads.missing(thread.channel, thread.thread, ts, own) for ts in settled]
        await self._taken([(found.reply.ts, self._intake.offer(found, {}, 0)) for found in missing], thread)

    async def _taken(self, waiting: list[tuple[str, Committed]], thread: BoundThread) -> list[str]:
        """Wait until core has all of it, and return the time stamps of what was new. Raises Incomplete."""
        verdicts = [(ts, await committed) for ts, committed in waiting]
        if any(verdict is None for _, verdict in verdicts):
            raise Incomplete(
                f"replies in {thread.channel} could not be taken: they are not stored, or nobody knows whose"
            )
        return [ts for ts, verdict in verdicts if verdict is Verdict.COMMITTED]

    # ------------------------------------------------------------ one call

    async def _asked_slack(self, method: str, where: str, arguments: Mapping[str, Any]) -> Document:
        """Call, obeying Slack's pauses. Raises ChannelError."""
        for attempt in range(1, self._pace.attempts + 1):
            await self._paced(method)
            try:
                answer = await self._called(method, arguments)
            except ASYNC_FAILURES as error:
                problem = channel_error(method, where, error)
                if not problem.transient or attempt == self._pace.attempts:
                    raise problem from error
                wait = problem.retry_after if problem.retry_after is not None else self._pace.first * 2 ** (attempt - 1)
                await asyncio.sleep(min(wait, _MOST_PAUSE))
                continue
            return answer.data if isinstance(answer.data, dict) else {}
        raise ChannelError(f"Slack, {method} ({where}): not asked", transient=True)

    async def _called(self, method: str, arguments: Mapping[str, Any]) -> AsyncSlackResponse:
        token = self._tokens.bot().reveal()
        if method == "conversations.info":
            return await self._client.conversations_info(**arguments, token=token)
        return await self._client.conversations_replies(**arguments, token=token)

    async def _paced(self, method: str) -> None:
        loop = asyncio.get_running_loop()
        if method != "conversations.replies":
            return
        wait, self._next_call = self._next_call - loop.time(), max(self._next_call, loop.time()) + self._pace.between
        if wait > 0:
            await asyncio.sleep(wait)


def _begin(thread: BoundThread) -> str:
    """Return from where a thread is read: before its cursor, and before all that still waits."""
    oldest = [earlier(min(thread.waiting, key=order), 1)] if thread.waiting else []
    return min([earlier(thread.cursor, _OVERLAP), *oldest], key=order)


def _known(thread: BoundThread) -> frozenset[str]:
    """Return the messages that we have of what is read."""
    begin = order(_begin(thread))
    return frozenset(ts for ts in (*thread.waiting, *thread.taken) if order(ts) > begin)
