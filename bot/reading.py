"""What every way of reading does: learn who the bot is, tell how it stands, give events a place in the intake."""

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from typing import Any, Protocol, TypeVar

from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot import payloads
from bot.app import Self
from bot.backfill import Committed, Sweeper
from bot.bolt import AsyncApp
from bot.bridge import AsyncDoor
from bot.errors import ASYNC_FAILURES, beyond_waiting, channel_error
from bot.middleware import Intake
from bot.payloads import KIND, Document, Ignored
from bot.tokens import Tokens
from core.errors import ChannelError
from core.values import dataclass

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")
DEAF_AFTER = 3  #: failed attempts in a row


class Reader(Protocol):
    """One way of reading."""

    async def run(self, stop: asyncio.Event) -> None:
        """Read until `stop`; return early, the reason told, where waiting cannot help."""
        ...


class Standing:
    """Tells core how reading stands, each state once."""

    def __init__(self, door: AsyncDoor) -> None:
        self._door = door
        self._told: tuple[bool, str] | None = None

    async def tell(self, up: bool, detail: str) -> None:
        """Tell it, unless it is told already."""
        if self._told != (up, detail):
            self._told = (up, detail)
            await self._door.connected(KIND, up, detail)

    async def fail(self, problem: ChannelError, attempt: int) -> None:
        """Tell of the `attempt`-th failure in a row; after a few of them it says what that means."""
        deaf = f"deaf: {attempt} attempts failed, and replies wait in Slack meanwhile; the last: "
        await self.tell(False, f"{deaf if attempt >= DEAF_AFTER else ''}{problem}")


async def asked(method: str, where: str, call: Awaitable[Answer]) -> Any:
    """Return what a call answers: a document, or None. Raises ChannelError, transient unless waiting cannot mend it."""
    try:
        answer = await call
    except ASYNC_FAILURES as error:
        problem = channel_error(method, where, error)
        problem.transient = not beyond_waiting(error)
        raise problem from error
    return answer.data if isinstance(answer, AsyncSlackResponse) and isinstance(answer.data, dict) else {}


@dataclass(frozen=True)
class Reading:
    """What every way of reading works with."""

    app: AsyncApp
    client: AsyncWebClient
    tokens: Tokens
    own: Self
    intake: Intake
    sweeper: Sweeper
    standing: Standing

    async def identify(self) -> None:
        """Learn who the bot is. Raises ChannelError."""
        answer: Document = await asked("auth.test", "", self.client.auth_test(token=self.tokens.bot().reveal()))
        found = payloads.identity(answer)
        if found is None:
            reason, remedy = "Slack, auth.test: the token belongs to no bot", "use the bot token (xoxb-…) of the app"
            raise ChannelError(reason, remedy, transient=False)
        self.own.identity = found

    def taken(self, payload: Document, retry: int) -> Committed | None:
        """Give what an events payload carries its place in the intake, at once; None where that is nothing of ours."""
        if self.own.identity is None:
            return None
        found = payloads.reply(payload, self.own.identity)
        if not isinstance(found, Ignored):
            return self.intake.offer(found, payloads.event_of(payload), retry)
        changed = payloads.change(payload, self.own.identity)
        if isinstance(changed, Ignored):
            log.debug("an event is no reply", extra={"reason": found.reason})
            return None
        change, message = changed
        return self.intake.offer(change, message, retry)


async def unless(stop: asyncio.Event, work: Coroutine[Any, Any, Answer]) -> Answer | None:
    """Return what the work returns; None if `stop` came first, the work then being cancelled and over."""
    task, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for pending in (task, stopped):
            pending.cancel()
        await asyncio.gather(task, stopped, return_exceptions=True)


async def pause(stop: asyncio.Event, seconds: float) -> None:
    """Wait, but not beyond `stop`."""
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait({stopped}, timeout=seconds)
    stopped.cancel()
