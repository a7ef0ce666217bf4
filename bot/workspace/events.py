"""Which app hears of what, and the deliveries that go on until somebody acknowledges them."""

from __future__ import annotations

import asyncio
import re
from collections import deque

from bot.workspace import clock
from bot.workspace.changes import Changes
from bot.workspace.errors import Json
from bot.workspace.model import App, Channel, Store
from bot.workspace.shapes import event_wrapper
from bot.workspace.socketmode import NotAcknowledged, NotConnected, Sockets

#: Seconds before each delivery: the event itself, then at once, after a minute, after five.
RETRY_DELAYS = (0.0, 0.0, 60.0, 300.0)

#: What an app must be allowed before Slack tells it of an event, where the event asks for anything.
EVENT_SCOPES = {
    "message.channels": "channels:history",
    "message.groups": "groups:history",
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

    def _deliver(self, app: App, channel: Channel, event: Json) -> None:
        payload = event_wrapper(app, self._team, event, channel, clock.now())
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
