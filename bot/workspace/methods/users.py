"""users.info."""

from __future__ import annotations

from bot.workspace.errors import ApiError, Json
from bot.workspace.methods.base import Call, Method
from bot.workspace.shapes import user_view


def _info(call: Call) -> Json:
    wanted = call.text("user")
    user = next((user for user in call.room.store.users() if user.id == wanted), None)
    if user is None:
        raise ApiError("user_not_found")
    memberships = [call.room.store.members(channel.id) for channel in call.room.store.channels()]
    shared = any(user.id in members and call.app.bot_user in members for members in memberships)
    return {"user": user_view(user, call.room.team["id"], shared)}


METHODS = {"users.info": Method(_info, "users:read")}
