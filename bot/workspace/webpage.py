"""The page at /: its files, the data it shows, and what a person does on it.

The shell is public; the data and every action need a cookie that only the link with the key gives, so that other
users of the machine cannot read along or write as somebody. Requests from other sites are refused by Host and Origin.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from pathlib import Path
from typing import Any

from aiohttp import web

from bot.workspace.controls import Controls
from bot.workspace.errors import ControlError, Json
from bot.workspace.model import Channel, User
from bot.workspace.room import Room
from bot.workspace.shapes import message_view

_FILES = {
    "index.html": "text/html",
    "style.css": "text/css",
    **dict.fromkeys(("app.js", "messages.js", "render.js", "shared.js"), "text/javascript"),
}
_FOLDER = Path(__file__).parent / "page"
_SHOWN = 300
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
        router.add_post("/page/{action:say|command|press|react}", self._act)

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
        """Answer everything the page shows to one person: who is there, one channel, and one thread of it."""
        if not self._knows(request):
            return _failure(401, "open the page by the link printed when the workspace started")
        try:
            viewer = self._controls.user(request.query.get("as") or "you")
            channel = self._controls.channel(request.query.get("channel") or self._room.store.channels()[0].id)
        except ControlError as error:
            return _failure(404, str(error))
        members = self._room.store.members(channel.id)
        thread = request.query.get("thread")
        body: Json = {
            "count": self._room.changes.count,
            "team": {"id": self._room.team["id"], "name": self._room.team["name"]},
            "viewer": viewer.id,
            "channel": channel.id,
            "member": viewer.id in members,
            "channels": [_channel(entry) for entry in self._channels(viewer)],
            "people": {user.id: self._person(user) for user in self._room.store.users()},
            "commands": sorted({name for app in self._room.store.apps() for name in app.commands}),
            "connected": sum(len(self._room.sockets.connections(app.id)) for app in self._room.store.apps()),
            "messages": self._messages(channel, viewer),
            "thread": self._thread(channel, viewer, thread) if thread else None,
        }
        return _json(body)

    async def _changes(self, request: web.Request) -> web.StreamResponse:
        """Stream the counter of changes as server-sent events."""
        if not self._knows(request):
            return _failure(401, "open the page by the link printed when the workspace started")
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
            return _failure(403, "only the workspace's own page may do this; open it by the link printed at its start")
        try:
            body = json.loads(await request.read())
            result = await self._carry_out(request.match_info["action"], body)
        except ControlError as error:
            return _failure(409, str(error))
        except (KeyError, TypeError, ValueError) as error:
            return _failure(400, f"the request lacks something: {error}")
        return _json({"ok": True, **result})

    async def _carry_out(self, action: str, body: Json) -> Json:
        controls = self._controls
        who, channel = str(body["as"]), str(body["channel"])
        if action == "say":
            thread = str(body["thread"]) if body.get("thread") else None
            return {"ts": controls.say(who, channel, str(body["text"]), thread, broadcast=bool(body.get("broadcast")))}
        if action == "command":
            outcome = await controls.command(who, channel, str(body["text"]))
            return {"error": outcome.error}
        if action == "press":
            pressed = await controls.press(who, channel, str(body["ts"]), str(body["action"]), body.get("value"))
            return {"error": pressed.error}
        person, name, ts = controls.user(who).id, str(body["name"]), str(body["ts"])
        toggle = controls.unreact if person in controls.reactions(channel, ts).get(name, []) else controls.react
        toggle(who, channel, ts, name)
        return {}

    def _messages(self, channel: Channel, viewer: User) -> list[Json]:
        own = [note for note in self._room.store.ephemerals(channel.id, viewer.id) if not note.get("thread_ts")]
        return self._views(channel, [*self._room.store.roots(channel.id), *own])[-_SHOWN:]

    def _thread(self, channel: Channel, viewer: User, ts: str) -> list[Json]:
        parent = self._room.store.message(channel.id, ts)
        own = [note for note in self._room.store.ephemerals(channel.id, viewer.id) if note.get("thread_ts") == ts]
        replies = self._views(channel, [*self._room.store.replies(channel.id, ts), *own])
        return [] if parent is None else [*self._views(channel, [parent]), *replies]

    def _views(self, channel: Channel, messages: list[Json]) -> list[Json]:
        ordered = sorted(messages, key=lambda message: str(message["ts"]))
        return [message_view(self._room.store, channel.id, message, self._room.base_url) for message in ordered]

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


def _failure(status: int, error: str) -> web.Response:
    return web.json_response({"ok": False, "error": error}, status=status, headers={"Cache-Control": "no-store"})
