"""Requests that may be sent twice: under one Idempotency-Key a request is done once, and answered the same.

As https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-idempotency-key-header-07 has it: another request under the
key is 422, one that comes while the first is being done is 409. The key is noted before anything is done. Where the
service ended in between, nobody knows what was done: that is 409 too, with another code, and is never done again.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable

from starlette.responses import Response

from core.base.clock import Clock
from core.base.errors import InvalidValue
from core.http.answers import RETRY_SECONDS, raw, refusal
from core.store.answered import AnswerBook, Answered

HEADER = "idempotency-key"
_LONGEST = 255


def key_of_headers(values: list[str]) -> str | None:
    """Return the key of a request, None where it has none. Raises InvalidValue."""
    if not values:
        return None
    key = values[0].strip()
    if len(values) > 1 or not 0 < len(key) <= _LONGEST or not (key.isascii() and key.isprintable()):
        raise InvalidValue("the Idempotency-Key cannot be used", allowed=f"one key of 1 to {_LONGEST} ASCII characters")
    return key


def digest_of(path: str, body: bytes) -> str:
    """Return what tells a request from others."""
    return hashlib.sha256(b"\0".join((path.encode(), body))).hexdigest()


class Keys:
    """The keys of one service. May be called from any thread."""

    def __init__(self, book: AnswerBook, clock: Clock) -> None:
        self._book = book
        self._clock = clock
        self._under_way: set[tuple[str, str]] = set()
        self._lock = threading.Lock()

    def once(self, who: str, key: str, digest: str, work: Callable[[], Response]) -> Response:
        """Do the work unless it was done under this key, and return its answer. Raises StoreBroken.

        An answer that says when to try again is not kept: nothing was done.
        """
        place = (who, key)
        with self._lock:
            if place in self._under_way:
                return _under_way()
            self._under_way.add(place)
        try:
            before = self._book.begin(who, key, digest, self._clock.now())
            if before is not None:
                return _again(before, digest)
            answer = work()
            if "retry-after" in answer.headers:
                self._book.release(who, key)
            else:
                self._book.keep(who, key, answer.status_code, bytes(answer.body))
            return answer
        finally:
            with self._lock:
                self._under_way.discard(place)


def _again(before: Answered, digest: str) -> Response:
    if before.digest != digest:
        return refusal(
            422, "key_reused", "another request was sent under this Idempotency-Key", "send it under a key of its own"
        )
    if before.status is None:
        return refusal(
            409,
            "outcome_unknown",
            "the service ended while it did this, so it is not known whether it was done",
            "look whether it was done; if it was not, send it under another Idempotency-Key",
        )
    return raw(before.status, before.body, {"Idempotency-Replayed": "true"})


def _under_way() -> Response:
    return refusal(
        409,
        "under_way",
        "a request under this Idempotency-Key is being done",
        "wait for its answer, or send it again later",
        {"Retry-After": str(RETRY_SECONDS)},
    )
