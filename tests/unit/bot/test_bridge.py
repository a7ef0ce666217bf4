"""Replies handed over to core: Slack is answered once they are committed, however long their delivery takes."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import cast

import pytest

from bot.bridge import AsyncDoor
from core.errors import StoreBroken
from core.ports import CoreDoor, IncomingReply, Verdict

Committed = Callable[[tuple[Verdict, ...]], None]


class Slow:
    """Core's door, where the way into the terminal is blocked."""

    def __init__(self) -> None:
        self.free = threading.Event()

    def receive(self, replies: Sequence[IncomingReply], committed: Committed) -> None:
        """Commit, then wait."""
        committed((Verdict.COMMITTED,))
        self.free.wait(20)


class Broken:
    """Core's door, with a full disk behind it."""

    def receive(self, replies: Sequence[IncomingReply], committed: Committed) -> None:
        """Fail."""
        raise StoreBroken("the disk is full", "free some space")


def test_a_reply_that_is_committed_is_answered_while_it_is_delivered() -> None:
    """A frozen tmux keeps no acknowledgement."""
    door = Slow()

    async def receive() -> tuple[tuple[Verdict, ...], bool]:
        verdicts = await asyncio.wait_for(AsyncDoor(cast(CoreDoor, door)).receive([]), 10)
        delivered = door.free.is_set()
        door.free.set()
        return verdicts, delivered

    verdicts, delivered = asyncio.run(receive())

    assert verdicts == (Verdict.COMMITTED,)
    assert not delivered


def test_a_reply_that_cannot_be_committed_is_told() -> None:
    """Whoever handed it over lets Slack send it again."""
    with pytest.raises(StoreBroken, match="the disk is full"):
        asyncio.run(AsyncDoor(cast(CoreDoor, Broken())).receive([]))
