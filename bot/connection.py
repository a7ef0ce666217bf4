"""Keeps one Socket Mode connection standing: waits out an absent Slack, stops where waiting cannot help."""

import asyncio
import logging
import random
from typing import Any

from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest

from bot import payloads
from bot.applock import app_lock
from bot.bolt import send_async_response
from bot.errors import PERMANENT
from bot.middleware import COMMIT
from bot.reading import Reading, asked, pause, unless
from bot.socket import Socket
from core.errors import ChannelError
from core.values import dataclass

log = logging.getLogger(__name__)

_PLANNED = ("warning", "refresh_requested")  #: Slack announces the end: the next socket opens before this one closes


@dataclass(frozen=True)
class Pace:
    """How long things may take, and how long to wait between attempts, in seconds."""

    first: float = 1.0
    most: float = 60.0
    hello: float = 10.0
    end: float = 5.0
    ping: float = 5.0
    pong: float = 30.0  #: an older last pong means that the connection is dead
    lookup: float = 10.0  #: for so long a member whom Slack did not tell of is not asked for again
    steady: float = 10.0  #: a connection that lived shorter than this counts as a failed attempt

    def before(self, attempt: int, asked: float | None) -> float:
        """Return the wait after the `attempt`-th failure: doubling, with jitter, never less than Slack asked for."""
        wait = min(self.most, self.first * 2.0 ** min(attempt - 1, 16)) * random.uniform(0.5, 1.0)
        return max(wait, asked or 0.0)


class Connection:
    """Opens sockets one after another and feeds what they bring to the intake and to Bolt."""

    def __init__(self, reading: Reading, pace: Pace, runtime: str) -> None:
        self._reading = reading
        self._pace = pace
        self._runtime = runtime
        self._socket: Socket | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Stay connected until `stop`; return early, the reason told, where waiting cannot help.

        Raises nothing: another process on this machine with the same app-level token is waited out, and named.
        """
        failures = 0
        while not stop.is_set():
            try:
                with app_lock(self._reading.tokens.app(), self._runtime):
                    await self._stay(stop)
                    return
            except ChannelError as problem:
                failures += 1
                await self._reading.standing.fail(problem, failures)
                if not problem.transient:
                    return
                await pause(stop, self._pace.before(failures, None))
        await self._reading.standing.tell(False, "stopped")

    async def _stay(self, stop: asyncio.Event) -> None:
        attempt = 0
        try:
            while not stop.is_set():
                try:
                    lived = await self._one(stop)
                except ChannelError as problem:
                    await self._close()
                    attempt += 1
                    await self._reading.standing.fail(problem, attempt)
                    if not problem.transient:
                        log.error("the connection to Slack has ended", extra={"reason": str(problem)})
                        return
                    await pause(stop, self._pace.before(attempt, problem.retry_after))
                else:
                    attempt = 0 if lived >= self._pace.steady else attempt + 1
                    if attempt > 1:
                        await pause(stop, self._pace.before(attempt - 1, None))
            await self._reading.standing.tell(False, "stopped")
        finally:
            await self._close()

    async def _one(self, stop: asyncio.Event) -> float:
        """Open a socket, hold it until it is lost, and return how long that took. Raises ChannelError."""
        began = asyncio.get_running_loop().time()
        fresh = await unless(stop, self._open())
        if fresh is None:
            return self._pace.steady
        replaced = self._socket is not None and await self._socket.is_connected()
        await self._close()
        self._socket = fresh
        await self._reading.standing.tell(True, self._described(fresh.hello.result() - replaced))
        self._reading.sweeper.ask()
        reason = await unless(stop, fresh.watch())
        if reason == "link_disabled":
            raise ChannelError(f"Slack: link_disabled: {PERMANENT[reason][0]}", PERMANENT[reason][1], transient=False)
        if reason is not None:
            log.info("another socket is needed", extra={"reason": reason})
            if reason not in _PLANNED:
                await self._close()
                await self._reading.standing.tell(False, f"connection lost ({reason}); connecting again")
        return asyncio.get_running_loop().time() - began

    async def _open(self) -> Socket:
        """Return a socket that has been greeted. Raises ChannelError."""
        await self._reading.identify()
        opening = self._reading.client.apps_connections_open(app_token=self._reading.tokens.app().reveal())
        await self._reading.sweeper.behind()  # before the first event of this connection can come
        if self._socket is None or not await self._socket.is_connected():
            self._reading.sweeper.listening()
        url = payloads.socket_url(await asked("apps.connections.open", "", opening))
        socket = Socket(self._reading.client, url, self._handle, self._pace.ping, self._pace.pong)
        try:
            await asked("Socket Mode", "", _greeted(socket, self._pace.hello))
        except BaseException:
            await socket.end(self._pace.end)
            raise
        return socket

    def _described(self, connections: int) -> str:
        known = self._reading.own.identity
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
        committed = None
        if request.type == "events_api" and not payloads.has_event(request.payload):
            log.warning("an event that is none was acknowledged")
            await send_async_response(client, request, BoltResponse(status=200), 0.0)
            return
        if request.type == "events_api":
            committed = self._reading.taken(request.payload, request.retry_attempt or 0)
        if committed is not None:
            await asyncio.wait((committed,))  # Bolt's own work would keep the interpreter from the commit
        body = AsyncBoltRequest(mode="socket_mode", body=request.payload, context={COMMIT: committed})
        response = await self._reading.app.async_dispatch(body)
        await send_async_response(client, request, response, 0.0)

    async def _close(self) -> None:
        ended, self._socket = self._socket, None
        if ended is not None:
            await ended.end(self._pace.end)


async def _greeted(socket: Socket, seconds: float) -> None:
    """Open the socket and wait for Slack's hello."""
    async with asyncio.timeout(seconds):
        await socket.connect()
        first: set[asyncio.Future[Any]] = {socket.hello, socket.lost}
        await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
    if not socket.hello.done():
        raise ChannelError(f"Slack, Socket Mode: no hello, but {socket.lost.result()}", transient=True)
