"""The verb `interrupt`: cases for every harness with a kit.

A test module subclasses `Interrupting` and provides the `kit`.
"""

from collections.abc import Iterator

import pytest

from tests.fakes.model import ModelServer
from tests.harness.cases import ask, say, start
from tests.harness.product import TURN, HarnessProduct, Kit, harness_product
from tests.support.product import NAME
from tests.support.tmux import wait_until


class Interrupting:
    """What ends by it. Whoever subclasses this gives the fixture `kit`: the harness."""

    @pytest.fixture
    def alone(self, kit: Kit, model: ModelServer) -> Iterator[HarnessProduct]:
        """Give a product without a channel."""
        with harness_product(None, model, kit) as product:
            yield product

    @pytest.mark.capability("turn edges")
    @pytest.mark.parametrize("work", ["[[sleep 60]]", ""], ids=["mid-turn", "mid-tool"])
    def test_a_turn_is_interrupted(self, alone: HarnessProduct, work: str) -> None:
        """The verb ends it and says so, the row says idle, and the next message is a turn of its own."""
        kit = alone.kit
        start(alone)
        say(alone, f"work {work or kit.work.format(seconds=60)}")
        alone.wait_request("work")
        if not work:
            wait_until(lambda: alone.left(kit.worker.format(seconds=60)), "its tool works", TURN)
        alone.wait_activity("busy")

        done = alone.cli("standing", "interrupt", NAME, "--json", seconds=TURN)
        alone.wait_activity("idle")
        ask(alone, "still here?")

        assert (done.code, done.row["outcome"]) == (0, "interrupted"), done.out
