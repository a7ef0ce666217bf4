"""Ten sessions of real Claude Code outlive the service that started them."""

import pytest

from tests.harness.claude.product import ClaudeProduct
from tests.support.tmux import wait_until

pytestmark = pytest.mark.capability("resume")
NAMES = [f"agent-{number}" for number in range(10)]


@pytest.mark.timeout(480)
def test_ten_sessions_outlive_a_killed_service(alone: ClaudeProduct) -> None:
    """The first list shows all ten with what they do; the same panes, no start, no request of anybody's."""
    alone.declare(*NAMES)
    service = alone.serve()
    wait_until(lambda: len(alone.events("standing.started")) == len(NAMES), "all are up", 240)
    for name in NAMES:
        alone.wait_activity("idle", name, 120)
    panes, asked = alone.panes(), len(alone.model.requests(""))

    service.kill()
    alone.serve()
    listed = alone.cli("standing", "list", "--json").json

    assert [(row["running"], row["activity"]) for row in listed] == [(True, "idle")] * len(NAMES)
    wait_until(lambda: len(alone.events("standing.adopted")) == len(NAMES), "all are adopted", 40)
    assert alone.panes() == panes
    assert len(alone.events("standing.started", "standing.resumed")) == len(NAMES)
    assert not alone.events("standing.exited", "standing.tmux_lost")
    assert len(alone.model.requests("")) == asked
