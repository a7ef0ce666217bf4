"""Socket Mode: tickets, connections, envelopes out and acknowledgements back."""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
import uuid
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from bot.workspace.address import Address
from bot.workspace.changes import Changes
from bot.workspace.errors import ControlError, Json
from bot.workspace.ids import new_secret
from bot.workspace.model import App

MAX_CONNECTIONS = 10
#: How long a client that was told to refresh may take to leave by itself.
REFRESH_SECONDS = 5.0
_DEBUG_INFO = {"host": "applink-loopback", "build_number": 1, "approximate_connection_time": 18060}


class NotConnected(Exception):
    """The app has no open socket."""


class NotAcknowledged(Exception):
    """An envelope was sent and the app did not acknowledge it in time."""


@dataclass(eq=False)
class Connection:
    """One open socket of an app. A silent one neither sends nor answers, while its TCP connection stays up."""

    app: str
    ws: web.WebSocketResponse
    transport: asyncio.Transport
    silent: bool = False
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, frame: Json) -> None:
        """Send one frame; a silent connection swallows it, a broken one loses it."""
        if self.silent:
            return
        try:
            await self.ws.send_str(json.dumps(frame))
        except ConnectionError:
            self.gone.set()


class Sockets:
    """All Socket Mode connections, and the envelopes that wait for an acknowledgement."""

    def __init__(self, address: Address, changes: Changes, ack_seconds: float, ping_seconds: float) -> None:
        self.ack_seconds = ack_seconds
        self.log: deque[Json] = deque(maxlen=2000)
        self.opened: Counter[str] = Counter()
        self._address = address
        self._changes = changes
        self._ping_seconds = ping_seconds
        self._tickets: dict[str, str] = {}
        self._connections: list[Connection] = []
        self._waiting: dict[str, asyncio.Future[Json]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def open_ticket(self, app: App) -> str:
        """Return a URL that opens one socket, once."""
        ticket = new_secret()
        self._tickets[ticket] = app.id
        return f"{self._address.url.replace('http', 'ws', 1)}/link/?ticket={ticket}&app_id={app.id}"

    def connections(self, app: str) -> list[Connection]:
        """Return the app's open connections, silent ones included, oldest first."""
        return [connection for connection in self._connections if connection.app == app]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Serve one socket from its hello to its end."""
        app = self._tickets.pop(request.query.get("ticket", ""), None)
        if app is None:
            return web.Response(status=403, text="this ticket is unknown or was used; call apps.connections.open again")
        ws = web.WebSocketResponse(autoping=False, autoclose=True)
        try:
            await ws.prepare(request)
        except ConnectionError:
            return ws  # the client left while it was being answered
        transport = request.transport
        if not isinstance(transport, asyncio.Transport):
            return ws
        connection = Connection(app, ws, transport)
        if len(self.connections(app)) >= MAX_CONNECTIONS:
            await self.disconnect(connection, "too_many_websockets")
            return ws
        self._connections.append(connection)
        self.opened[app] += 1
        await connection.send(self._hello(app))
        self._changes.notify()
        pings = asyncio.create_task(self._ping(connection))
        try:
            await self._read(connection)
        finally:
            pings.cancel()
            self._connections.remove(connection)
            connection.gone.set()
            self._changes.notify()
        return ws

    async def request(self, app: str, kind: str, payload: Json, attempt: int = 0, reason: str = "") -> Json:
        """Send an envelope to one of the app's connections and return the acknowledgement's payload.

        NotConnected when there is none, NotAcknowledged after `ack_seconds`.
        """
        open_ones = self.connections(app)
        if not open_ones:
            raise NotConnected(app)
        envelope_id = str(uuid.uuid4())
        envelope: Json = {"envelope_id": envelope_id, "type": kind, "payload": payload}
        envelope["accepts_response_payload"] = kind != "events_api"
        if kind == "events_api":
            envelope |= {"retry_attempt": attempt, "retry_reason": reason}
        entry: Json = {**envelope, "acknowledged": False}
        self.log.append(entry)
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[envelope_id] = answer
        try:
            await random.choice(open_ones).send(envelope)
            async with asyncio.timeout(self.ack_seconds):
                acknowledged = await answer
        except TimeoutError as error:
            raise NotAcknowledged(envelope_id) from error
        finally:
            del self._waiting[envelope_id]
            self._changes.notify()
        entry["acknowledged"] = True
        self._changes.notify()
        return acknowledged

    async def disconnect(self, connection: Connection, reason: str) -> None:
        """Send a disconnect frame.

        A close frame follows: never after a warning, REFRESH_SECONDS after refresh_requested unless the client has
        left by then, at once after any other reason.
        """
        await connection.send({"type": "disconnect", "reason": reason, "debug_info": _DEBUG_INFO})
        if reason == "refresh_requested":
            task = asyncio.create_task(self._close_unless_gone(connection))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        elif reason != "warning":
            await connection.ws.close()

    async def break_off(self, connection: Connection, how: str) -> None:
        """End or freeze a connection: close (close frame), fin, rst, or silence (half-open)."""
        if how == "close":
            await connection.ws.close()
        elif how == "fin":
            connection.transport.close()
        elif how == "rst":
            linger: socket.socket = connection.transport.get_extra_info("socket")
            linger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.transport.abort()
        elif how == "silence":
            connection.silent = True
        else:
            raise ControlError(f"{how!r} is no way to break a socket; use close, fin, rst or silence")

    async def close(self) -> None:
        """Close every connection, for the end of the server."""
        for task in self._closing:
            task.cancel()
        for connection in list(self._connections):
            if connection.silent:
                connection.transport.abort()
            else:
                await connection.ws.close()

    def _hello(self, app: str) -> Json:
        count = len(self.connections(app))
        return {
            "type": "hello",
            "num_connections": count,
            "debug_info": _DEBUG_INFO,
            "connection_info": {"app_id": app},
        }

    async def _close_unless_gone(self, connection: Connection) -> None:
        try:
            async with asyncio.timeout(REFRESH_SECONDS):
                await connection.gone.wait()
        except TimeoutError:
            await connection.ws.close()

    async def _read(self, connection: Connection) -> None:
        async for message in connection.ws:
            if connection.silent:
                continue
            if message.type is WSMsgType.PING:
                await connection.ws.pong(message.data)
            elif message.type is WSMsgType.TEXT:
                self._acknowledge(message.data)

    def _acknowledge(self, text: str) -> None:
        try:
            frame: Any = json.loads(text)
        except json.JSONDecodeError:
            return
        waiting = self._waiting.get(frame.get("envelope_id", "")) if isinstance(frame, dict) else None
        if waiting is not None and not waiting.done():
            payload = frame.get("payload")
            waiting.set_result(payload if isinstance(payload, dict) else {"text": payload} if payload else {})

    async def _ping(self, connection: Connection) -> None:
        while True:
            await asyncio.sleep(self._ping_seconds)
            if not connection.silent:
                await connection.ws.ping(b"Ping from applink-loopback")
