"""The API of a whole service: what it alone knows, and what is kept over its restarts."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import the_loop
from tests.support.product import NAME, Product, Serving, product
from tests.support.web import Client


@pytest.fixture(scope="module")
def alone() -> Iterator[Product]:
    """Give a product without a channel to all tests of the module."""
    with product() as running:
        yield running


class Service:
    """A service that tests end and start again."""

    def __init__(self, running: Product) -> None:
        self._product = running
        self._serving: Serving | None = None

    def start(self) -> None:
        """Start it."""
        self._serving = self._product.serve().wait_swept()

    def stop(self) -> int:
        """End it, and return its exit code; 0 where it has ended."""
        serving, self._serving = self._serving, None
        return serving.stop() if serving else 0


@pytest.fixture
def service(alone: Product) -> Iterator[Service]:
    """Give its service, up."""
    made = Service(alone)
    made.start()
    yield made
    made.stop()


def client(alone: Product) -> Client:
    """Return a client at the socket."""
    return Client(alone.paths.http_socket, alone.paths.api_token.read_text().strip())


def lasting(status: dict[str, Any]) -> dict[str, Any]:
    """Return a status without what changes by itself, or differs by the process that tells it."""
    rows = [
        {key: value for key, value in row.items() if key not in ("working", "drift", "detail")}
        for row in status["standingSessions"]
    ]
    return {**status, "standingSessions": rows}


def test_status_is_that_of_the_command_line(alone: Product, service: Service) -> None:
    """Services, programs and sessions."""
    told = client(alone).get("/status").json

    assert told["ok"] is True
    assert [row["name"] for row in told["services"]] == ["service", "http"]
    assert lasting(told) == lasting(alone.cli("status", "--json").json)


def test_a_key_is_known_to_the_next_service(alone: Product, service: Service) -> None:
    """What was said before a restart is not said again after it."""
    body = {"name": NAME, "text": "once over a restart"}
    first = client(alone).post("/standing-sessions/say", body, Idempotency_Key="over-a-restart")
    service.stop()
    service.start()

    second = client(alone).post("/standing-sessions/say", body, Idempotency_Key="over-a-restart")

    assert first.json["delivered"] is True
    assert (second.body, second.headers["idempotency-replayed"]) == (first.body, "true")
    assert alone.times("once over a restart") == 1


def test_whoever_follows_the_events_goes_on_over_a_restart(alone: Product, service: Service) -> None:
    """By itself: nothing is missed, and nothing comes twice."""
    events = the_loop.connect(socket=alone.paths.http_socket, environ={}).events
    following = events.follow(after=events.latest(1)[0].id)
    alone.cli("standing", "say", NAME, "--text", "before")
    before = next(event for event in following if event.event == "standing.said")
    service.stop()
    alone.cli("standing", "pause", NAME)
    service.start()
    alone.cli("standing", "resume", NAME)

    heard = []
    for event in following:
        heard.append(event.event)
        if event.event == "standing.unpaused":
            break

    assert before.name == NAME
    wanted = ("service.stopped", "standing.paused", "service.started", "standing.unpaused")
    assert [event for event in heard if event in wanted] == list(wanted)


def test_an_answer_that_takes_long_holds_up_neither_others_nor_the_end(alone: Product, service: Service) -> None:
    """A say that waits for its turn, while the service is told to end."""
    alone.cli("standing", "pause", NAME)
    waiting = threading.Thread(
        target=lambda: client(alone).post("/standing-sessions/say", {"name": NAME, "text": "slow", "wait": 60})
    )
    asked = client(alone)
    waiting.start()
    answered = [asked.get("/standing-sessions").status for _ in range(3)]

    code = service.stop()
    waiting.join(30)
    alone.cli("standing", "resume", NAME)

    assert answered == [200, 200, 200]
    assert code == 0
    assert not waiting.is_alive()
