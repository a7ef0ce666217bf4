"""How turns end otherwise: by the verb `interrupt`, and by an error. Cases for every harness with a kit.

A test module subclasses `Endings` and provides the `kit`.
"""

from collections.abc import Iterator

import pytest

from embedded.workspace.thread import WorkspaceThread
from tests.fakes.model import ModelServer
from tests.harness.cases import ask, begin, say, start
from tests.harness.product import TURN, HarnessProduct, Kit, harness_product
from tests.support.asking import wait_buttons
from tests.support.product import NAME
from tests.support.tmux import wait_until


class Endings:
    """How they are told. Whoever subclasses this gives the fixture `kit`: the harness."""

    @pytest.fixture
    def alone(self, kit: Kit, model: ModelServer) -> Iterator[HarnessProduct]:
        """Give a product without a channel."""
        with harness_product(None, model, kit) as product:
            yield product

    @pytest.fixture
    def talking(self, kit: Kit, model: ModelServer) -> Iterator[HarnessProduct]:
        """Give a product whose one session has a thread in a workspace."""
        with (
            WorkspaceThread(retry_scale=0.01, ack_seconds=2.0) as workspace,
            harness_product(workspace, model, kit) as product,
        ):
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

    @pytest.mark.capability("turn edges")
    def test_a_failed_turn_is_told_with_what_helps(self, talking: HarnessProduct) -> None:
        """The thread says why, the reply is marked, and the next one is answered; hooks that are not heard are told."""
        thread = begin(talking)
        for number, (trouble, words) in enumerate(talking.kit.failures.items(), 1):
            ts = talking.workspace.say("alice", "agents", f"count the swallows {trouble}", thread)
            wait_buttons(talking, thread, words, TURN)
            talking.workspace.wait_for_reaction("agents", ts, "x", TURN)
            talking.wait_activity("idle")
            talking.workspace.say("alice", "agents", f"and the herons {number}", thread)
            talking.wait_reply(thread, f"and the herons {number}", TURN)

        row = talking.row()
        assert talking.events("standing.hooks_silent") == []
        assert row["hooks"] == "reporting"
        assert row["capabilities"]["turn edges"] != "missing"
