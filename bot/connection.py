"""Keeps one Socket Mode connection standing: waits out an absent Slack, stops where waiting cannot help."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

from slack_bolt.adapter.socket_mode.async_internals import send_async_response
from slack_bolt.async_app import AsyncApp
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from bot import payloads
from bot.app import Self
from bot.bridge import AsyncDoor
from bot.errors import ASYNC_FAILURES, PERMANENT, beyond_waiting, channel_error
from bot.middleware import COMMIT, Intake
from bot.payloads import KIND, Document, Identity, Ignored
from bot.socket import Socket
from bot.tokens import Tokens
from core.errors import ChannelError

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")
_PLANNED = ("warning", "refresh_requested")  #: Slack announces the end: the next socket opens before this one closes


@dataclass(frozen=True)
class Pace:
    """How long things may take, and how long to wait between attempts, in seconds."""

    first: float = 1.0
    most: float = 60.0
    hello: float = 10.0
    end: float = 5.0
    ping: float = 5.0
    steady: float = 10.0  #: a connection that lived shorter than this counts as a failed attempt

    def before(self, attempt: int, asked: float | None) -> float:
        """Return the wait after the `attempt`-th failure: doubling, with jitter, never less than Slack asked for."""
        wait = min(self.most, self.first * 2.0 ** min(attempt - 1, 16)) * random.uniform(0.5, 1.0)
        return max(wait, asked or 0.0)


class Connection:
    """Opens sockets one after another and feeds what they bring to the intake and to Bolt."""

    def __init__(
        self,
        app: AsyncApp,
        client: AsyncWebClient,
        tokens: Tokens,
        own: Self,
        intake: Intake,
        door: AsyncDoor,
        pace: Pace,
    ) -> None:
        self._app = app
        self._client = client
        self._tokens = tokens
        self._own = own
        self._intake = intake
        self._door = door
        self._pace = pace
        self._reported: tuple[bool, str] | None = None
        self._socket: Socket | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Stay connected until `stop`; return early, the reason reported, where waiting cannot help."""
        attempt = 0
        try:
            while not stop.is_set():
                try:
                    lived = await self._one(stop)
                except ChannelError as problem:
                    await self._close()
                    await self._report(False, str(problem))
                    if not problem.transient:
                        log.error("the connection to Slack has ended", extra={"reason": str(problem)})
                        return
                    attempt += 1
                    await _pause(stop, self._pace.before(attempt, problem.retry_after))
                else:
                    attempt = 0 if lived >= self._pace.steady else attempt + 1
                    if attempt > 1:
                        await _pause(stop, self._pace.before(attempt - 1, None))
            await self._report(False, "stopped")
        finally:
            await self._close()

    async def _one(self, stop: asyncio.Event) -> float:
        """Open a socket, hold it until it is lost, and return how long that took. Raises ChannelError."""
        began = asyncio.get_running_loop().time()
        fresh = await _unless(stop, self._open())
        if fresh is None:
            return self._pace.steady
        replaced = self._socket is not None and await self._socket.is_connected()
        await self._close()
        self._socket = fresh
        await self._report(True, self._standing(fresh.hello.result() - replaced))
        reason = await _unless(stop, fresh.watch())
        if reason == "link_disabled":
            raise ChannelError(f"Slack: link_disabled: {PERMANENT[reason][0]}", PERMANENT[reason][1], transient=False)
        if reason is not None:
            log.info("another socket is needed", extra={"reason": reason})
            if reason not in _PLANNED:
                await self._close()
                await self._report(False, f"connection lost ({reason}); connecting again")
        return asyncio.get_running_loop().time() - began

    async def _open(self) -> Socket:
        """Return a socket that has been greeted. Raises ChannelError."""
        answer = await _asked("auth.test", "", self._client.auth_test(token=self._tokens.bot().reveal()))
        self._own.identity = _identity(answer)
        opening = self._client.apps_connections_open(app_token=self._tokens.app().reveal())
        url = payloads.socket_url(await _asked("apps.connections.open", "", opening))
        socket = Socket(self._client, url, self._handle, self._pace.ping)
        try:
            await _asked("Socket Mode", "", _greeted(socket, self._pace.hello))
        except BaseException:
            await socket.end(self._pace.end)
            raise
        return socket

    def _standing(self, connections: int) -> str:
        known = self._own.identity
        detail = f"Socket Mode as {known.name} in {known.team}" if known else "Socket Mode"
        if connections <= 1:
            return detail
        log.warning("another process is connected with the same app", extra={"connections": connections})
        return (
            f"{detail}; the app has {connections} connections open, and Slack hands each reply to any one of them: "
            "use an app for each installation, or stop the other process"
        )

    async def _handle(self, client: SocketModeClient, request: SocketModeRequest) -> None:
        """Answer one envelope. A reply takes its place in the intake before anything is awaited."""
        committed = self._taken(request)
        body = AsyncBoltRequest(mode="socket_mode", body=request.payload, context={COMMIT: committed})
        response = await self._app.async_dispatch(body)
        await send_async_response(client, request, response, 0.0)

    def _taken(self, request: SocketModeRequest) -> asyncio.Future[bool] | None:
        if request.type != "events_api" or self._own.identity is None:
            return None
        found = payloads.reply(request.payload, self._own.identity)
        if isinstance(found, Ignored):
            log.debug("an event is no reply", extra={"reason": found.reason})
            return None
        return self._intake.offer(found, request.retry_attempt or 0)

    async def _close(self) -> None:
        ended, self._socket = self._socket, None
        if ended is not None:
            await ended.end(self._pace.end)

    async def _report(self, up: bool, detail: str) -> None:
        if self._reported != (up, detail):
            self._reported = (up, detail)
            await self._door.connected(KIND, up, detail)


async def _asked(method: str, where: str, call: Awaitable[Answer]) -> Any:
    """Return what a call answers: a document, or None. Raises ChannelError, transient unless waiting cannot mend it."""
    try:
        answer = await call
    except ASYNC_FAILURES as error:
        problem = channel_error(method, where, error)
        problem.transient = not beyond_waiting(error)
        raise problem from error
    return answer.data if isinstance(answer, AsyncSlackResponse) and isinstance(answer.data, dict) else {}


def _identity(answer: Document) -> Identity:
    found = payloads.identity(answer)
    if found is None:
        reason, remedy = "Slack, auth.test: the token belongs to no bot", "use the bot token (xoxb-…) of the app"
        raise ChannelError(reason, remedy, transient=False)
    return found


async def _greeted(socket: Socket, seconds: float) -> None:
    """Open the socket and wait for Slack's hello."""
    async with asyncio.timeout(seconds):
        await socket.connect()
        first: set[asyncio.Future[Any]] = {socket.hello, socket.lost}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
    if not socket.hello.done():
        raise ChannelError(f"Slack, Socket Mode: no hello, but {socket.lost.result()}", transient=True)


async def _unless(stop: asyncio.Event, work: Coroutine[Any, Any, Answer]) -> Answer | None:
    """Return what the work returns; None if `stop` came first, the work then being cancelled and over."""
    task, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        for pending in (task, stopped):
            pending.cancel()
        await asyncio.gather(task, stopped, return_exceptions=True)


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    """Wait, but not beyond `stop`."""
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait({stopped}, timeout=seconds)
    stopped.cancel()
