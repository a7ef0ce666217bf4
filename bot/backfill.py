"""Backfill: messages written in bound threads while nobody listened go through the same checks as live ones.

Each thread is read from a little before its cursor; a message that is there twice is known by its key. The cursor moves
only when the thread was read to its end and all of it was handed over, so an interrupted backfill is repeated.

A sweep asks first for the history of each channel, which tells which threads have nothing new (bot/history.py): these
are passed over, with their cursor where it was, and all others are read. Each thread that was passed over is read a
little later, one after the other, to see whether the history told the truth. Where it did not, its channel's threads
are read one by one from then on.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot import payloads
from bot.app import Self
from bot.clients import ASYNC_FAILURES, Tokens, channel_error
from bot.directory import age, earlier, order, words_of
from bot.documents import Document
from bot.history import OVERLAP, Roots, has_to_be_read, latest_known
from bot.intake import AsyncDoor, Intake
from bot.payloads import KIND, Identity, Ignored
from core.base.clock import Clock
from core.base.errors import ChannelError, StoreBroken
from core.base.values import dataclass
from core.model.channel import BoundThread, IncomingChange, Swept, Verdict

log = logging.getLogger(__name__)

_PAGE = 200  #: messages, as Slack recommends
_MOST_PAUSE = 300.0


@dataclass(frozen=True)
class SweepPace:
    """How fast Slack is asked, in seconds. An internal app may call each reading method some 50 times a minute."""

    between: float = 1.2  #: between two calls of one method
    attempts: int = 4  #: of one call
    first: float = 1.0  #: pause after a failed call, doubling
    again: float = 20.0  #: after a sweep that stayed incomplete
    fresh: float = 5.0  #: how soon a new thread is looked at
    settled: float = 10.0  #: how old a message must be to be taken for deleted where its thread lacks it
    check: float = 10.0  #: between two looks at threads that were passed over


Committed = asyncio.Future[Verdict | None]
Place = tuple[str, str]  #: a channel, and a thread there
#: No thread of a channel can be read that is so.
_UNREADABLE = frozenset({ChannelError.CHANNEL_GONE, ChannelError.NOT_MEMBER, ChannelError.SHUT_OUT})


@dataclass(frozen=True)
class Looked:
    """What came of a look at the threads: of how many all is known, of how many not, and why not."""

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
        self._wake = asyncio.Event()  #: something is to be read
        self._asked = False  #: all threads are
        self._next_calls: dict[str, float] = {}  #: by method: when it may be called again
        self._told: dict[Place, str] = {}  #: by thread: the trouble that was logged
        self._polls = polls
        self._since: datetime | None = None  #: since when what is said is heard live
        self._round = 0
        self._read: dict[Place, int] = {}  #: by thread: the latest round that read it to its end, or passed it over
        self._owed: set[Place] = set()  #: to be read whatever the history says
        self._swept_at: datetime | None = None  #: when the latest sweep of all began
        self._look_again = False  #: a sweep is to follow the next one
        #: by thread that was passed over, the longest ago first: when the history was asked
        self._unchecked: dict[Place, datetime] = {}
        self._next_check = 0.0
        self._doubted: set[str] = set()  #: channels whose history did not tell of a reply

    def listening(self) -> None:
        """From now on what is said is heard as it is said."""
        self._since = self._clock.now()

    async def behind(self) -> None:
        """Let what is delivered from now on wait for a sweep, which is to be asked for."""
        self._look_again = True
        await self._door.behind(KIND)

    def ask(self) -> None:
        """Sweep soon; asked during a sweep, another one follows it."""
        self._asked = True
        self._wake.set()

    def missed(self, channel: str, thread: str) -> None:
        """Sweep soon, and read that thread: something that was said there could not be taken."""
        self._owed.add((channel, thread))
        self.ask()

    def read_soon(self, channel: str, thread: str) -> None:
        """Read that thread, next of all: what came there waits for it."""
        self._owed.add((channel, thread))
        self._wake.set()

    def doubt(self, channel: str) -> None:
        """Read each thread of the channel from now on, whatever its history says."""
        self._doubted.add(channel)

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
                continue
            if asked and self._look_again:
                self._look_again = False
                if self._unchecked:  # the history may follow a reply a little later
                    asyncio.get_running_loop().call_later(self._pace.settled, self.ask)

    async def _wait(self, seconds: float) -> bool:
        """Wait until something is to be read, and return whether all is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        asked, self._asked = self._asked, False
        self._wake.clear()
        return asked

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
        began = self._clock.now()
        if not only_new:
            self._round += 1
            await self._intake.warm()
        try:
            threads = await self._door.threads(KIND, own.team)
        except StoreBroken as error:
            raise Incomplete(str(error)) from error
        self._forget_all_but({(thread.channel, thread.thread) for thread in threads})
        failed: list[tuple[str, bool]] = []
        read, known, check = 0, _Channels(), self._to_check()
        if only_new:
            threads = tuple(thread for thread in threads if self._is_due(thread) or _place(thread) == check)
        else:
            await self._ask_histories(threads, check, known)
        for thread in sorted(threads, key=lambda thread: _place(thread) not in known.quiet):
            try:
                if _place(thread) in known.quiet:
                    await self._pass_over(thread, own, known)
                else:
                    await self._thread(thread, own, known)
                self._told.pop(_place(thread), None)
                read += 1
            except ChannelError as error:
                self._tell(thread, error)
                self._owed.add(_place(thread))
                failed.append((str(error), error.transient))
            except (StoreBroken, Incomplete) as error:
                self._owed.add(_place(thread))
                failed.append((str(error), True))
        if not only_new:
            self._swept_at = began
        passing = next((reason for reason, passes in failed if passes), "")
        return Looked(read, len(failed), failed[0][0] if failed else "", passing)

    def _is_due(self, thread: BoundThread) -> bool:
        """Return whether a thread is read between two sweeps: it is new, or something waits for it."""
        return thread.shared is None or thread.fresh or _place(thread) in self._owed

    def _forget_all_but(self, places: Collection[Place]) -> None:
        """Forget what was noted of threads that are bound no more."""
        self._owed &= set(places)
        self._unchecked = {place: asked for place, asked in self._unchecked.items() if place in places}

    def _tell(self, thread: BoundThread, error: ChannelError) -> None:
        place = _place(thread)
        if self._told.get(place) != error.message:
            self._told[place] = error.message
            where = {"session": thread.name, "channel": thread.channel, "thread_ts": thread.thread}
            log.warning("a thread cannot be read", extra={**where, "reason": str(error)})

    # ------------------------------------------------------------ all threads of a channel

    async def _ask_histories(self, threads: Sequence[BoundThread], check: Place | None, known: "_Channels") -> None:
        """Ask for the history of each channel where that may spare calls, and note which threads it shows quiet."""
        since = _moment(self._swept_at) if self._swept_at else latest_known(threads)
        spared = [thread for thread in threads if _place(thread) not in self._owed and _place(thread) != check]
        for channel in dict.fromkeys(thread.channel for thread in spared if thread.channel not in self._doubted):
            try:
                shared = await self._shared(channel, known)
                here = [thread for thread in spared if thread.channel == channel]
                asked = self._clock.now()
                quiet = await self._quiet(channel, [one for one in here if not has_to_be_read(one, shared, since)])
            except ChannelError as error:
                log.info("the history of a channel cannot be read", extra={"channel": channel, "reason": str(error)})
                continue
            known.quiet |= {(channel, thread) for thread in quiet}
            for place in (_place(one) for one in here if one.thread in quiet):
                self._unchecked.setdefault(place, asked)

    async def _quiet(self, channel: str, threads: Sequence[BoundThread]) -> frozenset[str]:
        """Return which of the threads have nothing new. Raises ChannelError.

        The pages end where they would cost more than reading what they have not shown yet: some announcements may be
        far back, or older than what Slack shows.
        """
        if len(threads) < 2:
            return frozenset()
        roots, page, pages, idle = Roots(threads), "", 0, 0
        while pages < len(threads) and idle < roots.unseen:
            arguments = {
                "channel": channel,
                "oldest": roots.oldest,
                "inclusive": True,
                "limit": _PAGE,
                **({"cursor": page} if page else {}),
            }
            answer = await self._asked_slack("conversations.history", channel, arguments)
            pages, idle = pages + 1, 0 if roots.page(payloads.messages(answer)) else idle + 1
            page = payloads.next_cursor(answer)
            if not page:
                break
        return roots.without_news()

    async def _shared(self, channel: str, known: "_Channels") -> bool:
        """Return whether the channel is shared now. Raises ChannelError, without a call where that is known already."""
        if channel in known.unreadable:
            raise known.unreadable[channel]
        if channel not in known.shared:
            try:
                answer = await self._asked_slack("conversations.info", channel, {"channel": channel})
            except ChannelError as error:
                if error.reason in _UNREADABLE:
                    known.unreadable[channel] = error
                raise
            known.shared[channel] = payloads.conversation(answer).is_ext_shared
        return known.shared[channel]

    async def _pass_over(self, thread: BoundThread, own: Identity, known: "_Channels") -> None:
        """Note that nothing is missing of the thread; its cursor stays where it is. Raises StoreBroken."""
        self._read[_place(thread)] = self._round
        before, shared = earlier(thread.cursor, 2 * OVERLAP), known.shared[thread.channel]
        done = Swept(thread.channel, thread.thread, thread.cursor, before, 0, "", shared)
        await self._door.swept(KIND, own.team, done)

    # ------------------------------------------------------------ whether the history tells the truth

    def _to_check(self) -> Place | None:
        """Return the thread that was passed over the longest ago, once it is time to read one of them."""
        now = asyncio.get_running_loop().time()
        if not self._unchecked:
            self._next_check = now + self._pace.check
        if not self._unchecked or now < self._next_check:
            return None
        self._next_check = now + self._pace.check
        return next(iter(self._unchecked))

    def _note_read(self, thread: BoundThread, new: Sequence[str]) -> None:
        """Note that a thread was read to its end, and that those of its replies were new.

        One of them that was old when the thread was passed over is one of which the history did not tell.
        """
        self._read[_place(thread)] = self._round
        self._owed.discard(_place(thread))
        asked = self._unchecked.pop(_place(thread), None)
        untold = [ts for ts in new if asked is not None and age(ts, asked) > self._pace.settled]
        if untold and thread.channel not in self._doubted:
            where = {"session": thread.name, "channel": thread.channel, "thread_ts": thread.thread, "ts": untold[0]}
            log.warning("the history of a channel did not tell of a reply; each of its threads is read", extra=where)
            self.doubt(thread.channel)
            self.ask()

    # ------------------------------------------------------------ one thread

    async def _thread(self, thread: BoundThread, own: Identity, known: "_Channels") -> None:
        shared, cursor, page = await self._shared(thread.channel, known), thread.cursor, ""
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
        oldest = words_of(age(min(missed, key=order), now)) if missed else ""
        before = earlier(cursor, 2 * OVERLAP)
        done = Swept(thread.channel, thread.thread, cursor, before, len(missed), oldest, shared)
        await self._door.swept(KIND, own.team, done)
        self._note_read(thread, caught)

    def _heard(self, thread: BoundThread, ts: str) -> bool:
        """Return whether somebody listened when that was said, so that it is nothing to tell that a sweep has found it.

        Who polls listens by reading a thread again and again, one round that failed or not.
        """
        if self._polls:
            return self._read.get(_place(thread), -2) >= self._round - 2
        return self._since is not None and age(ts, self._since) == 0

    async def _handed_over(self, found: list[Document], thread: BoundThread, own: Identity, shared: bool) -> list[str]:
        """Hand a page's replies and edits over, and return the time stamps of replies that were new.

        Of what stands before the overlap only edits of known messages count: all else was judged by an earlier sweep.
        Raises Incomplete.
        """
        overlap, known = order(earlier(thread.cursor, OVERLAP)), _known(thread)
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
        if method == "conversations.history":
            return await self._client.conversations_history(**arguments, token=token)
        return await self._client.conversations_replies(**arguments, token=token)

    async def _paced(self, method: str) -> None:
        if method == "conversations.info":
            return
        now = asyncio.get_running_loop().time()
        at = max(self._next_calls.get(method, now), now)
        self._next_calls[method] = at + self._pace.between
        if at > now:
            await asyncio.sleep(at - now)


class _Channels:
    """What one look has learnt of the channels, each asked once."""

    def __init__(self) -> None:
        self.shared: dict[str, bool] = {}
        self.unreadable: dict[str, ChannelError] = {}
        self.quiet: set[Place] = set()  #: threads without anything new


def _place(thread: BoundThread) -> Place:
    return thread.channel, thread.thread


def _moment(at: datetime) -> str:
    """Return a moment as a time stamp of Slack's."""
    return f"{int(at.astimezone(UTC).timestamp())}.000000"


def _begin(thread: BoundThread) -> str:
    """Return from where a thread is read: before its cursor, and before all that still waits."""
    oldest = [earlier(min(thread.waiting, key=order), 1)] if thread.waiting else []
    return min([earlier(thread.cursor, OVERLAP), *oldest], key=order)


def _known(thread: BoundThread) -> frozenset[str]:
    """Return the messages that we have of what is read."""
    begin = order(_begin(thread))
    return frozenset(ts for ts in (*thread.waiting, *thread.taken) if order(ts) > begin)
