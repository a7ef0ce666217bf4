"""Slack's documents -> our values. Pure, total over any dictionary; no other module knows Slack's key names."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from bot.entities import plain
from bot.views.buttons import action_of
from core.ports import Attachment, IncomingChange, IncomingPress, IncomingReply

KIND = "slack"
COMMAND = "/the-loop"
#: subtype -> shape, for the messages that people write; every other subtype is no reply.
SHAPES: Mapping[str, str] = {
    "": "plain",
    "file_share": "file_share",
    "thread_broadcast": "thread_broadcast",
    "me_message": "me_message",
}
#: The fields by which a message is judged: one that is no text is not taken for one that is missing.
_DECIDING = ("subtype", "user", "bot_id", "user_team", "source_team", "team", "channel", "thread_ts", "ts")
_TS = re.compile(r"[0-9]{1,12}\.[0-9]{6}")
_SLACKBOT = "USLACKBOT"
_UNNAMED = re.compile(r"[^\w .'-]")
_LONGEST_NAME = 40
_MOST_FILES = 10

Document = Mapping[str, Any]


@dataclass(frozen=True)
class Identity:
    """Who the bot is, by auth.test."""

    team: str
    user: str
    bot: str
    name: str
    url: str = ""  #: the workspace's own address


@dataclass(frozen=True)
class Person:
    """A member as users.info tells it."""

    id: str
    name: str
    team: str
    is_bot: bool
    deleted: bool
    is_guest: bool = False


@dataclass(frozen=True)
class Ignored:
    """An event that is no reply, and why not."""

    reason: str


@dataclass(frozen=True)
class Command:
    """A slash command."""

    user: str
    team: str
    words: tuple[str, ...]
    response_url: str
    user_name: str = ""  #: known once users.info was asked
    rest: str = ""  #: what follows the first two words, as it was written


@dataclass(frozen=True)
class Post:
    """A message of a bot as it is read back: its ts, the bot, its files' names, and what our metadata says of it.

    That is the id that we gave it, what it is, and whose; "" where it says nothing.
    """

    ts: str
    bot: str
    post_id: str
    files: tuple[str, ...] = ()
    kind: str = ""
    ref: str = ""
    uid: str = ""


def identity(answer: Document) -> Identity | None:
    """Return who the bot is; None where the answer does not say (a user's token has no bot_id)."""
    found = Identity(*(_text(answer, key) for key in ("team_id", "user_id", "bot_id", "user", "url")))
    return found if found.team and found.user and found.bot else None


def reply(payload: Document, own: Identity) -> IncomingReply | Ignored:
    """Return the reply that an `events_api` payload carries, or why it carries none.

    `author_team` is "" where the payload cannot prove it; `text` is plain. Which threads are ours, and who may
    speak, is not decided here.
    """
    event = _mapping(payload, "event")
    if _text(event, "type") != "message":
        return Ignored("no-message")
    if any(not isinstance(event.get(key), str | None) for key in _DECIDING):
        return Ignored("malformed")
    subtype = _text(event, "subtype")
    if subtype not in SHAPES and subtype != "bot_message":
        return Ignored(subtype)
    if event.get("message") is not None or event.get("hidden") not in (None, False):
        return Ignored("change-of-a-message")
    thread, ts, channel = _text(event, "thread_ts"), _text(event, "ts"), _text(event, "channel")
    if not thread or thread == ts:
        return Ignored("outside-threads")
    if not channel or not _TS.fullmatch(ts) or not _TS.fullmatch(thread):
        return Ignored("malformed")
    author, bot = _text(event, "user"), _text(event, "bot_id")
    return IncomingReply(
        channel_kind=KIND,
        team=own.team,
        channel=channel,
        thread=thread,
        ts=ts,
        author=author or bot,
        author_name=author or bot,
        author_team=_author_team(event, own, payload.get("is_ext_shared_channel") is not False),
        is_bot=_is_bot(event),
        is_self=own.user == author or own.bot == bot,
        shape=SHAPES.get(subtype, subtype),
        text=plain(event),
        files=files(event) if subtype in ("file_share", "thread_broadcast") else (),
        shared=_flag(payload, "is_ext_shared_channel"),
    )


def change(payload: Document, own: Identity) -> tuple[IncomingChange, Document] | Ignored:
    """Return the edit or deletion that an `events_api` payload carries, and the message as it is now; or why none.

    Slack changes messages by itself, for link previews: what leaves the text as it was is no change.
    """
    event = _mapping(payload, "event")
    subtype, before = _text(event, "subtype"), _mapping(event, "previous_message")
    if _text(event, "type") != "message" or subtype not in ("message_changed", "message_deleted"):
        return Ignored(subtype or "no-message")
    deleted = subtype == "message_deleted"
    message = before if deleted else _mapping(event, "message")
    if _text(message, "subtype") == "tombstone" or (not deleted and plain(message) == plain(before)):
        return Ignored("nothing-changed")
    ts = _text(event, "deleted_ts") if deleted else _text(message, "ts")
    shared = payload.get("is_ext_shared_channel")
    inner = {**message, "type": "message", "ts": ts, "channel": _text(event, "channel"), "hidden": False}
    found = reply({"event": inner, "is_ext_shared_channel": shared}, own)
    if isinstance(found, Ignored) or found.is_self:
        return found if isinstance(found, Ignored) else Ignored("own")
    return IncomingChange(found, deleted), inner


def swept(message: Document, channel: str, shared: bool) -> Document:
    """Return a message of conversations.replies in the shape in which events bring one."""
    return {"event": {"type": "message", **message, "channel": channel}, "is_ext_shared_channel": shared}


def edited(message: Document) -> bool:
    """Tell whether somebody has edited a message since it was sent."""
    return _is_mapping(message.get("edited"))


def is_gone(message: Document) -> bool:
    """Tell whether only the place of a deleted message is left, for others hang on it."""
    return _text(message, "subtype") == "tombstone"


def missing(channel: str, thread: str, ts: str, own: Identity) -> IncomingChange:
    """Return the deletion of a message that is in its thread no more; whose it was is not known."""
    event = {"type": "message", "ts": ts, "channel": channel, "thread_ts": thread}
    found = reply({"event": event}, own)
    if isinstance(found, Ignored):
        raise ValueError(f"{ts} in {channel} is no reply: {found.reason}")
    return IncomingChange(found, deleted=True)


def has_event(payload: Document) -> bool:
    """Tell whether a payload carries an event of some type, which Bolt takes for granted."""
    return bool(_text(event_of(payload), "type"))


def event_of(payload: Document) -> Document:
    """Return the event that a payload carries."""
    return _mapping(payload, "event")


def messages(answer: Document) -> tuple[Document, ...]:
    """Return the messages of a history or replies answer."""
    listed = answer.get("messages")
    return tuple(entry for entry in listed if _is_mapping(entry)) if isinstance(listed, list) else ()


def ts_of(message: Document) -> str:
    """Return a message's time stamp, "" if it has none that could be compared."""
    ts = _text(message, "ts")
    return ts if _TS.fullmatch(ts) else ""


_NOT_FETCHED = {
    "external": "it is kept on another site, which the bot has no access to",
    "tombstone": "it was deleted",
    "hidden_by_limit": "the workspace's plan hides it",
}


def files(event: Document) -> tuple[Attachment, ...]:
    """Return the files of a message, at most ten; what is not to be fetched says why."""
    listed = event.get("files")
    found = [entry for entry in listed if _is_mapping(entry)] if isinstance(listed, list) else []
    described = [attachment(entry) for entry in found[:_MOST_FILES]]
    if len(found) > _MOST_FILES:
        more = f"a message brings at most {_MOST_FILES} files, and this one has {len(found)}"
        described.append(Attachment("", "more", "", 0, "", more))
    return tuple(described)


def attachment(file: Document) -> Attachment:
    """Return a file object. A `file_access` one of a shared channel has nothing but its id: files.info has the rest."""
    size, mode = file.get("size"), _text(file, "mode")
    url = _text(file, "url_private_download") or _text(file, "url_private")
    problem = _NOT_FETCHED.get("external" if file.get("is_external") is True else mode, "")
    if not problem and mode != "file_access" and not url:
        problem = "Slack names no address for it"
    return Attachment(
        id=_text(file, "id"),
        name=_text(file, "name") or _text(file, "title"),
        kind=_text(file, "mimetype"),
        size=size if isinstance(size, int) and not isinstance(size, bool) else 0,
        url="" if problem or mode == "file_access" else url,
        problem=problem,
    )


def file_info(answer: Document) -> Document:
    """Return the file of a files.info answer."""
    return _mapping(answer, "file")


def _is_bot(event: Document) -> bool:
    """Tell whether no person wrote this. A user's token posts with the person's id, and with a bot_id as well."""
    return (
        bool(event.get("bot_id") or event.get("bot_profile"))
        or _text(event, "subtype") == "bot_message"
        or _text(event, "user") in ("", _SLACKBOT)
    )


def _author_team(event: Document, own: Identity, shared: bool) -> str:
    """Return the author's team, "" where the event cannot prove it.

    The wrapper's team ids speak of the installation, never of the author. One foreign id settles it; our own id in
    `team` alone settles it only where the channel is not shared with another organization.
    """
    stated = {key: _text(event, key) for key in ("user_team", "source_team", "team")}
    foreign = [team for team in stated.values() if team and team != own.team]
    if foreign:
        return foreign[0]
    if stated["user_team"] or stated["source_team"]:
        return own.team
    return own.team if stated["team"] and not shared else ""


def person(answer: Document) -> Person | None:
    """Return the member of a users.info answer; None where it is incomplete."""
    user = _mapping(answer, "user")
    found = Person(
        id=_text(user, "id"),
        name=_name(user),
        team=_text(user, "team_id"),
        is_bot=user.get("is_bot") is True,
        deleted=user.get("deleted") is True,
        is_guest=user.get("is_restricted") is True or user.get("is_ultra_restricted") is True,
    )
    return found if found.id and found.team else None


def _name(user: Document) -> str:
    """Return what the member is called, without anything that could pass for a mark or a line of ours."""
    names = (_text(_mapping(user, "profile"), "display_name"), _text(user, "name"), _text(user, "id"))
    plain = (" ".join(_UNNAMED.sub("", name).split())[:_LONGEST_NAME] for name in names)
    return next(filter(None, plain), "")


def as_known(found: IncomingReply, author: Person | None) -> IncomingReply:
    """Return the reply with what users.info says of its author.

    A guest, and a member of another organization, is known by team and id, so that nobody listed by id alone passes as
    one. Without an answer it stays as it is. A deactivated member belongs to no team; a team that the event states
    differently stays as the event states it, since an outsider must not become ours.
    """
    if author is None:
        return found
    name, team = actor(found.author, found.author_team, found.team, author)
    is_bot = found.is_bot or author.is_bot
    return replace(found, author=name, author_name=author.name, author_team=team, is_bot=is_bot)


def actor(member: str, stated: str, own_team: str, known: Person) -> tuple[str, str]:
    """Return how the allow-list names somebody (see `as_known`), and their team; `stated`: as what came says, or ""."""
    team = stated if stated not in ("", own_team) else known.team
    name = f"{team}:{member}" if known.is_guest or team != own_team else member
    return name, "" if known.deleted else team


def command(body: Document) -> Command:
    """Return a slash command's caller and words."""
    return Command(
        user=_text(body, "user_id"),
        team=_text(body, "team_id"),
        words=tuple(_text(body, "text").split()),
        response_url=_text(body, "response_url"),
        rest="".join(_text(body, "text").split(maxsplit=2)[2:]),
    )


def press(body: Document, own: Identity) -> IncomingPress | None:
    """Return what a `block_actions` payload tells of a pressed button; None where it is no button in a thread."""
    listed = body.get("actions")
    action = listed[0] if isinstance(listed, list) and listed and _is_mapping(listed[0]) else {}
    container, message, user = (_mapping(body, key) for key in ("container", "message", "user"))
    found = IncomingPress(
        channel_kind=KIND,
        team=own.team,
        channel=_text(_mapping(body, "channel"), "id") or _text(container, "channel_id"),
        thread=_text(container, "thread_ts") or _text(message, "thread_ts"),
        ts=_text(container, "message_ts"),
        author=_text(user, "id"),
        author_name=_text(user, "id"),
        author_team=_text(user, "team_id"),
        is_bot=False,
        action=action_of(_text(action, "action_id")),
        target=_text(action, "value"),
    )
    required = (found.channel, found.thread, found.ts, found.author, found.action, found.target)
    return found if all(required) else None


def response_url(body: Document) -> str:
    """Return where the caller of a command, or who pressed a button, is answered."""
    return _text(body, "response_url")


def connections(hello: Document) -> int:
    """Return how many sockets the app has open, by the hello frame."""
    number = hello.get("num_connections")
    return number if isinstance(number, int) and not isinstance(number, bool) else 1


def frame_kind(frame: Document) -> str:
    """Return the type of a Socket Mode frame: hello, disconnect, events_api, slash_commands …"""
    return _text(frame, "type")


def disconnect_reason(frame: Document) -> str:
    """Return why Slack asks for another socket: warning, refresh_requested, link_disabled, too_many_websockets."""
    return _text(frame, "reason")


def metadata(post_id: str, kind: str, ref: str, uid: str) -> dict[str, Any]:
    """Return the metadata by which a post is found again. Everybody in the workspace can read it."""
    return {"event_type": "the_loop_post", "event_payload": {"id": post_id, "kind": kind, "ref": ref, "uid": uid}}


def posts(answer: Document) -> tuple[Post, ...]:
    """Return the messages of a history or replies answer that bots wrote."""
    listed = answer.get("messages")
    messages = [entry for entry in listed if _is_mapping(entry)] if isinstance(listed, list) else []
    return tuple(_post(entry) for entry in messages if _text(entry, "bot_id"))


def _post(entry: Document) -> Post:
    said = _own_payload(entry)
    post_id, kind, ref, uid = (_text(said, key) for key in ("id", "kind", "ref", "uid"))
    return Post(_text(entry, "ts"), _text(entry, "bot_id"), post_id, _file_names(entry), kind, ref, uid)


def _file_names(message: Document) -> tuple[str, ...]:
    listed = message.get("files")
    return tuple(_text(file, "name") for file in listed if _is_mapping(file)) if isinstance(listed, list) else ()


def upload_address(answer: Document) -> tuple[str, str]:
    """Return where a file's bytes go, and the file's id, of a files.getUploadURLExternal answer."""
    return _text(answer, "upload_url"), _text(answer, "file_id")


def _own_payload(message: Document) -> Document:
    found = _mapping(message, "metadata")
    return _mapping(found, "event_payload") if _text(found, "event_type") == "the_loop_post" else {}


def next_cursor(answer: Document) -> str:
    """Return the cursor of the page after this one, "" at the end."""
    return _text(_mapping(answer, "response_metadata"), "next_cursor")


def posted(answer: Document) -> tuple[str, str]:
    """Return channel and ts of what chat.postMessage or chat.update answered."""
    return _text(answer, "channel"), _text(answer, "ts")


@dataclass(frozen=True)
class Conversation:
    """What a check needs to know of a channel."""

    name: str
    is_member: bool
    is_archived: bool
    is_ext_shared: bool


def conversation(answer: Document) -> Conversation:
    """Return the channel of a conversations.info answer."""
    found = _mapping(answer, "channel")
    return Conversation(
        _text(found, "name"),
        *(found.get(key) is True for key in ("is_member", "is_archived", "is_ext_shared")),
    )


def socket_url(answer: Document) -> str:
    """Return the one-time URL of an apps.connections.open answer."""
    return _text(answer, "url")


def _is_mapping(value: Any) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping)


def _mapping(document: Document, key: str) -> Document:
    value = document.get(key)
    return value if _is_mapping(value) else {}


def _text(document: Document, key: str) -> str:
    """Return the text under the key, "" where there is none; half a surrogate pair, which nobody can keep, as `?`."""
    value = document.get(key)
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""


def _flag(document: Document, key: str) -> bool | None:
    value = document.get(key)
    return value if isinstance(value, bool) else None
