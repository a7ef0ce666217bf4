"""One workspace for all its surfaces (methods, controls, page): what is stored, and what the apps are told.

Messages are stored first, then told to the apps. Also here: what a new workspace holds, how an app is installed, files
on their way in, slash commands, buttons and response URLs, and faults that a test orders for the next calls of a
method.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aiohttp import web

from embedded.workspace import model
from embedded.workspace import model as manifests
from embedded.workspace.delivering import Events, NotAcknowledged, NotConnected, Sockets
from embedded.workspace.limits import check_blocks, check_text
from embedded.workspace.model import (
    Address,
    ApiError,
    App,
    Changes,
    Channel,
    ControlError,
    Json,
    Manifest,
    Store,
    User,
    new_id,
    new_secret,
)
from embedded.workspace.shapes import bot_fields, check_pictures, expand_files, sent_to_wire, thread_counters
from embedded.workspace.streams import Streams
from embedded.workspace.views import Views

KINDS = ("ratelimited", "http", "error", "lost", "refused", "slow")


@dataclass
class Fault:
    """One order: the next `count` calls of `method` ("*": of any) go wrong in one way.

    ratelimited: 429 with Retry-After `seconds`. http: an HTML page with `status`. error: ok false with `code`.
    lost: performed, then the connection is cut without an answer. refused: cut before anything is performed.
    slow: performed after `seconds`.
    """

    method: str
    kind: str
    count: int = 1
    seconds: float = 1.0
    status: int = 503
    code: str = "internal_error"

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ControlError(f"{self.kind!r} is no kind of fault; use one of {', '.join(KINDS)}")


class Faults:
    """The faults that are still to happen, taken in the order they were asked for."""

    def __init__(self) -> None:
        self.hides_scopes = False  #: no answer has the headers that name scopes
        self._pending: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Order a fault."""
        self._pending.append(fault)

    def clear(self) -> None:
        """Take back all that has not happened."""
        self._pending.clear()

    def take(self, method: str) -> Fault | None:
        """Return what befalls this call, if anything, and count it."""
        fault = next((fault for fault in self._pending if fault.method in (method, "*")), None)
        if fault is None:
            return None
        fault.count -= 1
        if fault.count <= 0:
            self._pending.remove(fault)
        return fault


_STATUS_SECONDS = 120


class Posting:
    """Changes conversations. Whoever calls has checked that they may."""

    def __init__(self, address: Address, store: Store, events: Events, changes: Changes) -> None:
        self._address = address
        self._statuses: dict[tuple[str, str], tuple[str, float]] = {}
        self._store = store
        self._events = events
        self._changes = changes

    def post(self, channel: Channel, fields: Json) -> Json:
        """Store a message with a new ts and tell the apps; return it as stored.

        `fields` holds everything but type and ts. A reply must name an existing parent: thread_not_found when
        there is none, cannot_reply_to_message when it is a reply itself.
        """
        parent = self._parent(channel, fields.get("thread_ts"))
        message: Json = {"type": "message", **fields, "ts": self._store.next_ts(channel.id, model.now())}
        if parent is not None:
            message["parent_user_id"] = parent.get("user")
        self._store.put_message(channel.id, message)
        if message.get("bot_id"):
            self._statuses.pop((channel.id, str(message.get("thread_ts"))), None)
        event = expand_files(self._store, message, self._address.url)
        if message.get("subtype") == "thread_broadcast" and parent is not None:
            event["root"] = parent | thread_counters(self._store.replies(channel.id, parent["ts"]), parent)
        self._tell(channel, event, message["ts"])
        return message

    def set_status(self, channel: Channel, thread: str, status: str) -> None:
        """Show below a thread what an app does, for two minutes or until it posts there; "" takes it away."""
        self._statuses[channel.id, thread] = (status, model.now() + _STATUS_SECONDS)
        self._changes.notify()

    def status(self, channel: Channel, thread: str) -> str:
        """Return what stands below a thread, "" for nothing."""
        status, until = self._statuses.get((channel.id, thread), ("", 0.0))
        return status if model.now() < until else ""

    def whisper(self, channel: Channel, user: str, fields: Json) -> Json:
        """Store a message that only `user` sees; no app hears of it."""
        ts = self._store.next_ts(channel.id, model.now())
        message: Json = {"type": "message", **fields, "ts": ts, "is_ephemeral": True}
        self._store.put_ephemeral(channel.id, user, message)
        self._changes.notify()
        return message

    def edit(self, channel: Channel, message: Json, fields: Json, by: str | None) -> Json:
        """Replace members of a message (None removes one) and tell the apps message_changed.

        `by` is who edited; without it the edit is one of the server's own, such as a link preview.
        """
        before = dict(message)
        merged: Json = {**message, **fields}
        changed = {key: value for key, value in merged.items() if value is not None}
        event_ts = self._store.next_ts(channel.id, model.now())
        if by is not None:
            changed["edited"] = {"user": by, "ts": event_ts}
        self._store.put_message(channel.id, changed)
        self._hidden(channel, event_ts, "message_changed", message=changed, previous_message=before)
        return changed

    def delete(self, channel: Channel, message: Json) -> None:
        """Remove a message; a parent with replies stays as a tombstone."""
        event_ts = self._store.next_ts(channel.id, model.now())
        replies = [] if message.get("thread_ts") else self._store.replies(channel.id, message["ts"])
        if not replies:
            self._store.remove_message(channel.id, message["ts"])
            gone = {"deleted_ts": message["ts"], "previous_message": message}
            self._hidden(channel, event_ts, "message_deleted", **gone)
            return
        tombstone: Json = {"type": "message", "subtype": "tombstone", "ts": message["ts"], "hidden": True}
        tombstone |= {"text": "This message was deleted.", "user": "USLACKBOT"}
        self._store.put_message(channel.id, tombstone)
        shown = tombstone | thread_counters(replies, tombstone)
        self._hidden(channel, event_ts, "message_changed", message=shown, previous_message=message)

    def react(self, channel: Channel, message: Json, name: str, user: str) -> None:
        """Add a reaction and tell the apps; already_reacted when it stands."""
        if not self._store.react(channel.id, message["ts"], name, user):
            raise ApiError("already_reacted")
        self._reaction("reaction_added", channel, message, name, user)

    def unreact(self, channel: Channel, message: Json, name: str, user: str) -> None:
        """Take a reaction back and tell the apps; no_reaction when there is none."""
        if not self._store.unreact(channel.id, message["ts"], name, user):
            raise ApiError("no_reaction")
        self._reaction("reaction_removed", channel, message, name, user)

    def join(self, channel: Channel, user: str, team: str, inviter: str = "") -> bool:
        """Make a user a member and tell the apps; False when they already were."""
        if not self._store.join(channel.id, user):
            return False
        self._changes.notify()
        self._membership("member_joined_channel", channel, user, team, {"inviter": inviter} if inviter else {})
        self.post(channel, {"subtype": "channel_join", "user": user, "text": f"<@{user}> has joined the channel"})
        return True

    def leave(self, channel: Channel, user: str, team: str) -> bool:
        """End a membership and tell the apps, a leaving bot included; False when there was none."""
        if not self._store.leave(channel.id, user):
            return False
        self._changes.notify()
        self._membership("member_left_channel", channel, user, team, {})
        app: App | None = self._store.app(user)
        if app is not None:
            left = {"type": "channel_left", "channel": channel.id, "actor_id": "", "event_ts": self._event_ts(channel)}
            self._events.tell(app, "channel_left", channel, left)
        return True

    def set_channel(self, channel: Channel, event_type: str, user: str) -> None:
        """Store a changed channel (archived, shared…) and tell the apps by the named event."""
        self._store.put_channel(channel)
        self._changes.notify()
        event = {"type": event_type, "channel": channel.id, "user": user, "event_ts": self._event_ts(channel)}
        self._events.publish(event_type, channel, event)

    def replied(self, channel: Channel, parent: Json) -> None:
        """Tell the apps that a parent got a reply, in the shape the Events API gives it: without its subtype."""
        shown = parent | thread_counters(self._store.replies(channel.id, parent["ts"]), parent)
        event_ts = self._store.next_ts(channel.id, model.now())
        event = {"type": "message", "message": shown, "hidden": True, "ts": event_ts, "thread_ts": parent["ts"]}
        self._tell(channel, event, event_ts)

    def _parent(self, channel: Channel, thread_ts: Any) -> Json | None:
        if thread_ts is None:
            return None
        parent = self._store.message(channel.id, thread_ts)
        if parent is None:
            raise ApiError("thread_not_found")
        if parent.get("thread_ts") not in (None, thread_ts) or parent.get("subtype") in (
            "channel_join",
            "channel_leave",
        ):
            raise ApiError("cannot_reply_to_message")
        return parent

    def _hidden(self, channel: Channel, event_ts: str, subtype: str, **members: Any) -> None:
        shown = {key: expand_files(self._store, value, self._address.url) if isinstance(value, dict) else value
                 for key, value in members.items()}  # fmt: skip
        event = {"type": "message", "subtype": subtype, "hidden": True, **shown, "ts": event_ts}
        self._tell(channel, event, event_ts)

    def _tell(self, channel: Channel, event: Json, event_ts: str) -> None:
        self._changes.notify()
        place = {"channel": channel.id, "event_ts": event_ts, "channel_type": channel.kind}
        self._events.message(channel, {**event, **place})

    def _reaction(self, kind: str, channel: Channel, message: Json, name: str, user: str) -> None:
        self._changes.notify()
        item = {"type": "message", "channel": channel.id, "ts": message["ts"]}
        event = {"type": kind, "user": user, "reaction": name, "item": item, "item_user": message.get("user")}
        self._events.publish(kind, channel, event | {"event_ts": self._event_ts(channel)})

    def _membership(self, kind: str, channel: Channel, user: str, team: str, extra: Json) -> None:
        letter = "G" if channel.is_private else "C"
        event = {"type": kind, "user": user, "channel": channel.id, "channel_type": letter, "team": team, **extra}
        self._events.publish(kind, channel, event | {"event_ts": self._event_ts(channel)})

    def _event_ts(self, channel: Channel) -> str:
        return self._store.next_ts(channel.id, model.now())


RESPONSE_USES = 5
RESPONSE_SECONDS = 1800


@dataclass(frozen=True)
class Outcome:
    """What became of a command or a click: acknowledged with a payload, or the error the person saw."""

    acknowledged: bool
    payload: Json
    error: str | None


class Interactions:
    """Sends commands and clicks to apps and shows what they answer. Neither is ever retried."""

    def __init__(
        self, address: Address, store: Store, sockets: Sockets, posting: Posting, views: Views, team: Json
    ) -> None:
        self._address = address
        self._views = views
        self._store = store
        self._sockets = sockets
        self._posting = posting
        self._team = team

    async def command(self, user: User, channel: Channel, command: str, text: str) -> Outcome:
        """Run a slash command; the answer, or why there is none, is shown to the user alone.

        Only people of the workspace itself may: others see `not_allowed`. An app needs the scope `commands`.
        """
        app = next((app for app in self._store.apps() if command in app.commands and "commands" in app.scopes), None)
        if user.team_id != self._team["id"] or app is None:
            error = "invalid_command" if app is None else "not_allowed"
            self._slackbot(channel, user, f"{command} is not a valid command.")
            return Outcome(False, {}, error)
        payload = {
            **self._head(app, user),
            "team_id": self._team["id"],
            "team_domain": self._team["domain"],
            "channel_id": channel.id,
            "channel_name": channel.name,
            "user_id": user.id,
            "user_name": user.name,
            "command": command,
            "text": text,
            "is_enterprise_install": "false",
            "response_url": self._response_url(app, channel, user, {}),
        }
        outcome = await self._ask(app, "slash_commands", payload)
        if outcome.error:
            self._slackbot(channel, user, f'{command} failed with the error "{outcome.error}"')
        elif outcome.payload.get("text") or outcome.payload.get("blocks"):
            try:
                self._answer(app, channel, user, outcome.payload, None)
            except ApiError as error:
                self._slackbot(channel, user, f'{command} failed with the error "invalid_command_response"')
                return Outcome(True, outcome.payload, error.code)
        return outcome

    async def press(self, user: User, channel: Channel, message: Json, block_id: str, element: Json) -> Outcome:
        """Press a button of a message; when the app does not acknowledge, the user sees a warning."""
        app = self._store.app(message.get("bot_id", ""))
        if app is None or not app.interactivity:
            return Outcome(False, {}, "no_interactivity")
        thread = {"thread_ts": message["thread_ts"]} if message.get("thread_ts") else {}
        ephemeral = bool(message.get("is_ephemeral"))
        container = {
            "type": "message",
            "message_ts": message["ts"],
            "channel_id": channel.id,
            "is_ephemeral": ephemeral,
        }
        sent = ("type", "action_id", "text", "value", "style", "confirm", "placeholder", "selected_option")
        action = {key: element[key] for key in sent if key in element}
        payload: Json = {
            "type": "block_actions",
            "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": user.team_id},
            **self._head(app, user),
            "container": {**container, **thread},
            "team": {"id": self._team["id"], "domain": self._team["domain"]},
            "enterprise": None,
            "is_enterprise_install": False,
            "channel": {"id": channel.id, "name": channel.name},
            "state": {"values": {}},
            "response_url": self._response_url(
                app, channel, user, {"message_ts": message["ts"], "ephemeral": ephemeral}
            ),
            "actions": [{**action, "block_id": block_id, "action_ts": f"{model.now():.6f}"}],
        }
        if not ephemeral:
            payload["message"] = message
        return await self._ask(app, "interactive", payload)

    async def respond(self, key: str, body: Any) -> web.Response:
        """Take a post to a response URL: five within thirty minutes."""
        doc = self._store.response(key)
        if doc is None or doc["expires"] < model.now():
            return web.json_response({"ok": False, "error": "expired_url"}, status=404)
        if doc["uses"] <= 0:
            return web.json_response({"ok": False, "error": "used_url"}, status=404)
        app, channel, user = (
            self._store.app(doc["app"]),
            self._store.channel(doc["channel"]),
            self._store.user(doc["user"]),
        )
        if not isinstance(body, dict) or app is None or channel is None or user is None:
            return web.json_response({"ok": False, "error": "invalid_payload"}, status=400)
        try:
            self._answer(app, channel, user, body, doc)
        except ApiError as error:
            return web.json_response(error.body(), status=400)
        self._store.put_response(key, doc | {"uses": doc["uses"] - 1})
        return web.Response(text="ok")

    def _head(self, app: App, user: User) -> Json:
        trigger = self._views.trigger(app, user)
        return {"token": "no-verification-token", "api_app_id": app.id, "trigger_id": trigger}

    async def _ask(self, app: App, kind: str, payload: Json) -> Outcome:
        try:
            return Outcome(True, await self._sockets.request(app.id, kind, payload), None)
        except NotConnected:
            return Outcome(False, {}, "dispatch_failed")
        except NotAcknowledged:
            return Outcome(False, {}, "operation_timeout")

    def _response_url(self, app: App, channel: Channel, user: User, about: Json) -> str:
        key = new_secret()
        doc = {"app": app.id, "channel": channel.id, "user": user.id, "uses": RESPONSE_USES}
        self._store.put_response(key, doc | about | {"expires": model.now() + RESPONSE_SECONDS})
        return f"{self._address.url}/response/{key}"

    def _answer(self, app: App, channel: Channel, user: User, body: Json, doc: Json | None) -> None:
        if body.get("blocks"):
            check_pictures(self._store, app, check_blocks(body["blocks"]))
        original = (doc or {}).get("message_ts")
        if original and (body.get("delete_original") or body.get("replace_original")):
            self._change_original(channel, user, body, original, bool((doc or {}).get("ephemeral")))
            return
        fields: Json = {**bot_fields(app, self._team["id"]), **_content(body)}
        if body.get("thread_ts"):
            fields["thread_ts"] = body["thread_ts"]
        if body.get("response_type") == "in_channel":
            self._posting.post(channel, fields)
        else:
            self._posting.whisper(channel, user.id, fields)

    def _change_original(self, channel: Channel, user: User, body: Json, ts: str, ephemeral: bool) -> None:
        if ephemeral:
            seen = next((entry for entry in self._store.ephemerals(channel.id, user.id) if entry["ts"] == ts), None)
            if seen is None:
                raise ApiError("message_not_found")
            self._store.remove_ephemeral(channel.id, ts)
            if not body.get("delete_original"):
                self._posting.whisper(channel, user.id, {**seen, "blocks": [], **_content(body)})
            return
        message = self._store.message(channel.id, ts)
        if message is None:
            raise ApiError("message_not_found")
        if body.get("delete_original"):
            self._posting.delete(channel, message)
        else:
            self._posting.edit(channel, message, {"blocks": None, **_content(body)}, message.get("user"))

    def _slackbot(self, channel: Channel, user: User, text: str) -> None:
        self._posting.whisper(channel, user.id, {"user": "USLACKBOT", "text": text})


def _content(body: Json) -> Json:
    fields: Json = {"text": sent_to_wire(check_text(body.get("text", "")))}
    if body.get("blocks"):
        fields["blocks"] = check_blocks(body["blocks"])
    if not fields["text"] and "blocks" not in fields:
        raise ApiError("no_text")
    return fields


_PEOPLE = (("you", "You"), ("alice", "Alice Martin"), ("bob", "Bob Okafor"))
_OTHER_BOT = Manifest(
    name="deploybot",
    scopes=("chat:write", "channels:history", "channels:read", "users:read"),
    events=(),
    commands=(),
    interactivity=False,
    socket_mode=True,
)


def seed(store: Store, manifest: Manifest, *, outsider: bool = True) -> None:
    """Fill a new workspace, or bring the main app of an existing one up to its manifest.

    A new one has the channel #agents with you, alice, bob and both bots. `outsider`: mallory of another organization is
    there, too, and the channel is therefore shared with that organization.
    """
    if store.meta("team") is None:
        _create(store, manifest, outsider)
        return
    main = store.app(store.meta("main_app") or "")
    if main is not None:
        store.put_app(_with_manifest(main, manifest))


def install(store: Store, manifest: Manifest) -> App:
    """Install an app with fresh tokens and a bot user of its own."""
    team = team_of(store)
    app_id = new_id("A")
    app = App(
        id=app_id,
        name=manifest.name,
        bot_id=new_id("B"),
        bot_user=new_id("U"),
        bot_token=new_secret("xoxb-"),
        app_token=new_secret(f"xapp-1-{app_id}-"),
    )
    app = _with_manifest(app, manifest)
    store.put_app(app)
    store.put_user(User(app.bot_user, app.name, app.name, team["id"], bot_id=app.bot_id))
    return app


def team_of(store: Store) -> Json:
    """Return the workspace's team: id, name, domain."""
    return dict(json.loads(store.meta("team") or "{}"))


def _create(store: Store, manifest: Manifest, outsider: bool) -> None:
    store.set_meta("team", json.dumps({"id": new_id("T"), "name": "Loopback", "domain": "loopback"}))
    store.set_meta("control_token", new_secret())
    store.set_meta("page_key", new_secret())
    team = team_of(store)["id"]
    people = [User(new_id("U"), name, real_name, team) for name, real_name in _PEOPLE]
    if outsider:
        people.append(User(new_id("U"), "mallory", "Mallory (Elsewhere Inc.)", new_id("T")))
    for user in people:
        store.put_user(user)
    main, other = install(store, manifest), install(store, _OTHER_BOT)
    store.set_meta("main_app", main.id)
    topic = "Standing sessions, a thread each"
    channel = Channel(new_id("C"), "agents", int(model.now()), people[0].id, topic, is_ext_shared=outsider)
    store.put_channel(channel)
    for member in (*(person.id for person in people), main.bot_user, other.bot_user):
        store.join(channel.id, member)


def _with_manifest(app: App, manifest: Manifest) -> App:
    return replace(
        app,
        name=manifest.name,
        scopes=manifest.scopes,
        events=manifest.events,
        commands=manifest.commands,
        interactivity=manifest.interactivity,
        socket_mode=manifest.socket_mode,
        home_tab=manifest.home_tab,
        messages_tab=manifest.messages_tab,
    )


@dataclass
class Upload:
    """One file: what was announced of it, and its bytes once they came."""

    file_id: str
    name: str
    length: int
    app: str
    content: bytes = b""


class Uploads:
    """The files that are expected, by ticket. A restart forgets them, as their addresses end after a while."""

    def __init__(self) -> None:
        self._expected: dict[str, Upload] = {}

    def expect(self, ticket: str, file_id: str, name: str, length: int, app: str) -> None:
        """Give out an address."""
        self._expected[ticket] = Upload(file_id, name, length, app)

    def take(self, file_id: str, app: str) -> Upload | None:
        """Return an upload of this app whose bytes are complete, once."""
        for ticket, upload in self._expected.items():
            if (upload.file_id, upload.app) == (file_id, app) and upload.content:
                del self._expected[ticket]
                return upload
        return None

    async def handle(self, request: web.Request) -> web.Response:
        """Take the bytes; whoever has the address may send them, and only as many as were announced."""
        upload = self._expected.get(request.match_info["ticket"])
        if upload is None:
            return web.Response(status=404, text="no such upload")
        content = await request.read()
        if len(content) != upload.length:
            return web.Response(status=400, text="the length is not the one that was announced")
        upload.content = content
        return web.Response(text=f"OK - {len(content)}")


@dataclass(frozen=True)
class Room:
    """The parts of one workspace; they share one store, one counter of changes and one address."""

    address: Address
    store: Store
    team: Json
    changes: Changes
    faults: Faults
    uploads: Uploads
    sockets: Sockets
    events: Events
    posting: Posting
    streams: Streams
    views: Views
    interactions: Interactions

    @property
    def base_url(self) -> str:
        """Return where the workspace listens, without a slash at the end; "" until it does."""
        return self.address.url

    @property
    def main_app(self) -> App:
        """Return the app the manifest describes. Raises ControlError when the store names none."""
        app = self.store.app(self.store.meta("main_app") or "")
        if app is None:
            raise ControlError("the workspace's file names no main app; delete the file and start again")
        return app


def furnish(
    database: Path | None,
    manifest: Mapping[str, Any] | None,
    *,
    retry_scale: float,
    ack_seconds: float,
    ping_seconds: float,
    outsider: bool,
) -> Room:
    """Return a workspace's parts over its store; an empty store gets people, channels and the manifest's app."""
    address, store, changes = Address(), Store(database), Changes()
    document = manifest if manifest is not None else manifests.DEFAULT
    seed(store, manifests.read_manifest(document), outsider=outsider)
    store.set_meta("commands", json.dumps(document.get("features", {}).get("slash_commands", [])))
    team = team_of(store)
    sockets = Sockets(address, changes, ack_seconds, ping_seconds)
    events = Events(store, sockets, changes, team["id"], retry_scale)
    posting = Posting(address, store, events, changes)
    views = Views(store, sockets, events, changes, team)
    interactions = Interactions(address, store, sockets, posting, views, team)
    streams = Streams(store, posting, changes)
    faults, uploads = Faults(), Uploads()
    return Room(address, store, team, changes, faults, uploads, sockets, events, posting, streams, views, interactions)
