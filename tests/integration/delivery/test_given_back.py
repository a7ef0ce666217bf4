"""A message that the harness's own queue gave back is sent anew, and what its records say of the first time is past."""

from dataclasses import replace
from datetime import timedelta

import pytest

from core.delivery.deliverer import Deliverer
from core.delivery.saying import say
from core.lifecycle.pause import pause_standing
from core.model.message import MessageState
from core.session.system import System
from tests.support.killed import run_until
from tests.support.talking import record_of, rows, times
from tests.support.tmux import PATIENCE, wait_until
from tests.support.world import ACTOR, World

S = MessageState


@pytest.mark.parametrize("point", ["delivery.claim:after", "delivery.paste:after", "delivery.submit:after"])
def test_a_kill_after_it_was_given_back_loses_nothing(scribe: System, world: World, point: str) -> None:
    """The conversation is read from its start then, and tells of the queue that held it before the pause."""
    uid, _ = record_of(scribe)
    say(scribe, "scribe", "sleep 60", actor=ACTOR)
    accepted = say(scribe, "scribe", "given back", actor=ACTOR)
    pause_standing(scribe, "scribe", ACTOR, hard=True)

    def given_back() -> bool:
        scribe.ingest(uid)
        return rows(scribe)[-1].state is S.PENDING

    wait_until(given_back, "the harness gave it back")
    described = replace(world, harness="bundled").save()
    killed = run_until(point, world.folder, "world", str(described), "resume", "scribe")

    until = scribe.clock.now() + timedelta(seconds=PATIENCE)
    row = Deliverer(scribe).run(uid, rows(scribe)[-1].message.id, until)

    assert (accepted.state, killed.code) == (S.ACCEPTED, -9)
    assert row is not None
    assert row.state is S.CONFIRMED
    assert times(scribe, "given back") == 1
