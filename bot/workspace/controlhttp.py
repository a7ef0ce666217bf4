"""The test controls over HTTP: POST /_control/VERB with the control token and a JSON object of arguments."""

from __future__ import annotations

import dataclasses
import hmac
import inspect
import json
from typing import Any

from aiohttp import web

from bot.workspace.controls import Controls
from bot.workspace.errors import ControlError

VERBS = (
    "add_app", "add_channel", "add_group", "add_user", "archive", "break_sockets", "clear_faults", "clip", "command",
    "connections", "deactivate", "delete", "disconnect", "edit", "envelopes", "ephemerals", "fault", "forward",
    "given_up", "hold_events", "join", "kick", "lose_events", "messages", "press", "quote", "react", "reactions",
    "redeliver", "release_events", "replied", "replies", "say", "say_as_bot", "sent_events", "set_revoked",
    "set_scopes", "set_socket_mode", "share", "sockets_opened", "unfurl", "unreact",
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
