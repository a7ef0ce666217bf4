"""The app's manifest, made from what is listened to and called: no scope and no event without a use."""

from collections.abc import Mapping
from typing import Any

import yaml

from bot.listeners import commands, replies

NAME = "the-loop"
_HEADER = """\
# The Slack app of the-loop: paste this at https://api.slack.com/apps -> Create New App -> From a manifest.
# Made by `the-loop slack manifest`; a test holds it to what the code listens to and calls.
"""

#: The Web API methods that the bot calls -> the bot scopes that each needs. The app-level token has its own scope,
#: connections:write, which no manifest can give.
METHODS: Mapping[str, tuple[str, ...]] = {
    "apps.connections.open": (),
    "assistant.threads.setStatus": ("chat:write",),
    "auth.test": (),
    "chat.postMessage": ("chat:write",),
    "chat.update": ("chat:write",),
    "conversations.history": ("channels:history", "groups:history"),
    "conversations.info": ("channels:read", "groups:read"),
    "conversations.replies": ("channels:history", "groups:history"),
    "files.completeUploadExternal": ("files:write",),
    "files.getUploadURLExternal": ("files:write",),
    "files.info": ("files:read",),  # and the files themselves, which no method brings
    "reactions.add": ("reactions:write",),
    "reactions.remove": ("reactions:write",),
    "users.info": ("users:read",),
}
EVENTS: Mapping[str, tuple[str, ...]] = {
    "message.channels": ("channels:history",),
    "message.groups": ("groups:history",),
}


def scopes() -> tuple[str, ...]:
    """Return the bot scopes that the app needs, sorted."""
    called = {scope for needed in METHODS.values() for scope in needed}
    heard = {scope for event in replies.EVENTS for scope in EVENTS[event]}
    return tuple(sorted({*called, *heard, "commands"}))


def document() -> dict[str, Any]:
    """Return the manifest."""
    return {
        "_metadata": {"major_version": 1, "minor_version": 1},
        "display_information": {
            "name": NAME,
            "description": "Steer long-lived agent sessions by replying in their threads",
        },
        "features": {
            "bot_user": {"display_name": NAME, "always_online": False},
            "slash_commands": [
                {
                    "command": command,
                    "description": "Standing sessions",
                    "usage_hint": "status | list | say NAME TEXT | screen NAME | pause NAME | help",
                    "should_escape": False,
                }
                for command in commands.COMMANDS
            ],
        },
        "oauth_config": {"scopes": {"bot": list(scopes())}},
        "settings": {
            "event_subscriptions": {"bot_events": list(replies.EVENTS)},
            "interactivity": {"is_enabled": True},
            "org_deploy_enabled": False,
            "socket_mode_enabled": True,
            "token_rotation_enabled": False,
        },
    }


def manifest() -> str:
    """Return the manifest as YAML."""
    return _HEADER + yaml.safe_dump(document(), sort_keys=False, allow_unicode=True, width=100)
