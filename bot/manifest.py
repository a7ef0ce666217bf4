"""The app's manifest, made from the registered listeners and the methods called: no scope or event without a use."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any
from urllib.parse import urlsplit

import yaml

from bot import app
from bot.http import PATH
from bot.payloads import COMMAND
from bot.settings import PRESSES
from core.base.errors import InvalidValue
from core.commandtable import COMMANDS, Command, in_chat
from core.model.asking import Role

NAME = "the-loop"
PLACEHOLDER = "https://YOUR-HOST"
_HEADER = """\
# The Slack app of the-loop: paste this at https://api.slack.com/apps -> Create New App -> From a manifest.
# Made by `the-loop slack manifest`; a test holds it to what the code listens to and calls.
"""
_PUT_YOURS = f"""\
# Put the address at which Slack reaches your proxy in the place of {PLACEHOLDER}, or give it:
# `the-loop slack manifest --url https://…`
"""

#: The Web API methods that the bot calls -> the bot scopes that each needs. The app-level token has its own scope,
#: connections:write, which no manifest can give.
METHODS: Mapping[str, tuple[str, ...]] = {
    "apps.connections.open": (),
    "assistant.threads.setStatus": ("chat:write",),
    "auth.test": (),
    "chat.delete": ("chat:write",),
    "chat.postEphemeral": ("chat:write",),
    "chat.postMessage": ("chat:write",),
    "chat.update": ("chat:write",),
    "chat.startStream": ("chat:write",),
    "chat.appendStream": ("chat:write",),
    "chat.stopStream": ("chat:write",),
    "conversations.history": ("channels:history", "groups:history"),
    "conversations.info": ("channels:read", "groups:read"),
    "conversations.list": ("channels:read", "groups:read"),
    "conversations.replies": ("channels:history", "groups:history"),
    "files.completeUploadExternal": ("files:write",),
    "files.getUploadURLExternal": ("files:write",),
    "files.info": ("files:read",),  # and the files themselves, which no method brings
    "reactions.add": ("reactions:write",),
    "reactions.remove": ("reactions:write",),
    "usergroups.list": ("usergroups:read",),
    "users.info": ("users:read",),
    "views.open": (),
    "views.publish": (),
}
EVENTS: Mapping[str, tuple[str, ...]] = {
    "app_home_opened": (),
    "app_mention": ("app_mentions:read",),
    "message.channels": ("channels:history",),
    "message.groups": ("groups:history",),
    "message.im": ("im:history",),
}


_APP_HOME = {"home_tab_enabled": True, "messages_tab_enabled": True, "messages_tab_read_only_enabled": False}


def scopes(mode: str = "socket") -> tuple[str, ...]:
    """Return the bot scopes that the app needs in that `read.mode`, sorted."""
    called = {scope for needed in METHODS.values() for scope in needed}
    heard = {scope for event in app.EVENTS for scope in EVENTS[event]} if mode in PRESSES else set()
    return tuple(sorted({*called, *heard, *(("commands",) if mode in PRESSES else ())}))


def document(mode: str = "socket", url: str = "") -> dict[str, Any]:
    """Return the manifest for that `read.mode`. `url`: where Slack reaches us over HTTP, which no other mode needs.

    Where nothing arrives (poll, off) nothing is offered: a command or a button there would only fail. Raises
    InvalidValue for a URL that is none of https, or for any in another mode.
    """
    if url and mode != "http":
        raise InvalidValue(
            f"Slack is given no URL with channels.slack.read.mode {mode}",
            "leave --url out, or set channels.slack.read.mode to http",
        )
    request_url = f"{_base(url)}{PATH}" if mode == "http" else ""
    arrives = mode in PRESSES
    return {
        "_metadata": {"major_version": 1, "minor_version": 1},
        "display_information": {
            "name": NAME,
            "description": "Steer long-lived agent sessions by replying in their threads",
        },
        "features": {
            "bot_user": {"display_name": NAME, "always_online": False},
            **({"app_home": _APP_HOME} if arrives else {}),
            **({"slash_commands": [_command(COMMAND, request_url)]} if arrives else {}),
        },
        "oauth_config": {"scopes": {"bot": list(scopes(mode))}},
        "settings": {
            **({"event_subscriptions": {**_at(request_url), "bot_events": list(app.EVENTS)}} if arrives else {}),
            "interactivity": {"is_enabled": arrives, **_at(request_url)},
            "org_deploy_enabled": False,
            "socket_mode_enabled": mode == "socket",
            "token_rotation_enabled": False,
        },
    }


def manifest(mode: str = "socket", url: str = "") -> str:
    """Return the manifest as YAML. Raises InvalidValue; see `document`."""
    header = _HEADER + (_PUT_YOURS if mode == "http" and not url else "")
    return header + yaml.safe_dump(document(mode, url), sort_keys=False, allow_unicode=True, width=100)


def usage_hint(table: Iterable[Command]) -> str:
    """Return what members may say; `pause | resume NAME` where neighbours take the same."""
    usages = [command.chat.partition(" ") for command in in_chat(table).values() if command.role is Role.MEMBER]
    takes = groupby(usages, key=lambda usage: usage[2])
    return " | ".join(f"{' | '.join(word for word, _, _ in same)} {taken}".strip() for taken, same in takes)


def _command(name: str, url: str) -> dict[str, Any]:
    return {
        "command": name,
        **({"url": url} if url else {}),
        "description": "Standing sessions",
        "usage_hint": usage_hint(COMMANDS),
        "should_escape": False,
    }


def _at(url: str) -> dict[str, str]:
    return {"request_url": url} if url else {}


def _base(url: str) -> str:
    """Return the address without a slash at its end."""
    if not url:
        return PLACEHOLDER
    try:
        parts = urlsplit(url)
        usable = parts.scheme == "https" and bool(parts.hostname) and not (parts.query or parts.fragment)
    except ValueError:
        usable = False
    if not usable or any(char.isspace() for char in url):
        raise InvalidValue(f"{url!r} is no address at which Slack could call", "a URL such as https://loop.example.org")
    return url.rstrip("/").removesuffix(PATH)
