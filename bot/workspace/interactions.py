"""Slash commands, buttons, and the response URLs that come with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aiohttp import web

from bot.workspace import clock
from bot.workspace.address import Address
from bot.workspace.errors import ApiError, Json
from bot.workspace.ids import new_id, new_secret
from bot.workspace.limits import check_blocks, check_text
from bot.workspace.model import App, Channel, Store, User
from bot.workspace.posting import Posting
from bot.workspace.shapes import bot_fields
from bot.workspace.socketmode import NotAcknowledged, NotConnected, Sockets
from bot.workspace.text import sent_to_wire

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

    def __init__(self, address: Address, store: Store, sockets: Sockets, posting: Posting, team: Json) -> None:
        self._address = address
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
            **self._head(app),
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
        action = {key: element[key] for key in ("action_id", "text", "value", "style", "confirm") if key in element}
        payload: Json = {
            "type": "block_actions",
            "user": {"id": user.id, "username": user.name, "name": user.name, "team_id": user.team_id},
            **self._head(app),
            "container": {**container, **thread},
            "team": {"id": self._team["id"], "domain": self._team["domain"]},
            "enterprise": None,
            "is_enterprise_install": False,
            "channel": {"id": channel.id, "name": channel.name},
            "state": {"values": {}},
            "response_url": self._response_url(
                app, channel, user, {"message_ts": message["ts"], "ephemeral": ephemeral}
            ),
            "actions": [{**action, "block_id": block_id, "type": "button", "action_ts": f"{clock.now():.6f}"}],
        }
        if not ephemeral:
            payload["message"] = message
        return await self._ask(app, "interactive", payload)

    async def respond(self, key: str, body: Any) -> web.Response:
        """Take a post to a response URL: five within thirty minutes."""
        doc = self._store.response(key)
        if doc is None or doc["expires"] < clock.now():
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

    def _head(self, app: App) -> Json:
        return {"token": "no-verification-token", "api_app_id": app.id, "trigger_id": new_id("")}

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
        self._store.put_response(key, doc | about | {"expires": clock.now() + RESPONSE_SECONDS})
        return f"{self._address.url}/response/{key}"

    def _answer(self, app: App, channel: Channel, user: User, body: Json, doc: Json | None) -> None:
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
