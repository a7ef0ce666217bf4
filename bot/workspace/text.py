"""Text on the wire: what Slack makes of what a person types and of what an app sends.

Only `&`, `<` and `>` are ever escaped, as `&amp;`, `&lt;` and `&gt;`; mentions and links are tokens in `<...>`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from bot.workspace.errors import Json

_URL = r"https?://[^\s<>|\"'`]*[^\s<>|\"'`.,;:!?)\]]"
_TOKEN = re.compile(r"<(?:[@#][A-Z0-9]+(?:\|[^<>]*)?|![a-z]+[^<>]*|(?:https?://|mailto:)[^<>]+)>")
_BARE_AMPERSAND = re.compile(r"&(?!amp;|lt;|gt;)")
_TYPED = re.compile(rf"(?P<url>{_URL})|@(?P<user>[a-z0-9._-]+)|#(?P<channel>[a-z0-9_-]+)")
_NONE: Mapping[str, str] = {}
_PIECE = re.compile(r"<([^<>]*)>")


def escape(text: str) -> str:
    """Return plain text with the three special characters escaped."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unescape(text: str) -> str:
    """Return wire text with the three escapes undone, the ampersand last."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def typed_to_wire(
    text: str, users: Mapping[str, str], channels: Mapping[str, str], groups: Mapping[str, str] = _NONE
) -> str:
    """Return what a person's typing becomes; names are looked up in the maps of name to id.

    Everything is escaped, links are wrapped (inside code too, as Slack does), known names become mentions: those of
    channels with an empty label, those of groups without one.
    """

    def token(match: re.Match[str]) -> str:
        user, channel = match["user"], match["channel"]
        if match["url"]:
            return f"<{match['url']}>"
        if user in ("here", "channel", "everyone"):
            return f"<!{user}>"
        if user in users:
            return f"<@{users[user]}>"
        if user in groups:
            return f"<!subteam^{groups[user]}>"
        return f"<#{channels[channel]}|>" if channel in channels else match[0]

    return _TYPED.sub(token, escape(text))


def sent_to_wire(text: str) -> str:
    """Return what an app's text becomes: tokens are kept, stray special characters escaped, bare links wrapped."""
    parts: list[str] = []
    end = 0
    for match in _TOKEN.finditer(text):
        parts += [_stray(text[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*parts, _stray(text[end:])])


def _stray(text: str) -> str:
    escaped = _BARE_AMPERSAND.sub("&amp;", text).replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(_URL, lambda match: f"<{match[0]}>", escaped)


def rich_text(text: str) -> Json:
    """Return the rich_text block that goes with a person's message; its strings are not escaped."""
    elements: list[Json] = []
    for position, part in enumerate(text.split("```")):
        if position % 2:
            content = [_plain(part.strip("\n"))]
            elements.append({"type": "rich_text_preformatted", "elements": content, "border": 0})
        elif part:
            elements.append({"type": "rich_text_section", "elements": _inline(part)})
    return {"type": "rich_text", "elements": elements}


def _inline(text: str) -> list[Json]:
    found: list[Json] = []
    end = 0
    for match in _PIECE.finditer(text):
        if match.start() > end:
            found.append(_plain(text[end : match.start()]))
        found.append(_element(match[1]))
        end = match.end()
    return [*found, _plain(text[end:])] if text[end:] else found


def _element(token: str) -> Json:
    target, _, label = token.partition("|")
    if target.startswith("@"):
        return {"type": "user", "user_id": target[1:]}
    if target.startswith("#"):
        return {"type": "channel", "channel_id": target[1:]}
    if target.startswith("!subteam^"):
        return {"type": "usergroup", "usergroup_id": target.removeprefix("!subteam^")}
    if target.startswith("!"):
        return {"type": "broadcast", "range": target[1:]}
    return {"type": "link", "url": unescape(target)} | ({"text": unescape(label)} if label else {})


def _plain(text: str) -> Json:
    return {"type": "text", "text": unescape(_PIECE.sub(lambda match: match[1].rpartition("|")[2], text))}
