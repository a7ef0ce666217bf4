"""The workspace's memory (one SQLite file that holds everything a restart must keep), ids, errors, clock and manifest.

The clock is its own, because the workspace imports nothing of the product. ApiError has the words that a client of
Slack knows. A manifest is read in Slack's form, as far as the workspace acts on it.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

Json = dict[str, Any]


class ApiError(Exception):
    """A Web API call that is answered with `ok: false`.

    `code` is the value of `error`; `detail` holds further members of the answer.
    """

    def __init__(self, code: str, **detail: Any) -> None:
        super().__init__(code)
        self.code = code
        self.detail: Json = detail

    def body(self) -> Json:
        """Return the whole JSON answer."""
        return {"ok": False, "error": self.code, **self.detail}


class ControlError(Exception):
    """A test control or a page request that cannot be carried out; the message says what to do instead."""


def invalid_blocks(*reasons: str) -> ApiError:
    """Return the answer to blocks that break Block Kit's rules, each reason with its JSON pointer."""
    messages = [f"[ERROR] {reason}" for reason in reasons]
    return ApiError("invalid_blocks", errors=list(reasons), response_metadata={"messages": messages})


_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"


def new_id(prefix: str) -> str:
    """Return a fresh identifier such as U7K2…: the prefix and ten capitals or digits."""
    return prefix + "".join(secrets.choice(_ALPHABET) for _ in range(10))


def new_secret(prefix: str = "") -> str:
    """Return a fresh secret, good for a token, a ticket or a URL that proves itself."""
    return prefix + secrets.token_urlsafe(24).replace("_", "x").replace("-", "y")


def new_block_id() -> str:
    """Return what Slack fills in for a block without block_id: five characters."""
    return secrets.token_urlsafe(8)[:5]


def format_ts(micros: int) -> str:
    """Return microseconds since the epoch as a message ts: ten digits, a dot, six digits."""
    return f"{micros // 1_000_000:010d}.{micros % 1_000_000:06d}"


def parse_ts(text: str) -> int:
    """Return a ts as microseconds; ValueError when it is not of the form seconds[.micros]."""
    seconds, _, micros = text.partition(".")
    if not seconds.isdigit() or (micros and not micros.isdigit()) or len(micros) > 6:
        raise ValueError(f"{text!r} is not a ts such as 1700000000.000100")
    return int(seconds) * 1_000_000 + int(micros.ljust(6, "0") or 0)


def encode_cursor(position: str) -> str:
    """Return an opaque paging cursor."""
    return base64.b64encode(f"next:{position}".encode()).decode()


def decode_cursor(cursor: str) -> str:
    """Return the position within a cursor; ValueError when this server did not make it."""
    try:
        kind, _, position = base64.b64decode(cursor, validate=True).decode().partition(":")
    except UnicodeDecodeError as error:
        raise ValueError(f"{cursor!r} is not a cursor of ours") from error
    if kind != "next":
        raise ValueError(f"{cursor!r} is not a cursor of ours")
    return position


_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS users (id TEXT PRIMARY KEY, doc TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS apps (id TEXT PRIMARY KEY, doc TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS channels (id TEXT PRIMARY KEY, doc TEXT NOT NULL, last_ts INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS members (channel TEXT NOT NULL, user TEXT NOT NULL, PRIMARY KEY (channel, user));
CREATE TABLE IF NOT EXISTS messages (
    channel TEXT NOT NULL, ts TEXT NOT NULL, thread_ts TEXT, broadcast INTEGER NOT NULL DEFAULT 0,
    doc TEXT NOT NULL, PRIMARY KEY (channel, ts)
);
CREATE INDEX IF NOT EXISTS threads ON messages (channel, thread_ts, ts);
CREATE TABLE IF NOT EXISTS ephemerals (
    channel TEXT NOT NULL, ts TEXT NOT NULL, user TEXT NOT NULL, doc TEXT NOT NULL, PRIMARY KEY (channel, ts)
);
CREATE TABLE IF NOT EXISTS reactions (
    position INTEGER PRIMARY KEY AUTOINCREMENT, channel TEXT NOT NULL, ts TEXT NOT NULL,
    name TEXT NOT NULL, user TEXT NOT NULL, UNIQUE (channel, ts, name, user)
);
CREATE TABLE IF NOT EXISTS files (id TEXT PRIMARY KEY, doc TEXT NOT NULL, content BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS responses (id TEXT PRIMARY KEY, doc TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS deliveries (id TEXT PRIMARY KEY, doc TEXT NOT NULL);
"""


@dataclass(frozen=True)
class User:
    """A person, or the user a bot acts as; `team_id` tells outsiders apart."""

    id: str
    name: str
    real_name: str
    team_id: str
    bot_id: str = ""
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    deleted: bool = False


@dataclass(frozen=True)
class App:
    """An installed app: its bot, its tokens, and what its manifest asked for."""

    id: str
    name: str
    bot_id: str
    bot_user: str
    bot_token: str
    app_token: str
    scopes: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    interactivity: bool = True
    socket_mode: bool = True
    home_tab: bool = False
    messages_tab: bool = False  #: people may write to the bot directly
    revoked: bool = False


@dataclass(frozen=True)
class Channel:
    """A conversation: a channel, or the direct messages between a person and a bot."""

    id: str
    name: str
    created: int
    creator: str
    topic: str = ""
    is_private: bool = False
    is_archived: bool = False
    is_ext_shared: bool = False
    im: str = ""  #: the person, where it holds direct messages

    @property
    def kind(self) -> str:
        """Return what an event's channel_type says."""
        return "im" if self.im else "group" if self.is_private else "channel"


class Store:
    """Reads and writes the workspace's file; every write is committed before the method returns."""

    def __init__(self, path: Path | None) -> None:
        """Open the file, made for its owner alone since it holds tokens; None keeps everything in memory."""
        if path is not None:
            path.touch(mode=0o600)
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    # --- settings of the workspace itself

    def meta(self, key: str) -> str | None:
        """Return a stored setting, None when it was never set."""
        row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def set_meta(self, key: str, value: str) -> None:
        """Store a setting."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    # --- people, groups, apps, channels

    def put_user(self, user: User) -> None:
        """Add or replace a user."""
        self._db.execute("INSERT OR REPLACE INTO users VALUES (?, ?)", (user.id, json.dumps(asdict(user))))

    def users(self) -> list[User]:
        """Return all users in the order they were added."""
        return [User(**json.loads(doc)) for (doc,) in self._db.execute("SELECT doc FROM users ORDER BY rowid")]

    def user(self, ref: str) -> User | None:
        """Return the user with this id or name."""
        return next((user for user in self.users() if ref in (user.id, user.name)), None)

    def member(self, user_id: str) -> User | None:
        """Return the user with this id: methods of the API take no names."""
        return next((user for user in self.users() if user.id == user_id), None)

    def put_group(self, group: Json) -> None:
        """Add a user group."""
        self.set_meta("usergroups", json.dumps([*self.groups(), group]))

    def groups(self) -> list[Json]:
        """Return all user groups in the order they were added."""
        return [dict(group) for group in json.loads(self.meta("usergroups") or "[]")]

    def put_app(self, app: App) -> None:
        """Add or replace an app."""
        self._db.execute("INSERT OR REPLACE INTO apps VALUES (?, ?)", (app.id, json.dumps(asdict(app))))

    def apps(self) -> list[App]:
        """Return all apps in the order they were installed."""
        return [_app(json.loads(doc)) for (doc,) in self._db.execute("SELECT doc FROM apps ORDER BY rowid")]

    def app(self, ref: str) -> App | None:
        """Return the app with this app id, bot id, bot user id or name."""
        return next((app for app in self.apps() if ref in (app.id, app.bot_id, app.bot_user, app.name)), None)

    def put_channel(self, channel: Channel) -> None:
        """Add or replace a channel, keeping its clock."""
        self._db.execute(
            "INSERT INTO channels (id, doc) VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET doc = excluded.doc",
            (channel.id, json.dumps(asdict(channel))),
        )

    def channels(self) -> list[Channel]:
        """Return all channels in the order they were made, direct messages aside."""
        return [channel for channel in self._conversations() if not channel.im]

    def channel(self, ref: str) -> Channel | None:
        """Return the channel with this id or name (with or without #); direct messages have an id alone."""
        wanted = ref.removeprefix("#")
        named = (one for one in self._conversations() if wanted == one.id or (wanted == one.name and not one.im))
        return next(named, None)

    def direct(self, person: str, app: App) -> Channel:
        """Return the direct messages between a person and an app's bot, begun if there were none."""
        kept = (one for one in self._conversations() if one.im == person and app.bot_user in self.members(one.id))
        found = next(kept, None)
        if found is None:
            found = Channel(new_id("D"), app.name, int(now()), person, im=person)
            self.put_channel(found)
            self.join(found.id, person)
            self.join(found.id, app.bot_user)
        return found

    def _conversations(self) -> list[Channel]:
        return [Channel(**json.loads(doc)) for (doc,) in self._db.execute("SELECT doc FROM channels ORDER BY rowid")]

    def join(self, channel: str, user: str) -> bool:
        """Make the user a member; False when they already were."""
        return self._db.execute("INSERT OR IGNORE INTO members VALUES (?, ?)", (channel, user)).rowcount == 1

    def leave(self, channel: str, user: str) -> bool:
        """End a membership; False when there was none."""
        rows = self._db.execute("DELETE FROM members WHERE channel = ? AND user = ?", (channel, user)).rowcount
        return rows == 1

    def members(self, channel: str) -> list[str]:
        """Return the user ids of a channel's members in the order they joined."""
        rows = self._db.execute("SELECT user FROM members WHERE channel = ? ORDER BY rowid", (channel,))
        return [str(user) for (user,) in rows]

    # --- messages

    def next_ts(self, channel: str, now: float) -> str:
        """Return a ts for this channel: about now, later than every one given before."""
        (last,) = self._db.execute("SELECT last_ts FROM channels WHERE id = ?", (channel,)).fetchone()
        micros = max(int(now * 1_000_000), int(last) + 1)
        self._db.execute("UPDATE channels SET last_ts = ? WHERE id = ?", (micros, channel))
        return format_ts(micros)

    def put_message(self, channel: str, message: Json) -> None:
        """Add or replace a message; `ts`, `thread_ts` and `subtype` of the document place it."""
        thread = message.get("thread_ts")
        broadcast = message.get("subtype") == "thread_broadcast"
        self._db.execute(
            "INSERT OR REPLACE INTO messages VALUES (?, ?, ?, ?, ?)",
            (channel, message["ts"], thread, broadcast, json.dumps(message)),
        )

    def message(self, channel: str, ts: str) -> Json | None:
        """Return a message as stored."""
        row = self._db.execute("SELECT doc FROM messages WHERE channel = ? AND ts = ?", (channel, ts)).fetchone()
        return None if row is None else dict(json.loads(row[0]))

    def remove_message(self, channel: str, ts: str) -> None:
        """Forget a message and its reactions."""
        self._db.execute("DELETE FROM messages WHERE channel = ? AND ts = ?", (channel, ts))
        self._db.execute("DELETE FROM reactions WHERE channel = ? AND ts = ?", (channel, ts))

    def roots(self, channel: str) -> list[Json]:
        """Return what the channel itself shows, oldest first: messages outside threads, and broadcast replies."""
        return self._docs(
            "SELECT doc FROM messages WHERE channel = ? AND (thread_ts IS NULL OR broadcast = 1) ORDER BY ts",
            (channel,),
        )

    def replies(self, channel: str, thread_ts: str) -> list[Json]:
        """Return a thread's replies without its parent, oldest first."""
        return self._docs(
            "SELECT doc FROM messages WHERE channel = ? AND thread_ts = ? ORDER BY ts", (channel, thread_ts)
        )

    def messages(self, channel: str) -> list[Json]:
        """Return every message of a channel, threads included, oldest first."""
        return self._docs("SELECT doc FROM messages WHERE channel = ? ORDER BY ts", (channel,))

    def put_ephemeral(self, channel: str, user: str, message: Json) -> None:
        """Add or replace a message that only one user sees."""
        row = (channel, message["ts"], user, json.dumps(message))
        self._db.execute("INSERT OR REPLACE INTO ephemerals VALUES (?, ?, ?, ?)", row)

    def remove_ephemeral(self, channel: str, ts: str) -> None:
        """Forget an ephemeral message."""
        self._db.execute("DELETE FROM ephemerals WHERE channel = ? AND ts = ?", (channel, ts))

    def ephemerals(self, channel: str, user: str) -> list[Json]:
        """Return what only this user sees in a channel, oldest first."""
        return self._docs("SELECT doc FROM ephemerals WHERE channel = ? AND user = ? ORDER BY ts", (channel, user))

    # --- reactions and files

    def react(self, channel: str, ts: str, name: str, user: str) -> bool:
        """Add a reaction; False when this user had already given it."""
        row = (channel, ts, name, user)
        sql = "INSERT OR IGNORE INTO reactions (channel, ts, name, user) VALUES (?, ?, ?, ?)"
        return self._db.execute(sql, row).rowcount == 1

    def unreact(self, channel: str, ts: str, name: str, user: str) -> bool:
        """Take a reaction back; False when there was none."""
        row = (channel, ts, name, user)
        sql = "DELETE FROM reactions WHERE channel = ? AND ts = ? AND name = ? AND user = ?"
        return self._db.execute(sql, row).rowcount == 1

    def reactions(self, channel: str, ts: str) -> dict[str, list[str]]:
        """Return who reacted, by name of the reaction, in the order they were given."""
        found: dict[str, list[str]] = {}
        sql = "SELECT name, user FROM reactions WHERE channel = ? AND ts = ? ORDER BY position"
        for name, user in self._db.execute(sql, (channel, ts)):
            found.setdefault(name, []).append(user)
        return found

    def put_file(self, doc: Json, content: bytes) -> None:
        """Add a file with its content."""
        self._db.execute("INSERT INTO files VALUES (?, ?, ?)", (doc["id"], json.dumps(doc), content))

    def describe_file(self, doc: Json) -> None:
        """Replace a file's description."""
        self._db.execute("UPDATE files SET doc = ? WHERE id = ?", (json.dumps(doc), doc["id"]))

    def file(self, file_id: str) -> tuple[Json, bytes] | None:
        """Return a file's description and content."""
        row = self._db.execute("SELECT doc, content FROM files WHERE id = ?", (file_id,)).fetchone()
        return None if row is None else (dict(json.loads(row[0])), bytes(row[1]))

    # --- what is under way: response URLs and undelivered events

    def put_response(self, key: str, doc: Json) -> None:
        """Add or replace what a response URL stands for."""
        self._db.execute("INSERT OR REPLACE INTO responses VALUES (?, ?)", (key, json.dumps(doc)))

    def response(self, key: str) -> Json | None:
        """Return what a response URL stands for."""
        row = self._db.execute("SELECT doc FROM responses WHERE id = ?", (key,)).fetchone()
        return None if row is None else dict(json.loads(row[0]))

    def forget_responses(self) -> None:
        """Forget all response URLs."""
        self._db.execute("DELETE FROM responses")

    def put_delivery(self, key: str, doc: Json) -> None:
        """Remember an event that no app has acknowledged yet."""
        self._db.execute("INSERT OR REPLACE INTO deliveries VALUES (?, ?)", (key, json.dumps(doc)))

    def remove_delivery(self, key: str) -> None:
        """Forget an event that was acknowledged or given up."""
        self._db.execute("DELETE FROM deliveries WHERE id = ?", (key,))

    def deliveries(self) -> Iterator[tuple[str, Json]]:
        """Yield the events still to be delivered, oldest first."""
        for key, doc in self._db.execute("SELECT id, doc FROM deliveries ORDER BY rowid").fetchall():
            yield str(key), json.loads(doc)

    def _docs(self, sql: str, values: Sequence[Any]) -> list[Json]:
        return [json.loads(doc) for (doc,) in self._db.execute(sql, values)]


def _app(doc: Json) -> App:
    """Return an app from its document; JSON knows no tuples."""
    lists = {key: tuple(doc[key]) for key in ("scopes", "events", "commands")}
    return App(**{**doc, **lists})


def now() -> float:
    """Return the time of day, in seconds since the epoch."""
    return time.time()


@dataclass
class Address:
    """The base URL, without a slash at the end; "" until the workspace listens."""

    url: str = ""


T = TypeVar("T")

ASK_SECONDS = 0.1


class Changes:
    """A counter of changes that can be waited on; used on the workspace's event loop only."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = asyncio.Event()

    def notify(self) -> None:
        """Count one change and wake everyone who waits."""
        self.count += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def after(self, count: int, seconds: float) -> int:
        """Return the counter once it is past `count`, or unchanged when `seconds` have passed."""
        try:
            async with asyncio.timeout(seconds):
                while self.count <= count:
                    await self._changed.wait()
        except TimeoutError:
            return self.count
        return self.count

    async def until(self, find: Callable[[], T | None], seconds: float) -> T:
        """Return what `find` finds (neither None nor False); TimeoutError when it finds nothing in time.

        It is asked after each change and, for conditions that lie partly elsewhere, every ASK_SECONDS.
        """
        async with asyncio.timeout(seconds):
            while True:
                found = find()
                if found is not None and found is not False:
                    return found
                await self.after(self.count, ASK_SECONDS)


#: What the workspace installs when it is given no manifest.
DEFAULT: dict[str, Any] = {
    "display_information": {"name": "the-loop"},
    "features": {
        "bot_user": {"display_name": "the-loop"},
        "slash_commands": [
            {
                "command": "/the-loop",
                "description": "Standing sessions",
                "usage_hint": "status | list | say NAME TEXT | screen NAME | pause [NAME] | resume | interrupt"
                " | queue NAME | loops [NAME] | help",
            }
        ],
        "app_home": {"home_tab_enabled": True, "messages_tab_enabled": True, "messages_tab_read_only_enabled": False},
    },
    "oauth_config": {
        "scopes": {
            "bot": [
                "app_mentions:read", "channels:history", "channels:join", "channels:read", "chat:write", "commands",
                "files:read", "files:write", "groups:history", "groups:read", "im:history", "reactions:read",
                "reactions:write", "usergroups:read", "users:read",
            ]
        }
    },
    "settings": {
        "event_subscriptions": {
            "bot_events": ["app_home_opened", "app_mention", "message.channels", "message.groups", "message.im"]
        },
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
    home_tab: bool = False
    messages_tab: bool = False


def read_manifest(document: Mapping[str, Any]) -> Manifest:
    """Return what a manifest says; what it leaves out is off, as with Slack."""
    features, settings = document.get("features", {}), document.get("settings", {})
    scopes = document.get("oauth_config", {}).get("scopes", {}).get("bot", [])
    bot_name = features.get("bot_user", {}).get("display_name")
    home = features.get("app_home", {})
    return Manifest(
        name=str(bot_name or document.get("display_information", {}).get("name", "app")),
        scopes=tuple(scopes),
        events=tuple(settings.get("event_subscriptions", {}).get("bot_events", [])),
        commands=tuple(entry["command"] for entry in features.get("slash_commands", [])),
        interactivity=bool(settings.get("interactivity", {}).get("is_enabled")),
        socket_mode=bool(settings.get("socket_mode_enabled")),
        home_tab=bool(home.get("home_tab_enabled")),
        messages_tab=bool(home.get("messages_tab_enabled")) and not home.get("messages_tab_read_only_enabled"),
    )
