"""auth.test."""

from __future__ import annotations

from bot.workspace.errors import Json
from bot.workspace.methods.base import Call, Method


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


METHODS = {"auth.test": Method(_test)}
