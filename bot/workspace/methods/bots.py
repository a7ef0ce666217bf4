"""bots.info."""

from __future__ import annotations

from bot.workspace.errors import ApiError, Json
from bot.workspace.methods.base import Call, Method


def _info(call: Call) -> Json:
    wanted = call.text("bot")
    app = next((app for app in call.room.store.apps() if wanted == app.bot_id), None)
    if app is None:
        raise ApiError("bot_not_found")
    bot = {"id": app.bot_id, "app_id": app.id, "user_id": app.bot_user, "name": app.name, "deleted": app.revoked}
    return {"bot": {**bot, "updated": 0, "icons": {}}}


METHODS = {"bots.info": Method(_info, "users:read")}
