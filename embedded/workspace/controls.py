"""Test controls: what people, other bots and Slack itself do in the workspace.

Users, channels and apps are named by id or by name. A control that cannot be carried out raises ControlError.
"""

from __future__ import annotations

import mimetypes
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from embedded.workspace import model
from embedded.workspace.model import ApiError, App, Channel, ControlError, Json, User, new_id, read_manifest
from embedded.workspace.room import Fault, Outcome, Room, install
from embedded.workspace.shapes import bot_fields, message_view, rich_text, sent_to_wire, typed_to_wire
from embedded.workspace.views import Submitted

BOT_STYLES = ("modern", "classic", "user_token")


class Controls:
    """Everything a test, or the page, can make happen. Used on the workspace's event loop only."""

    def __init__(self, room: Room) -> None:
        self._room = room

    # --- people

    def say(
        self,
        user: str,
        channel: str,
        text: str,
        thread_ts: str | None = None,
        *,
        broadcast: bool = False,
        me: bool = False,
        files: Mapping[str, str | bytes] | None = None,
    ) -> str:
        """Post as a person, in a thread if one is named; return the ts.

        `broadcast` also sends a reply to the channel, `me` makes it a /me message, `files` maps names to contents.
        """
        person, place = self.user(user), self._joined(channel, user)
        if place.im and not any(
            app.messages_tab for app in self._room.store.apps() if app.bot_user in self._room.store.members(place.id)
        ):
            raise ControlError("sending messages to this app has been turned off")
        wire = self._wire(text)
        fields: Json = {"user": person.id, "text": wire, "team": person.team_id}
        if text:
            fields["blocks"] = [{**rich_text(wire), "block_id": new_id("")[:5]}]
        if files:
            described = [self._file(name, content, person) for name, content in files.items()]
            fields |= {"subtype": "file_share", "files": described, "upload": True}
        elif me:
            fields["subtype"] = "me_message"
        else:
            fields["client_msg_id"] = str(uuid.uuid4())
        if thread_ts:
            fields["thread_ts"] = thread_ts
            if broadcast:
                fields["subtype"] = "thread_broadcast"
        if person.team_id != self._room.team["id"]:
            profile = {"real_name": person.real_name, "name": person.name, "team": person.team_id}
            fields |= {"user_team": person.team_id, "source_team": person.team_id, "user_profile": profile}
        return self._posted(place, fields)

    def edit(self, channel: str, ts: str, text: str) -> None:
        """Edit a message as its author would."""
        place, message = self._message(channel, ts)
        wire = self._wire(text)
        self._room.posting.edit(place, message, {"text": wire, "blocks": [rich_text(wire)]}, message.get("user"))

    def unfurl(self, channel: str, ts: str) -> None:
        """Change a message as the server does for a link preview: message_changed with the text as it was."""
        place, message = self._message(channel, ts)
        preview = [{"id": 1, "title": "A page", "from_url": "https://example.com/", "fallback": "A page"}]
        self._room.posting.edit(place, message, {"attachments": preview}, None)

    def forward(self, user: str, channel: str, ts: str, into: str, text: str = "", thread_ts: str | None = None) -> str:
        """Forward a message of `channel` into another channel, or a thread there, with a comment; return the ts."""
        person, place, (source, message) = self.user(user), self._joined(into, user), self._message(channel, ts)
        fields: Json = {"user": person.id, "text": self._wire(text), "team": person.team_id}
        fields |= {
            "client_msg_id": str(uuid.uuid4()),
            "attachments": [self._quote(source, message) | {"is_share": True}],
        }
        if text:
            fields["blocks"] = [{**rich_text(fields["text"]), "block_id": new_id("")[:5]}]
        return self._posted(place, fields | ({"thread_ts": thread_ts} if thread_ts else {}))

    def quote(self, channel: str, ts: str, quoted_channel: str, quoted_ts: str) -> None:
        """Change a message as the server does for a link to a message: it shows that one below the text, as it was."""
        place, message = self._message(channel, ts)
        shown = self._quote(*self._message(quoted_channel, quoted_ts))
        self._room.posting.edit(place, message, {"attachments": [*message.get("attachments", []), shown]}, None)

    def clip(self, user: str, channel: str, words: str, thread_ts: str | None = None, *, written: bool = True) -> str:
        """Post a voice clip in which somebody says these words; return the ts.

        The server writes them down, at once or (not `written`) once `write_down` says so. What a message shows of them
        is their first thirty characters.
        """
        person, place = self.user(user), self._joined(channel, user)
        file_id = self._file("audio_message.m4a", "RIFF", person)
        found = self._room.store.file(file_id)
        doc: Json = {
            **(found[0] if found else {}),
            "mimetype": "audio/mp4",
            "filetype": "m4a",
            "subtype": "slack_audio",
        }
        doc |= {"transcription": {"status": "processing"}, "duration_ms": 1000}
        self._room.store.describe_file(doc)
        if written:
            self.write_down(file_id, words)
        fields: Json = {"user": person.id, "team": person.team_id, "text": "", "subtype": "file_share"}
        fields |= {"files": [file_id], "upload": True} | ({"thread_ts": thread_ts} if thread_ts else {})
        return self._posted(place, fields)

    def write_down(self, file_id: str, words: str) -> None:
        """Let the server have written down what is said in a clip."""
        found = self._room.store.file(file_id)
        if found is None:
            raise ControlError(f"no file {file_id!r}")
        preview = {"content": words[:30], "has_more": len(words) > 30}
        done = {"transcription": {"status": "complete", "locale": "en-US", "preview": preview}, "captions": words}
        self._room.store.describe_file(found[0] | done)

    def delete(self, channel: str, ts: str) -> None:
        """Delete a message."""
        place, message = self._message(channel, ts)
        self._room.posting.delete(place, message)

    def react(self, user: str, channel: str, ts: str, name: str) -> None:
        """React as a person."""
        place, message = self._message(channel, ts)
        self._refusable(lambda: self._room.posting.react(place, message, name, self.user(user).id))

    def unreact(self, user: str, channel: str, ts: str, name: str) -> None:
        """Take a person's reaction back."""
        place, message = self._message(channel, ts)
        self._refusable(lambda: self._room.posting.unreact(place, message, name, self.user(user).id))

    async def press(
        self, user: str, channel: str, ts: str, action_id: str, value: str | None = None, shown: Json | None = None
    ) -> Outcome:
        """Press a button of a message or of an ephemeral one, or choose the option with that value of a select.

        `value` tells equal action ids apart.

        `shown`: the message as this person's client still shows it, where it has changed since.
        """
        place, person = self._joined(channel, user), self.user(user)
        message = (
            shown
            or self._room.store.message(place.id, ts)
            or next((seen for seen in self._room.store.ephemerals(place.id, person.id) if seen["ts"] == ts), None)
        )
        for block in (message or {}).get("blocks", []):
            for element in (*block.get("elements", []), block.get("accessory", {})):
                if element.get("action_id") == action_id and _is_offered(element, value):
                    if element["type"] == "static_select":
                        [chosen] = [option for option in element["options"] if option["value"] == value]
                        element = {**element, "selected_option": chosen}
                    return await self._room.interactions.press(person, place, message or {}, block["block_id"], element)
        raise ControlError(f"message {ts} of {channel} has no button {action_id!r}; look at its blocks")

    async def command(self, user: str, channel: str, line: str) -> Outcome:
        """Run a slash command such as `/the-loop status`."""
        command, _, text = line.strip().partition(" ")
        if not command.startswith("/"):
            raise ControlError(f"{line!r} is no slash command; begin it with /")
        return await self._room.interactions.command(
            self.user(user), self._joined(channel, user), command, text.strip()
        )

    # --- an app's own pages: its modals, its Home tab, direct messages

    def direct(self, user: str, app: str | None = None) -> str:
        """Return the id of the channel in which a person and a bot write to each other."""
        return self._room.store.direct(self.user(user).id, self.app(app)).id

    def trigger(self, user: str, app: str | None = None) -> str:
        """Return a trigger as an action of this person would bring it; it lives three seconds."""
        return self._room.views.trigger(self.app(app), self.user(user))

    def modal(self, user: str) -> Json | None:
        """Return the modal that a person has open."""
        return self._room.views.modal(self.user(user))

    def close_modal(self, user: str, view_id: str) -> None:
        """Close a modal without sending it."""
        self._room.views.close(self.user(user), view_id)

    async def submit(self, user: str, view_id: str, values: Mapping[str, Any]) -> Submitted:
        """Send a modal; `values` by block: a text, an option's value, a channel's id, a list of people's ids."""
        return await self._room.views.submit(self.user(user), view_id, values)

    def submission(self, user: str, view_id: str, values: Mapping[str, Any]) -> Json:
        """Return the payload that sending a modal brings, for who sends it by another way."""
        return self._room.views.submission(self.user(user), view_id, values)

    async def envelope(self, kind: str, payload: Json) -> Json:
        """Send the main app a payload as it is, and return what it acknowledges it with."""
        return await self._room.sockets.request(self._room.main_app.id, kind, payload)

    def expire_responses(self) -> None:
        """Let no response URL count any more."""
        self._room.store.forget_responses()

    def home(self, user: str, app: str | None = None) -> Json | None:
        """Return a person's Home tab of an app, None before one was published."""
        return self._room.views.home(self.app(app), self.user(user))

    def open_home(self, user: str, app: str | None = None, tab: str = "home") -> None:
        """Let a person look at an app's Home or Messages tab."""
        self._room.views.open_home(self.app(app), self.user(user), tab)

    async def press_view(self, user: str, view_id: str, action_id: str, value: str | None = None) -> str | None:
        """Press a button of a modal or a Home tab; return the error that the person sees, None without one."""
        return await self._room.views.press(self.user(user), view_id, action_id, value)

    # --- other bots

    def say_as_bot(
        self,
        bot: str,
        channel: str,
        text: str,
        thread_ts: str | None = None,
        *,
        style: str = "modern",
        user: str | None = None,
    ) -> str:
        """Post as a bot; return the ts.

        modern: no subtype, with bot_id. classic: subtype bot_message without a user. user_token: an app that acts
        for the person `user`, whose id it carries beside its bot_id.
        """
        app, place = self.app(bot), self.channel(channel)
        fields: Json = {"text": sent_to_wire(text), **bot_fields(app, self._room.team["id"])}
        if style == "classic":
            fields = {"text": fields["text"], "subtype": "bot_message", "bot_id": app.bot_id, "username": app.name}
        elif style == "user_token":
            fields["user"] = self.user(user or "you").id
        elif style != "modern":
            raise ControlError(f"{style!r} is no style of bot; use one of {', '.join(BOT_STYLES)}")
        return self._posted(place, fields | ({"thread_ts": thread_ts} if thread_ts else {}))

    # --- what is there

    def messages(self, channel: str) -> list[Json]:
        """Return every message of a channel, threads included, oldest first, with reactions and metadata."""
        place = self.channel(channel)
        return [self._view(place, message) for message in self._room.store.messages(place.id)]

    def replies(self, channel: str, ts: str) -> list[Json]:
        """Return a thread without its parent, oldest first."""
        place = self.channel(channel)
        return [self._view(place, message) for message in self._room.store.replies(place.id, ts)]

    def ephemerals(self, channel: str, user: str) -> list[Json]:
        """Return what only this user sees in a channel, oldest first."""
        return self._room.store.ephemerals(self.channel(channel).id, self.user(user).id)

    def reactions(self, channel: str, ts: str) -> dict[str, list[str]]:
        """Return the ids of those who reacted to a message, by reaction."""
        return self._room.store.reactions(self.channel(channel).id, ts)

    def envelopes(self, kind: str | None = None) -> list[Json]:
        """Return the envelopes sent so far, each with `acknowledged`; kind: events_api, slash_commands, interactive."""
        return [entry for entry in self._room.sockets.log if kind in (None, entry["type"])]

    def sent_events(self, app: str | None = None) -> list[Json]:
        """Return the payloads of all events an app was to hear of, in the order they happened."""
        wanted = self.app(app).id
        return [payload for owner, payload in self._room.events.sent if owner == wanted]

    def given_up(self) -> list[Json]:
        """Return the payloads of events that no delivery got acknowledged."""
        return list(self._room.events.given_up)

    def connections(self, app: str | None = None) -> int:
        """Return how many sockets an app has open."""
        return len(self._room.sockets.connections(self.app(app).id))

    def sockets_opened(self, app: str | None = None) -> int:
        """Return how many sockets an app has opened since the start, so that a reconnect can be seen."""
        return self._room.sockets.opened[self.app(app).id]

    # --- the workspace itself

    def add_user(self, name: str, real_name: str = "", *, outsider: bool = False, guest: bool = False) -> str:
        """Add a person, of another team (`outsider`) or a guest of ours; return the id."""
        team = new_id("T") if outsider else self._room.team["id"]
        user = User(new_id("U"), name, real_name or name.title(), team, is_restricted=guest)
        self._room.store.put_user(user)
        self._room.changes.notify()
        return user.id

    def add_group(self, handle: str) -> str:
        """Add a user group; return the id."""
        group = {"id": new_id("S"), "team_id": self._room.team["id"], "handle": handle, "name": handle.title()}
        self._room.store.put_group({**group, "is_usergroup": True, "description": "", "date_delete": 0})
        return str(group["id"])

    def deactivate(self, user: str) -> None:
        """Deactivate a person's account."""
        self._room.store.put_user(replace(self.user(user), deleted=True))

    def add_channel(
        self, name: str, members: Sequence[str] = (), *, private: bool = False, shared: bool = False
    ) -> str:
        """Add a channel; return the id."""
        ids = [self.user(member).id for member in members]
        creator = ids[0] if ids else self.user("you").id
        channel = Channel(new_id("C"), name, int(model.now()), creator, is_private=private, is_ext_shared=shared)
        self._room.store.put_channel(channel)
        for member in ids:
            self._room.posting.join(channel, member, self._room.team["id"])
        self._room.changes.notify()
        return channel.id

    def add_app(self, manifest: Mapping[str, Any]) -> Json:
        """Install another app; return its ids and tokens."""
        app = install(self._room.store, read_manifest(manifest))
        tokens = {"bot_token": app.bot_token, "app_token": app.app_token}
        return {"app_id": app.id, "bot_id": app.bot_id, "bot_user_id": app.bot_user, **tokens}

    def join(self, user: str, channel: str) -> None:
        """Make somebody (a person or a bot) a member."""
        self._room.posting.join(self.channel(channel), self.user(user).id, self.user(user).team_id)

    def kick(self, user: str, channel: str) -> None:
        """Remove somebody (a person or a bot) from a channel."""
        self._room.posting.leave(self.channel(channel), self.user(user).id, self.user(user).team_id)

    def archive(self, channel: str, archived: bool = True) -> None:
        """Archive a channel, or bring it back."""
        place = replace(self.channel(channel), is_archived=archived)
        self._room.posting.set_channel(place, "channel_archive" if archived else "channel_unarchive", place.creator)

    def share(self, channel: str, shared: bool = True) -> None:
        """Share a channel with another organization, or end that."""
        place = replace(self.channel(channel), is_ext_shared=shared)
        self._room.posting.set_channel(place, "channel_shared" if shared else "channel_unshared", place.creator)

    def set_scopes(self, scopes: Iterable[str], app: str | None = None) -> None:
        """Give an app these scopes and no others."""
        self._room.store.put_app(replace(self.app(app), scopes=tuple(scopes)))

    def hide_scopes(self, hidden: bool = True) -> None:
        """Answer calls without the headers that name scopes, as a proxy in between may do."""
        self._room.faults.hides_scopes = hidden

    def set_revoked(self, revoked: bool = True, app: str | None = None) -> None:
        """Revoke an app's tokens, or make them good again."""
        self._room.store.put_app(replace(self.app(app), revoked=revoked))

    # --- faults

    def fault(
        self,
        method: str,
        kind: str,
        count: int = 1,
        *,
        seconds: float = 1.0,
        status: int = 503,
        code: str = "internal_error",
    ) -> None:
        """Order a fault for the next calls of a Web API method; see Fault."""
        self._room.faults.add(Fault(method, kind, count, seconds, status, code))

    def clear_faults(self) -> None:
        """Take back the ordered faults that have not happened."""
        self._room.faults.clear()

    async def break_sockets(self, how: str, app: str | None = None) -> int:
        """Break an app's sockets by close, fin, rst or silence; return how many there were."""
        found = self._room.sockets.connections(self.app(app).id)
        for connection in found:
            await self._room.sockets.break_off(connection, how)
        return len(found)

    async def disconnect(self, reason: str = "refresh_requested", app: str | None = None) -> int:
        """Send a disconnect frame: warning, refresh_requested, or link_disabled, which switches Socket Mode off."""
        owner = self.app(app)
        if reason == "link_disabled":
            self.set_socket_mode(False, app)
        found = self._room.sockets.connections(owner.id)
        for connection in found:
            await self._room.sockets.disconnect(connection, reason)
        return len(found)

    def set_socket_mode(self, enabled: bool, app: str | None = None) -> None:
        """Switch an app's Socket Mode on or off; open sockets stay."""
        self._room.store.put_app(replace(self.app(app), socket_mode=enabled))

    def redeliver(self, ts: str, attempt: int = 0, reason: str = "", *, renamed: bool = False) -> int:
        """Send the events of a message again under their event ids, or `renamed`; return how many there were."""
        found = [(app, payload) for app, payload in self._room.events.sent if payload["event"].get("ts") == ts]
        for app, payload in found:
            again = {**payload, "event_id": new_id("Ev")} if renamed else payload
            self._room.events.redeliver(again, app, attempt, reason)
        return len(found)

    def lose_events(self, count: int) -> None:
        """Lose the next `count` deliveries, so that only a retry arrives."""
        self._room.events.lose = count

    def expire_streams(self) -> int:
        """Let the time pass that an app has for the messages that it is writing; return how many there were."""
        return self._room.streams.expire()

    def hold_events(self) -> None:
        """Keep events back from now on."""
        self._room.events.hold()

    def release_events(self, newest_first: bool = False) -> int:
        """Deliver what was kept back; return how many events that were."""
        return self._room.events.release(newest_first)

    def status(self, channel: str, ts: str) -> str:
        """Return what the app shows below a thread."""
        return self._room.posting.status(self.channel(channel), ts)

    def file_text(self, file_id: str) -> str:
        """Return what a text file holds; ControlError when there is none."""
        found = self._room.store.file(file_id)
        if found is None:
            raise ControlError(f"no file {file_id!r}")
        return found[1].decode()

    def replied(self, channel: str, ts: str) -> None:
        """Send the event that counts a parent's replies, which looks like a message and is none."""
        place, message = self._message(channel, ts)
        self._room.posting.replied(place, message)

    # --- names

    def user(self, ref: str) -> User:
        """Return a user, also a bot's; ControlError when there is none."""
        found = self._room.store.user(ref)
        if found is None:
            raise ControlError(f"no user {ref!r}; there are {', '.join(self._ids(self._room.store.users()))}")
        return found

    def channel(self, ref: str) -> Channel:
        """Return a channel; ControlError when there is none."""
        found = self._room.store.channel(ref)
        if found is None:
            raise ControlError(f"no channel {ref!r}; there are {', '.join(self._ids(self._room.store.channels()))}")
        return found

    def app(self, ref: str | None = None) -> App:
        """Return an app, the main one without a name; ControlError when there is none."""
        found = self._room.main_app if ref is None else self._room.store.app(ref)
        if found is None:
            raise ControlError(f"no app {ref!r}; there are {', '.join(app.name for app in self._room.store.apps())}")
        return found

    def _joined(self, channel: str, user: str) -> Channel:
        place = self.channel(channel)
        if place.is_archived:
            raise ControlError(f"#{place.name} is archived; nobody can write there")
        if self.user(user).id not in self._room.store.members(place.id):
            raise ControlError(f"{user} is not a member of #{place.name}; let them join first")
        return place

    def _message(self, channel: str, ts: str) -> tuple[Channel, Json]:
        place = self.channel(channel)
        message = self._room.store.message(place.id, ts)
        if message is None:
            raise ControlError(f"no message {ts} in #{place.name}; take the ts from a message that is there")
        return place, message

    def _posted(self, place: Channel, fields: Json) -> str:
        try:
            return str(self._room.posting.post(place, fields)["ts"])
        except ApiError as error:
            raise ControlError(f"cannot post in #{place.name}: {error.code}") from error

    def _refusable(self, act: Any) -> None:
        try:
            act()
        except ApiError as error:
            raise ControlError(f"refused: {error.code}") from error

    def _file(self, name: str, content: str | bytes, owner: User) -> str:
        data, kind = (content.encode(), "text/plain") if isinstance(content, str) else (content, _kind_of(name))
        extension = name.rpartition(".")[2] if "." in name and kind != "text/plain" else "text"
        doc: Json = {"id": new_id("F"), "name": name, "title": name, "mimetype": kind, "filetype": extension}
        doc |= {"user": owner.id, "size": len(data), "mode": "hosted", "is_external": False}
        self._room.store.put_file(doc | {"created": int(model.now())}, data)
        return str(doc["id"])

    def _wire(self, text: str) -> str:
        store = self._room.store
        groups = {str(group["handle"]): str(group["id"]) for group in store.groups()}
        return typed_to_wire(text, self._ids(store.users()), self._ids(store.channels()), groups)

    def _quote(self, place: Channel, message: Json) -> Json:
        """Return the attachment that shows a message in another one."""
        author = self._room.store.user(str(message.get("user", "")))
        name, link = author.real_name if author else "", f"/archives/{place.id}/p{message['ts'].replace('.', '')}"
        return {
            "id": 1,
            "ts": message["ts"],
            "author_id": author.id if author else "",
            "author_name": name,
            "author_subname": name,
            "channel_id": place.id,
            "channel_team": self._room.team["id"],
            "is_msg_unfurl": True,
            "from_url": f"https://{self._room.team['domain']}.slack.com{link}",
            "fallback": f"[{message['ts']}] {name}: {message.get('text', '')}",
            "text": message.get("text", ""),
            "message_blocks": [{"team": self._room.team["id"], "channel": place.id, "ts": message["ts"],
                                "message": {"blocks": message.get("blocks", [])}}],
            "files": message.get("files", []),
            "mrkdwn_in": ["text"],
            "footer": "Thread in Slack Conversation" if message.get("thread_ts") else "Slack Conversation",
        }  # fmt: skip

    def _view(self, channel: Channel, message: Json) -> Json:
        return message_view(self._room.store, channel.id, message, self._room.base_url, with_metadata=True)

    @staticmethod
    def _ids(entries: Sequence[User] | Sequence[Channel]) -> dict[str, str]:
        return {entry.name: entry.id for entry in entries}


def _is_offered(element: Json, value: str | None) -> bool:
    """Return whether an element can be used so: a button with that value, a select with that option."""
    if element.get("type") == "static_select":
        return any(option["value"] == value for option in element["options"])
    return value in (None, element.get("value"))


def _kind_of(name: str) -> str:
    return mimetypes.guess_type(name)[0] or "application/octet-stream"
