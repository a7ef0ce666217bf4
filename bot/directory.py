"""Who a member is: users.info, remembered for a while."""

import asyncio
import logging

from slack_sdk.web.async_client import AsyncWebClient

from bot import payloads
from bot.errors import ASYNC_FAILURES, channel_error
from bot.payloads import Person
from bot.tokens import Tokens
from core.clock import Clock
from core.errors import ChannelError

log = logging.getLogger(__name__)


class Directory:
    """Asks users.info and remembers answers, not failures."""

    def __init__(self, client: AsyncWebClient, tokens: Tokens, clock: Clock, *, keep: float = 600.0) -> None:
        self._client = client
        self._tokens = tokens
        self._clock = clock
        self._keep = keep
        self._known: dict[str, tuple[float, Person]] = {}

    async def person(self, member: str, seconds: float) -> Person:
        """Return the member. Raises ChannelError where Slack does not say within `seconds`."""
        found = self._known.get(member)
        if found is not None and self._clock.monotonic() - found[0] < self._keep:
            return found[1]
        try:
            async with asyncio.timeout(seconds):
                answer = await self._client.users_info(user=member, token=self._tokens.bot().reveal())
        except ASYNC_FAILURES as error:
            raise channel_error("users.info", member, error) from error
        person = payloads.person(answer.data if isinstance(answer.data, dict) else {})
        if person is None:
            raise ChannelError(f"Slack, users.info ({member}): the answer names no team", transient=True)
        self._known[member] = (self._clock.monotonic(), person)
        return person
