"""People without a token who open connections: they take nothing from anybody, and end nothing."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.integration.http.conftest import Web
from tests.support.product import NAME, Product, bounded
from tests.support.tmux import wait_until

DESCRIPTORS = 160  #: of the service, as a soft and a hard limit
CROWD = 200


def connected(web: Web, said: bytes = b"") -> socket.socket:
    """Open a connection and say something that is no whole request."""
    parts = urlsplit(web.url)
    connection = socket.create_connection((parts.hostname, parts.port), timeout=10)
    if said:
        connection.sendall(said)
    return connection


@contextmanager
def crowd(web: Web, *said: bytes) -> Iterator[list[socket.socket]]:
    """Hold more connections open than the service may have descriptors."""
    with ExitStack() as held:
        yield [held.enter_context(connected(web, said[number % len(said)])) for number in range(CROWD)]


def test_more_connections_than_descriptors_end_nothing(alone: Product, web: Web) -> None:
    """Idle ones and half-sent ones: the service answers others meanwhile, delivers, and lives."""
    service = alone.serve(within=bounded(f"-n {DESCRIPTORS}")).wait_swept()
    assert web.get("/health").status == 200

    with crowd(web, b"", b"GET /health HTTP/1.1\r\nHo"):
        wait_until(lambda: _health(web) == 200, "somebody who asks is answered")
        said = alone.cli("standing", "say", NAME, "--text", "are you there?", "--json")
        code = alone.cli("status").code

    assert (said.json["state"], code) == ("confirmed", 0), said.out
    assert service.stop() == 0
    assert "worker failed" not in service.output()


def _health(web: Web) -> int:
    try:
        return web.get("/health").status
    except OSError:
        return 0


def test_before_anybody_was_answered_a_crowd_ends_nothing(alone: Product, web: Web) -> None:
    """What answers them is loaded by the first of them, while the others take what there is."""
    service = alone.serve(within=bounded(f"-n {DESCRIPTORS}")).wait_swept()

    with crowd(web, b""):
        wait_until(lambda: _health(web) == 200, "somebody who asks is answered")

    assert service.stop() == 0
    assert "worker failed" not in service.output()


def test_more_callers_of_the_socket_than_descriptors_end_nothing(alone: Product) -> None:
    """An agent may open it; what it does not ask is not waited for, and others are answered."""
    service = alone.serve(within=bounded(f"-n {DESCRIPTORS}")).wait_swept()

    with ExitStack() as held:
        for _ in range(CROWD):
            held.enter_context(_calling(alone.paths.service_socket))
        said = alone.cli("standing", "say", NAME, "--text", "are you there?", "--json")
        code = alone.cli("status").code

    assert (said.json["state"], code) == ("confirmed", 0), said.out
    assert service.stop() == 0
    assert "worker failed" not in service.output()


def _calling(path: Path) -> socket.socket:
    caller = socket.socket(socket.AF_UNIX)
    caller.connect(str(path))  # without a time-out it waits for its place in the backlog
    return caller


def test_the_service_may_hold_more_open_than_its_agents(alone: Product) -> None:
    """Its soft limit is raised; what it starts has the one with which it was started itself."""
    service = alone.serve(within=bounded("-Sn 512")).wait_swept()

    [pane] = alone.panes().values()
    assert _soft_limit(service.pid) > 512
    assert _soft_limit(pane) == 512


def _soft_limit(pid: int) -> int:
    [line] = [
        line for line in Path(f"/proc/{pid}/limits").read_text().splitlines() if line.startswith("Max open files")
    ]
    return int(line.split()[3])
