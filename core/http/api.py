"""The routes of the API: who asks is known, what the request brings is read, the verb runs in a thread, and answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from core.base.errors import CoreError, InvalidValue
from core.base.redaction import redactor_of
from core.commandtable import CHATS
from core.config.settings import secret_variables
from core.http.answers import body_of, problem, refusal, route, told
from core.http.arguments import from_body, from_query, shown
from core.http.facts import Facts
from core.http.guard import principal_of
from core.http.idempotency import HEADER, Keys, digest_of, key_of_headers
from core.http.metrics import Answered
from core.http.rest import API, Asked, Operation, operations_of, sees_event
from core.http.stream import Feed, last_event_id
from core.model.asking import Role
from core.session.commands import exact_for
from core.store.answered import AnswerBook

_READING, _ACTING, _WAITING = 16, 32, 64  #: calls at work at once; others of the kind wait for their turn
_STREAM = "text/event-stream"

_T = TypeVar("_T")


class _Threads:
    """The threads in which calls of one kind work: those that wait for a turn's word or people delay no stop."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._limiter: anyio.CapacityLimiter | None = None

    async def run(self, work: Callable[[], _T]) -> _T:
        """Run it in a thread, and return what it returns."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(self._most)
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)


def api_routes(facts: Facts, answered: Answered, stopping: threading.Event) -> list[Route]:
    """Return the routes of every operation. `answered` is counted up with each answer."""
    api = _Api(facts, answered, stopping)
    return [route(one.method, f"{API}{one.path}", api.endpoint(one)) for one in operations_of()]


class _Api:
    def __init__(self, facts: Facts, answered: Answered, stopping: threading.Event) -> None:
        self._facts = facts
        self._answered = answered
        self._reading, self._acting, self._waiting = _Threads(_READING), _Threads(_ACTING), _Threads(_WAITING)
        self._stopping = stopping
        self._feed: Feed | None = None
        system = facts.system
        self._keys = Keys(AnswerBook(system.database), system.clock)
        self._redactor = redactor_of(system.environ, secret_variables(system.settings, system.environ))

    def endpoint(self, operation: Operation) -> Callable[[Request], Awaitable[Response]]:
        """Return what answers requests for an operation."""

        async def answer(request: Request) -> Response:
            try:
                if operation.path == "/events" and _STREAM in request.headers.get("accept", ""):
                    response = await self._stream(request, operation)
                else:
                    response = await self._answer(request, operation)
            except CoreError as error:
                response = self._problem(error)
            self._answered[operation.method, operation.path, response.status_code] += 1
            return response

        return answer

    def _problem(self, error: CoreError) -> Response:
        return problem(error, partial(exact_for, self._facts.system.settings, self._facts.system.environ))

    async def _answer(self, request: Request, operation: Operation) -> Response:
        asked = self._asked(request)
        if operation.method == "GET":
            given = from_query(operation.takes, request.query_params.multi_items())
            return await self._reading.run(partial(self._done, asked, operation, given))
        body = await body_of(request)
        if body and not _is_json(request):
            return _not_json()
        given = from_body(operation.takes, _object(body), CHATS if operation.chats else ())
        key = key_of_headers(request.headers.getlist(HEADER))
        work = partial(self._done, asked, operation, given)
        if key is not None:
            work = partial(self._keys.once, asked.principal.actor, key, digest_of(request.url.path, body), work)
        return await (self._waiting if operation.waits else self._acting).run(work)

    def _asked(self, request: Request) -> Asked:
        facts = self._facts
        return Asked(facts.system, principal_of(request.scope), facts.status, facts.requests, facts.links)

    def _done(self, asked: Asked, operation: Operation, given: dict[str, Any]) -> Response:
        """Do it, and return the answer; secrets are taken out for whoever is not the operator of this machine."""
        try:
            if not operation.of_all:
                asked.check(operation.word, operation.role, given.get("name"))
            answer = operation.run(asked, given)
        except CoreError as error:
            return self._problem(error)
        return told(answer if asked.principal.is_operator else self._redactor.redact_all(answer))

    async def _stream(self, request: Request, operation: Operation) -> Response:
        asked = self._asked(request)
        given = from_query(operation.takes, request.query_params.multi_items())
        position = last_event_id(request.headers, given["after"])
        if self._feed is None:
            self._feed = Feed(self._facts.system.events, self._stopping, self._reading.run)
        last = given["last"] if "last" in request.query_params else 0
        answers = given["answers"] and (asked.principal.is_operator or Role.APPROVER in asked.principal.roles)
        watched = self._facts.requests.watched if answers else nullcontext
        return await self._feed.response(position, lambda event: sees_event(asked, event, given["name"]), last, watched)


def _is_json(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def _not_json() -> Response:
    return refusal(
        415, "not_json", "the body is of another media type than JSON", "send `Content-Type: application/json`"
    )


def _object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body; an empty one of none. Raises InvalidValue."""
    if not body:
        return {}
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidValue(f"the body is not JSON: {error}", "send a JSON object") from error
    if not isinstance(given, dict):
        raise InvalidValue(f"the body is {shown(given)}", "send a JSON object")
    return given
