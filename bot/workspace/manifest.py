"""Reads an app manifest, in Slack's own form, as far as the workspace acts on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: What the workspace installs when it is given no manifest.
DEFAULT: dict[str, Any] = {
    "display_information": {"name": "the-loop"},
    "features": {
        "bot_user": {"display_name": "the-loop"},
        "slash_commands": [{"command": "/the-loop", "description": "Sessions"}],
    },
    "oauth_config": {
        "scopes": {
            "bot": [
                "channels:history", "channels:join", "channels:read", "chat:write", "commands", "files:read",
                "files:write", "groups:history", "groups:read", "reactions:read", "reactions:write", "usergroups:read",
                "users:read",
            ]
        }
    },
    "settings": {
        "event_subscriptions": {"bot_events": ["message.channels", "message.groups"]},
        "interactivity": {"is_enabled": True},
        "socket_mode_enabled": True,
    },
}  # fmt: skip


@dataclass(frozen=True)
class Manifest:
    """What an app asks for."""

    name: str
    scopes: tuple[str, ...]
    events: tuple[str, ...]
    commands: tuple[str, ...]
    interactivity: bool
    socket_mode: bool


def read_manifest(document: Mapping[str, Any]) -> Manifest:
    """Return what a manifest says; what it leaves out is off, as with Slack."""
    features, settings = document.get("features", {}), document.get("settings", {})
    scopes = document.get("oauth_config", {}).get("scopes", {}).get("bot", [])
    bot_name = features.get("bot_user", {}).get("display_name")
    return Manifest(
        name=str(bot_name or document.get("display_information", {}).get("name", "app")),
        scopes=tuple(scopes),
        events=tuple(settings.get("event_subscriptions", {}).get("bot_events", [])),
        commands=tuple(entry["command"] for entry in features.get("slash_commands", [])),
        interactivity=bool(settings.get("interactivity", {}).get("is_enabled")),
        socket_mode=bool(settings.get("socket_mode_enabled")),
    )
