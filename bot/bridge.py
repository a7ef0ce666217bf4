"""The one place where the event loop and core meet: core's calls run in threads."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from core.ports import CoreDoor, IncomingReply, Verdict

_ASKING = 2  # threads that questions may take, so that a slow one never keeps the intake waiting


class AsyncDoor:
    """Core's door, awaited."""

    def __init__(self, door: CoreDoor) -> None:
        self._door = door
        self._asking = asyncio.Semaphore(_ASKING)

    async def receive(self, replies: Sequence[IncomingReply]) -> tuple[Verdict, ...]:
        """Hand replies over; once this returns they are on the disk. Raises StoreBroken."""
        return await asyncio.to_thread(self._door.receive, replies)

    async def rows(self) -> tuple[Mapping[str, Any], ...]:
        """Return the rows of `list`. Raises CoreError."""
        async with self._asking:
            return await asyncio.to_thread(self._door.rows)

    async def connected(self, kind: str, up: bool, detail: str) -> None:
        """Tell the service how the connection stands."""
        await asyncio.to_thread(self._door.connected, kind, up, detail)
