"""A process that delivers is killed at each point of its way; whoever comes next finishes, and nothing is doubled."""

from datetime import timedelta

import pytest

from core.base.failpoints import Failpoint
from core.delivery.deliverer import Deliverer, is_over
from core.model.message import MessageState
from core.session.system import System
from tests.integration.delivery.conftest import open_dialog, settle
from tests.support.killed import run_until
from tests.support.talking import record_of, rows, taken, times
from tests.support.tmux import PATIENCE, PrivateTmux, wait_until
from tests.support.typist import Typist
from tests.support.world import World, waiting_message

TARGET = "=loop-standing-scribe:"

POINTS = [
    f"{effect.value}:{side}"
    for effect in Failpoint
    if effect.value.startswith("delivery.")
    for side in ("before", "after")
]


def say_and_die(world: World, point: str) -> int:
    """Say something in a process that dies at the point, and return how it ended."""
    return run_until(point, world.folder, "talking", str(world.save()), "scribe", "survive this", "40").code


def leave_stuck(system: System, private: PrivateTmux, text: str) -> None:
    """Paste a text that nothing submits, of a message of which nobody knows what became of it."""
    instance = record_of(system)[1]
    row = system.inbox.get(waiting_message(system, "scribe").id)
    assert row is not None
    claimed = system.inbox.advance(row, MessageState.CLAIMED, instance=instance, attempt=1)
    system.inbox.advance(claimed, MessageState.UNKNOWN)
    private.tmux("send-keys", "-l", "-t", TARGET, text)
    wait_until(lambda: text in private.tmux("capture-pane", "-p", "-t", TARGET), "the text is in the input line")


def finish(system: System) -> list[MessageState]:
    """Let another process's place be taken, and return what became of the messages."""
    uid, _ = record_of(system)
    row = rows(system)[-1]
    Deliverer(system).run(uid, row.message.id, system.clock.now() + timedelta(seconds=PATIENCE))
    return [row.state for row in rows(system)]


PREPARING = ("stash", "clear", "settle")


@pytest.mark.parametrize("point", [point for point in POINTS if not any(word in point for word in PREPARING)])
def test_a_message_survives_a_kill_at_every_point(scribe: System, world: World, point: str) -> None:
    """It is taken by exactly one turn, and its row ends as confirmed."""
    ended = say_and_die(world, point)

    states = finish(scribe)

    assert ended == -9
    assert states == [MessageState.CONFIRMED]
    assert times(scribe, "survive this") == 1


@pytest.mark.parametrize("point", [point for point in POINTS if "stash" in point])
def test_half_typed_text_survives_a_kill_around_the_stash(
    scribe: System, world: World, typist: Typist, point: str
) -> None:
    """The message is taken once and alone, and the person's text is not sent with it."""
    typist.type("half a thought")
    typist.rest()
    ended = say_and_die(world, point)

    states = finish(scribe)

    assert ended == -9
    assert states == [MessageState.CONFIRMED]
    assert times(scribe, "survive this") == 1
    [text] = [text for text in taken(scribe) if "survive this" in text]
    assert "half a thought" not in text


@pytest.mark.parametrize("point", [point for point in POINTS if "clear" in point])
def test_a_stuck_text_is_emptied_once_around_a_kill(
    scribe: System, world: World, private: PrivateTmux, point: str
) -> None:
    """Where an earlier message may still stand in the input line, the next one is taken once and alone."""
    leave_stuck(scribe, private, "stuck text")
    ended = say_and_die(world, point)

    states = finish(scribe)

    assert ended == -9
    assert states == [MessageState.UNKNOWN, MessageState.CONFIRMED]
    assert times(scribe, "survive this") == 1
    [text] = [text for text in taken(scribe) if "survive this" in text]
    assert "stuck text" not in text


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_queued_message_survives_a_kill_while_it_is_queued(
    scribe: System, world: World, private: PrivateTmux, side: str
) -> None:
    """It waits in the row, and goes in once the way is free."""
    open_dialog(scribe, private)
    ended = say_and_die(world, f"delivery.settle:{side}")
    private.tmux("send-keys", "-t", TARGET, "Enter")
    settle(scribe)

    states = finish(scribe)

    assert ended == -9
    assert states == [MessageState.CONFIRMED] * 2
    assert times(scribe, "survive this") == 1
    assert all(is_over(row, scribe.clock.now()) for row in rows(scribe))
