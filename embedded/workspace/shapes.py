"""Documents as Slack shows them (messages, users, channels, bots, events), and texts as Slack stores them.

Only `&`, `<` and `>` are ever escaped, as `&amp;`, `&lt;` and `&gt;`; mentions and links are tokens in `<...>`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from embedded.workspace.model import App, Channel, Json, Store, User, invalid_blocks, new_id


def bot_fields(app: App, team: str) -> Json:
    """Return what a message of a modern app carries beside its text: a user, and the marks of a bot."""
    profile = {"id": app.bot_id, "app_id": app.id, "user_id": app.bot_user, "name": app.name, "deleted": False}
    return {
        "user": app.bot_user,
        "bot_id": app.bot_id,
        "app_id": app.id,
        "team": team,
        "bot_profile": {**profile, "team_id": team, "updated": 0, "icons": {}},
    }


def file_view(doc: Json, base_url: str) -> Json:
    """Return a file as a message carries it; where it is fetched depends on where the workspace listens."""
    url = f"{base_url}/files/{doc['id']}/{doc['name']}"
    seen = {key: value for key, value in doc.items() if key != "captions"}
    seen |= {"vtt": f"{url}.vtt?_xcb=1"} if "captions" in doc else {}
    return {**seen, "url_private": url, "url_private_download": f"{url}?download=1"}


def message_view(store: Store, channel: str, message: Json, base_url: str, with_metadata: bool = False) -> Json:
    """Return a message as the reading methods answer it: with its reactions, and a parent with its counters.

    Without `with_metadata` only the event type of metadata is shown, as Slack does without include_all_metadata.
    """
    view = expand_files(store, message, base_url)
    if "metadata" in view and not with_metadata:
        view["metadata"] = {"event_type": view["metadata"]["event_type"]}
    reactions = store.reactions(channel, message["ts"])
    if reactions:
        view["reactions"] = reaction_list(reactions)
    return view if message.get("thread_ts") else view | thread_counters(store.replies(channel, message["ts"]), message)


def thread_counters(replies: list[Json], parent: Json) -> Json:
    """Return what a parent says about its thread; nothing when there are no replies."""
    if not replies:
        return {}
    authors = list(dict.fromkeys(reply.get("user") or reply.get("bot_id") for reply in replies))
    return {
        "thread_ts": parent["ts"],
        "reply_count": len(replies),
        "reply_users_count": len(authors),
        "reply_users": authors,
        "latest_reply": replies[-1]["ts"],
        "is_locked": False,
        "subscribed": False,
    }


def expand_files(store: Store, message: Json, base_url: str) -> Json:
    """Return a copy of a stored message whose files are described in full."""
    view = dict(message)
    if "files" in view:
        found = [store.file(file_id) for file_id in view["files"]]
        view["files"] = [file_view(entry[0], base_url) for entry in found if entry is not None]
    if "attachments" in view:
        view["attachments"] = [expand_files(store, attachment, base_url) for attachment in view["attachments"]]
    return view


def reaction_list(reactions: dict[str, list[str]]) -> list[Json]:
    """Return reactions as a message carries them."""
    return [{"name": name, "users": users, "count": len(users)} for name, users in reactions.items()]


def channel_view(channel: Channel, members: list[str], bot_user: str) -> Json:
    """Return a conversation object as seen by the bot that asks."""
    return {
        "id": channel.id,
        "name": channel.name,
        "name_normalized": channel.name,
        "is_channel": not channel.is_private and not channel.im,
        "is_group": channel.is_private,
        "is_im": bool(channel.im),
        "is_mpim": False,
        "is_private": channel.is_private,
        "is_archived": channel.is_archived,
        "is_general": False,
        "is_shared": channel.is_ext_shared,
        "is_ext_shared": channel.is_ext_shared,
        "is_org_shared": False,
        "is_pending_ext_shared": False,
        "is_member": bot_user in members,
        "created": channel.created,
        "creator": channel.creator,
        "topic": {"value": channel.topic, "creator": "", "last_set": 0},
        "purpose": {"value": "", "creator": "", "last_set": 0},
        "num_members": len(members),
    }


def user_view(user: User, own_team: str, shares_channel: bool) -> Json:
    """Return a user object; a foreign user with whom no channel is shared is a stranger."""
    profile = {"real_name": user.real_name, "display_name": user.name, "team": user.team_id}
    view = {
        "id": user.id,
        "team_id": user.team_id,
        "name": user.name,
        "real_name": user.real_name,
        "deleted": user.deleted,
        "is_bot": bool(user.bot_id),
        "is_app_user": False,
        "is_restricted": user.is_restricted,
        "is_ultra_restricted": user.is_ultra_restricted,
        "profile": profile | ({"bot_id": user.bot_id} if user.bot_id else {}),
        "tz": "Etc/UTC",
        "updated": 0,
    }
    return view | ({"is_stranger": not shares_channel} if user.team_id != own_team else {})


def event_wrapper(app: App, team: str, event: Json, channel: Channel | None, now: float) -> Json:
    """Return the payload that carries an event to an app.

    Team and authorizations speak of the installation, never of the author.
    """
    authorization: dict[str, Any] = {"enterprise_id": None, "team_id": team, "user_id": app.bot_user}
    return {
        "token": "no-verification-token",
        "team_id": team,
        "context_team_id": team,
        "context_enterprise_id": None,
        "api_app_id": app.id,
        "event": event,
        "type": "event_callback",
        "event_id": new_id("Ev"),
        "event_time": int(now),
        "authorizations": [{**authorization, "is_bot": True, "is_enterprise_install": False}],
        "is_ext_shared_channel": channel is not None and channel.is_ext_shared,
        "event_context": f"4-{new_id('')}",
    }


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


_PICTURES = ("image/png", "image/jpeg", "image/gif")


def check_pictures(store: Store, app: App, blocks: list[Json]) -> None:
    """Refuse image blocks whose file is no picture, or none that the app may see.

    https://docs.slack.dev/reference/block-kit/composition-objects/slack-file-object
    """
    for position, block in enumerate(blocks):
        named = block.get("slack_file") if block.get("type") == "image" else None
        found = store.file(str(named.get("id", ""))) if named else None
        mine = found is not None and found[0].get("user") == app.bot_user and found[0].get("mimetype") in _PICTURES
        if named and not mine:
            raise invalid_blocks(f"invalid slack file [json-pointer:/blocks/{position}/slack_file]")
