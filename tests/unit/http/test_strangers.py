"""Connections that carry no token: how many at once, and for how long."""

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import uvicorn
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from core.http import app
from core.http.guard import trust
from tests.support.tmux import PATIENCE

SECONDS = 0.5
GO = threading.Event()


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer everybody with the body, those with a token once `GO` is set."""
    request = Request(scope, receive)
    if request.url.path == "/trusted":
        trust(scope)
    body = await request.body()
    if request.url.path == "/trusted":
        import anyio.to_thread

        await anyio.to_thread.run_sync(GO.wait, PATIENCE)
    await Response(body or b"well")(scope, receive, send)


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Give the port of a server whose strangers have half a second."""
    monkeypatch.setattr(app, "SECONDS", SECONDS)
    GO.clear()
    config = uvicorn.Config(
        application, http=app.BoundedProtocol, ws="none", lifespan="off", log_config=None, backlog=64
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        yield listener.getsockname()[1]
        GO.set()
        server.should_exit = True
        thread.join(PATIENCE)


def opened(port: int, said: bytes = b"") -> socket.socket:
    """Open a connection and say something."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    connection.sendall(said)
    return connection


def is_over(connection: socket.socket) -> bool:
    """Return whether the other end has gone, or wait until it has."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def ask(port: int, path: str = "/", body: bytes | None = None) -> bytes:
    """Ask as somebody honest does."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("POST", path, body)
        return connection.getresponse().read()
    finally:
        connection.close()


@pytest.mark.parametrize(
    "said",
    [b"", b"GET / HTTP/1.1\r\nHo", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n{"],
    ids=["nothing", "half-a-header", "half-a-body"],
)
def test_what_is_no_whole_request_in_time_is_cut_off(port: int, said: bytes) -> None:
    """Whatever part of one it is, and the others are answered."""
    with opened(port, said) as connection:
        assert is_over(connection)

    assert ask(port, body=b"hello") == b"hello"


def test_a_byte_now_and_then_wins_no_time(port: int) -> None:
    """The time counts from the opening, not from the latest byte."""
    with opened(port) as connection:
        stopping = threading.Event()
        trickle = threading.Thread(target=_trickle, args=(connection, stopping))
        trickle.start()
        over = is_over(connection)
        stopping.set()
        trickle.join()

    assert over


def _trickle(connection: socket.socket, stopping: threading.Event) -> None:
    for letter in b"GET /" + b"a" * 4000:
        if stopping.wait(SECONDS / 10):
            return
        try:
            connection.sendall(bytes([letter]))
        except OSError:
            return


def test_after_an_answer_a_byte_keeps_no_connection(port: int) -> None:
    """uvicorn forgets its own time-out at the first byte of what comes next."""
    with opened(port, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi") as connection:
        while b"hi" not in connection.recv(4096):
            continue
        connection.sendall(b"G")
        assert is_over(connection)


def test_a_question_with_a_token_waits_for_its_answer(port: int) -> None:
    """However long people take."""
    answers: list[bytes] = []
    waiting = threading.Thread(target=lambda: answers.append(ask(port, "/trusted", b"a question")))
    waiting.start()
    with opened(port) as other:  # which came after it
        assert is_over(other)
    still_waits = not answers
    GO.set()
    waiting.join(PATIENCE)

    assert still_waits
    assert answers == [b"a question"]


def test_where_one_comes_too_many_the_oldest_goes(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nobody keeps others out by being there first."""
    monkeypatch.setattr(app, "SECONDS", 60 * PATIENCE)
    monkeypatch.setattr(app, "STRANGERS", 5)
    monkeypatch.setattr(app, "BURST_SECONDS", 0.0)
    with ExitStack() as held:
        crowd = [held.enter_context(opened(port)) for _ in range(5)]
        assert ask(port, body=b"me too") == b"me too"

        crowd[0].settimeout(PATIENCE)
        assert is_over(crowd[0])
        crowd[-1].settimeout(0)
        with pytest.raises(BlockingIOError):
            crowd[-1].recv(1)


def test_many_who_come_at_once_are_all_answered(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can show a token before the first request is read."""
    monkeypatch.setattr(app, "SECONDS", PATIENCE)
    monkeypatch.setattr(app, "BURST_SECONDS", PATIENCE)
    monkeypatch.setattr(app, "STRANGERS", 5)
    with ExitStack() as held:
        crowd = [held.enter_context(opened(port)) for _ in range(30)]
        for connection in crowd:
            connection.sendall(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi")
        answers = [connection.recv(4096) for connection in crowd]

    assert [answer[:15] for answer in answers] == [b"HTTP/1.1 200 OK"] * 30


def test_whoever_has_shown_a_token_is_no_stranger_between_two_requests(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strangers push out one another, and not the connection of a client that rests."""
    monkeypatch.setattr(app, "BURST_SECONDS", 0.0)
    monkeypatch.setattr(app, "STRANGERS", 2)
    GO.set()
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    client.request("POST", "/trusted", b"one")
    first = client.getresponse().read()
    with ExitStack() as held:
        crowd = [held.enter_context(opened(port)) for _ in range(6)]
        assert is_over(crowd[0])
        client.request("POST", "/trusted", b"two")
        second = client.getresponse().read()
    client.close()

    assert (first, second) == (b"one", b"two")


def test_what_nobody_reads_is_not_kept(port: int) -> None:
    """A client that asks again and again and takes no answer would fill our buffers."""
    with opened(port) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n" + b"x" * 60000
        assert _pushed_off(connection, request)

    assert ask(port, body=b"hello") == b"hello"


def _pushed_off(connection: socket.socket, request: bytes) -> bool:
    """Ask until the other end has had enough. Raises TimeoutError where it stands still instead."""
    try:
        while True:
            connection.sendall(request)
    except (ConnectionResetError, BrokenPipeError):
        return True
