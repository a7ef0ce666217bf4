"""What Slack sends: messages, changes of them, commands and presses."""

from collections.abc import Mapping

from bot.documents import TIME_STAMP, Document, flag_of, is_mapping, mapping_of, text_of
from bot.payloads.answers import (
    Identity,
    Person,
    files,
)
from bot.views.buttons import action_of
from bot.words import plain, quoted
from core.ports import IncomingChange, IncomingPress, IncomingReply
from core.values import dataclass, replace

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
    )


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
    inner = {**message, "type": "message", "ts": ts, "channel": text_of(event, "channel"), "hidden": False}
    found = reply({"event": inner, "is_ext_shared_channel": shared}, own)
    if isinstance(found, Ignored) or found.is_self:
        return found if isinstance(found, Ignored) else Ignored("own")
    return IncomingChange(found, deleted, only_quotes), inner


def swept(message: Document, channel: str, shared: bool) -> Document:
    """Return a message of conversations.replies in the shape in which events bring one."""
    return {"event": {"type": "message", **message, "channel": channel}, "is_ext_shared_channel": shared}


def edited(message: Document) -> bool:
    """Tell whether somebody has edited a message since it was sent."""
    return is_mapping(message.get("edited"))


def is_gone(message: Document) -> bool:
    """Tell whether only the place of a deleted message is left, for others hang on it."""
    return text_of(message, "subtype") == "tombstone"


def missing(channel: str, thread: str, ts: str, own: Identity) -> IncomingChange:
    """Return the deletion of a message that is in its thread no more; whose it was is not known."""
    event = {"type": "message", "ts": ts, "channel": channel, "thread_ts": thread}
    found = reply({"event": event}, own)
    if isinstance(found, Ignored):
        raise ValueError(f"{ts} in {channel} is no reply: {found.reason}")
    return IncomingChange(found, deleted=True)


def has_event(payload: Document) -> bool:
    """Tell whether a payload carries an event of some type, which Bolt takes for granted."""
    return bool(text_of(event_of(payload), "type"))


def event_of(payload: Document) -> Document:
    """Return the event that a payload carries."""
    return mapping_of(payload, "event")


def _is_bot(event: Document) -> bool:
    """Tell whether no person wrote this. A user's token posts with the person's id, and with a bot_id as well."""
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
    )


def press(body: Document, own: Identity) -> IncomingPress | None:
    """Return what a `block_actions` payload tells of a pressed button; None where it is no button in a thread."""
    listed = body.get("actions")
    action = listed[0] if isinstance(listed, list) and listed and is_mapping(listed[0]) else {}
    container, message, user = (mapping_of(body, key) for key in ("container", "message", "user"))
    found = IncomingPress(
        channel_kind=KIND,
        team=own.team,
        channel=text_of(mapping_of(body, "channel"), "id") or text_of(container, "channel_id"),
        thread=text_of(container, "thread_ts") or text_of(message, "thread_ts") or text_of(container, "message_ts"),
        ts=text_of(container, "message_ts"),
        author=text_of(user, "id"),
        author_name=text_of(user, "id"),
        author_team=text_of(user, "team_id"),
        is_bot=False,
        action=action_of(text_of(action, "action_id")),
        target=text_of(action, "value"),
    )
    required = (found.channel, found.thread, found.ts, found.author, found.action, found.target)
    return found if all(required) else None


def response_url(body: Document) -> str:
    """Return where the caller of a command, or who pressed a button, is answered."""
    return text_of(body, "response_url")
