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


_AGAIN = "Nothing was done: this was said before the service had started. Say it again."


class Heard:
    """What was heard already, for as long as its signature counts.

    A second sight of a signature is somebody else's, unless the first one was not taken: what people did Slack sends
    once, and what it repeats it signs anew. What an earlier service has heard is not known here, so that nothing counts
    which was signed before this one began.
    """

    def __init__(self, began: float) -> None:
        """`began`: seconds since the epoch. A signature tells whole ones, so that the first full second counts."""
        self._lock = threading.Lock()
        self._stamps: dict[str, int] = {}
        self._began = int(began)

    @property
    def counts_from(self) -> int:
        """The first second, since the epoch, in which no earlier service can have heard anything."""
        return self._began + 1

    def is_earlier(self, headers: Mapping[str, str]) -> bool:
        """Return whether a request whose signature is good was signed before that."""
        return _stamp(headers) < self.counts_from

    def first(self, headers: Mapping[str, str]) -> bool:
        """Take note of a request whose signature is good, and return whether it is seen for the first time."""
        signature, stamp = headers.get("x-slack-signature", ""), _stamp(headers)
        with self._lock:
            if signature in self._stamps:
                return False
            self._stamps[signature] = stamp
            oldest = max(self._stamps.values()) - 2 * _SIGNED_SECONDS
            self._stamps = {known: at for known, at in self._stamps.items() if at >= oldest}
            return True

    def forget(self, headers: Mapping[str, str]) -> None:
        """Let the request count again: it was not taken."""
        with self._lock:
            self._stamps.pop(headers.get("x-slack-signature", ""), None)


def _stamp(headers: Mapping[str, str]) -> int:
    return int(headers.get("x-slack-request-timestamp", "0"))


class HttpReader:
    """Answers Slack's requests from any thread, on the event loop that `run` lives on."""

    def __init__(self, reading: Reading, retry_seconds: float, clock: SigningClock | None = None) -> None:
        self._reading = reading
        self._retry_seconds = retry_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._clock = clock or SigningClock()
        self._heard = Heard(self._clock.now())

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
                await self._listen(stop)
                await pause(stop, _LOOK_SECONDS)
            await self._reading.standing.tell(False, "stopped")
        finally:
            self._loop = None

    async def _listen(self, stop: asyncio.Event) -> None:
        known = self._reading.own.identity
        if known is None:
            return
        if self._loop is None:
            await pause(
                stop, max(0.0, self._heard.counts_from - self._clock.now())
            )  # what is signed now does not count
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
        if self._heard.is_earlier(headers):
            return self._too_early(request, document, loop)
        if not self._heard.first(headers):
            return WebAnswer(200, "text/plain", b"")
        work = asyncio.run_coroutine_threadsafe(self._dispatched(request, headers, document), loop)
        try:
            response = work.result(_ANSWER_SECONDS)
        except (TimeoutError, CancelledError):
            work.cancel()
            return self._again(headers, document, WebAnswer(503, "text/plain", b"not taken in time"))
        kind = next(iter(response.headers.get("content-type", [])), "text/plain")
        answer = WebAnswer(response.status, kind, (response.body or "").encode())
        return answer if answer.status == 200 else self._again(headers, document, answer)

    def _again(self, headers: Mapping[str, str], document: Mapping[str, Any], answer: WebAnswer) -> WebAnswer:
        """Return the answer by which Slack sends an event again; under the same signature, perhaps."""
        if document:
            self._heard.forget(headers)
        return answer

    def _too_early(
        self, request: AsyncBoltRequest, document: Mapping[str, Any], loop: asyncio.AbstractEventLoop
    ) -> WebAnswer:
        """Refuse what was signed before this service began: an earlier one may have carried it out.

        A sweep finds what an event told of; a person is told, where Slack shows it.
        """
        if document:
            loop.call_soon_threadsafe(self._reading.sweeper.ask)
            return WebAnswer(200, "text/plain", b"")
        if "command" not in request.body:
            return WebAnswer(503, "text/plain", b"signed before the service had started")
        said = json.dumps({"response_type": "ephemeral", "text": _AGAIN})
        return WebAnswer(200, "application/json", said.encode())

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
