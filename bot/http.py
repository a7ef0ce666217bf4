"""Reading over HTTP: Slack calls the service, each request signed, and hears that a reply is on the disk.

The raw body is what is signed (https://docs.slack.dev/authentication/verifying-requests-from-slack). The old `token` in
the body proves nothing and is not looked at.
"""

import asyncio
import json
import threading
from collections.abc import Mapping
from concurrent.futures import CancelledError
from typing import Any

from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.signature import Clock as SigningClock
from slack_sdk.signature import SignatureVerifier

from bot import payloads
from bot.middleware import COMMIT
from bot.reading import Reading, pause, unless
from core.errors import ChannelError
from core.ports import WebAnswer

PATH = "/channels/slack/events"
_ANSWER_SECONDS = 10.0  #: Slack itself waits three
_SIGNED_SECONDS = 300  #: how long a signature counts, before and after its time stamp
_LOOK_SECONDS = 300.0  #: how often a token is looked at that nothing else tries


class Heard:
    """What people did that was heard already, for as long as its signature counts.

    Slack repeats events, which core tells apart; what people did it sends once, so that a second sight of the same
    signature is somebody else's.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stamps: dict[str, int] = {}

    def first(self, headers: Mapping[str, str]) -> bool:
        """Take note of a request whose signature is good, and tell whether it is seen for the first time."""
        signature, stamp = headers.get("x-slack-signature", ""), int(headers.get("x-slack-request-timestamp", "0"))
        with self._lock:
            if signature in self._stamps:
                return False
            self._stamps[signature] = stamp
            oldest = max(self._stamps.values()) - 2 * _SIGNED_SECONDS
            self._stamps = {known: at for known, at in self._stamps.items() if at >= oldest}
            return True


class HttpReader:
    """Answers Slack's requests from any thread, on the event loop that `run` lives on."""

    def __init__(self, reading: Reading, retry_seconds: float) -> None:
        self._reading = reading
        self._retry_seconds = retry_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heard = Heard()

    async def run(self, stop: asyncio.Event) -> None:
        """Take requests until `stop`; return early, the reason told, where waiting cannot help."""
        failures = 0
        try:
            while not stop.is_set():
                try:
                    await unless(stop, self._reading.identify())
                except ChannelError as problem:
                    failures += 1
                    await self._reading.standing.fail(problem, failures)
                    if not problem.transient:
                        return
                    wait = problem.retry_after or self._retry_seconds * 2 ** min(failures - 1, 6)
                    await pause(stop, wait)
                    continue
                failures = 0
                await self._listen()
                await pause(stop, _LOOK_SECONDS)
            await self._reading.standing.tell(False, "stopped")
        finally:
            self._loop = None

    async def _listen(self) -> None:
        known = self._reading.own.identity
        if known is None:
            return
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._reading.sweeper.listening()
            self._reading.sweeper.ask()
        await self._reading.standing.tell(True, f"HTTP as {known.name} in {known.team}: Slack calls {PATH}")

    def answer(self, body: bytes, headers: Mapping[str, str]) -> WebAnswer:
        """Answer a request whose signature was found good. Called from other threads."""
        request, document = self._read(body, headers), _document(body)
        if request is None:
            return WebAnswer(400, "text/plain", b"neither a JSON object nor a form")
        if document.get("type") == "event_callback" and not payloads.has_event(document):
            return WebAnswer(400, "text/plain", b"there is no event in it")
        if document.get("type") == "url_verification":
            challenge = document.get("challenge")
            return WebAnswer(200, "text/plain", (challenge if isinstance(challenge, str) else "").encode())
        loop = self._loop
        if loop is None:
            return WebAnswer(503, "text/plain", b"not connected yet")
        if not document and not self._heard.first(headers):
            return WebAnswer(200, "text/plain", b"")
        work = asyncio.run_coroutine_threadsafe(self._dispatched(request, headers, document), loop)
        try:
            response = work.result(_ANSWER_SECONDS)
        except (TimeoutError, CancelledError):
            work.cancel()
            return WebAnswer(503, "text/plain", b"not taken in time")
        kind = next(iter(response.headers.get("content-type", [])), "text/plain")
        return WebAnswer(response.status, kind, (response.body or "").encode())

    def _read(self, body: bytes, headers: Mapping[str, str]) -> AsyncBoltRequest | None:
        """Return the request as Bolt takes it, None where the body is nothing that Slack sends."""
        try:
            request = AsyncBoltRequest(body=body.decode(), headers=dict(headers))
        except (ValueError, TypeError, AttributeError, RecursionError):
            return None  # Bolt looks into the document before anybody could say that it is none
        return request if request.body else None

    async def _dispatched(
        self, request: AsyncBoltRequest, headers: Mapping[str, str], document: Mapping[str, Any]
    ) -> BoltResponse:
        retry = headers.get("x-slack-retry-num", "")
        if document.get("type") == "event_callback":
            committed = self._reading.taken(document, int(retry) if retry.isascii() and retry.isdigit() else 0)
            request.context[COMMIT] = committed
        return await self._reading.app.async_dispatch(request)


def signed(body: bytes, headers: Mapping[str, str], secret: str, clock: SigningClock | None = None) -> bool:
    """Tell whether Slack signed these bytes within the last five minutes. `headers` have names in small letters."""
    try:
        return SignatureVerifier(secret, clock or SigningClock()).is_valid_request(body, dict(headers))
    except (ValueError, TypeError):
        return False  # a time stamp that is no number, a body or signature that is no text


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}  # a form: slash commands and interactions
    return found if isinstance(found, dict) else {}
