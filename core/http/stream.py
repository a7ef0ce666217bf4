"""The event log as server-sent events: resumable by Last-Event-ID, with heartbeats, and bounded in number.

https://html.spec.whatwg.org/multipage/server-sent-events.html. An event's id is its position in the log. One look at
the log for all streams tells when it grew; each stream then reads on from its own position, so a slow reader holds
nothing but its place. Where what a client has read last is kept no more, it is told by an event `lost`, and gets all
that is kept.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any

from starlette.responses import Response, StreamingResponse

from core.http.answers import RETRY_SECONDS, refusal
from core.store.eventlog import EventLog, Page

MOST_STREAMS = 128
HEARTBEAT_SECONDS = 15.0
_LOOK_SECONDS = 0.2
_AT_ONCE = 200  #: events that are read at a time
_BACK_MILLISECONDS = 2000  #: after which a browser that lost its connection asks again

Wanted = Callable[[Mapping[str, Any]], bool]
InThread = Callable[[Callable[[], Page]], Awaitable[Page]]  #: runs it in a thread, and returns what it returns


class Feed:
    """The streams of one service. All of it runs in the server's event loop."""

    def __init__(self, events: EventLog, stopping: threading.Event, in_thread: InThread) -> None:
        self._events = events
        self._stopping = stopping
        self._in_thread = in_thread
        self._streams = 0
        self._grown = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    async def response(
        self, position: str | None, wanted: Wanted, last: int, watched: Callable[[], AbstractContextManager[None]]
    ) -> Response:
        """Return the stream behind that position; None: from now on, after the latest `last` ones that are wanted.

        `watched` is entered for as long as it is read.
        Raises InvalidValue for what is no position, StoreBroken.
        """
        if self._streams >= MOST_STREAMS:
            return refusal(
                503, "too_many_streams", f"{MOST_STREAMS} streams are open, which is all that there may be",
                "close one that is no longer read", {"Retry-After": str(RETRY_SECONDS)},
            )  # fmt: skip
        if position is None:
            first = await self._in_thread(lambda: self._events.latest(last, wanted))
        else:
            first = await self._in_thread(lambda: self._events.after(position, _AT_ONCE))
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(self._lines(first, wanted, watched), headers=headers, media_type="text/event-stream")

    async def _lines(
        self, page: Page, wanted: Wanted, watched: Callable[[], AbstractContextManager[None]]
    ) -> AsyncIterator[str]:
        self._streams += 1
        try:
            with watched():
                async for lines in self._told_lines(page, wanted):
                    yield lines
        finally:
            self._streams -= 1

    async def _told_lines(self, page: Page, wanted: Wanted) -> AsyncIterator[str]:
        self._watch()
        yield f"retry: {_BACK_MILLISECONDS}\n: the event log of the-loop\n\n"
        while not self._stopping.is_set():
            if page.lost:
                yield "event: lost\ndata: {}\n\n"
            if found := [_told(place, event) for place, event in page.events if wanted(event)]:
                yield "".join(found)
            grown = self._grown
            page = await self._in_thread(partial(self._events.after, page.end, _AT_ONCE))
            if page.events or page.lost:
                continue
            with suppress(TimeoutError):
                await asyncio.wait_for(grown.wait(), HEARTBEAT_SECONDS)
                continue
            yield f": still there\nid: {page.end}\n\n" if page.end else ": still there\n\n"

    def _watch(self) -> None:
        if self._watching is None or self._watching.done():
            self._watching = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        """Wake every stream when the log has grown, and when the service ends, for as long as there are any."""
        seen = self._events.stamp()
        while self._streams:
            await asyncio.sleep(_LOOK_SECONDS)
            now = self._events.stamp()
            if now != seen or self._stopping.is_set():
                seen = now
                grown, self._grown = self._grown, asyncio.Event()
                grown.set()


def last_event_id(headers: Mapping[str, str], after: str | None) -> str | None:
    """Return where a client was: by its header, which a browser sends when it comes back, else by the address it asks.

    None where it says nothing.
    """
    return headers.get("last-event-id", "").strip() or after


def _told(place: str, event: Mapping[str, Any]) -> str:
    return f"id: {place}\ndata: {json.dumps(event)}\n\n"
