"""Who a member is: users.info, remembered for a while."""

import asyncio
import logging
from collections.abc import Collection, Mapping

from slack_sdk.web.async_client import AsyncWebClient

from bot import payloads
from bot.errors import ASYNC_FAILURES, channel_error
from bot.payloads import Person
from bot.tokens import Tokens
from core.clock import Clock
from core.errors import ChannelError

log = logging.getLogger(__name__)
_MOST_NAMES = 20  #: of one message


class Directory:
    """Asks users.info and remembers answers, failures only so long that a burst does not wait for each of them."""

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
        self._clock = clock
        self._keep = keep
        self._keep_failure = keep_failure
        self._stale = stale
        self._known: dict[str, tuple[float, Person]] = {}
        self._failed: dict[str, tuple[float, ChannelError]] = {}

    async def person(self, member: str, seconds: float) -> Person:
        """Return the member. Raises ChannelError where Slack does not say within `seconds`."""
        now = self._clock.monotonic()
        found, failed = self._known.get(member), self._failed.get(member)
        if found is not None and now - found[0] < self._keep:
            return found[1]
        old = found[1] if found is not None and now - found[0] < self._stale else None
        if failed is not None and now - failed[0] < self._keep_failure:
            return _else(old, failed[1])
        try:
            person = await self._ask(member, seconds)
        except ChannelError as error:
            self._failed[member] = (now, error)
            return _else(old if error.transient else None, error)
        self._known[member] = (now, person)
        return person

    async def names(self, members: Collection[str], seconds: float) -> Mapping[str, str]:
        """Return the names of those that are found within the time; the others stay ids."""
        asked = sorted(members)[:_MOST_NAMES]
        found = await asyncio.gather(*(self.person(member, seconds) for member in asked), return_exceptions=True)
        for one in found:
            if isinstance(one, BaseException) and not isinstance(one, ChannelError):
                raise one
        return {member: one.name for member, one in zip(asked, found, strict=True) if isinstance(one, Person)}

    async def _ask(self, member: str, seconds: float) -> Person:
        try:
            async with asyncio.timeout(seconds):
                answer = await self._client.users_info(user=member, token=self._tokens.bot().reveal())
        except ASYNC_FAILURES as error:
            raise channel_error("users.info", member, error) from error
        person = payloads.person(answer.data if isinstance(answer.data, dict) else {})
        if person is None:
            raise ChannelError(f"Slack, users.info ({member}): the answer names no team", transient=True)
        return person


def _else(person: Person | None, error: ChannelError) -> Person:
    if person is None:
        raise error
    return person
