"""What every method gets and needs: its call, its arguments, and the checks they share."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bot.workspace.errors import ApiError, Json
from bot.workspace.ids import parse_ts
from bot.workspace.model import App, Channel
from bot.workspace.room import Room


@dataclass(frozen=True)
class Call:
    """One call of a method by an app. Form bodies carry everything as text, JSON bodies as values: both are read."""

    room: Room
    app: App
    args: Json

    def text(self, name: str, default: str = "") -> str:
        """Return an argument that is text."""
        value = self.args.get(name, default)
        if value is None:
            return default
        if not isinstance(value, str):
            raise ApiError("invalid_arguments", response_metadata={"messages": [f"[ERROR] {name} must be a string"]})
        return value

    def needed(self, name: str) -> str:
        """Return an argument that must be there."""
        value = self.text(name)
        if not value:
            raise ApiError(
                "invalid_arguments", response_metadata={"messages": [f"[ERROR] missing required field: {name}"]}
            )
        return value

    def flag(self, name: str) -> bool:
        """Return an argument that is true or false (also as 1, 0, or text)."""
        return str(self.args.get(name, "")).lower() in ("1", "true")

    def structure(self, name: str, error: str) -> Any:
        """Return an argument that is JSON, decoded if it came as text; None when it is absent; ApiError(error) else."""
        value = self.args.get(name)
        if not isinstance(value, str):
            return value
        if not value:
            return None
        try:
            return json.loads(value)
        except json.JSONDecodeError as problem:
            raise ApiError(error) from problem

    def limit(self, default: int, most: int) -> int:
        """Return how many items a page may hold: invalid_limit unless 1 to `most`."""
        value = str(self.args.get("limit") or default)
        if not value.isdigit() or not 1 <= int(value) <= most:
            raise ApiError("invalid_limit")
        return int(value)

    def moment(self, name: str) -> int | None:
        """Return a ts argument in microseconds; None when it is absent."""
        value = str(self.args.get(name) or "")
        if not value:
            return None
        try:
            return parse_ts(value)
        except ValueError as error:
            raise ApiError(f"invalid_ts_{name}") from error

    def channel(self, writable: bool = False) -> Channel:
        """Return the channel asked for; a private one the bot is not in does not exist for it."""
        channel = self.room.store.channel(self.needed("channel"))
        if channel is None or (channel.is_private and not self.is_member(channel)):
            raise ApiError("channel_not_found")
        if writable and channel.is_archived:
            raise ApiError("is_archived")
        return channel

    def is_member(self, channel: Channel) -> bool:
        """Return whether the calling bot is in the channel."""
        return self.app.bot_user in self.room.store.members(channel.id)

    def need_member(self, channel: Channel) -> None:
        """Refuse with not_in_channel unless the calling bot is in the channel."""
        if not self.is_member(channel):
            raise ApiError("not_in_channel")

    def need_scope(self, scope: str) -> None:
        """Refuse with missing_scope unless the app has this scope."""
        if scope not in self.app.scopes:
            raise ApiError("missing_scope", needed=scope, provided=",".join(self.app.scopes))

    def message(self, channel: Channel, ts: str, error: str = "message_not_found") -> Json:
        """Return a message of the channel; ApiError(error) when it is not there."""
        message = self.room.store.message(channel.id, ts)
        if message is None:
            raise ApiError(error)
        return message


@dataclass(frozen=True)
class Method:
    """A method: what runs, the scopes of which it needs one (comma-separated, "" for none), the token it takes."""

    run: Callable[[Call], Json]
    scope: str = ""
    app_token: bool = False
