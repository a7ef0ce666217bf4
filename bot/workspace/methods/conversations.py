"""conversations.info, list, join, members, history, replies."""

from __future__ import annotations

from collections.abc import Callable

from bot.workspace.errors import ApiError, Json
from bot.workspace.ids import decode_cursor, encode_cursor, parse_ts
from bot.workspace.methods.base import Call, Method
from bot.workspace.model import Channel
from bot.workspace.shapes import channel_view, message_view

_PAGE_MAX = 1000
_DEFAULT_HISTORY = 100


def _info(call: Call) -> Json:
    channel = call.channel()
    call.need_scope(_scope(channel, "read"))
    return {"channel": _view(call, channel)}


def _list(call: Call) -> Json:
    types = call.text("types", "public_channel").replace(" ", "").split(",")
    if set(types) - {"public_channel", "private_channel", "mpim", "im"}:
        raise ApiError("invalid_types")
    if "private_channel" in types:
        call.need_scope("groups:read")
    wanted = [channel for channel in call.room.store.channels() if _is_listed(call, channel, types)]
    start = int(_cursor(call) or 0)
    end = start + call.limit(default=100, most=_PAGE_MAX)
    cursor = encode_cursor(str(end)) if end < len(wanted) else ""
    views = [_view(call, channel) for channel in wanted[start:end]]
    return {"channels": views, "response_metadata": {"next_cursor": cursor}}


def _join(call: Call) -> Json:
    channel = call.channel(writable=True)
    if channel.is_private:
        raise ApiError("method_not_supported_for_channel_type")
    joined = call.room.posting.join(channel, call.app.bot_user, call.room.team["id"])
    return {"channel": _view(call, channel)} | ({} if joined else {"warning": "already_in_channel"})


def _members(call: Call) -> Json:
    channel = call.channel()
    call.need_scope(_scope(channel, "read"))
    return {"members": call.room.store.members(channel.id), "response_metadata": {"next_cursor": ""}}


def _history(call: Call) -> Json:
    """Answer a channel's own messages, newest first; replies only when they were also sent to the channel."""
    channel, within = _readable(call), _window(call)
    found = [message for message in reversed(call.room.store.roots(channel.id)) if within(message)]
    cursor = _cursor(call)
    if cursor:
        found = [message for message in found if parse_ts(message["ts"]) <= parse_ts(cursor)]
    return _page(call, channel, found, call.limit(default=_DEFAULT_HISTORY, most=_PAGE_MAX))


def _replies(call: Call) -> Json:
    """Answer a thread, oldest first. The parent opens the first page whatever `oldest` says."""
    channel, within = _readable(call), _window(call)
    root = call.message(channel, call.text("ts"), "thread_not_found")
    if root.get("thread_ts"):
        return _page(call, channel, [root], 1)
    found = [message for message in call.room.store.replies(channel.id, root["ts"]) if within(message)]
    cursor = _cursor(call)
    found = [message for message in found if parse_ts(message["ts"]) >= parse_ts(cursor)] if cursor else [root, *found]
    return _page(call, channel, found, call.limit(default=_PAGE_MAX, most=_PAGE_MAX))


def _page(call: Call, channel: Channel, found: list[Json], limit: int) -> Json:
    shown, rest = found[:limit], found[limit:]
    with_metadata = call.flag("include_all_metadata")
    room = call.room
    messages = [message_view(room.store, channel.id, message, room.base_url, with_metadata) for message in shown]
    cursor = encode_cursor(rest[0]["ts"]) if rest else ""
    return {"messages": messages, "has_more": bool(rest), "response_metadata": {"next_cursor": cursor}}


def _readable(call: Call) -> Channel:
    channel = call.channel()
    call.need_scope(_scope(channel, "history"))
    call.need_member(channel)
    return channel


def _window(call: Call) -> Callable[[Json], bool]:
    """Return whether a message lies between `oldest` and `latest`; the borders count when `inclusive`."""
    oldest, latest, inclusive = call.moment("oldest"), call.moment("latest"), call.flag("inclusive")

    def within(message: Json) -> bool:
        at = parse_ts(message["ts"])
        late_enough = oldest is None or at > oldest or (inclusive and at == oldest)
        return late_enough and (latest is None or at < latest or (inclusive and at == latest))

    return within


def _cursor(call: Call) -> str:
    try:
        cursor = call.text("cursor")
        return decode_cursor(cursor) if cursor else ""
    except ValueError as error:
        raise ApiError("invalid_cursor") from error


def _is_listed(call: Call, channel: Channel, types: list[str]) -> bool:
    if call.flag("exclude_archived") and channel.is_archived:
        return False
    kind = "private_channel" if channel.is_private else "public_channel"
    return kind in types and (not channel.is_private or call.is_member(channel))


def _scope(channel: Channel, action: str) -> str:
    return f"{'groups' if channel.is_private else 'channels'}:{action}"


def _view(call: Call, channel: Channel) -> Json:
    return channel_view(channel, call.room.store.members(channel.id), call.app.bot_user)


METHODS = {
    "conversations.info": Method(_info, "channels:read,groups:read"),
    "conversations.list": Method(_list, "channels:read,groups:read"),
    "conversations.join": Method(_join, "channels:join"),
    "conversations.members": Method(_members, "channels:read,groups:read"),
    "conversations.history": Method(_history, "channels:history,groups:history"),
    "conversations.replies": Method(_replies, "channels:history,groups:history"),
}
