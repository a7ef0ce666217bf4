"""A press on an announcement whose process is killed: what was done stands, once, and the next press puts it right."""

from __future__ import annotations

import pytest

from core.base.failpoints import Failpoint
from core.lifecycle.start import start_standing
from core.model.asking import announced_buttons
from core.model.posts import NewPost, OutboundKind, PostState
from core.model.session import Binding
from core.session.system import System
from tests.support.killed import run_until
from tests.support.pressing import THREAD, press, with_slack
from tests.support.talking import record_of, talking
from tests.support.world import ACTOR, World, recorded

POINTS = [
    f"{point.value}:{side}" for point in (Failpoint.PAUSE_MARK, Failpoint.ANNOUNCE) for side in ("before", "after")
]


@pytest.fixture
def bound(world: World) -> System:
    """Give a live session whose announcement stands in the channel, with the buttons of one that runs."""
    system = with_slack(talking(world))
    assert start_standing(system, "scribe", ACTOR).ok
    uid, _ = record_of(system)
    system.bindings.bind(Binding("slack", "T1", "C1", THREAD, uid, "scribe", system.clock.now()))
    buttons = announced_buttons(uid, lives=True)
    system.outbox.add([NewPost("p-root", "root:1", OutboundKind.ROOT, uid, "scribe", "slack", "up", buttons=buttons)])
    sent(system)
    return system


def sent(system: System) -> NewPost:
    """Note that the announcement's latest edit is shown, and return it."""
    found = system.database.read("SELECT id FROM outbox WHERE kind IN ('root', 'root-update') ORDER BY seq")
    row = system.outbox.get(found[-1]["id"])
    assert row is not None
    if row.state is PostState.PENDING:
        system.outbox.advance(system.outbox.advance(row, PostState.SENDING), PostState.SENT, ts=THREAD)
    return row.post


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_pause_is_a_pause_or_none_and_the_next_press_says_which(
    bound: System, world: World, point: str
) -> None:
    """Whoever presses again gets what they want; the thread is told once, and the announcement shows what is so."""
    uid, _ = record_of(bound)
    died = run_until(point, world.folder, "pressing", str(world.save()), "pause-session", uid)
    sent(bound)

    told = press(bound, "pause-session", uid)
    shown = sent(bound)
    notes = bound.database.read("SELECT text FROM outbox WHERE text LIKE '%was paused%'")

    assert died.code < 0, died.output
    assert told.startswith("scribe: paused")
    assert recorded(bound, "scribe").hold is not None
    assert len(notes) == 1
    assert [button.label for button in shown.buttons] == ["Status", "Screen", "Resume", "Restart", "Stop"]
