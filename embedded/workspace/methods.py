"""The Web API's methods: `METHODS` is all there are, with the call, arguments and checks that they share."""

from __future__ import annotations

import asyncio
import json
import mimetypes
import re
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from embedded.workspace import limits
from embedded.workspace.model import ApiError, App, Channel, Json, Store, decode_cursor, encode_cursor, new_id, parse_ts
from embedded.workspace.room import Room
from embedded.workspace.shapes import (
    bot_fields,
    channel_view,
    check_pictures,
    file_view,
    message_view,
    sent_to_wire,
    user_view,
)

_DIGITS = 12  #: of a number that an argument holds


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
        except (ValueError, RecursionError) as problem:
            raise ApiError(error) from problem

    def limit(self, default: int, most: int) -> int:
        """Return how many items a page may hold: invalid_limit unless 1 to `most`."""
        value = str(self.args.get("limit") or default)
        if not value.isdigit() or len(value) > _DIGITS or not 1 <= int(value) <= most:
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
        if channel is None or ((channel.is_private or channel.im) and not self.is_member(channel)):
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


def _connections_open(call: Call) -> Json:
    if not call.app.socket_mode:
        raise ApiError("socket_mode_not_enabled")
    return {"url": call.room.sockets.open_ticket(call.app)}


APPS = {"apps.connections.open": Method(_connections_open, "connections:write", app_token=True)}


_MOST_MESSAGES = 10


def _set_status(call: Call) -> Json:
    for name in ("channel_id", "thread_ts"):
        call.needed(name)
    if "status" not in call.args:
        raise ApiError("invalid_arguments", response_metadata={"messages": ["[ERROR] missing required field: status"]})
    messages = call.structure("loading_messages", "invalid_arguments") or []
    if not isinstance(messages, list) or len(messages) > _MOST_MESSAGES:
        raise ApiError("invalid_arguments")
    channel = Call(call.room, call.app, {"channel": call.text("channel_id")}).channel(writable=True)
    call.need_member(channel)
    call.message(channel, call.text("thread_ts"), "thread_not_found")
    call.room.posting.set_status(channel, call.text("thread_ts"), call.text("status"))
    return {}


ASSISTANT = {"assistant.threads.setStatus": Method(_set_status, "chat:write")}


def _test(call: Call) -> Json:
    team, app = call.room.team, call.app
    return {
        "url": f"https://{team['domain']}.slack.com/",
        "team": team["name"],
        "user": app.name,
        "team_id": team["id"],
        "user_id": app.bot_user,
        "bot_id": app.bot_id,
        "is_enterprise_install": False,
    }


AUTH = {"auth.test": Method(_test)}


def _bots_info(call: Call) -> Json:
    wanted = call.text("bot")
    app = next((app for app in call.room.store.apps() if wanted == app.bot_id), None)
    if app is None:
        raise ApiError("bot_not_found")
    bot = {"id": app.bot_id, "app_id": app.id, "user_id": app.bot_user, "name": app.name, "deleted": app.revoked}
    return {"bot": {**bot, "updated": 0, "icons": {}}}


BOTS = {"bots.info": Method(_bots_info, "users:read")}


def _post_message(call: Call) -> Json:
    person = call.room.store.member(str(call.args.get("channel")))
    channel = call.room.store.direct(person.id, call.app) if person else call.channel(writable=True)
    if not call.is_member(channel) and "chat:write.public" not in call.app.scopes:
        raise ApiError("not_in_channel")
    fields: Json = {**_author(call), **_content(call)}
    if call.args.get("metadata"):
        fields["metadata"] = limits.check_metadata(call.structure("metadata", "invalid_metadata_format"))
    if call.text("thread_ts"):
        fields["thread_ts"] = call.text("thread_ts")
        if call.flag("reply_broadcast"):
            fields["subtype"] = "thread_broadcast"
    message = call.room.posting.post(channel, fields)
    return {"channel": channel.id, "ts": message["ts"], "message": message}


def _update(call: Call) -> Json:
    channel = call.channel(writable=True)
    message = _own_message(call, channel, "cant_update_message")
    if call.room.streams.is_open(channel.id, message["ts"]):
        raise ApiError("streaming_state_conflict")
    if len(call.text("text")) > limits.UPDATE_TEXT_MAX:
        raise ApiError("msg_too_long")
    # Text without blocks takes the old blocks away; an update without metadata keeps the old metadata.
    fields: Json = {"blocks": None, **_content(call)}
    if call.args.get("metadata"):
        fields["metadata"] = limits.check_metadata(call.structure("metadata", "invalid_metadata_format"))
    changed = call.room.posting.edit(channel, message, fields, call.app.bot_user)
    return {"channel": channel.id, "ts": message["ts"], "text": changed["text"], "message": changed}


def _delete(call: Call) -> Json:
    channel = call.channel()
    message = _own_message(call, channel, "cant_delete_message")
    if call.room.streams.is_open(channel.id, message["ts"]):  # not on its page; so it was measured
        raise ApiError("cant_delete_message")
    call.room.posting.delete(channel, message)
    return {"channel": channel.id, "ts": message["ts"]}


def _post_ephemeral(call: Call) -> Json:
    channel = call.channel(writable=True)
    call.need_member(channel)
    user = call.needed("user")
    if user not in call.room.store.members(channel.id):
        raise ApiError("user_not_in_channel")
    fields: Json = {**bot_fields(call.app, call.room.team["id"]), **_content(call)}
    if call.text("thread_ts"):
        fields["thread_ts"] = call.text("thread_ts")
    return {"message_ts": call.room.posting.whisper(channel, user, fields)["ts"]}


def _get_permalink(call: Call) -> Json:
    channel = call.channel()
    ts = call.text("message_ts")
    message = call.message(channel, ts)
    link = f"https://{call.room.team['domain']}.slack.com/archives/{channel.id}/p{ts.replace('.', '')}"
    thread = message.get("thread_ts")
    return {"channel": channel.id, "permalink": f"{link}?thread_ts={thread}&cid={channel.id}" if thread else link}


def _author(call: Call) -> Json:
    fields = bot_fields(call.app, call.room.team["id"])
    custom = {key: call.text(key) for key in ("username", "icon_emoji", "icon_url") if call.text(key)}
    if custom:
        call.need_scope("chat:write.customize")
    return {**fields, **custom}


def _content(call: Call) -> Json:
    """Return text, blocks and attachments as they are stored; no_text when there is nothing to show."""
    blocks = call.structure("blocks", "invalid_blocks_format")
    if call.args.get("markdown_text") is not None:
        text = limits.check_markdown(call.args["markdown_text"], bool(call.args.get("text") or blocks))
        return {"text": sent_to_wire(text), "blocks": limits.check_blocks([{"type": "markdown", "text": text}])}
    attachments: Any = call.structure("attachments", "invalid_attachments")
    fields: Json = {"text": sent_to_wire(limits.check_text(call.args.get("text") or ""))}
    if blocks:
        fields["blocks"] = limits.check_blocks(blocks)
        check_pictures(call.room.store, call.app, fields["blocks"])
    if attachments:
        fields["attachments"] = limits.check_attachments(attachments)
    if not fields["text"].strip() and len(fields) == 1:
        raise ApiError("no_text")
    return fields


def _own_message(call: Call, channel: Channel, refusal: str) -> Json:
    message = call.message(channel, call.text("ts"))
    if message.get("bot_id") != call.app.bot_id:
        raise ApiError(refusal)
    return message


_STREAMED = ("markdown_text", "chunks", "task_display_mode")


def _start_stream(call: Call) -> Json:
    channel = call.channel(writable=True)
    call.need_member(channel)
    thread = call.needed("thread_ts")
    reader, team = call.text("recipient_user_id"), call.text("recipient_team_id")
    if not reader:
        raise ApiError("missing_recipient_user_id")
    if not team:
        raise ApiError("missing_recipient_team_id")
    person = call.room.store.member(reader)
    if person is None or person.team_id != team:
        raise ApiError("user_not_found")
    fields: Json = {**_author(call), "thread_ts": thread}
    message = call.room.streams.start(channel, fields, _streamed(call))
    return {"channel": channel.id, "ts": message["ts"]}


def _append_stream(call: Call) -> Json:
    channel, message = _own_stream(call)
    call.room.streams.append(channel, message, _streamed(call))
    return {"channel": channel.id, "ts": message["ts"]}


def _stop_stream(call: Call) -> Json:
    channel, message = _own_stream(call)
    more: Json = {}
    if call.args.get("metadata"):
        more["metadata"] = limits.check_metadata(call.structure("metadata", "invalid_metadata_format"))
    if call.args.get("blocks"):
        more["blocks"] = limits.check_blocks(call.structure("blocks", "invalid_blocks_format"))
    stopped = call.room.streams.stop(channel, message, _streamed(call), more)
    return {"channel": channel.id, "ts": stopped["ts"], "message": stopped}


def _own_stream(call: Call) -> tuple[Channel, Json]:
    channel = call.channel(writable=True)
    return channel, _own_message(call, channel, "message_not_owned_by_app")


def _streamed(call: Call) -> Json:
    """Return what is written, decoded; what is absent has no key."""
    found = {name: call.structure(name, "invalid_chunks") if name == "chunks" else call.args.get(name)
             for name in _STREAMED}  # fmt: skip
    return {name: value for name, value in found.items() if value is not None}


CHAT = {
    "chat.postMessage": Method(_post_message, "chat:write"),
    "chat.update": Method(_update, "chat:write"),
    "chat.delete": Method(_delete, "chat:write"),
    "chat.postEphemeral": Method(_post_ephemeral, "chat:write"),
    "chat.getPermalink": Method(_get_permalink),
    "chat.startStream": Method(_start_stream, "chat:write"),
    "chat.appendStream": Method(_append_stream, "chat:write"),
    "chat.stopStream": Method(_stop_stream, "chat:write"),
}


_PAGE_MAX = 1000
_DEFAULT_HISTORY = 100


def _conversations_info(call: Call) -> Json:
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
    return f"{'im' if channel.im else 'groups' if channel.is_private else 'channels'}:{action}"


def _view(call: Call, channel: Channel) -> Json:
    return channel_view(channel, call.room.store.members(channel.id), call.app.bot_user)


CONVERSATIONS = {
    "conversations.info": Method(_conversations_info, "channels:read,groups:read"),
    "conversations.list": Method(_list, "channels:read,groups:read"),
    "conversations.join": Method(_join, "channels:join"),
    "conversations.members": Method(_members, "channels:read,groups:read"),
    "conversations.history": Method(_history, "channels:history,groups:history"),
    "conversations.replies": Method(_replies, "channels:history,groups:history"),
}


_MOST_FILES = 10


def _files_info(call: Call) -> Json:
    found = call.room.store.file(call.text("file"))
    if found is None:
        raise ApiError("file_not_found")
    return {"file": file_view(found[0], call.room.base_url)}


def _get_upload_url(call: Call) -> Json:
    name, length = call.needed("filename"), str(call.args.get("length") or "")
    if not length.isdigit() or len(length) > _DIGITS or int(length) < 1:
        raise ApiError("invalid_arguments", response_metadata={"messages": ["[ERROR] invalid length"]})
    file_id, ticket = new_id("F"), new_id("U")
    call.room.uploads.expect(ticket, file_id, name, int(length), call.app.id)
    return {"upload_url": f"{call.room.base_url}/upload/{ticket}", "file_id": file_id}


_LOOKED_AT_SECONDS = 0.2  #: from an upload to the end of what the server does with the file


def _look_at(store: Store, doc: Json) -> None:
    with suppress(sqlite3.ProgrammingError):  # the workspace has ended meanwhile
        store.describe_file(doc)


def _complete_upload(call: Call) -> Json:
    """Share uploaded files. As with Slack the answer knows nothing of the message that shows them."""
    listed: Any = call.structure("files", "invalid_arguments")
    if not isinstance(listed, list) or not 1 <= len(listed) <= _MOST_FILES:
        raise ApiError("invalid_arguments")
    if any(not isinstance(entry, dict) or not isinstance(entry.get("id"), str) for entry in listed):
        raise ApiError("invalid_arguments")
    channel = _target(call)
    taken = [call.room.uploads.take(entry["id"], call.app.id) for entry in listed]
    if any(upload is None for upload in taken):
        raise ApiError("file_not_found")
    for entry, upload in zip(listed, taken, strict=True):
        if upload is not None:
            title = str(entry.get("title") or upload.name)
            kind = mimetypes.guess_type(upload.name)[0] or "text/plain"
            doc: Json = {"id": upload.file_id, "name": upload.name, "title": title, "mimetype": kind, "mode": "hosted"}
            doc |= {"size": len(upload.content), "user": call.app.bot_user, "is_external": False}
            if channel is None:  # as with Slack it is looked at later: until then it has no type, and no block shows it
                call.room.store.put_file({**doc, "mimetype": ""}, upload.content)
                asyncio.get_running_loop().call_later(_LOOKED_AT_SECONDS, _look_at, call.room.store, doc)
            else:
                call.room.store.put_file(doc, upload.content)
    if channel is not None:
        fields: Json = {**bot_fields(call.app, call.room.team["id"]), "text": call.text("initial_comment")}
        fields |= {"subtype": "file_share", "files": [entry["id"] for entry in listed], "upload": True}
        if call.text("thread_ts"):
            fields["thread_ts"] = call.text("thread_ts")
        call.room.posting.post(channel, fields)
    return {"files": [{"id": entry["id"], "title": str(entry.get("title") or "")} for entry in listed]}


def _target(call: Call) -> Any:
    """Return the channel to share in, None without one: then the files stay private."""
    wanted = call.text("channel_id")
    if not wanted:
        return None
    channel = Call(call.room, call.app, {"channel": wanted}).channel(writable=True)
    if not call.is_member(channel):
        raise ApiError("not_in_channel")
    thread = call.text("thread_ts")
    if thread and call.room.store.message(channel.id, thread) is None:
        raise ApiError("thread_not_found")
    return channel


FILES = {
    "files.info": Method(_files_info, "files:read"),
    "files.getUploadURLExternal": Method(_get_upload_url, "files:write"),
    "files.completeUploadExternal": Method(_complete_upload, "files:write"),
}


_NAME = re.compile(r"[a-z0-9_+'-]{1,100}(::skin-tone-[2-6])?")


def _add(call: Call) -> Json:
    name, channel, message = _reaction_target(call)
    call.room.posting.react(channel, message, name, call.app.bot_user)
    return {}


def _remove(call: Call) -> Json:
    name, channel, message = _reaction_target(call)
    call.room.posting.unreact(channel, message, name, call.app.bot_user)
    return {}


def _get(call: Call) -> Json:
    channel = call.channel()
    call.need_member(channel)
    message = call.message(channel, call.text("timestamp"))
    view = message_view(call.room.store, channel.id, message, call.room.base_url)
    return {"type": "message", "channel": channel.id, "message": view}


def _reaction_target(call: Call) -> tuple[str, Channel, Json]:
    name = call.text("name").strip(":")
    if not _NAME.fullmatch(name):
        raise ApiError("invalid_name")
    if not call.text("channel") or not call.text("timestamp"):
        raise ApiError("no_item_specified")
    channel = call.channel(writable=True)
    call.need_member(channel)
    return name, channel, call.message(channel, call.text("timestamp"))


REACTIONS = {
    "reactions.add": Method(_add, "reactions:write"),
    "reactions.remove": Method(_remove, "reactions:write"),
    "reactions.get": Method(_get, "reactions:read"),
}


def _usergroups_list(call: Call) -> Json:
    """Answer the groups that are not disabled, unless `include_disabled` asks for those as well."""
    groups = call.room.store.groups()
    return {"usergroups": [group for group in groups if call.flag("include_disabled") or not group["date_delete"]]}


USERGROUPS = {"usergroups.list": Method(_usergroups_list, "usergroups:read")}


def _users_info(call: Call) -> Json:
    wanted = call.text("user")
    user = call.room.store.member(wanted)
    if user is None:
        raise ApiError("user_not_found")
    memberships = [call.room.store.members(channel.id) for channel in call.room.store.channels()]
    shared = any(user.id in members and call.app.bot_user in members for members in memberships)
    return {"user": user_view(user, call.room.team["id"], shared)}


USERS = {"users.info": Method(_users_info, "users:read")}


def _views_open(call: Call) -> Json:
    return {"view": call.room.views.open(call.app, call.needed("trigger_id"), _view_of(call))}


def _views_update(call: Call) -> Json:
    view_id = call.needed("view_id")
    return {"view": call.room.views.update(call.app, view_id, _view_of(call), call.text("hash"))}


def _views_publish(call: Call) -> Json:
    user = call.needed("user_id")
    return {"view": call.room.views.publish(call.app, user, _view_of(call), call.text("hash"))}


def _view_of(call: Call) -> Any:
    view = call.structure("view", "invalid_arguments")
    if view is None:
        raise ApiError("invalid_arguments", response_metadata={"messages": ["[ERROR] missing required field: view"]})
    return view


VIEWS = {
    "views.open": Method(_views_open),
    "views.update": Method(_views_update),
    "views.publish": Method(_views_publish),
}


METHODS: dict[str, Method] = {
    **APPS,
    **ASSISTANT,
    **AUTH,
    **BOTS,
    **CHAT,
    **CONVERSATIONS,
    **FILES,
    **REACTIONS,
    **USERGROUPS,
    **USERS,
    **VIEWS,
}
