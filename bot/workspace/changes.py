"""Tells whoever waits that the workspace has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

ASK_SECONDS = 0.1


class Changes:
    """A counter of changes that can be waited on; used on the workspace's event loop only."""

    def __init__(self) -> None:
        self.count = 0
        self._changed = asyncio.Event()

    def notify(self) -> None:
        """Count one change and wake everyone who waits."""
        self.count += 1
        self._changed.set()
        self._changed = asyncio.Event()

    async def after(self, count: int, seconds: float) -> int:
        """Return the counter once it is past `count`, or unchanged when `seconds` have passed."""
        try:
            async with asyncio.timeout(seconds):
                while self.count <= count:
                    await self._changed.wait()
        except TimeoutError:
            return self.count
        return self.count

    async def until(self, find: Callable[[], T | None], seconds: float) -> T:
        """Return what `find` finds (neither None nor False); TimeoutError when it finds nothing in time.

        It is asked after each change and, for conditions that lie partly elsewhere, every ASK_SECONDS.
        """
        async with asyncio.timeout(seconds):
            while True:
                found = find()
                if found is not None and found is not False:
                    return found
                await self.after(self.count, ASK_SECONDS)
