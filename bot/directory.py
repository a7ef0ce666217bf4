"""Who a member is and what members, channels and groups are called: asked of Slack, remembered for a while.

In our own texts, ids of members become names; what is stored keeps the ids. A time stamp of Slack is seconds with six
decimals, compared as text or as a pair of numbers.
"""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Generic, TypeVar

from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse
from slack_sdk.web.slack_response import SlackResponse

from bot import payloads
from bot.clients import ASYNC_FAILURES, SYNC_FAILURES, Tokens, channel_error, web_client
from bot.documents import TIME_STAMP, Document
from bot.payloads import KIND, Conversation, Person
from bot.settings import SlackSettings
from core.base.clock import Clock
from core.base.errors import ChannelError

log = logging.getLogger(__name__)
_MOST_NAMES = 20  #: of one message
_GROUPS = "groups"  #: they are asked for all at once

Known = TypeVar("Known")


class _Memory(Generic[Known]):
    """Remembers what was answered, and failures only so long that a burst does not wait for each of them.

    Answers count for `keep` seconds, and up to `stale` while Slack does not answer.
    """

    def __init__(self, clock: Clock, keep: float, keep_failure: float, stale: float) -> None:
        self._clock = clock
        self._keep = keep
        self._keep_failure = keep_failure
        self._stale = stale
        self._known: dict[str, tuple[float, Known]] = {}
        self._failed: dict[str, tuple[float, ChannelError]] = {}

    async def get(self, key: str, ask: Callable[[], Awaitable[Known]]) -> Known:
        """Return what is remembered under the key, or asked now. Raises ChannelError."""
        now = self._clock.monotonic()
        found, failed = self._known.get(key), self._failed.get(key)
        if found is not None and now - found[0] < self._keep:
            return found[1]
        old = found if found is not None and now - found[0] < self._stale else None
        try:
            if failed is not None and now - failed[0] < self._keep_failure:
                raise failed[1]
            answer = await ask()
        except ChannelError as error:
            if failed is None or error is not failed[1]:
                self._failed[key] = (now, error)
            if old is None or not error.transient:
                raise
            return old[1]
        self._known[key] = (now, answer)
        return answer


class Directory:
    """Asks users.info, conversations.info and usergroups.list."""

    def __init__(
        self,
        client: AsyncWebClient,
        tokens: Tokens,
        clock: Clock,
        *,
        keep: float = 600.0,
        keep_failure: float = 10.0,
        stale: float = 86_400.0,
    ) -> None:
        """Answers count for `keep` seconds, and up to `stale` while Slack does not answer."""
        self._client = client
        self._tokens = tokens
        self._persons = _Memory[Person](clock, keep, keep_failure, stale)
        self._channels = _Memory[str](clock, keep, keep_failure, stale)
        self._groups = _Memory[Mapping[str, str]](clock, keep, keep_failure, stale)

    async def person(self, member: str, seconds: float) -> Person:
        """Return the member. Raises ChannelError where Slack does not say within `seconds`."""
        return await self._persons.get(member, lambda: self._ask_person(member, seconds))

    async def conversation(self, channel: str, seconds: float) -> Conversation:
        """Return the channel as it is now. Raises ChannelError where Slack does not say within `seconds`."""
        call = self._client.conversations_info(channel=channel, token=self._token())
        return payloads.conversation(await _answered("conversations.info", channel, seconds, call))

    async def names(self, ids: Collection[str], seconds: float) -> Mapping[str, str]:
        """Return the names of those members, channels and groups that are found within the time; the others stay ids.

        A channel that the bot may not see, and a group without the scope usergroups:read, have no name here.
        """
        asked = sorted(ids)[:_MOST_NAMES]
        found = await asyncio.gather(*(self._name(one, seconds) for one in asked), return_exceptions=True)
        for one, name in zip(asked, found, strict=True):
            if isinstance(name, ChannelError):
                log.info("a mention has no name", extra={"author": one, "reason": str(name)})
            elif isinstance(name, BaseException):
                raise name
        return {one: name for one, name in zip(asked, found, strict=True) if isinstance(name, str) and name}

    async def _name(self, id: str, seconds: float) -> str:
        """Return what an id's first letter tells to be asked for. Raises ChannelError."""
        if id.startswith("S"):
            return (await self._groups.get(_GROUPS, lambda: self._ask_groups(seconds))).get(id, "")
        if id.startswith(("C", "G")):
            return await self._channels.get(id, lambda: self._ask_channel(id, seconds))
        return (await self.person(id, seconds)).name if id.startswith(("U", "W")) else ""

    async def _ask_person(self, member: str, seconds: float) -> Person:
        call = self._client.users_info(user=member, token=self._token())
        person = payloads.person(await _answered("users.info", member, seconds, call))
        if person is None:
            raise ChannelError(f"Slack, users.info ({member}): the answer names no team", transient=True)
        return person

    async def _ask_channel(self, channel: str, seconds: float) -> str:
        return (await self.conversation(channel, seconds)).name

    async def _ask_groups(self, seconds: float) -> Mapping[str, str]:
        call = self._client.usergroups_list(include_disabled=True, token=self._token())
        return payloads.groups(await _answered("usergroups.list", "", seconds, call))

    def _token(self) -> str:
        return self._tokens.bot().reveal()


async def _answered(method: str, where: str, seconds: float, call: Awaitable[AsyncSlackResponse]) -> Document:
    """Return what the call answers. Raises ChannelError where it does not within the time."""
    try:
        async with asyncio.timeout(seconds):
            answer = await call
    except ASYNC_FAILURES as error:
        raise channel_error(method, where, error) from error
    return answer.data if isinstance(answer.data, dict) else {}


def answer(method: str, where: str, call: Callable[[], SlackResponse]) -> Document:
    """Return what Slack answered; `ok: false` and every other failure raise ChannelError. `where`: what it is about."""
    try:
        found = call()
    except SYNC_FAILURES as error:
        raise channel_error(method, where, error) from error
    return found.data if isinstance(found.data, dict) else {}


_ACTOR = re.compile(rf"\b{KIND}:(?:[TE][A-Z0-9]+:)?([UW][A-Z0-9]{{2,}})\b")
_ASK_SECONDS = 2
_KEEP_SECONDS, _KEEP_FAILURE_SECONDS = 600.0, 10.0


class Naming:
    """Asks users.info and remembers answers. Its methods may be called from any thread that may wait."""

    def __init__(self, settings: SlackSettings, tokens: Tokens, clock: Clock) -> None:
        self._settings = settings
        self._tokens = tokens
        self._clock = clock
        self._known: dict[str, tuple[float, str]] = {}  #: member -> until when that counts, name or ""

    def named(self, text: str) -> str:
        """Return the text with a name for every `slack:U…`. Whoever Slack does not name at once keeps the id."""
        return _ACTOR.sub(lambda found: self._name(found[1]) or found[0], text)

    def _name(self, member: str) -> str:
        now = self._clock.monotonic()
        until, name = self._known.get(member, (now, ""))
        if now >= until:
            try:
                name, keep = self._ask(member), _KEEP_SECONDS
            except ChannelError as error:
                log.info("a member is called by the id", extra={"author": member, "reason": str(error)})
                keep = _KEEP_FAILURE_SECONDS
            self._known[member] = (now + keep, name)
        return name

    def _ask(self, member: str) -> str:
        client = web_client(self._settings, self._tokens.bot())
        client.timeout = _ASK_SECONDS
        person = payloads.person(answer("users.info", member, partial(client.users_info, user=member)))
        return person.name if person else ""


_WIDTH = 12  #: digits of the seconds, with zeros before them, so that text compares as numbers do


def age(ts: str, now: datetime) -> float:
    """Return the age in seconds; a time stamp that is no number, or in the future, has none."""
    try:
        return max(0.0, now.astimezone(UTC).timestamp() - float(ts))
    except (ValueError, OverflowError):
        return 0.0


def words_of(seconds: float) -> str:
    """Return an age as a person says it: `40 s`, `14 min`, `3 h`, `2 d`."""
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= length:
            return f"{int(seconds // length)} {unit}"
    return f"{int(seconds)} s"


def earlier(ts: str, seconds: int) -> str:
    """Return the time stamp that many seconds before. Raises ChannelError for what is none: it was damaged."""
    if not TIME_STAMP.fullmatch(ts):
        raise ChannelError(
            f"Slack: {ts[:40]!r}, which says up to where the thread was read, is no time stamp",
            "restore the database, or stop the service and remove the thread's row from its table `bindings`",
            transient=False,
        )
    whole, _, micros = ts.partition(".")
    return f"{max(0, int(whole) - seconds)}.{micros}"


def order(ts: str) -> str:
    """Return what time stamps are compared by."""
    return ts.rjust(_WIDTH + 7, "0")
