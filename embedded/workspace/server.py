"""The workspace as one server on loopback: Web API, Socket Mode, test controls and the page.

- Test controls: POST /_control/VERB with the control token and a JSON object of arguments.
- The Web API reads a call, checks its token and scope, applies a fault if one is ordered, and answers.
- The page at /: its shell is public. The data and every action need a cookie that only the link with the key gives, so
  other users of the machine cannot read or write. Requests from other sites are refused by Host and Origin.
"""

from __future__ import annotations

import asyncio
import dataclasses
import hmac
import inspect
import json
import socket
from base64 import b64decode
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from aiohttp import web

from embedded.workspace.controls import Controls
from embedded.workspace.methods import METHODS, Call, Method
from embedded.workspace.model import ApiError, App, Channel, ControlError, Json, Store, User, new_id
from embedded.workspace.room import Fault, Room, furnish
from embedded.workspace.shapes import message_view

VERBS = (
    "add_app", "add_channel", "add_group", "add_user", "archive", "break_sockets", "clear_faults", "clip",
    "close_modal", "command", "connections", "deactivate", "delete", "direct", "disconnect", "edit", "envelopes",
    "ephemerals", "expire_streams", "fault", "forward", "given_up", "hold_events", "home", "join", "kick",
    "lose_events", "messages", "modal", "open_home", "press", "press_view", "quote", "react", "reactions",
    "redeliver", "release_events", "replied", "replies", "say", "say_as_bot", "sent_events", "set_revoked",
    "set_scopes", "set_socket_mode", "share", "sockets_opened", "submit", "trigger", "unfurl", "unreact",
    "write_down",
)  # fmt: skip


class ControlHttp:
    """Answers {"ok": true, "result": …}, or 400/401/404 with {"ok": false, "error": …}."""

    def __init__(self, controls: Controls, token: str) -> None:
        self._controls = controls
        self._token = token

    async def handle(self, request: web.Request) -> web.Response:
        """Carry out one control."""
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            return _failure(401, "this needs the control token as a bearer token")
        verb = request.match_info["verb"]
        if verb not in VERBS:
            return _failure(404, f"no control {verb!r}; there are {', '.join(VERBS)}")
        control = getattr(self._controls, verb)
        try:
            arguments = json.loads(await request.read() or b"{}")
            inspect.signature(control).bind(**arguments)
        except (TypeError, ValueError) as error:
            return _failure(400, f"{verb} takes {inspect.signature(control)}: {error}")
        try:
            result: Any = control(**arguments)
            if inspect.isawaitable(result):
                result = await result
        except ControlError as error:
            return _failure(400, str(error))
        return web.json_response({"ok": True, "result": _plain(result)})


def _plain(result: Any) -> Any:
    is_record = dataclasses.is_dataclass(result) and not isinstance(result, type)
    return dataclasses.asdict(result) if is_record else result


def _failure(status: int, error: str) -> web.Response:
    return web.json_response({"ok": False, "error": error}, status=status)


class WebApi:
    """Answers /api/METHOD."""

    def __init__(self, room: Room) -> None:
        self._room = room

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Answer one call."""
        name = request.match_info["method"]
        fault = self._room.faults.take(name)
        if fault is not None and fault.kind == "slow":
            await request.read()  # a caller that gives up meanwhile takes an unread body with it
            await asyncio.sleep(fault.seconds)
        elif fault is not None and fault.kind != "lost":
            return _refusal(request, fault)
        answer = await self._answer(request, name)
        if fault is not None and fault.kind == "lost":
            _cut(request)
        return answer

    async def _answer(self, request: web.Request, name: str) -> web.Response:
        method, app = METHODS.get(name), None
        try:
            if method is None:
                raise ApiError("unknown_method", req_method=name)
            args = await _arguments(request)
            app = _caller(self._room.store, _token(request, args), method)
            body: Json = {"ok": True, **method.run(Call(self._room, app, args))}
        except ApiError as error:
            body = error.body()
        headers = {"x-slack-req-id": new_id("")}
        if app is not None and method is not None and not self._room.faults.hides_scopes:
            headers["x-oauth-scopes"] = "connections:write" if method.app_token else ",".join(app.scopes)
            headers["x-accepted-oauth-scopes"] = method.scope
        return web.json_response(body, headers=headers)


def _token(request: web.Request, args: Json) -> str:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token:
        return token.strip()
    return str(args.get("token") or "")


def _caller(store: Store, token: str, method: Method) -> App:
    """Return the app a token belongs to, once token and scope are found good for the method."""
    if not token:
        raise ApiError("not_authed")
    app = next((app for app in store.apps() if token in (app.bot_token, app.app_token)), None)
    if app is None:
        raise ApiError("invalid_auth")
    if app.revoked:
        raise ApiError("token_revoked")
    if (token == app.app_token) != method.app_token:
        raise ApiError("not_allowed_token_type")
    needed = [scope for scope in method.scope.split(",") if scope]
    if needed and not method.app_token and not set(needed) & set(app.scopes):
        raise ApiError("missing_scope", needed=method.scope, provided=",".join(app.scopes))
    return app


async def _arguments(request: web.Request) -> Json:
    """Return a call's arguments: the query's, and those of a form or JSON body."""
    args: Json = dict(request.query)
    if request.method == "GET" or not request.body_exists:
        return args
    if request.content_type == "application/json":
        return args | await _json_object(request)
    if request.content_type in ("application/x-www-form-urlencoded", "multipart/form-data"):
        return args | dict(await request.post())
    raise ApiError("invalid_post_type")


async def _json_object(request: web.Request) -> Json:
    try:
        body: Any = json.loads(await request.read() or b"{}")
    except ValueError as error:
        raise ApiError("invalid_json") from error
    if not isinstance(body, dict):
        raise ApiError("json_not_object")
    return body


def _refusal(request: web.Request, fault: Fault) -> web.Response:
    if fault.kind == "ratelimited":
        headers = {"Retry-After": f"{fault.seconds:g}"}
        return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers=headers)
    if fault.kind == "http":
        page = "<!DOCTYPE html><title>Server Error | Slack</title>"
        return web.Response(status=fault.status, text=page, content_type="text/html")
    if fault.kind == "refused":
        _cut(request)
    return web.json_response({"ok": False, "error": fault.code})


def _cut(request: web.Request) -> None:
    """Close the connection so that the answer never arrives."""
    if request.transport is not None:
        request.transport.close()


_FILES = {
    "index.html": "text/html",
    "style.css": "text/css",
    **dict.fromkeys(("app.js", "messages.js", "render.js", "shared.js", "views.js"), "text/javascript"),
}
_FOLDER = Path(__file__).parent / "page"
_SHOWN = 300
_OPENED = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_KEEP_ALIVE_SECONDS = 15.0
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_LOCAL_NAMES = ("127.0.0.1", "localhost")


@web.middleware
async def local_only(request: web.Request, handler: Any) -> web.StreamResponse:
    """Refuse requests addressed to any other host name than loopback's: a foreign site's name may point here."""
    if request.host.rpartition(":")[0] not in _LOCAL_NAMES and request.host not in _LOCAL_NAMES:
        return web.Response(status=421, text="this workspace answers to 127.0.0.1 and localhost only")
    answer: web.StreamResponse = await handler(request)
    return answer


class Page:
    """Serves the page and carries out what is done on it through the controls."""

    def __init__(self, room: Room, controls: Controls) -> None:
        self._room = room
        self._controls = controls
        self._streams: set[asyncio.Task[Any]] = set()

    def route(self, router: web.UrlDispatcher) -> None:
        """Add the page's routes."""
        router.add_get("/", self._shell)
        for name in _FILES:
            router.add_get(f"/{name}", self._file)
        router.add_get("/page/state", self._state)
        router.add_get("/page/changes", self._changes)
        router.add_get("/page/file/{file}", self._attached)
        router.add_post("/page/{action:say|command|press|react|edit|delete|home|submit|pressview|close}", self._act)

    async def stop(self) -> None:
        """End the streams of open pages."""
        for stream in list(self._streams):
            stream.cancel()
        await asyncio.gather(*self._streams, return_exceptions=True)

    async def _shell(self, request: web.Request) -> web.StreamResponse:
        key = request.query.get("key")
        if key is None:
            return _serve("index.html")
        if not hmac.compare_digest(key.encode(), self._key.encode()):
            return web.Response(status=403, text="this link is not this workspace's; take the one printed at its start")
        answer = web.Response(status=303, headers={"Location": "/", "Referrer-Policy": "no-referrer"})
        answer.set_cookie(self._cookie, self._key, httponly=True, samesite="Strict", max_age=30 * 86400)
        return answer

    async def _file(self, request: web.Request) -> web.StreamResponse:
        return _serve(request.path.removeprefix("/"))

    async def _state(self, request: web.Request) -> web.StreamResponse:
        """Answer everything the page shows to one person: who is there, one channel, and one thread of it.

        Of what this person alone sees it shows what came after `since`, a time stamp: a client does not keep it.
        """
        if not self._knows(request):
            return _page_failure(401, "open the page by the link printed when the workspace started")
        try:
            viewer = self._controls.user(request.query.get("as") or "you")
            channel = self._controls.channel(request.query.get("channel") or self._room.store.channels()[0].id)
        except ControlError as error:
            return _page_failure(404, str(error))
        if channel.im and channel.im != viewer.id:  # another person looks at their own direct messages
            channel = self._room.store.direct(viewer.id, self._room.main_app)
        members = self._room.store.members(channel.id)
        thread, since = request.query.get("thread"), request.query.get("since", "")
        body: Json = {
            "count": self._room.changes.count,
            "team": {"id": self._room.team["id"], "name": self._room.team["name"]},
            "viewer": viewer.id,
            "channel": channel.id,
            "member": viewer.id in members,
            "channels": [_channel(entry) for entry in self._channels(viewer)],
            "apps": [{"id": self._controls.direct(viewer.id), "name": self._room.main_app.name, "topic": ""}],
            "home": self._room.views.home(self._room.main_app, viewer) if channel.im else None,
            "modal": self._room.views.modal(viewer),
            "people": {user.id: self._person(user) for user in self._room.store.users()},
            "commands": json.loads(self._room.store.meta("commands") or "[]"),
            "connected": sum(len(self._room.sockets.connections(app.id)) for app in self._room.store.apps()),
            "messages": self._messages(channel, viewer, since),
            "thread": self._thread(channel, viewer, thread, since) if thread else None,
            "status": self._room.posting.status(channel, thread) if thread else "",
        }
        return _json(body)

    async def _attached(self, request: web.Request) -> web.StreamResponse:
        """Answer a file as a browser may open it: what could run as a page is downloaded, or shown as text."""
        if not self._knows(request):
            return _page_failure(401, "open the page by the link printed when the workspace started")
        found = self._room.store.file(request.match_info["file"])
        if found is None:
            return _page_failure(404, "there is no such file")
        kind, name = str(found[0]["mimetype"]), quote(str(found[0]["name"]))
        shown = "text/plain; charset=utf-8" if kind.startswith("text/") else kind
        inline = kind.startswith("text/") or kind in _OPENED or kind.partition("/")[0] in ("audio", "video")
        headers = {
            "Content-Type": shown,
            "Content-Disposition": f"{'inline' if inline else 'attachment'}; filename*=UTF-8''{name}",
            "Content-Security-Policy": "sandbox; default-src 'none'; img-src 'self'; media-src 'self'",
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "private, max-age=3600",
        }
        return web.Response(body=found[1], headers=headers)

    async def _changes(self, request: web.Request) -> web.StreamResponse:
        """Stream the counter of changes as server-sent events."""
        if not self._knows(request):
            return _page_failure(401, "open the page by the link printed when the workspace started")
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await answer.prepare(request)
        stream = asyncio.current_task()
        if stream is not None:
            self._streams.add(stream)
            stream.add_done_callback(self._streams.discard)
        count = -1
        try:
            while True:
                count = await self._room.changes.after(count, _KEEP_ALIVE_SECONDS)
                await answer.write(f"data: {count}\n\n".encode())
        except ConnectionError:
            return answer

    async def _act(self, request: web.Request) -> web.StreamResponse:
        if not self._is_own(request) or not self._knows(request):
            return _page_failure(
                403, "only the workspace's own page may do this; open it by the link printed at its start"
            )
        try:
            body = json.loads(await request.read())
            result = await self._carry_out(request.match_info["action"], body)
        except ControlError as error:
            return _page_failure(409, str(error))
        except (KeyError, TypeError, ValueError) as error:
            return _page_failure(400, f"the request lacks something: {error}")
        return _json({"ok": True, **result})

    async def _carry_out(self, action: str, body: Json) -> Json:
        controls = self._controls
        who, channel = str(body["as"]), str(body["channel"])
        if action == "say":
            thread = str(body["thread"]) if body.get("thread") else None
            files = {str(file["name"]): b64decode(file["data"], validate=True) for file in body.get("files", [])}
            broadcast = bool(body.get("broadcast"))
            return {"ts": controls.say(who, channel, str(body["text"]), thread, broadcast=broadcast, files=files)}
        if action in ("edit", "delete"):
            self._change(action, who, channel, body)
            return {}
        if action == "command":
            outcome = await controls.command(who, channel, str(body["text"]))
            return {"error": outcome.error}
        if action == "press":
            pressed = await controls.press(who, channel, str(body["ts"]), str(body["action"]), body.get("value"))
            return {"error": pressed.error}
        if action == "home":
            controls.open_home(who, tab=str(body["tab"]))
            return {}
        if action == "close":
            controls.close_modal(who, str(body["view"]))
            return {}
        if action == "submit":
            sent = await controls.submit(who, str(body["view"]), dict(body["values"]))
            return {"errors": dict(sent.errors), "trouble": sent.trouble}
        if action == "pressview":
            return {"error": await controls.press_view(who, str(body["view"]), str(body["action"]), body.get("value"))}
        person, name, ts = controls.user(who).id, str(body["name"]), str(body["ts"])
        toggle = controls.unreact if person in controls.reactions(channel, ts).get(name, []) else controls.react
        toggle(who, channel, ts, name)
        return {}

    def _change(self, action: str, who: str, channel: str, body: Json) -> None:
        """Edit or delete a message of the person's own. Raises ControlError for another's."""
        controls, ts = self._controls, str(body["ts"])
        message = self._room.store.message(controls.channel(channel).id, ts)
        if message is None or message.get("user") != controls.user(who).id or message.get("bot_id"):
            raise ControlError("only its author can change a message")
        if action == "edit":
            controls.edit(channel, ts, str(body["text"]))
        else:
            controls.delete(channel, ts)

    def _whispered(self, channel: Channel, viewer: User, thread: str | None, since: str) -> list[Json]:
        notes = self._room.store.ephemerals(channel.id, viewer.id)
        return [note for note in notes if note.get("thread_ts") == thread and str(note["ts"]) > since]

    def _messages(self, channel: Channel, viewer: User, since: str) -> list[Json]:
        own = self._whispered(channel, viewer, None, since)
        return self._views(channel, [*self._room.store.roots(channel.id), *own])[-_SHOWN:]

    def _thread(self, channel: Channel, viewer: User, ts: str, since: str) -> list[Json]:
        parent = self._room.store.message(channel.id, ts)
        own = self._whispered(channel, viewer, ts, since)
        replies = self._views(channel, [*self._room.store.replies(channel.id, ts), *own])
        return [] if parent is None else [*self._views(channel, [parent]), *replies]

    def _views(self, channel: Channel, messages: list[Json]) -> list[Json]:
        ordered = sorted(messages, key=lambda message: str(message["ts"]))
        return [
            message_view(self._room.store, channel.id, message, self._room.base_url)
            | ({"streaming": state} if (state := self._room.streams.state(channel.id, str(message["ts"]))) else {})
            for message in ordered
        ]

    def _channels(self, viewer: User) -> list[Channel]:
        return [
            channel
            for channel in self._room.store.channels()
            if not channel.is_private or viewer.id in self._room.store.members(channel.id)
        ]

    def _person(self, user: User) -> Json:
        outside = user.team_id != self._room.team["id"]
        return {"name": user.name, "real": user.real_name, "bot": bool(user.bot_id), "outside": outside,
                "guest": user.is_restricted, "deleted": user.deleted}  # fmt: skip

    @property
    def _key(self) -> str:
        return self._room.store.meta("page_key") or ""

    @property
    def _cookie(self) -> str:
        """Cookies are shared by all ports of a host, so the name carries ours."""
        return f"loopback-workspace-{self._room.base_url.rpartition(':')[2]}"

    def _knows(self, request: web.Request) -> bool:
        return hmac.compare_digest(request.cookies.get(self._cookie, "").encode(), self._key.encode())

    def _is_own(self, request: web.Request) -> bool:
        """Whether the request comes from a page of this very server; browsers always say so on POST."""
        return request.headers.get("Origin") == f"http://{request.host}" and request.content_type == "application/json"


def _channel(channel: Channel) -> Json:
    return {"id": channel.id, "name": channel.name, "topic": channel.topic, "private": channel.is_private,
            "archived": channel.is_archived, "shared": channel.is_ext_shared}  # fmt: skip


def _serve(name: str) -> web.Response:
    headers = {
        "Content-Security-Policy": _POLICY,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }
    text = (_FOLDER / name).read_text(encoding="utf-8")
    return web.Response(text=text, content_type=_FILES[name], charset="utf-8", headers=headers)


def _json(body: Json) -> web.Response:
    return web.json_response(body, headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"})


def _page_failure(status: int, error: str) -> web.Response:
    return web.json_response({"ok": False, "error": error}, status=status, headers={"Cache-Control": "no-store"})


HOST = "127.0.0.1"
_BODY_MAX = 4 * 1024 * 1024
_LAST_TURNS = 5  #: of the loop, in which a connection that was just taken is handed to its handler


class Workspace:
    """A Slack-compatible workspace; start it on an event loop, stop it on the same one.

    `database` None keeps everything in memory. `retry_scale` multiplies the minutes between the deliveries of
    an unacknowledged event; `ack_seconds` is how long an acknowledgement may take; `outsider`: see `seed`.
    """

    def __init__(
        self,
        database: Path | None = None,
        port: int = 0,
        manifest: Mapping[str, Any] | None = None,
        *,
        retry_scale: float = 1.0,
        ack_seconds: float = 3.0,
        ping_seconds: float = 10.0,
        outsider: bool = True,
    ) -> None:
        self.room = furnish(
            database,
            manifest,
            retry_scale=retry_scale,
            ack_seconds=ack_seconds,
            ping_seconds=ping_seconds,
            outsider=outsider,
        )
        self.controls = Controls(self.room)
        self._page = Page(self.room, self.controls)
        self._port = port
        self._runner: web.AppRunner | None = None
        self._listening: socket.socket | None = None

    async def start(self) -> None:
        """Listen on loopback; OSError when the port is taken, and then everything is closed again."""
        site_runner = web.AppRunner(
            web.Application(client_max_size=_BODY_MAX, middlewares=[local_only]), access_log=None, shutdown_timeout=1.0
        )
        self._runner = site_runner
        self._route(site_runner.app)
        await site_runner.setup()
        try:
            self._listening = socket.create_server((HOST, self._port), backlog=128)
            await web.SockSite(site_runner, self._listening).start()
        except OSError:
            await self.stop()
            raise
        port = site_runner.addresses[0][1]
        self.room.address.url = f"http://{HOST}:{port}"
        self.room.events.resume()

    async def stop(self) -> None:
        """Stop listening, close sockets, keep the store's file complete."""
        await self.room.events.stop()
        await self._page.stop()
        await self.room.sockets.close()
        if self._listening is not None:
            await _take_no_more(self._listening)
        if self._runner is not None:
            await self._runner.cleanup()
        if self._listening is not None:
            self._listening.close()
        self.room.store.close()

    @property
    def url(self) -> str:
        """Return where it listens, without a slash at the end; "" until it does."""
        return self.room.base_url

    @property
    def api_url(self) -> str:
        """Return the base URL of the Web API, as WebClient(base_url=…) takes it."""
        return f"{self.url}/api/"

    @property
    def page_url(self) -> str:
        """Return the address that opens the page; it carries a key, so it is for the owner only."""
        return f"{self.url}/?key={self.room.store.meta('page_key')}"

    @property
    def control_token(self) -> str:
        """Return the token of /_control."""
        return self.room.store.meta("control_token") or ""

    def describe(self) -> dict[str, Any]:
        """Return what a program beside this one needs in order to use the workspace; holds secrets."""
        app = self.room.main_app
        return {
            "url": self.url,
            "api_url": self.api_url,
            "page_url": self.page_url,
            "bot_token": app.bot_token,
            "app_token": app.app_token,
            "control_token": self.control_token,
            "team_id": self.room.team["id"],
            "app_id": app.id,
            "bot_id": app.bot_id,
            "bot_user_id": app.bot_user,
            "channels": {channel.name: channel.id for channel in self.room.store.channels()},
            "users": {user.name: user.id for user in self.room.store.users()},
        }

    def _route(self, app: web.Application) -> None:
        api = WebApi(self.room)
        app.router.add_route("GET", "/api/{method}", api.handle)
        app.router.add_route("POST", "/api/{method}", api.handle)
        app.router.add_get("/link/", self.room.sockets.handle)
        app.router.add_post("/response/{key}", self._respond)
        app.router.add_get("/files/{file}/{name}", self._file)
        app.router.add_post("/upload/{ticket}", self.room.uploads.handle)
        app.router.add_post("/_control/{verb}", ControlHttp(self.controls, self.control_token).handle)
        self._page.route(app.router)

    async def _respond(self, request: web.Request) -> web.Response:
        try:
            body = json.loads(await request.read())
        except ValueError:
            return web.json_response({"ok": False, "error": "invalid_payload"}, status=400)
        return await self.room.interactions.respond(request.match_info["key"], body)

    async def _file(self, request: web.Request) -> web.Response:
        """Answer a file's content to an app that may read files; anybody else gets a sign-in page, with status 200."""
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        allowed = any(
            token == app.bot_token and "files:read" in app.scopes and not app.revoked for app in self.room.store.apps()
        )
        found = self.room.store.file(request.match_info["file"])
        if not allowed:
            page = "<!DOCTYPE html><title>Sign in | Slack</title>"
            return web.Response(text=page, content_type="text/html")
        if found is None:
            return web.Response(status=404)
        if request.match_info["name"] == f"{found[0]['name']}.vtt" and "captions" in found[0]:
            cue = f"00:00:00.000 --> 00:00:01.000\n- {found[0]['captions']}"
            return web.Response(text=f"\ufeffWEBVTT \n\n{cue}\n\n\n", content_type="text/vtt")
        return web.Response(body=found[1], content_type=found[0]["mimetype"])


async def _take_no_more(listening: socket.socket) -> None:
    """Take no further connection, and let those that were just taken reach their handlers, which then close them.

    asyncio.Server.close alone forgets a connection that is half taken: its socket stays open until it is collected.
    """
    loop = asyncio.get_running_loop()
    loop.remove_reader(listening)
    for _ in range(_LAST_TURNS):
        await asyncio.sleep(0)
