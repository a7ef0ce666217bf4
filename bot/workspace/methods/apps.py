"""apps.connections.open: a ticket for one Socket Mode connection."""

from __future__ import annotations

from bot.workspace.errors import ApiError, Json
from bot.workspace.methods.base import Call, Method


def _connections_open(call: Call) -> Json:
    if not call.app.socket_mode:
        raise ApiError("socket_mode_not_enabled")
    return {"url": call.room.sockets.open_ticket(call.app)}


METHODS = {"apps.connections.open": Method(_connections_open, "connections:write", app_token=True)}
