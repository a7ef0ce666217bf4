"""One Socket Mode connection: slack_sdk's aiohttp client, which tells when it is lost instead of reconnecting itself.

slack_sdk 3.48 reconnects for ever and in place: with a revoked token too, and with a used-up URL. Here a connection
lives once; `connection` decides whether and when there is another. The library's receiver and monitor do their work.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient

from bot import payloads
from bot.clients import quiet_logger
from bot.settings import on_loopback
from bot.watchdog import BROKEN, Watchdog

log = logging.getLogger(__name__)

Handler = Callable[[SocketModeClient, SocketModeRequest], Awaitable[None]]


class Socket(SocketModeClient):
    """A connection from its one-time URL to its end. `lost` holds the reason as soon as another one is needed."""

    def __init__(
        self, client: AsyncWebClient, url: str, handle: Handler, ping_seconds: float, pong_seconds: float
    ) -> None:
        super().__init__(
            app_token="",
            logger=quiet_logger("bot.sdk.socket", logging.ERROR),
            web_client=client,
            ping_interval=ping_seconds,
        )
        if on_loopback(url):
            self.proxy = None
        self.wss_uri = url
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.hello: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._handle = handle
        self._taken: set[asyncio.Task[None]] = set()  #: frames, until they are dealt with
        self._pong_seconds = pong_seconds
        self.message_listeners.append(self._greeted)
        self.socket_mode_request_listeners.append(self._requested)

    async def connect(self) -> None:
        """Open the socket once. Raises what aiohttp raises."""
        url, self.wss_uri = self.wss_uri or "", None
        self.current_session = await self.aiohttp_client_session.ws_connect(
            url,
            autoping=False,
            heartbeat=self.ping_interval,
            proxy=self.proxy,
            ssl=self.web_client.ssl if self.web_client.ssl is not None else True,
        )
        self.current_session_monitor = asyncio.ensure_future(self.monitor_current_session())
        self.message_receiver = asyncio.ensure_future(self.receive_messages())

    async def disconnect(self) -> None:
        """Close the socket, if it was open."""
        if self.current_session is not None:
            await self.current_session.close()

    async def connect_to_new_endpoint(self, force: bool = False) -> None:
        """Say that the connection is lost: the library calls this where it would open another by itself."""
        self._lose(BROKEN)

    async def enqueue_message(self, message: str) -> None:
        """Take a frame in: the first step of its task is done before that of the next, in the order of the frames.

        Why Slack wants another socket is noted at once, since its close frame follows at the heels. The library would
        have each frame wait in a queue for another task, which costs a reply two turns of the event loop.
        """
        frame = _frame(message)
        if payloads.frame_kind(frame) == "disconnect":
            self._lose(payloads.disconnect_reason(frame) or "disconnect")
        task = asyncio.ensure_future(self.run_message_listeners(frame, message))
        self._taken.add(task)
        task.add_done_callback(self._taken.discard)

    async def watch(self, seconds: float = 1.0) -> str:
        """Return the reason once the connection is lost; looked at every `seconds` besides what the library tells."""
        loop, dog = asyncio.get_running_loop(), Watchdog(self._pong_seconds)
        while not self.lost.done():
            await asyncio.wait({self.lost}, timeout=seconds)
            if reason := dog.look(loop.time(), connected=await self.is_connected(), pong=self.last_ping_pong_time):
                self._lose(reason)
        return self.lost.result()

    async def end(self, seconds: float) -> None:
        """Close within `seconds`, after what is being acknowledged has been; then, or where that is cut short, at once.

        aiohttp 3.14 leaves a socket that nobody closed to the garbage collector, and its connection with it.
        """
        try:
            async with asyncio.timeout(seconds):
                while self._taken:
                    await asyncio.wait(self._taken)
                self.closed, self.auto_reconnect_enabled = True, False
                await self.disconnect()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            log.debug("a socket did not close in order", extra={"reason": type(error).__name__})
        finally:
            await self._let_go()

    async def _let_go(self) -> None:
        """End the library's tasks, the socket and its client session, whatever state they are in."""
        self.closed, self.auto_reconnect_enabled = True, False
        await _cancelled(self.message_processor, self.current_session_monitor, self.message_receiver)
        if self.current_session is not None:
            closing = asyncio.ensure_future(self.current_session.close())  # which nobody else waits on any more
            await asyncio.sleep(0)  # it has begun: cancelled from here on, it closes without waiting for an answer
            await _cancelled(closing)
        await self.aiohttp_client_session.close()

    def _lose(self, reason: str) -> None:
        if not self.lost.done():
            self.lost.set_result(reason)

    async def _greeted(
        self, _client: AsyncBaseSocketModeClient, message: dict[str, Any], _raw: str | None = None
    ) -> None:
        if payloads.frame_kind(message) == "hello" and not self.hello.done():
            self.hello.set_result(payloads.connections(message))

    async def _requested(self, _client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        """Handle an envelope. These are begun in the order of the frames; `_handle` must keep it."""
        try:
            await self._handle(self, request)
        except (ConnectionError, aiohttp.ClientError) as error:
            log.info("an acknowledgement was not sent; Slack repeats it", extra={"reason": type(error).__name__})


async def _cancelled(*tasks: asyncio.Future[Any] | None) -> None:
    """Cancel the tasks and wait until they are over."""
    found = [task for task in tasks if task is not None]
    for task in found:
        task.cancel()
    await asyncio.gather(*found, return_exceptions=True)


def _frame(message: str) -> dict[str, Any]:
    try:
        frame = json.loads(message)
    except (ValueError, RecursionError):
        return {}
    return frame if isinstance(frame, dict) else {}
