"""Convert Slack's documents into our values. Pure, total over any dictionary. bot/words.py reads the words of messages;
no other module knows Slack's key names.

It reads what Slack sends (messages and changes, commands, presses), what it answers, and what its socket says of
itself.
"""

import re
from collections.abc import Mapping
from typing import Any

from bot.buttons import action_of
from bot.documents import TIME_STAMP, Document, flag_of, is_mapping, mapping_of, mappings_of, text_of
from bot.words import all_quotes, mentions_elsewhere, plain, quoted, to_others
from core.base.values import dataclass, replace
from core.model.channel import IncomingChange, IncomingPress, IncomingReply
from core.model.message import Attachment

_UNNAMED = re.compile(r"[^\w .'-]")
_LONGEST_NAME = 40
_MOST_FILES = 10
_NOT_FETCHED = {
    "external": "it is kept on another site, which the bot has no access to",
    "tombstone": "it was deleted",
    "hidden_by_limit": "the workspace's plan hides it",
    "list": "a list in Slack cannot be fetched as a file; paste the part of it that matters",
}
_CLIPS = ("slack_audio", "slack_video")
_MENTION = "message_mention"
_NOT_QUOTED = "a mention does not contain the words of the message; forward the message, or paste its words"


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
    live: str = ""  #: the id of the live post whose tasks it shows


def identity(answer: Document) -> Identity | None:
    """Return who the bot is; None where the answer does not say (a user's token has no bot_id)."""
    found = Identity(*(text_of(answer, key) for key in ("team_id", "user_id", "bot_id", "user", "url")))
    return found if found.team and found.user and found.bot else None


def messages(answer: Document) -> tuple[Document, ...]:
    """Return the messages of a history or replies answer."""
    listed = answer.get("messages")
    return tuple(entry for entry in listed if is_mapping(entry)) if isinstance(listed, list) else ()


def ts_of(message: Document) -> str:
    """Return a message's time stamp, "" if it has none that could be compared."""
    ts = text_of(message, "ts")
    return ts if TIME_STAMP.fullmatch(ts) else ""


def thread_of(message: Document) -> str:
    """Return the thread that a message belongs to, its own time stamp where it is a parent; "" where it has none."""
    return text_of(message, "thread_ts")


def latest_reply(message: Document) -> str:
    """Return the time stamp of a parent's latest reply, "" where the message tells of none that could be compared."""
    ts = text_of(message, "latest_reply")
    return ts if TIME_STAMP.fullmatch(ts) else ""


def shows_thread(message: Document) -> bool:
    """Return whether a message has any of the fields that only a parent of replies has."""
    return any(message.get(key) for key in ("thread_ts", "reply_count", "reply_users_count", "latest_reply"))


def files(event: Document) -> tuple[Attachment, ...]:
    """Return the files of a message and of what it quotes, at most ten; what is not to be fetched says why.

    What it mentions and has no words of is among them: canvases, which are files, lists, and other messages.
    """
    listed = [file for part in (event, *all_quotes(event)) for file in mappings_of(part, "files")]
    known: dict[str, Attachment] = {}
    for number, one in enumerate((*map(attachment, listed), *map(_mention, mentions_elsewhere(event)))):
        known.setdefault(one.id or one.name or str(number), one)
    found = tuple(known.values())
    if len(found) > _MOST_FILES:
        more = f"a message brings at most {_MOST_FILES} files, and this one has {len(found)}"
        return (*found[:_MOST_FILES], Attachment("", "more", "", 0, "", more))
    return found


def _mention(element: Document) -> Attachment:
    """Return what a message mentions: a canvas is a file of which files.info tells the rest."""
    if text_of(element, "type") == _MENTION:
        return Attachment("", f"message {text_of(element, 'url')}".strip(), "", 0, "", _NOT_QUOTED)
    problem = _NOT_FETCHED["list"] if text_of(element, "type") == "list_record" else ""
    return Attachment(text_of(element, "file_id"), text_of(element, "type"), "", 0, "", problem)


def attachment(file: Document) -> Attachment:
    """Return a file object. A `file_access` one of a shared channel has nothing but its id: files.info has the rest."""
    size, mode = file.get("size"), text_of(file, "mode")
    if text_of(file, "filetype") == "list":
        mode = "list"
    url = text_of(file, "url_private_download") or text_of(file, "url_private")
    problem = _NOT_FETCHED.get("external" if file.get("is_external") is True else mode, "")
    if not problem and mode != "file_access" and not url:
        problem = "Slack names no address for it"
    return Attachment(
        id=text_of(file, "id"),
        name=text_of(file, "name") or text_of(file, "title"),
        kind=text_of(file, "mimetype"),
        size=size if isinstance(size, int) and not isinstance(size, bool) else 0,
        url="" if problem or mode == "file_access" else url,
        problem=problem,
        clip=text_of(file, "subtype") in _CLIPS,
    )


@dataclass(frozen=True)
class Spoken:
    """What Slack has written down of what is said in a clip. `more`: `words` are only its beginning."""

    pending: bool
    words: str
    more: bool
    captions: str  #: the address of all of it, as WebVTT; "" where there is none


def spoken(file: Document) -> Spoken:
    """Return what a file object tells of the words in it."""
    transcript = mapping_of(file, "transcription")
    preview, done = mapping_of(transcript, "preview"), text_of(transcript, "status") == "complete"
    words = text_of(preview, "content") if done else ""
    pending = text_of(transcript, "status") == "processing"
    return Spoken(pending, words, preview.get("has_more") is not False, text_of(file, "vtt") if done else "")


def said(captions: str) -> str:
    """Return the words of a WebVTT text, a line for each cue (https://www.w3.org/TR/webvtt1/)."""
    cues = re.split(r"\n[ \t]*\n", captions.replace("\r\n", "\n").replace("\r", "\n"))
    spoken_lines = (cue.partition("-->")[2].partition("\n")[2] for cue in cues if "-->" in cue)
    return "\n".join(" ".join(line.removeprefix("-").strip() for line in words.splitlines()) for words in spoken_lines)


def file_info(answer: Document) -> Document:
    """Return the file of a files.info answer."""
    return mapping_of(answer, "file")


def person(answer: Document) -> Person | None:
    """Return the member of a users.info answer; None where it is incomplete."""
    user = mapping_of(answer, "user")
    found = Person(
        id=text_of(user, "id"),
        name=_name(user),
        team=text_of(user, "team_id"),
        is_bot=user.get("is_bot") is True,
        deleted=user.get("deleted") is True,
        is_guest=user.get("is_restricted") is True or user.get("is_ultra_restricted") is True,
    )
    return found if found.id and found.team else None


def _name(user: Document) -> str:
    """Return what the member is called, without anything that could pass for a mark or a line of ours."""
    names = (text_of(mapping_of(user, "profile"), "display_name"), text_of(user, "name"), text_of(user, "id"))
    return next(filter(None, map(_tame, names)), "")


def _tame(name: str) -> str:
    return " ".join(_UNNAMED.sub("", name).split())[:_LONGEST_NAME]


def groups(answer: Document) -> dict[str, str]:
    """Return what the groups of a usergroups.list answer are called, by id."""
    return {text_of(group, "id"): _tame(text_of(group, "handle")) for group in mappings_of(answer, "usergroups")}


def connections(hello: Document) -> int:
    """Return how many sockets the app has open, by the hello frame."""
    number = hello.get("num_connections")
    return number if isinstance(number, int) and not isinstance(number, bool) else 1


def frame_kind(frame: Document) -> str:
    """Return the type of a Socket Mode frame: hello, disconnect, events_api, slash_commands …"""
    return text_of(frame, "type")


def disconnect_reason(frame: Document) -> str:
    """Return why Slack asks for another socket: warning, refresh_requested, link_disabled, too_many_websockets."""
    return text_of(frame, "reason")


def metadata(post_id: str, kind: str, ref: str, uid: str) -> dict[str, Any]:
    """Return the metadata by which a post is found again. Everybody in the workspace can read it."""
    return {"event_type": "the_loop_post", "event_payload": {"id": post_id, "kind": kind, "ref": ref, "uid": uid}}


def posts(answer: Document) -> tuple[Post, ...]:
    """Return the messages of a history or replies answer that bots wrote."""
    listed = answer.get("messages")
    messages = [entry for entry in listed if is_mapping(entry)] if isinstance(listed, list) else []
    return tuple(_post(entry) for entry in messages if text_of(entry, "bot_id"))


def _post(entry: Document) -> Post:
    said = _own_payload(entry)
    post_id, kind, ref, uid = (text_of(said, key) for key in ("id", "kind", "ref", "uid"))
    names, live = _file_names(entry), _live_of(entry)
    return Post(text_of(entry, "ts"), text_of(entry, "bot_id"), post_id, names, kind, ref, uid, live)


def _live_of(message: Document) -> str:
    """Return with what the ids of its tasks begin, up to a colon; "" where it shows none."""
    blocks = mappings_of(message, "blocks")
    tasks = [*blocks, *(task for block in blocks for task in mappings_of(block, "tasks"))]
    return next((task_id.partition(":")[0] for task in tasks if ":" in (task_id := text_of(task, "task_id"))), "")


def _file_names(message: Document) -> tuple[str, ...]:
    listed = message.get("files")
    return tuple(text_of(file, "name") for file in listed if is_mapping(file)) if isinstance(listed, list) else ()


def upload_address(answer: Document) -> tuple[str, str]:
    """Return where a file's bytes go, and the file's id, of a files.getUploadURLExternal answer."""
    return text_of(answer, "upload_url"), text_of(answer, "file_id")


def is_processed(answer: Document) -> bool:
    """Return whether Slack has looked at the file of a files.info answer."""
    return bool(text_of(mapping_of(answer, "file"), "mimetype"))


def _own_payload(message: Document) -> Document:
    found = mapping_of(message, "metadata")
    return mapping_of(found, "event_payload") if text_of(found, "event_type") == "the_loop_post" else {}


def next_cursor(answer: Document) -> str:
    """Return the cursor of the page after this one, "" at the end."""
    return text_of(mapping_of(answer, "response_metadata"), "next_cursor")


def posted(answer: Document) -> tuple[str, str]:
    """Return channel and ts of what chat.postMessage or chat.update answered."""
    return text_of(answer, "channel"), text_of(answer, "ts")


def whispered(answer: Document) -> str:
    """Return the time stamp of what chat.postEphemeral showed."""
    return text_of(answer, "message_ts")


@dataclass(frozen=True)
class Conversation:
    """What a check needs to know of a channel."""

    name: str
    is_member: bool
    is_archived: bool
    is_ext_shared: bool


def conversation(answer: Document) -> Conversation:
    """Return the channel of a conversations.info answer."""
    found = mapping_of(answer, "channel")
    return Conversation(
        text_of(found, "name"),
        *(found.get(key) is True for key in ("is_member", "is_archived", "is_ext_shared")),
    )


def socket_url(answer: Document) -> str:
    """Return the one-time URL of an apps.connections.open answer."""
    return text_of(answer, "url")


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


_SLACKBOT = "USLACKBOT"


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
    every: bool = False  #: to every session: its caller was asked
    trigger_id: str = ""  #: by which a form can be opened within three seconds

    @property
    def verb(self) -> str:
        """The first word; without any it is `help`."""
        return self.words[0].lower() if self.words else "help"


def reply(payload: Document, own: Identity) -> IncomingReply | Ignored:
    """Return the reply that an `events_api` payload carries, or why it carries none.

    `author_team` is "" where the payload cannot prove it; `text` is plain. Which threads are ours, and who may
    speak, is not decided here.
    """
    event = mapping_of(payload, "event")
    if text_of(event, "type") != "message":
        return Ignored("no-message")
    if is_direct(payload):
        return Ignored("direct")
    if any(not isinstance(event.get(key), str | None) for key in _DECIDING):
        return Ignored("malformed")
    subtype = text_of(event, "subtype")
    if subtype not in SHAPES and subtype != "bot_message":
        return Ignored(subtype)
    if event.get("message") is not None or event.get("hidden") not in (None, False):
        return Ignored("change-of-a-message")
    thread, ts, channel = text_of(event, "thread_ts"), text_of(event, "ts"), text_of(event, "channel")
    if not thread or thread == ts:
        return Ignored("outside-threads")
    if not channel or not TIME_STAMP.fullmatch(ts) or not TIME_STAMP.fullmatch(thread):
        return Ignored("malformed")
    author, bot = text_of(event, "user"), text_of(event, "bot_id")
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
        quoted=quoted(event),
        files=files(event),
        shared=flag_of(payload, "is_ext_shared_channel"),
        to_others=to_others(event, own.user),
    )


def _anywhere(payload: Document, own: Identity) -> IncomingReply | Ignored:
    """Return the message as a reply; the thread of one that is in none, or begins one, is itself."""
    event = mapping_of(payload, "event")
    if text_of(event, "thread_ts") not in ("", text_of(event, "ts")):
        return reply(payload, own)
    found = reply({**payload, "event": {**event, "thread_ts": _NO_THREAD}}, own)
    return found if isinstance(found, Ignored) else replace(found, thread=found.ts)


def mention(payload: Document, own: Identity) -> IncomingReply | None:
    """Return the message that an `app_mention` event carries, its thread being itself.

    None for one in a thread, one that was edited, and what is no message of its own.
    """
    event = event_of(payload)
    ts = text_of(event, "ts")
    if text_of(event, "type") != "app_mention" or text_of(event, "thread_ts") or edited(event) or ts == _NO_THREAD:
        return None
    shared = payload.get("is_ext_shared_channel")
    found = _anywhere({"event": {**event, "type": "message"}, "is_ext_shared_channel": shared}, own)
    return None if isinstance(found, Ignored) else found


_NO_THREAD = "0.000000"  #: stands for the thread of a message that has none


def change(payload: Document, own: Identity) -> tuple[IncomingChange, Document] | Ignored:
    """Return the edit or deletion that an `events_api` payload carries, and the message as it is now; or why none.

    Slack changes messages by itself, for link previews: what leaves the text as it was is no change, unless it quotes
    a message to which there was only a link before.
    """
    event = mapping_of(payload, "event")
    subtype, before = text_of(event, "subtype"), mapping_of(event, "previous_message")
    if text_of(event, "type") != "message" or subtype not in ("message_changed", "message_deleted"):
        return Ignored(subtype or "no-message")
    deleted = subtype == "message_deleted"
    message = before if deleted else mapping_of(event, "message")
    only_quotes = not deleted and plain(message) == plain(before)
    if text_of(message, "subtype") == "tombstone" or (only_quotes and quoted(message) == quoted(before)):
        return Ignored("nothing-changed")
    ts = text_of(event, "deleted_ts") if deleted else text_of(message, "ts")
    shared = payload.get("is_ext_shared_channel")
    place = {"type": "message", "ts": ts, "channel": text_of(event, "channel"), "hidden": False}
    inner = {**message, **place}
    found = _anywhere({"event": inner, "is_ext_shared_channel": shared}, own)
    if isinstance(found, Ignored) or found.is_self:
        return found if isinstance(found, Ignored) else Ignored("own")
    was = _anywhere({"event": {**before, **place}}, own) if before and not deleted else None
    return IncomingChange(found, deleted, only_quotes, was if isinstance(was, IncomingReply) else None), inner


def swept(message: Document, channel: str, shared: bool) -> Document:
    """Return a message of conversations.replies in the shape in which events bring one."""
    return {"event": {"type": "message", **message, "channel": channel}, "is_ext_shared_channel": shared}


def edited(message: Document) -> bool:
    """Return whether somebody has edited a message since it was sent."""
    return is_mapping(message.get("edited"))


def is_gone(message: Document) -> bool:
    """Return whether only the place of a deleted message is left, for others hang on it."""
    return text_of(message, "subtype") == "tombstone"


def missing(channel: str, thread: str, ts: str, own: Identity) -> IncomingChange:
    """Return the deletion of a message that is in its thread no more; whose it was is not known."""
    event = {"type": "message", "ts": ts, "channel": channel, "thread_ts": thread}
    found = reply({"event": event}, own)
    if isinstance(found, Ignored):
        raise ValueError(f"{ts} in {channel} is no reply: {found.reason}")
    return IncomingChange(found, deleted=True)


def has_event(payload: Document) -> bool:
    """Return whether a payload carries an event of some type, which Bolt takes for granted."""
    return bool(text_of(event_of(payload), "type"))


def event_of(payload: Document) -> Document:
    """Return the event that a payload carries."""
    return mapping_of(payload, "event")


def _is_bot(event: Document) -> bool:
    """Return whether no person wrote this. A user's token posts with the person's id, and with a bot_id as well."""
    return (
        bool(event.get("bot_id") or event.get("bot_profile"))
        or text_of(event, "subtype") == "bot_message"
        or text_of(event, "user") in ("", _SLACKBOT)
    )


def _author_team(event: Document, own: Identity, shared: bool) -> str:
    """Return the author's team, "" where the event cannot prove it.

    The wrapper's team ids speak of the installation, never of the author. One foreign id settles it; our own id in
    `team` alone settles it only where the channel is not shared with another organization.
    """
    stated = {key: text_of(event, key) for key in ("user_team", "source_team", "team")}
    foreign = [team for team in stated.values() if team and team != own.team]
    if foreign:
        return foreign[0]
    if stated["user_team"] or stated["source_team"]:
        return own.team
    return own.team if stated["team"] and not shared else ""


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
        user=text_of(body, "user_id"),
        team=text_of(body, "team_id"),
        words=tuple(text_of(body, "text").split()),
        response_url=text_of(body, "response_url"),
        rest="".join(text_of(body, "text").split(maxsplit=2)[2:]),
        trigger_id=text_of(body, "trigger_id"),
    )


_HOME = "home"


def home_block(channel: str, thread: str, ts: str, number: str) -> str:
    """Return the id of a row of buttons on a Home tab: it names the message that they belong to."""
    return ":".join((_HOME, channel, thread, ts, number))


def on_home(body: Document) -> bool:
    """Return whether a button was pressed on a Home tab, which has no channel and no response URL."""
    return text_of(mapping_of(body, "view"), "type") == "home"


def home_opened(payload: Document) -> tuple[str, str]:
    """Return who has opened which tab of the app's page."""
    event = event_of(payload)
    return text_of(event, "user"), text_of(event, "tab")


def is_direct(payload: Document) -> bool:
    """Return whether an event is a message that somebody wrote to the bot directly."""
    event = event_of(payload)
    return text_of(event, "type") == "message" and text_of(event, "channel_type") == "im"


def direct(payload: Document, own: Identity) -> tuple[Command, str, str] | None:
    """Return what a direct message asks, its channel, and its time stamp; None for what no person has just written."""
    event = event_of(payload)
    changed = event.get("message") is not None or event.get("hidden") not in (None, False)
    if changed or _is_bot(event) or text_of(event, "subtype") not in SHAPES or text_of(event, "user") == own.user:
        return None
    channel, ts, said = text_of(event, "channel"), text_of(event, "ts"), plain(event)
    if not channel or not TIME_STAMP.fullmatch(ts):
        return None
    team = _author_team(event, own, shared=False) or own.team  # users.info has the last word
    return Command(text_of(event, "user"), team, tuple(said.split()), ""), channel, ts


def _action(body: Document) -> Document:
    """Return what was used of a `block_actions` payload; empty where that is not told."""
    listed = body.get("actions")
    return listed[0] if isinstance(listed, list) and listed and is_mapping(listed[0]) else {}


def press(body: Document, own: Identity) -> IncomingPress | None:
    """Return what a `block_actions` payload tells of a pressed button; None where it is no button in a thread."""
    action = _action(body)
    container, message, user = (mapping_of(body, key) for key in ("container", "message", "user"))
    ts = text_of(container, "message_ts")
    place = (
        text_of(mapping_of(body, "channel"), "id") or text_of(container, "channel_id"),
        text_of(container, "thread_ts") or text_of(message, "thread_ts") or ts,
        ts,
    )
    if on_home(body):
        kept = text_of(action, "block_id").split(":")
        place = (kept[1], kept[2], kept[3]) if len(kept) == 5 and kept[0] == _HOME else ("", "", "")
    found = IncomingPress(
        channel_kind=KIND,
        team=own.team,
        channel=place[0],
        thread=place[1],
        ts=place[2],
        author=text_of(user, "id"),
        author_name=text_of(user, "id"),
        author_team=text_of(user, "team_id"),
        is_bot=False,
        action=action_of(text_of(action, "action_id")),
        target=text_of(action, "value"),
    )
    required = (found.channel, found.thread, found.ts, found.author, found.action, found.target)
    return found if all(required) else None


def choice(body: Document, one: str, every: str) -> Command | None:
    """Return the command that a choice of ours completes: `one` and `every` begin the action ids of a select of
    sessions and of the button for all of them. None for anything else."""
    action, user = _action(body), mapping_of(body, "user")
    action_id = text_of(action, "action_id")
    name = text_of(mapping_of(action, "selected_option"), "value")
    if action_id.startswith(every):
        words: tuple[str, ...] = (action_id.removeprefix(every),)
    elif action_id.startswith(one) and name:
        words = (action_id.removeprefix(one), name)
    else:
        return None
    return Command(text_of(user, "id"), text_of(user, "team_id"), words, response_url(body), every=len(words) == 1)


def member_of(body: Document) -> str:
    """Return the id of who pressed a button."""
    return text_of(mapping_of(body, "user"), "id")


def response_url(body: Document) -> str:
    """Return where the caller of a command, or who pressed a button, is answered."""
    return text_of(body, "response_url")
