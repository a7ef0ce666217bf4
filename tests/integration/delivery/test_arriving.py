"""A reply between its commit, the disk and the terminal: nobody is told that it has arrived before the disk has it."""

import asyncio
import errno
import os
import threading
from collections.abc import Collection
from datetime import UTC, datetime

import pytest

from bot.intake import AsyncDoor
from core.base.errors import StoreBroken
from core.base.names import new_uid
from core.base.values import replace
from core.chat.api import ChatApi
from core.chat.backfill import CatchingUp
from core.model.channel import IncomingReply, Swept, Verdict
from core.model.session import Binding, SessionRecord
from core.session.system import System
from tests.support.chat import HOME, TEAM, Chat
from tests.support.door import door_of
from tests.support.tmux import wait_until
from tests.support.world import definition

THREAD = "1700.000000"
REPLY = IncomingReply("slack", TEAM, HOME, THREAD, "1700.000100", "U1", "alice", TEAM, False, False, "plain", "do it")
_SECONDS = 20


@pytest.fixture
def bound(system: System) -> System:
    """Give ports with a recorded session `scribe` that has a thread."""
    now = datetime.now(UTC)
    record = SessionRecord("scribe", new_uid(), definition("scribe"), now)
    with system.locks.hold("scribe", "test", 1.0):
        system.records.write(record)
    system.bindings.bind(Binding("slack", TEAM, HOME, THREAD, record.uid, "scribe", now))
    return system


def arrived(door: ChatApi) -> Verdict | None:
    """Hand the reply over as a channel does, and return core's word once Slack would be answered."""
    [verdict] = asyncio.run(AsyncDoor(door).receive([REPLY]))
    return verdict


def note_syncs(monkeypatch: pytest.MonkeyPatch, order: list[str]) -> None:
    """Note when the disk has what was committed."""

    def sync(descriptor: int) -> None:
        os.fsync(descriptor)
        order.append("on the disk")

    monkeypatch.setattr("core.store.database._SYNC", sync)


def test_a_reply_is_told_of_then_delivered_then_on_the_disk(bound: System, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event log knows of it before its session does, and the disk has it once it is handed over."""
    order: list[str] = []

    def at_once(uids: Collection[str]) -> None:
        order.append("told of" if "channel.reply_received" in bound.paths.events.read_text() else "unknown")
        order.append(f"delivered to {len(uids)}")

    note_syncs(monkeypatch, order)

    door_of(bound, Chat(), at_once).receive(
        [REPLY], lambda verdicts: order.append(verdicts[0].value if verdicts[0] else "not taken")
    )

    assert order == ["committed", "told of", "delivered to 1", "on the disk"]


def test_a_delivery_that_hangs_keeps_no_acknowledgement(bound: System, monkeypatch: pytest.MonkeyPatch) -> None:
    """A frozen tmux holds up the session's terminal, not whoever waits to hear that the reply is on the disk."""
    order: list[str] = []
    acknowledged = threading.Event()

    def at_once(_: Collection[str]) -> None:
        order.append("in time" if acknowledged.wait(_SECONDS) else "too late")

    async def answer(door: AsyncDoor) -> None:
        [verdict] = await door.receive([REPLY])
        order.append(verdict.value if verdict else "not taken")
        acknowledged.set()

    note_syncs(monkeypatch, order)

    asyncio.run(answer(AsyncDoor(door_of(bound, Chat(), at_once))))

    wait_until(lambda: len(order) == 4, f"the delivery is over: {order}")
    assert order == ["on the disk", "committed", "in time", "on the disk"]


def test_a_disk_that_fails_lets_nobody_believe_that_a_reply_arrived(
    bound: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sender's side hears of the trouble and sends it again; then it is known, synced, and delivered to nobody."""
    delivered: list[int] = []
    door = door_of(bound, Chat(), lambda uids: delivered.append(len(uids)))

    def fail(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as failing:
        failing.setattr("core.store.database._SYNC", fail)
        with pytest.raises(StoreBroken, match="Input/output error"):
            arrived(door)
    verdict = arrived(door)

    assert verdict is Verdict.DUPLICATE
    assert delivered == [1, 0]


def test_a_reply_before_which_others_may_be_missing_waits_for_them(bound: System) -> None:
    """From its commit on: no delivery may come between that and the reading of its thread."""
    gaps, held = CatchingUp(bound.clock, bound.bindings), []

    def at_once(_: Collection[str]) -> None:
        held.append([gaps.holds(row) for row in bound.inbox.unsettled(uid)])

    [uid] = [binding.uid for binding in bound.bindings.all("slack")]
    door = door_of(bound, Chat(), at_once, gaps)
    door.receive([replace(REPLY, unordered=True)], lambda verdicts: None)
    door.threads("slack", TEAM)
    door.swept("slack", TEAM, Swept(HOME, THREAD, REPLY.ts, THREAD, 0, ""))
    at_once([uid])

    assert held == [[True], [False]]
