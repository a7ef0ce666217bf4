"""reactions.add, reactions.remove, reactions.get."""

from __future__ import annotations

import re

from bot.workspace.errors import ApiError, Json
from bot.workspace.methods.base import Call, Method
from bot.workspace.model import Channel
from bot.workspace.shapes import message_view

_NAME = re.compile(r"[a-z0-9_+'-]{1,100}(::skin-tone-[2-6])?")


def _add(call: Call) -> Json:
    name, channel, message = _target(call)
    call.room.posting.react(channel, message, name, call.app.bot_user)
    return {}


def _remove(call: Call) -> Json:
    name, channel, message = _target(call)
    call.room.posting.unreact(channel, message, name, call.app.bot_user)
    return {}


def _get(call: Call) -> Json:
    channel = call.channel()
    call.need_member(channel)
    message = call.message(channel, call.text("timestamp"))
    view = message_view(call.room.store, channel.id, message, call.room.base_url)
    return {"type": "message", "channel": channel.id, "message": view}


def _target(call: Call) -> tuple[str, Channel, Json]:
    name = call.text("name").strip(":")
    if not _NAME.fullmatch(name):
        raise ApiError("invalid_name")
    if not call.text("channel") or not call.text("timestamp"):
        raise ApiError("no_item_specified")
    channel = call.channel(writable=True)
    call.need_member(channel)
    return name, channel, call.message(channel, call.text("timestamp"))


METHODS = {
    "reactions.add": Method(_add, "reactions:write"),
    "reactions.remove": Method(_remove, "reactions:write"),
    "reactions.get": Method(_get, "reactions:read"),
}
