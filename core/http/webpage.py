"""The page: its files, logging in and out, and what it asks besides the API: a live screen, and keys for it.

Its files are for everybody who reaches us on this machine; they hold nothing but the page itself. All that it shows and
does needs a login (core.http.logins). It is served to this machine alone, since nothing is encrypted: over loopback,
and at the Unix socket, where another machine comes by `ssh -L`.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import Any, TypeAlias

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Scope

from core.base.errors import CoreError, InvalidValue, NotPermitted, NotRunning
from core.http.answers import body_of, problem, refusal, route, told
from core.http.facts import Facts, is_loopback
from core.http.guard import principal_of
from core.http.logins import LOGIN_DAYS, Logins
from core.http.principal import Principal
from core.http.screens import Screens
from core.model.pane import Written
from core.session.commands import exact_for
from core.session.sessions import definition_of

HEADER = b"x-the-loop-key"  #: what the page sends of its own storage
MOST_KEYS = 4096  #: characters at once: a paste of somebody's
KEYS_SECONDS = 3.0  #: after which tmux writes them no more
TOLD_SECONDS = 600.0  #: somebody who types on within this time is one entry of the event log
_Does: TypeAlias = Callable[[Request], Awaitable[Response]]
FILES = Path(__file__).parent / "page"
_KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".mjs": "text/javascript",
          ".svg": "image/svg+xml", ".txt": "text/plain"}  # fmt: skip
_LOGIN, _LOGOUT = "/page/login", "/page/logout"
#: Nothing but files of ours, no inline script or style, in no frame. https://www.w3.org/TR/CSP3/
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}


def paths_of_files() -> dict[str, Path]:
    """Return the page's files by the paths at which they are asked for."""
    files = (path for path in sorted(FILES.rglob("*")) if path.suffix in _KINDS)
    return {"/": FILES / "index.html", **{f"/page/{path.relative_to(FILES).as_posix()}": path for path in files}}


def open_paths() -> frozenset[str]:
    """Return what is asked without a login."""
    return frozenset({*paths_of_files(), _LOGIN})


def is_here(scope: Scope) -> bool:
    """Return whether the request came over loopback, or at our Unix socket."""
    server = scope.get("server")
    return server is not None and (server[1] is None or is_loopback(server[0]))


class PageAuthenticator:
    """A browser that is logged in, which is the operator's."""

    def __init__(self, logins: Logins, actor: str) -> None:
        self._logins = logins
        self._principal = Principal(actor)

    def principal(self, scope: Scope) -> Principal | None:
        """Return the operator for a request that has the cookie and the key of a login."""
        if not is_here(scope):
            return None
        keys = [value.decode("latin-1") for name, value in scope["headers"] if name == HEADER]
        cookie = cookie_of(scope)
        known = len(keys) == 1 and cookie is not None and self._logins.knows(cookie, keys[0])
        return self._principal if known else None


def cookie_of(scope: Scope) -> str | None:
    """Return the value of our cookie, None where the request brings none."""
    given = "; ".join(value.decode("latin-1") for name, value in scope["headers"] if name == b"cookie")
    try:
        found = SimpleCookie(given).get(_cookie_name(scope))
    except CookieError:
        return None
    return found.value if found is not None else None


def _cookie_name(scope: Scope) -> str:
    """Return the name of the cookie: the ports of a host share their cookies, so each has its own."""
    host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
    port = re.search(r":(\d+)$", host)
    return f"the_loop_{port[1] if port else 80}"


def page_routes(facts: Facts, stopping: threading.Event) -> list[Route]:
    """Return the routes of the page."""
    page = _Page(facts, stopping)
    files = [route("GET", path, partial(_file, file)) for path, file in paths_of_files().items()]
    asked = {
        ("POST", _LOGIN): page.login,
        ("POST", _LOGOUT): page.logout,
        ("GET", "/page/screen"): page.screen,
        ("POST", "/page/keys"): page.keys,
    }
    return [*files, *(route(method, path, page.told(does)) for (method, path), does in asked.items())]


async def _file(path: Path, request: Request) -> Response:
    if not is_here(request.scope):
        return _not_here()
    content = await run_in_threadpool(path.read_bytes)
    tag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
    headers = {**_HEADERS, "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=_KINDS[path.suffix])


def _not_here() -> Response:
    return refusal(
        403,
        "page_not_here",
        "the page is served over loopback only, since nothing is encrypted",
        "from another machine: `ssh -L 4114:127.0.0.1:PORT HOST`, then open http://localhost:4114",
    )


class _Page:
    def __init__(self, facts: Facts, stopping: threading.Event) -> None:
        self._facts = facts
        self._logins = facts.logins
        self._screens = Screens(facts.system, stopping)
        self._typed: dict[str, float] = {}  #: by instance: when somebody typed into it last, on the monotonic clock

    def told(self, does: _Does) -> _Does:
        """Return what answers by `does`, and its errors in our form."""

        async def answer(request: Request) -> Response:
            if not is_here(request.scope):
                return _not_here()
            try:
                return await does(request)
            except CoreError as error:
                system = self._facts.system
                return problem(error, partial(exact_for, system.settings, system.environ))

        return answer

    async def login(self, request: Request) -> Response:
        """Answer with the browser's key, and set its cookie, for the key of a link."""
        key = (await json_of(request)).get("key")
        if not isinstance(key, str):
            raise InvalidValue("key is missing", "send the key of the link that `the-loop page` printed")
        cookie, own = await run_in_threadpool(self._logins.login, key)
        self._facts.system.events.emit("page.logged_in", actor=self._facts.page_actor)
        answer = told({"key": own})
        name, seconds = _cookie_name(request.scope), LOGIN_DAYS * 86400
        answer.set_cookie(name, cookie, max_age=seconds, path="/", httponly=True, samesite="strict")
        return answer

    async def logout(self, request: Request) -> Response:
        """End this browser's login."""
        await run_in_threadpool(self._logins.end, cookie_of(request.scope) or "")
        self._facts.system.events.emit("page.logged_out", actor=principal_of(request.scope).actor)
        answer = told({})
        answer.delete_cookie(_cookie_name(request.scope), path="/", httponly=True, samesite="strict")
        return answer

    async def screen(self, request: Request) -> Response:
        """Stream looks at a session's terminal, a line of JSON each; see core.http.screens."""
        name = request.query_params.get("name", "")
        _check_operator(request)
        await run_in_threadpool(self._screens.check, name)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._screens.lines(name), headers=headers, media_type="application/x-ndjson")

    async def keys(self, request: Request) -> Response:
        """Write keys into the terminal of that instance, and into no other: one may have taken its place meanwhile."""
        given = await json_of(request)
        _check_operator(request)
        name, instance, data = (given.get(key) for key in ("name", "instance", "data"))
        if not (isinstance(name, str) and isinstance(instance, str) and isinstance(data, str)):
            raise InvalidValue("name, instance or data is missing", "send three texts")
        if not 0 < len(data) <= MOST_KEYS:
            raise InvalidValue(f"data has {len(data)} characters", allowed=f"1 to {MOST_KEYS}")
        await run_in_threadpool(self._type, name, instance, data, principal_of(request.scope).actor)
        self._screens.hurry(name)
        return told({})

    def _type(self, name: str, instance: str, data: str, actor: str) -> None:
        system = self._facts.system
        record = definition_of(system.settings, system.records, name).record
        if record is None or record.instance_id != instance:
            raise NotRunning(f"{name}: the terminal that you see is not its present one", "look at its screen again")
        deadline = system.clock.now() + timedelta(seconds=KEYS_SECONDS)
        written = system.runner.type_keys(instance, data.encode("utf-8", "replace"), deadline)
        if written is not Written.DONE:
            raise NotRunning(f"{name}: nothing was typed: its terminal is {written.value}", "look at its screen again")
        now = system.clock.monotonic()
        if now - self._typed.get(instance, now - TOLD_SECONDS) >= TOLD_SECONDS:
            system.events.emit("page.typed", name=name, actor=actor, instance=instance)
        self._typed = {key: at for key, at in {**self._typed, instance: now}.items() if now - at < TOLD_SECONDS}


def _check_operator(request: Request) -> None:
    """Raise NotPermitted for anybody but the operator: a terminal shows everything, and takes everything."""
    if not principal_of(request.scope).is_operator:
        raise NotPermitted("you may not use this terminal", "ask an operator")


async def json_of(request: Request) -> dict[str, Any]:
    """Return the JSON object of a body. Raises InvalidValue, TooLarge."""
    try:
        given = json.loads(await body_of(request))
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"the body is not JSON: {error}", "send a JSON object") from error
    if not isinstance(given, dict):
        raise InvalidValue("the body is no JSON object", "send a JSON object")
    return given
