"""What happens to messages: posted, edited, deleted, reacted to; stored first, then told to the apps."""

from __future__ import annotations

from typing import Any

from bot.workspace import clock
from bot.workspace.address import Address
from bot.workspace.changes import Changes
from bot.workspace.errors import ApiError, Json
from bot.workspace.events import Events
from bot.workspace.model import App, Channel, Store
from bot.workspace.shapes import expand_files, thread_counters

_STATUS_SECONDS = 120


class Posting:
    """Changes conversations. Whoever calls has checked that they may."""

    def __init__(self, address: Address, store: Store, events: Events, changes: Changes) -> None:
        self._address = address
        self._statuses: dict[tuple[str, str], tuple[str, float]] = {}
        self._store = store
        self._events = events
        self._changes = changes

    def post(self, channel: Channel, fields: Json) -> Json:
        """Store a message with a new ts and tell the apps; return it as stored.

        `fields` holds everything but type and ts. A reply must name an existing parent: thread_not_found when
        there is none, cannot_reply_to_message when it is a reply itself.
        """
        parent = self._parent(channel, fields.get("thread_ts"))
        message: Json = {"type": "message", **fields, "ts": self._store.next_ts(channel.id, clock.now())}
        if parent is not None:
            message["parent_user_id"] = parent.get("user")
        self._store.put_message(channel.id, message)
        if message.get("bot_id"):
            self._statuses.pop((channel.id, str(message.get("thread_ts"))), None)
        event = expand_files(self._store, message, self._address.url)
        if message.get("subtype") == "thread_broadcast" and parent is not None:
            event["root"] = parent | thread_counters(self._store.replies(channel.id, parent["ts"]), parent)
        self._tell(channel, event, message["ts"])
        return message

    def set_status(self, channel: Channel, thread: str, status: str) -> None:
        """Show below a thread what an app does, for two minutes or until it posts there; "" takes it away."""
        self._statuses[channel.id, thread] = (status, clock.now() + _STATUS_SECONDS)
        self._changes.notify()

    def status(self, channel: Channel, thread: str) -> str:
        """Return what stands below a thread, "" for nothing."""
        status, until = self._statuses.get((channel.id, thread), ("", 0.0))
        return status if clock.now() < until else ""

    def whisper(self, channel: Channel, user: str, fields: Json) -> Json:
        """Store a message that only `user` sees; no app hears of it."""
        ts = self._store.next_ts(channel.id, clock.now())
        message: Json = {"type": "message", **fields, "ts": ts, "is_ephemeral": True}
        self._store.put_ephemeral(channel.id, user, message)
        self._changes.notify()
        return message

    def edit(self, channel: Channel, message: Json, fields: Json, by: str | None) -> Json:
        """Replace members of a message (None removes one) and tell the apps message_changed.

        `by` is who edited; without it the edit is one of the server's own, such as a link preview.
        """
        before = dict(message)
        merged: Json = {**message, **fields}
        changed = {key: value for key, value in merged.items() if value is not None}
        event_ts = self._store.next_ts(channel.id, clock.now())
        if by is not None:
            changed["edited"] = {"user": by, "ts": event_ts}
        self._store.put_message(channel.id, changed)
        self._hidden(channel, event_ts, "message_changed", message=changed, previous_message=before)
        return changed

    def delete(self, channel: Channel, message: Json) -> None:
        """Remove a message; a parent with replies stays as a tombstone."""
        event_ts = self._store.next_ts(channel.id, clock.now())
        replies = [] if message.get("thread_ts") else self._store.replies(channel.id, message["ts"])
        if not replies:
            self._store.remove_message(channel.id, message["ts"])
            gone = {"deleted_ts": message["ts"], "previous_message": message}
            self._hidden(channel, event_ts, "message_deleted", **gone)
            return
        tombstone: Json = {"type": "message", "subtype": "tombstone", "ts": message["ts"], "hidden": True}
        tombstone |= {"text": "This message was deleted.", "user": "USLACKBOT"}
        self._store.put_message(channel.id, tombstone)
        shown = tombstone | thread_counters(replies, tombstone)
        self._hidden(channel, event_ts, "message_changed", message=shown, previous_message=message)

    def react(self, channel: Channel, message: Json, name: str, user: str) -> None:
        """Add a reaction and tell the apps; already_reacted when it stands."""
        if not self._store.react(channel.id, message["ts"], name, user):
            raise ApiError("already_reacted")
        self._reaction("reaction_added", channel, message, name, user)

    def unreact(self, channel: Channel, message: Json, name: str, user: str) -> None:
        """Take a reaction back and tell the apps; no_reaction when there is none."""
        if not self._store.unreact(channel.id, message["ts"], name, user):
            raise ApiError("no_reaction")
        self._reaction("reaction_removed", channel, message, name, user)

    def join(self, channel: Channel, user: str, team: str, inviter: str = "") -> bool:
        """Make a user a member and tell the apps; False when they already were."""
        if not self._store.join(channel.id, user):
            return False
        self._changes.notify()
        self._membership("member_joined_channel", channel, user, team, {"inviter": inviter} if inviter else {})
        self.post(channel, {"subtype": "channel_join", "user": user, "text": f"<@{user}> has joined the channel"})
        return True

    def leave(self, channel: Channel, user: str, team: str) -> bool:
        """End a membership and tell the apps, a leaving bot included; False when there was none."""
        if not self._store.leave(channel.id, user):
            return False
        self._changes.notify()
        self._membership("member_left_channel", channel, user, team, {})
        app: App | None = self._store.app(user)
        if app is not None:
            left = {"type": "channel_left", "channel": channel.id, "actor_id": "", "event_ts": self._event_ts(channel)}
            self._events.tell(app, "channel_left", channel, left)
        return True

    def set_channel(self, channel: Channel, event_type: str, user: str) -> None:
        """Store a changed channel (archived, shared…) and tell the apps by the named event."""
        self._store.put_channel(channel)
        self._changes.notify()
        event = {"type": event_type, "channel": channel.id, "user": user, "event_ts": self._event_ts(channel)}
        self._events.publish(event_type, channel, event)

    def replied(self, channel: Channel, parent: Json) -> None:
        """Tell the apps that a parent got a reply, in the shape the Events API gives it: without its subtype."""
        shown = parent | thread_counters(self._store.replies(channel.id, parent["ts"]), parent)
        event_ts = self._store.next_ts(channel.id, clock.now())
        event = {"type": "message", "message": shown, "hidden": True, "ts": event_ts, "thread_ts": parent["ts"]}
        self._tell(channel, event, event_ts)

    def _parent(self, channel: Channel, thread_ts: Any) -> Json | None:
        if thread_ts is None:
            return None
        parent = self._store.message(channel.id, thread_ts)
        if parent is None:
            raise ApiError("thread_not_found")
        if parent.get("thread_ts") not in (None, thread_ts) or parent.get("subtype") in (
            "channel_join",
            "channel_leave",
        ):
            raise ApiError("cannot_reply_to_message")
        return parent

    def _hidden(self, channel: Channel, event_ts: str, subtype: str, **members: Any) -> None:
        shown = {key: expand_files(self._store, value, self._address.url) if isinstance(value, dict) else value
                 for key, value in members.items()}  # fmt: skip
        event = {"type": "message", "subtype": subtype, "hidden": True, **shown, "ts": event_ts}
        self._tell(channel, event, event_ts)

    def _tell(self, channel: Channel, event: Json, event_ts: str) -> None:
        self._changes.notify()
        place = {"channel": channel.id, "event_ts": event_ts, "channel_type": channel.kind}
        self._events.message(channel, {**event, **place})

    def _reaction(self, kind: str, channel: Channel, message: Json, name: str, user: str) -> None:
        self._changes.notify()
        item = {"type": "message", "channel": channel.id, "ts": message["ts"]}
        event = {"type": kind, "user": user, "reaction": name, "item": item, "item_user": message.get("user")}
        self._events.publish(kind, channel, event | {"event_ts": self._event_ts(channel)})

    def _membership(self, kind: str, channel: Channel, user: str, team: str, extra: Json) -> None:
        letter = "G" if channel.is_private else "C"
        event = {"type": kind, "user": user, "channel": channel.id, "channel_type": letter, "team": team, **extra}
        self._events.publish(kind, channel, event | {"event_ts": self._event_ts(channel)})

    def _event_ts(self, channel: Channel) -> str:
        return self._store.next_ts(channel.id, clock.now())
