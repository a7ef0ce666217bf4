"""Live screens: terminals are looked at while somebody watches, and at no other time.

One look serves all who watch a session. It is made by a tmux process of its own in a thread of its own, so it takes no
turn of a delivery. The pause between two looks grows while nothing changes, and is never shorter than some times what a
look took, so a busy machine is looked at less often.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

import anyio
import anyio.to_thread

from core.base.clock import Clock
from core.base.errors import CoreError, NotRunning, Refused
from core.lifecycle.look import screen
from core.model.pane import Frame
from core.session.sessions import definition_of
from core.session.system import System

MOST_WATCHERS = 32
_LEAST_SECONDS, _MOST_SECONDS, _GROWTH = 0.15, 1.0, 1.4
_SHARE = 8.0  #: a look is followed by a pause of at least so many times what it took
_HEARTBEAT_SECONDS = 10.0
_KEPT_LINES = 200  #: of a terminal that has ended


class TooManyWatchers(Refused):
    """As many watch as may."""

    code = "too_many_screens"

    def __init__(self) -> None:
        super().__init__(
            f"{MOST_WATCHERS} screens are being watched, which is all that there may be", "close one, and try again"
        )


class Screens:
    """The screens that are watched. All of it runs in the server's event loop."""

    def __init__(self, system: System, stopping: threading.Event) -> None:
        self._system = system
        self._stopping = stopping
        self._watched: dict[str, _Watched] = {}
        self._watchers = 0
        self._limiter: anyio.CapacityLimiter | None = None

    def check(self, name: str) -> None:
        """Raise UnknownSession, InvalidValue, and TooManyWatchers where one more would be too many."""
        definition_of(self._system.settings, self._system.records, name)
        if self._watchers >= MOST_WATCHERS:
            raise TooManyWatchers

    async def lines(self, name: str) -> AsyncGenerator[bytes, None]:
        """Yield a line of JSON for each new look at the session, and an empty line as a sign of life."""
        watched = self._watched.setdefault(name, _Watched())
        self._watchers += 1
        watched.watchers += 1
        try:
            if watched.task is None:
                watched.task = asyncio.get_running_loop().create_task(self._look(name, watched))
            seen = -1
            while not self._stopping.is_set():
                if watched.number != seen:
                    seen = watched.number
                    yield watched.told
                    continue
                if watched.task.done():
                    watched.task.result()  # raises what ended it
                with suppress(TimeoutError):
                    await asyncio.wait_for(watched.changed.wait(), _HEARTBEAT_SECONDS)
                    continue
                yield b"\n"
        finally:
            self._watchers -= 1
            watched.watchers -= 1
            if watched.watchers == 0 and watched.task is not None:
                watched.task.cancel()
                self._watched.pop(name, None)

    def hurry(self, name: str) -> None:
        """Look at once, where somebody watches: something was typed."""
        if (watched := self._watched.get(name)) is not None:
            watched.hurry.set()

    async def _look(self, name: str, watched: _Watched) -> None:
        """Look for as long as somebody watches, and while the service is not ending."""
        clock, pause = self._system.clock, _LEAST_SECONDS
        self._limiter = self._limiter or anyio.CapacityLimiter(4)
        try:
            while not self._stopping.is_set():
                told, took = await anyio.to_thread.run_sync(_timed, self._system, clock, name, limiter=self._limiter)
                fresh = watched.tell(told)
                pause = _LEAST_SECONDS if fresh else min(_MOST_SECONDS, pause * _GROWTH)
                watched.hurry.clear()
                with suppress(TimeoutError):
                    await asyncio.wait_for(watched.hurry.wait(), max(pause, _SHARE * took))
                    pause = _LEAST_SECONDS
        finally:
            watched.changed.set()  # whoever waits sees that nothing comes any more


class _Watched:
    """One session that is watched: the latest look at it, by its number."""

    def __init__(self) -> None:
        self.watchers = 0
        self.task: asyncio.Task[None] | None = None
        self.number = -1
        self.told = b""
        self.changed = asyncio.Event()
        self.hurry = asyncio.Event()

    def tell(self, told: dict[str, Any]) -> bool:
        """Take a look in, and return whether it shows something new."""
        line = json.dumps(told).encode() + b"\n"
        if line == self.told:
            return False
        self.told, self.number = line, self.number + 1
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()
        return True


def _timed(system: System, clock: Clock, name: str) -> tuple[dict[str, Any], float]:
    begun = clock.monotonic()
    told = look_at(system, name)
    return told, clock.monotonic() - begun


def look_at(system: System, name: str) -> dict[str, Any]:
    """Return what the session's terminal shows: `{"instance", "columns", "rows", "cursor", "cursorShown", "text"}`.

    Of one that has ended: `{"ended": true, "text"}`. Where it cannot be looked at: `{"error": {"code", "message"}}`.
    """
    try:
        record = definition_of(system.settings, system.records, name).record
        if record is not None and record.instance_id is not None:
            with suppress(NotRunning):
                return _told(record.instance_id, system.runner.frame(record.instance_id))
        return {"ended": True, "text": screen(system, name, _KEPT_LINES).text}
    except CoreError as error:
        return {"error": {"code": error.code, "message": str(error)}}


def _told(instance: str, frame: Frame) -> dict[str, Any]:
    return {
        "instance": instance,
        "columns": frame.columns,
        "rows": frame.rows,
        "cursor": list(frame.cursor),
        "cursorShown": frame.cursor_shown,
        "text": frame.text,
    }
