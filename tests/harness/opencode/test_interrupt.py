"""The verb `interrupt` with real OpenCode."""

import pytest

from tests.harness.cases import ask, say, start
from tests.harness.product import TURN, HarnessProduct
from tests.support.product import NAME
from tests.support.tmux import wait_until


@pytest.mark.capability("turn edges")
def test_a_turn_is_interrupted(alone: HarnessProduct) -> None:
    """The key ends it, the row says idle, and the next message is answered."""
    start(alone)
    say(alone, "work [[tool bash sleep 60]]")
    wait_until(lambda: alone.left("sleep 60"), "the tool runs", TURN)
    alone.wait_activity("busy")

    done = alone.cli("standing", "interrupt", NAME, "--json")
    alone.wait_activity("idle")
    ask(alone, "still here?")

    assert (done.code, done.row["outcome"]) == (0, "interrupted"), done.out
