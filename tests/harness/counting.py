"""What a harness's records say of its agent's work is what the model server sent: cases for every harness with a kit.

A test module subclasses `Counting` and provides the `kit`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from core.model.harness import Usage
from tests.fakes.model import ModelServer
from tests.harness.cases import ask
from tests.harness.product import TURN, HarnessProduct, Kit, harness_product
from tests.support.tmux import wait_until


def working(product: HarnessProduct) -> Mapping[str, Any]:
    """Return what is shown; nothing while nothing is known."""
    return product.row()["working"] or {}


def shown(product: HarnessProduct, part: str) -> Usage | None:
    """Return the tokens that are shown of the turn, or of the session; None while they are not known."""
    told = (working(product).get("usage") or {}).get(part)
    return None if told is None else Usage(told["input"], told["output"], told["cached"])


def wait_used(product: HarnessProduct, part: str, containing: str = "") -> None:
    """Wait until what is shown is what the server has sent in its answers to these requests."""
    seen: list[Usage | None] = []

    def equal() -> bool:
        seen.append(shown(product, part))
        return seen[-1] == Usage(*product.model.used(containing))

    try:
        wait_until(equal, f"{part} used what the server sent", TURN)
    except AssertionError as error:
        sent = [(request.user[:60], request.used) for request in product.model.requests(containing)]
        raise AssertionError(f"{error}: {seen[-1]}; sent: {product.model.used(containing)}: {sent}") from error


class Counting:
    """What is counted. Whoever subclasses this gives the fixture `kit`: the harness."""

    @pytest.fixture
    def served(self, kit: Kit, model: ModelServer) -> Iterator[HarnessProduct]:
        """Give a product with a service and without a channel, whose session is through with its brief."""
        with harness_product(None, model, kit) as product:
            product.serve().wait_swept(TURN)
            product.wait_activity("idle")
            yield product

    @pytest.mark.capability("transcript form")
    def test_tokens_are_those_that_the_server_sent(self, served: HarnessProduct) -> None:
        """Those of each request once, with a tool and without; the turn begins anew, and the session goes on."""
        ask(served, f"first {served.kit.work.format(seconds=1)}")
        wait_used(served, "turn", "first")
        ask(served, "second")

        wait_used(served, "turn", "second")
        wait_used(served, "session")
        told, last = working(served), served.model.requests("second")[-1]
        models = [Usage(one["input"], one["output"], one["cached"]) for one in told["usage"]["byModel"].values()]
        assert told["context"]["used"] == last.used[0] + last.used[2]
        assert told["model"]
        assert models in ([], [shown(served, "session")])
        assert not told["tool"]
        assert [event["name"] for event in served.events("standing.usage")]
