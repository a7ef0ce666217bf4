"""Replies handed over to core: Slack is answered once they are committed, however long their delivery takes."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import cast

import pytest

from bot.intake import AsyncDoor
from core.base.errors import StoreBroken
from core.model.channel import CoreApi, IncomingOrder, IncomingPress, IncomingReply, Verdict

Taken = Callable[[tuple[Verdict | None, ...]], None]


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


class Stuck(Slow):
    """Core's door, where nobody who asks, presses or orders is answered; replies are taken."""

    def receive(self, replies: Sequence[IncomingReply], taken: Taken) -> None:
        """Commit."""
        taken((Verdict.COMMITTED,))

    def rows(self, author: str) -> tuple[()]:
        """Wait."""
        self.free.wait(20)
        return ()

    def press(self, press: object) -> None:
        """Wait."""
        self.free.wait(20)

    order = press


class Failing(Slow):
    """Core's door, whose way into the terminal fails after Slack was answered."""

    def receive(self, replies: Sequence[IncomingReply], taken: Taken) -> None:
        """Commit, wait, fail."""
        super().receive(replies, taken)
        raise StoreBroken("the disk failed", "look at it")


class Broken:
    """Core's door, with a full disk behind it."""

    def receive(self, replies: Sequence[IncomingReply], taken: Taken) -> None:
        """Fail."""
        raise StoreBroken("the disk is full", "free some space")


def test_a_reply_that_is_on_the_disk_is_answered_while_it_is_delivered() -> None:
    """A frozen tmux keeps no acknowledgement."""
    door = Slow()

    async def answered() -> tuple[tuple[Verdict | None, ...], int, bool]:
        verdicts = await asyncio.wait_for(AsyncDoor(cast(CoreApi, door)).receive([]), 10)
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
        asyncio.run(AsyncDoor(cast(CoreApi, door)).receive([]))


def test_slow_questions_keep_no_reply_waiting() -> None:
    """However many ask, press and order, the threads that take replies are others."""
    door = Stuck()

    async def answered() -> tuple[Verdict | None, ...]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        with closing(AsyncDoor(cast(CoreApi, door))) as asked:
            calls = [asked.rows("U1"), asked.press(cast(IncomingPress, None)), asked.order(cast(IncomingOrder, None))]
            async with asyncio.TaskGroup() as group:
                for call in calls:
                    group.create_task(call)
                await asyncio.sleep(0)  # they have begun
                try:
                    return await asyncio.wait_for(asked.receive([]), 10)
                finally:
                    door.free.set()

    assert asyncio.run(answered()) == (Verdict.COMMITTED,)


@pytest.mark.parametrize("terminal", [False, True], ids=["taken", "with a frozen terminal"])
def test_what_waits_for_names_keeps_no_reply_waiting(terminal: bool) -> None:
    """Slack may take long to say who somebody is: posts that are drawn meanwhile hold none of the intake's threads."""
    door = Slow() if terminal else Stuck()

    def draw(_: object) -> str:
        door.free.wait(20)
        return "drawn"

    async def answered() -> tuple[Verdict | None, ...]:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        asked = AsyncDoor(cast(CoreApi, door))
        async with asyncio.TaskGroup() as group:
            group.create_task(asked.shown(draw))
            await asyncio.sleep(0)  # it has begun
            try:
                return await asyncio.wait_for(asked.receive([]), 10)
            finally:
                door.free.set()

    assert asyncio.run(answered()) == (Verdict.COMMITTED,)


def test_a_delivery_that_fails_after_the_answer_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Nobody waits for it any more, and the reply is on the disk."""
    door = Failing()

    async def answered() -> None:
        asked = AsyncDoor(cast(CoreApi, door))
        await asked.receive([])
        door.free.set()
        await asyncio.to_thread(asked.close)  # its threads are its own: the loop does not wait for them as it ends

    asyncio.run(answered())

    [record] = [record for record in caplog.records if record.name == "bot.intake"]
    assert record.levelname == "WARNING"
    assert "the disk failed" in str(vars(record)["reason"])
