"""A service that is killed under ten live sessions: the next one adopts them all and respawns none."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.http.conftest import Web
from tests.support.product import Product, product
from tests.support.tmux import alive, wait_until

COUNT = 10
NAMES = [f"agent-{number}" for number in range(COUNT)]


@pytest.fixture
def ten() -> Iterator[Product]:
    """Give a product that declares ten sessions, with a service that has started them all."""
    with product() as running:
        sessions = [{"name": name, "prompt": "Wait.", "restart": "on-failure"} for name in NAMES]
        running.configure(standingSessions={"enabled": True, "sessions": sessions})
        yield running


def rows(ten: Product) -> list[dict[str, Any]]:
    """Return the list's rows."""
    found: list[dict[str, Any]] = ten.cli("standing", "list", "--json").json
    return found


def all_idle(ten: Product) -> bool:
    """Return whether every session has done its boot turn."""
    return [row["activity"] for row in rows(ten)] == ["idle"] * COUNT


def test_ten_sessions_outlive_their_service(ten: Product) -> None:
    """The first list has all ten, with activity and tasks, in the same panes; each is watched again."""
    service = ten.serve().wait_swept()
    wait_until(lambda: all_idle(ten), "all are idle")
    said = ten.cli("standing", "say", NAMES[0], "--text", "background 300", "--json")
    wait_until(lambda: rows(ten)[0]["pendingTasks"], "the task is listed")
    panes = ten.panes()
    started = len(ten.events("standing.started", "standing.resumed"))

    service.kill()
    killed = ten.panes()
    ten.serve()
    listed = rows(ten)

    assert said.code == 0
    assert killed == panes
    assert [row["running"] for row in listed] == [True] * COUNT
    assert [row["activity"] for row in listed] == ["busy", *["idle"] * (COUNT - 1)]
    assert len(listed[0]["pendingTasks"]) == 1
    wait_until(lambda: len(ten.events("standing.adopted")) == COUNT, "all are adopted")
    assert ten.panes() == panes
    assert len(ten.events("standing.started", "standing.resumed")) == started
    assert not ten.events("standing.exited", "standing.tmux_lost")

    wait_until(lambda: Web(ten).metrics()["the_loop_subscriptions"] == COUNT, "each is watched again")

    os.kill(panes[NAMES[5]], signal.SIGKILL)
    ten.wait_event("standing.exited")
    wait_until(lambda: ten.panes().get(NAMES[5], panes[NAMES[5]]) != panes[NAMES[5]], "it is back")
    assert alive(ten.panes()[NAMES[5]])
    untouched = {name: pid for name, pid in ten.panes().items() if name != NAMES[5]}
    assert untouched == {name: pid for name, pid in panes.items() if name != NAMES[5]}
