"""Read over HTTP: Slack calls the service, each request is signed, and Slack is answered when a reply is on the disk.

The raw body is what is signed (https://docs.slack.dev/authentication/verifying-requests-from-slack). The old `token` in
the body proves nothing and is not read.
"""

import asyncio
import json
import logging
import threading
from collections.abc import Coroutine, Mapping
from concurrent.futures import CancelledError
from datetime import UTC, datetime
from typing import Any

from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.signature import Clock as SigningClock
from slack_sdk.signature import SignatureVerifier

from bot import payloads
from bot.connection import Reading, pause, unless
from bot.intake import COMMIT, AsyncDoor
from core.base.errors import ChannelError, StoreBroken
from core.base.values import dataclass
from core.model.channel import WebAnswer

log = logging.getLogger(__name__)

PATH = "/channels/slack/events"
_SIGNED_SECONDS = 300  #: how long a signature counts, before and after its time stamp
_LOOK_SECONDS = 300.0  #: how often a token is looked at that nothing else tries


@dataclass(frozen=True)
class Patience:
    """For how many seconds a request is held. Slack waits three for an answer."""

    connected: float = 2.0  #: until the service is connected: right after its start it is not
    taken: float = 10.0  #: until the request is taken


class HttpReader:
    """Answers Slack's requests from any thread, on the event loop that `run` lives on.

    Each signature counts once, over restarts: what people did Slack sends once, and an event that it repeats it signs
    anew, so that a second sight of one is somebody else's, who has overheard it. What was not taken counts again.
    """

    def __init__(self, reading: Reading, door: AsyncDoor, retry_seconds: float, patience: Patience) -> None:
        self._reading = reading
        self._door = door
        self._retry_seconds = retry_seconds
        self._patience = patience
        self._loop: asyncio.AbstractEventLoop | None = None
        self._known = threading.Event()  #: set once it is known whether requests are taken

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
            self._known.set()

    async def _listen(self) -> None:
        known = self._reading.own.identity
        if known is None:
            return
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._known.set()
            self._reading.sweeper.listening()
            self._reading.sweeper.ask()
        await self._reading.standing.tell(True, f"HTTP as {known.name} in {known.team}: Slack calls {PATH}")

    def answer(self, body: bytes, headers: Mapping[str, str]) -> WebAnswer:
        """Answer a request whose signature was found good. Called from other threads."""
        request, document = self._read(body, headers), _document(body)
        if request is None or not _can_be_dispatched(request.body):
            return WebAnswer(400, "text/plain", b"neither a JSON object nor a form, or what it tells of is not in it")
        if document.get("type") == "url_verification":
            challenge = document.get("challenge")
            return WebAnswer(200, "text/plain", (challenge if isinstance(challenge, str) else "").encode())
        self._known.wait(self._patience.connected)
        loop = self._loop
        if loop is None:
            return WebAnswer(503, "text/plain", b"not connected yet")
        try:
            if not self._is_first(headers, event=bool(document)):
                return WebAnswer(200, "text/plain", b"")
            answer = self._taken(loop, self._dispatched(request, headers, document))
            if document and answer.status != 200:
                self._door.unheard(_signature(headers))
        except StoreBroken as error:
            log.warning("a request cannot be taken", extra={"reason": str(error)})
            return WebAnswer(503, "text/plain", b"not taken: the database cannot be written")
        return answer

    def _is_first(self, headers: Mapping[str, str], *, event: bool) -> bool:
        """Take note of the signature, and return whether it is seen for the first time. Raises StoreBroken.

        An event's is on the disk with what the event brings.
        """
        until = datetime.fromtimestamp(int(headers.get("x-slack-request-timestamp", "0")) + 2 * _SIGNED_SECONDS, UTC)
        return self._door.heard(_signature(headers), until, durable=not event)

    def _taken(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, BoltResponse]) -> WebAnswer:
        taking = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            response = taking.result(self._patience.taken)
        except (TimeoutError, CancelledError):
            taking.cancel()
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
            committed = self._reading.taken(
                document, int(retry) if retry.isascii() and retry.isdigit() and len(retry) < 5 else 0
            )
            request.context[COMMIT] = committed
        return await self._reading.app.async_dispatch(request)


def signed(body: bytes, headers: Mapping[str, str], secret: str, clock: SigningClock | None = None) -> bool:
    """Return whether Slack signed these bytes within the last five minutes. `headers` have names in small letters."""
    try:
        return SignatureVerifier(secret, clock or SigningClock()).is_valid_request(body, dict(headers))
    except (ValueError, TypeError):
        return False  # a time stamp that is no number, a body or signature that is no text


def _signature(headers: Mapping[str, str]) -> str:
    return headers.get("x-slack-signature", "")


def _can_be_dispatched(found: Mapping[str, Any]) -> bool:
    """Return whether what a body holds, a form's `payload` included, has what Bolt takes for granted."""
    if found.get("type") == "event_callback" and not payloads.has_event(found):
        return False
    pressed = found.get("actions", [{}])
    return isinstance(pressed, list) and bool(pressed) and all(isinstance(one, Mapping) for one in pressed)


def _document(body: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return {}  # a form: slash commands and interactions
    return found if isinstance(found, dict) else {}
