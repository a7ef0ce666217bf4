"""Which app hears of which event, Socket Mode connections, and deliveries that go on until they are acknowledged."""

from __future__ import annotations

import asyncio
import json
import random
import re
import socket
import struct
import uuid
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from embedded.workspace import model
from embedded.workspace.model import Address, App, Changes, Channel, ControlError, Json, Store, new_secret
from embedded.workspace.shapes import event_wrapper

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
        except (ValueError, RecursionError):
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


#: Seconds before each delivery: the event itself, then at once, after a minute, after five.
RETRY_DELAYS = (0.0, 0.0, 60.0, 300.0)

#: What an app must be allowed before Slack tells it of an event, where the event asks for anything.
EVENT_SCOPES = {
    "message.channels": "channels:history",
    "message.groups": "groups:history",
    "message.im": "im:history",
    "app_mention": "app_mentions:read",
    "reaction_added": "reactions:read",
    "reaction_removed": "reactions:read",
    "member_joined_channel": "channels:read",
    "member_left_channel": "channels:read",
    "channel_archive": "channels:read",
    "channel_unarchive": "channels:read",
    "channel_left": "channels:read",
    "channel_shared": "channels:read",
    "channel_unshared": "channels:read",
}


class Events:
    """Delivers events to the apps that subscribed to them and are members of the channel.

    An event nobody acknowledges is tried four times in all. What is under way is kept in the store, so that a
    restart of the workspace goes on with it.
    """

    def __init__(self, store: Store, sockets: Sockets, changes: Changes, team: str, retry_scale: float) -> None:
        self.sent: deque[tuple[str, Json]] = deque(maxlen=2000)
        self.given_up: deque[Json] = deque(maxlen=2000)
        self.lose = 0
        self._store = store
        self._sockets = sockets
        self._changes = changes
        self._team = team
        self._scale = retry_scale
        self._tasks: set[asyncio.Task[None]] = set()
        self._held: list[tuple[str, str, Json, int, str]] | None = None

    def resume(self) -> None:
        """Go on with what an earlier run had not delivered."""
        for key, doc in self._store.deliveries():
            self._start(key, doc["app"], doc["payload"], doc["attempt"], doc["reason"])

    async def stop(self) -> None:
        """End all deliveries; what is unacknowledged stays in the store."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def message(self, channel: Channel, event: Json) -> None:
        """Tell the channel's apps of a message, an edit or a deletion, and those mentioned that they are."""
        if channel.im:
            self.publish("message.im", channel, event)
            return
        self.publish(f"message.{channel.kind}s", channel, event)
        text = event.get("text", "")
        if event.get("subtype") in (None, "file_share", "thread_broadcast"):
            for app in self._listeners("app_mention", channel):
                if re.search(rf"<@{app.bot_user}(\|[^>]*)?>", text) and event.get("user") != app.bot_user:
                    mention = {key: value for key, value in event.items() if key not in ("channel_type", "subtype")}
                    self._deliver(app, channel, mention | {"type": "app_mention"})

    def publish(self, subscription: str, channel: Channel, event: Json) -> None:
        """Tell every app that subscribed to this and is in the channel."""
        for app in self._listeners(subscription, channel):
            self._deliver(app, channel, event)

    def tell(self, app: App, subscription: str, channel: Channel, event: Json) -> None:
        """Tell one app of something that happens to itself, whether or not it is still a member."""
        if _hears(app, subscription):
            self._deliver(app, channel, event)

    def tell_of(self, app: App, subscription: str, event: Json) -> None:
        """Tell one app of something that happens in no channel."""
        if _hears(app, subscription):
            self._deliver(app, None, event)

    def redeliver(self, payload: Json, app: str, attempt: int, reason: str) -> None:
        """Deliver a payload that was sent before once more, under the same event_id."""
        self._start(f"again-{payload['event_id']}-{self._changes.count}", app, payload, attempt, reason)

    def hold(self) -> None:
        """Keep what happens from now on to ourselves, until `release`."""
        self._held = self._held if self._held is not None else []

    def release(self, newest_first: bool = False) -> int:
        """Deliver what was held, in order or the other way round; return how many there were."""
        held, self._held = self._held or [], None
        for delivery in reversed(held) if newest_first else held:
            self._start(*delivery)
        return len(held)

    def _listeners(self, subscription: str, channel: Channel) -> list[App]:
        members = self._store.members(channel.id)
        return [app for app in self._store.apps() if app.bot_user in members and _hears(app, subscription)]

    def _deliver(self, app: App, channel: Channel | None, event: Json) -> None:
        payload = event_wrapper(app, self._team, event, channel, model.now())
        self.sent.append((app.id, payload))
        self._start(payload["event_id"], app.id, payload, 0, "")

    def _start(self, key: str, app: str, payload: Json, attempt: int, reason: str) -> None:
        if self._held is not None:
            self._held.append((key, app, payload, attempt, reason))
            return
        self._store.put_delivery(key, {"app": app, "payload": payload, "attempt": attempt, "reason": reason})
        task = asyncio.create_task(self._run(key, app, payload, attempt, reason))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, key: str, app: str, payload: Json, attempt: int, reason: str) -> None:
        for number in range(attempt, len(RETRY_DELAYS)):
            if number > attempt:
                await asyncio.sleep(RETRY_DELAYS[number] * self._scale)
            failure = await self._attempt(app, payload, number, reason)
            if failure is None:
                self._store.remove_delivery(key)
                return
            reason = failure
            document = {"app": app, "payload": payload, "attempt": number + 1, "reason": reason}
            self._store.put_delivery(key, document)
            self._changes.notify()
        self._store.remove_delivery(key)
        self.given_up.append(payload)
        self._changes.notify()

    async def _attempt(self, app: str, payload: Json, number: int, reason: str) -> str | None:
        if self.lose > 0:
            self.lose -= 1
            return "timeout"
        try:
            await self._sockets.request(app, "events_api", payload, number, reason)
        except NotConnected:
            return "connection_failed"
        except NotAcknowledged:
            return "timeout"
        return None


def _hears(app: App, subscription: str) -> bool:
    needed = EVENT_SCOPES.get(subscription)
    return subscription in app.events and not app.revoked and (needed is None or needed in app.scopes)
