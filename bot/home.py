"""The app's Home tab: members see what waits for an answer, then the live list; everybody else a page without either.

It is published when somebody opens it, and again where it has changed for as long as it counts as looked at, because
Slack does not tell when a tab is closed (https://docs.slack.dev/surfaces/app-home). Only so many people are looked
after at a time, each at most once an interval.
"""

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slack_sdk.web.async_client import AsyncWebClient

from bot.buttons import SECTION_MAX, button_blocks
from bot.clients import ASYNC_FAILURES, Tokens, channel_error
from bot.intake import AsyncDoor
from bot.markdown import escape
from bot.payloads import KIND, home_block
from bot.views import Block, Clean, cut, list_view
from core.base.clock import Clock
from core.base.errors import CoreError
from core.base.values import dataclass
from core.model.channel import Waiting

log = logging.getLogger(__name__)

_LOOKED_SECONDS = 1800.0  #: for which an open tab is kept up to date
_MOST_LOOKERS = 10
_MOST_WAITING = 10  #: requests that are shown; the others are counted

Link = Callable[[str, str], str]


def home_view(waiting: Sequence[Waiting], rows: Sequence[Mapping[str, Any]], link: Link, clean: Clean) -> list[Block]:
    """Return the blocks of a member's page."""
    blocks: list[Block] = []
    if waiting:
        blocks.append(_header("Waiting for an answer"))
    for number, one in enumerate(waiting[:_MOST_WAITING]):
        asked = escape(cut(clean(one.text), SECTION_MAX // 2))
        drawn = button_blocks(f"*{one.name}*\n{asked}", one.buttons, one.name)
        for row, block in enumerate(drawn[1:]):
            block["block_id"] = home_block(one.channel, one.thread, one.ts, f"{number}-{row}")
        where = link(one.channel, one.thread)
        if where:
            drawn.append(_context(f"<{where}|Open the thread>"))
        blocks += drawn
    if len(waiting) > _MOST_WAITING:
        blocks.append(_context(f"… and {len(waiting) - _MOST_WAITING} more: see the sessions' threads"))
    if others := sorted({str(row["host"]) for row in rows if row.get("hostSeen") is not None}):
        hosts = ", ".join(f"`{escape(clean(host))}`" for host in others)
        blocks.append(_context(f"What sessions on {hosts} wait for is not shown here: see their threads."))
    return [*blocks, _header("Sessions"), *list_view(rows)(clean).blocks]


def neutral_view(why: str) -> list[Block]:
    """Return the blocks of the page of somebody who may not see anything of the sessions."""
    about = "*the-loop* runs coding agents, each in a thread of its own. The people who may steer them are on a list."
    return [{"type": "section", "text": {"type": "mrkdwn", "text": text}} for text in (about, why)]


@dataclass(frozen=True)
class _Looker:
    """Somebody who has the tab open. `author`: as the allow-list names them; "" for nobody who may see a session."""

    author: str
    why: str  #: what stands on the neutral page
    until: float


class Homes:
    """Publishes Home tabs, and keeps those up to date that somebody looks at."""

    def __init__(
        self, client: AsyncWebClient, tokens: Tokens, door: AsyncDoor, link: Link, clock: Clock, interval: float
    ) -> None:
        self._client = client
        self._tokens = tokens
        self._door = door
        self._link = link
        self._clock = clock
        self._interval = interval
        self._lookers: OrderedDict[str, _Looker] = OrderedDict()
        self._shown: dict[str, str] = {}

    async def opened(self, member: str, author: str, why: str) -> None:
        """Publish the page of whoever has opened it, whatever they were shown before."""
        self._lookers.pop(member, None)
        self._lookers[member] = _Looker(author, why, self._clock.monotonic() + _LOOKED_SECONDS)
        while len(self._lookers) > _MOST_LOOKERS:
            gone, _ = self._lookers.popitem(last=False)
            self._shown.pop(gone, None)
        self._shown.pop(member, None)
        await self.publish(member)

    async def run(self) -> None:
        """Look every interval whether a page has changed; until cancelled."""
        while True:
            await asyncio.sleep(self._interval)
            now = self._clock.monotonic()
            for member, looker in list(self._lookers.items()):
                if looker.until < now:
                    self._lookers.pop(member, None)
                    self._shown.pop(member, None)
                elif looker.author:  # the neutral page never changes
                    await self.publish(member)

    async def publish(self, member: str) -> None:
        """Publish the page of somebody who has it open, where it has changed."""
        looker = self._lookers.get(member)
        if looker is None:
            return
        try:
            blocks = await self._blocks(looker)
        except CoreError as error:
            why = f"The sessions could not be listed: {error}"
            blocks = await self._door.shown(lambda clean: neutral_view(escape(clean(why))))
        whole = json.dumps(blocks)
        if self._shown.get(member) == whole:
            return
        try:
            await self._client.views_publish(
                user_id=member, view={"type": "home", "blocks": blocks}, token=self._tokens.bot().reveal()
            )
        except ASYNC_FAILURES as error:
            problem = channel_error("views.publish", "", error)
            log.warning("a Home tab was not published", extra={"author": member, "reason": str(problem)})
            return
        self._shown[member] = whole

    async def _blocks(self, looker: _Looker) -> list[Block]:
        """Raise CoreError where the sessions cannot be listed."""
        if not looker.author:
            return neutral_view(looker.why)
        waiting, rows = await self._door.waiting(KIND, looker.author), await self._door.rows(looker.author)
        return await self._door.shown(lambda clean: home_view(waiting, rows, self._link, clean))


def _header(text: str) -> Block:
    return {"type": "header", "text": {"type": "plain_text", "text": text}}


def _context(text: str) -> Block:
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": text}]}
