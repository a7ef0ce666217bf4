"""The Web API over HTTP: reads a call, checks its token and scope, lets a fault befall it, answers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from aiohttp import web

from bot.workspace.errors import ApiError, Json
from bot.workspace.faults import Fault
from bot.workspace.ids import new_id
from bot.workspace.methods import METHODS
from bot.workspace.methods.base import Call, Method
from bot.workspace.model import App, Store
from bot.workspace.room import Room


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
