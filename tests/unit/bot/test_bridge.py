"""Replies handed over to core: Slack is answered once they are committed, however long their delivery takes."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import cast

import pytest

from bot.bridge import AsyncDoor
from core.errors import StoreBroken
from core.ports import CoreDoor, IncomingReply, Verdict

Taken = Callable[[tuple[Verdict, ...]], None]


class Slow:
    """Core's door, where the way into the terminal is blocked. `broken`: the disk is, too."""

    def __init__(self, *, broken: bool = False) -> None:
        self.free = threading.Event()
        self.synced = 0
        self._broken = broken

    def receive(self, replies: Sequence[IncomingReply], taken: Taken) -> None:
        """Commit, then wait."""
        taken((Verdict.COMMITTED,))
        self.free.wait(20)

    def sync(self) -> None:
        """Count, or fail."""
        if self._broken:
            self.free.set()
            raise StoreBroken("the disk failed", "look at it")
        self.synced += 1


class Broken:
    """Core's door, with a full disk behind it."""

    def receive(self, replies: Sequence[IncomingReply], taken: Taken) -> None:
        """Fail."""
        raise StoreBroken("the disk is full", "free some space")


def test_a_reply_that_is_on_the_disk_is_answered_while_it_is_delivered() -> None:
    """A frozen tmux keeps no acknowledgement."""
    door = Slow()

    async def answered() -> tuple[tuple[Verdict, ...], int, bool]:
        verdicts = await asyncio.wait_for(AsyncDoor(cast(CoreDoor, door)).receive([]), 10)
        synced, delivered = door.synced, door.free.is_set()
        door.free.set()
        return verdicts, synced, delivered

    verdicts, synced, delivered = asyncio.run(answered())

    assert verdicts == (Verdict.COMMITTED,)
    assert synced == 1
    assert not delivered


@pytest.mark.parametrize(("door", "reason"), [(Broken(), "the disk is full"), (Slow(broken=True), "the disk failed")])
def test_a_reply_that_is_not_on_the_disk_is_told(door: object, reason: str) -> None:
    """Whoever handed it over lets Slack send it again."""
    with pytest.raises(StoreBroken, match=reason):
        asyncio.run(AsyncDoor(cast(CoreDoor, door)).receive([]))
