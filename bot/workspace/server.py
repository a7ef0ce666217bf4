"""The workspace as one server on loopback: Web API, Socket Mode, test controls and the page."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from bot.workspace.controlhttp import ControlHttp
from bot.workspace.controls import Controls
from bot.workspace.room import furnish
from bot.workspace.webapi import WebApi
from bot.workspace.webpage import Page, local_only

HOST = "127.0.0.1"
_BODY_MAX = 4 * 1024 * 1024
_LAST_TURNS = 5  #: of the loop, in which a connection that was just taken is handed to its handler


class Workspace:
    """A Slack-compatible workspace; start it on an event loop, stop it on the same one.

    `database` None keeps everything in memory. `retry_scale` multiplies the minutes between the deliveries of
    an unacknowledged event; `ack_seconds` is how long an acknowledgement may take.
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
    ) -> None:
        self.room = furnish(
            database, manifest, retry_scale=retry_scale, ack_seconds=ack_seconds, ping_seconds=ping_seconds
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
